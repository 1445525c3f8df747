"""ReduceLROnPlateau, against PyTorch."""

import math

import pytest
from nn import examples
from optim import schedules

import tinyfin as tf


def metric(i):
    return 3.0 / (1 + i) + 0.2 * math.sin(i)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"patience": 2},
        {"patience": 3, "factor": 0.5, "cooldown": 2},
        {"mode": "max", "patience": 2, "threshold": 0.05, "min_lr": [0.02, 0.05]},
        {"threshold_mode": "abs", "threshold": 0.3, "patience": 1, "min_lr": 0.01},
        {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "patience": 4, "eps": 1e-3},
    ],
)
def test_rates(options):
    seen = []
    for m in (tf, schedules.torch):
        opt = schedules.optimizer(m)
        schedule = m.optim.lr_scheduler.ReduceLROnPlateau(opt, **options)
        seen.append(schedules.trajectory(schedule, opt, 60, metric))
        assert schedule.last_epoch == 60
    assert seen[0] == seen[1]


def test_state_goes_on_where_it_stopped():
    make = tf.optim.lr_scheduler.ReduceLROnPlateau
    opt = schedules.optimizer(tf)
    whole = schedules.trajectory(make(opt, patience=2), opt, 40, metric)
    opt = schedules.optimizer(tf)
    schedule = make(opt, patience=2)
    schedules.trajectory(schedule, opt, 15, metric)
    other = schedules.optimizer(tf)
    again = make(other, patience=9)
    again.load_state_dict(schedule.state_dict())
    other.load_state_dict(opt.state_dict())
    assert schedules.trajectory(again, other, 25, lambda i: metric(i + 15)) == whole[15:]


def test_takes_tensors_and_counts_nan_as_worse():
    opt = schedules.optimizer(tf)
    schedule = tf.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0)
    schedule.step(tf.tensor(1.0))
    schedule.step(float("nan"))
    assert schedule.get_last_lr() == pytest.approx([0.01, 0.03])


def test_groups_added_later():
    opt = schedules.optimizer(tf)
    schedule = tf.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0, min_lr=[0.0, 0.0])
    general = tf.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0)
    opt.add_param_group({"params": [tf.nn.Parameter(tf.ones(1))]})
    for s in (schedule, general):
        s.step(1.0)
    general.step(2.0)
    assert opt.param_groups[2]["lr"] == pytest.approx(0.01)
    with pytest.raises(RuntimeError, match="now has 3 parameter groups"):
        schedule.step(2.0)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"factor": 1.0}, "factor is 1"),
        ({"mode": "x"}, "mode is 'x'"),
        ({"threshold_mode": "x"}, "threshold_mode is 'x'"),
        ({"min_lr": [1.0]}, "min_lr has 1"),
    ],
)
def test_errors(options, text):
    schedules.fails(lambda m, o: m.ReduceLROnPlateau(o, **options), ValueError, text)


def test_examples():
    examples.run("tinyfin.optim.lr_scheduler.plateau")
