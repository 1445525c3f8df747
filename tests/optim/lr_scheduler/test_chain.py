"""Schedules made of schedules, against PyTorch."""

import pytest
from nn import examples
from optim import schedules

import tinyfin as tf


@pytest.mark.parametrize(
    "make",
    [
        lambda m, o: m.SequentialLR(o, [m.ConstantLR(o, 0.1, 5), m.ExponentialLR(o, 0.9)], [10]),
        lambda m, o: m.SequentialLR(
            o,
            [m.LinearLR(o, 0.1, total_iters=7), m.CosineAnnealingLR(o, 20), m.StepLR(o, 5)],
            milestones=[7, 30],
        ),
        lambda m, o: m.SequentialLR(
            o, [m.LinearLR(o, 0.1, total_iters=7), m.CosineAnnealingWarmRestarts(o, 10)], [7]
        ),
        lambda m, o: m.SequentialLR(
            o,
            [
                m.SequentialLR(o, [m.ConstantLR(o, 0.5, 3), m.StepLR(o, 2)], [4]),
                m.PolynomialLR(o, 20),
            ],
            [12],
        ),
        lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, 4), m.ExponentialLR(o, 0.9)]),
    ],
)
def test_rates(make):
    schedules.check(make)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda m, o: m.SequentialLR(o, [], []), ValueError, "no schedulers"),
        (lambda m, o: m.SequentialLR(o, [m.StepLR(o, 1)], [4]), ValueError, "milestones"),
        (lambda m, o: m.ChainedScheduler([m.ReduceLROnPlateau(o)]), ValueError, "metric"),
        (
            lambda m, o: m.ChainedScheduler([m.StepLR(o, 1), m.StepLR(schedules.optimizer(tf), 1)]),
            ValueError,
            "another optimizer",
        ),
        (lambda m, o: m.ChainedScheduler([3]), TypeError, "scheduler 0 is a int"),
    ],
)
def test_errors(make, error, text):
    schedules.fails(make, error, text)


def test_state_of_another_number_of_schedules():
    m = tf.optim.lr_scheduler
    opt = schedules.optimizer(tf)
    two, three = (m.ChainedScheduler([m.StepLR(opt, 3) for _ in range(n)]) for n in (2, 3))
    with pytest.raises(ValueError, match="state of 3 schedules was given, expected 2"):
        two.load_state_dict(three.state_dict())


def test_examples():
    examples.run("tinyfin.optim.lr_scheduler.chain")
