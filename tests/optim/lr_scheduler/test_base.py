"""What all schedules share: order of steps, resuming, errors."""

import warnings

import pytest
from nn import examples
from optim import schedules

import tinyfin as tf


def test_order_of_steps_is_watched():
    opt = schedules.optimizer(tf)
    schedule = tf.optim.lr_scheduler.StepLR(opt, 2)
    with pytest.warns(UserWarning, match="before the optimizer"):
        schedule.step()
    opt = schedules.optimizer(tf)
    schedule = tf.optim.lr_scheduler.StepLR(opt, 2)
    opt.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
    assert "step" not in vars(opt)


@pytest.mark.parametrize(
    "make",
    [
        lambda m, o, e: m.CosineAnnealingLR(o, 20, last_epoch=e),
        lambda m, o, e: m.StepLR(o, 3, last_epoch=e),
        lambda m, o, e: m.LinearLR(o, 0.2, total_iters=9, last_epoch=e),
        lambda m, o, e: m.OneCycleLR(o, 0.3, total_steps=60, last_epoch=e),
    ],
)
def test_resuming(make):
    schedules.check_resumed(make)


def test_own_schedules():
    class Inverse(tf.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            return [base / (1 + self.last_epoch) for base in self.base_lrs]

    opt = schedules.optimizer(tf)
    schedule = Inverse(opt)
    schedules.trajectory(schedule, opt, 3)
    assert schedule.get_last_lr() == [0.1 / 4, 0.3 / 4]
    schedule.step(1)
    assert opt.param_groups[1]["lr"] == 0.15


def test_state_is_plain():
    state = tf.optim.lr_scheduler.StepLR(schedules.optimizer(tf), 2).state_dict()
    assert "optimizer" not in state and state["last_epoch"] == 0 and state["base_lrs"] == [0.1, 0.3]


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda m, o: m.StepLR(3, 1), TypeError, "optimizer is a int"),
        (lambda m, o: m.StepLR(o, 1, last_epoch=3), KeyError, "initial_lr"),
        (lambda m, o: m.LRScheduler(o), NotImplementedError, "get_lr"),
    ],
)
def test_errors(make, error, text):
    schedules.fails(make, error, text)


def test_examples():
    examples.run("tinyfin.optim.lr_scheduler.base")
