"""Learning rates of one schedule here and in PyTorch, step by step."""

import copy
import warnings

import pytest

import tinyfin as tf

torch = pytest.importorskip("torch")


def optimizer(m, kind="SGD"):
    """An optimizer of module `m`, tinyfin or torch, with two groups."""
    a, b = m.nn.Parameter(m.ones(2)), m.nn.Parameter(m.ones(3))
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(m.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.3}], lr=0.1, **options)


def trajectory(schedule, opt, steps=60, metric=None):
    """Rates, as the schedule and as the groups have them, and momenta before each step."""
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for i in range(steps):
            momenta = [group.get("momentum", group.get("betas")) for group in opt.param_groups]
            rates = [group["lr"] for group in opt.param_groups]
            seen.append((schedule.get_last_lr()[:], rates, momenta))
            opt.step()
            schedule.step() if metric is None else schedule.step(metric(i))
    return seen


def check(make):
    """Asserts that 60 steps are PyTorch's bit for bit, and that state goes on where it stopped."""
    ours, theirs = tf.optim.lr_scheduler, torch.optim.lr_scheduler
    for kind in ("SGD", "Adam"):
        a, b = optimizer(tf, kind), optimizer(torch, kind)
        whole = trajectory(make(ours, a), a)
        assert whole == trajectory(make(theirs, b), b)
        first = optimizer(tf, kind)
        schedule = make(ours, first)
        trajectory(schedule, first, 25)
        states = copy.deepcopy((schedule.state_dict(), first.state_dict()))
        second = optimizer(tf, kind)
        again = make(ours, second)
        again.load_state_dict(states[0])
        second.load_state_dict(states[1])
        assert trajectory(again, second, 35) == whole[25:]


def check_closed(make):
    """Asserts that jumping to epochs gives PyTorch's rates."""
    seen = []
    for m in (tf, torch):
        schedule = make(m.optim.lr_scheduler, optimizer(m))
        rates = []
        for epoch in (0, 3, 11, 5, 50):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                schedule.step(epoch)
            rates.append(schedule.get_last_lr()[:])
        seen.append(rates)
    assert seen[0] == seen[1]


def check_resumed(make):
    """Asserts that a schedule made anew with `last_epoch` goes on as PyTorch's does."""
    seen = []
    for m in (tf, torch):
        opt = optimizer(m)
        trajectory(make(m.optim.lr_scheduler, opt, -1), opt, 5)
        schedule = make(m.optim.lr_scheduler, opt, 4)
        seen.append(trajectory(schedule, opt, 10))
    assert seen[0] == seen[1]


def fails(make, error, text):
    """Asserts that making a schedule fails in this way."""
    with pytest.raises(error, match=text):
        make(tf.optim.lr_scheduler, optimizer(tf))
