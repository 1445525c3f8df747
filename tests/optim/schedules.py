"""Learning rates of one schedule here, by its rule, and in PyTorch, step by step."""

import copy
import warnings

import pytest
from lazy import INSTALLED, torch

import tinyfin as tf

JUMPS = (0, 3, 11, 5, 50)


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


def check(make, rule=None):
    """Asserts that 60 steps follow the rule, go on where they stopped after the state went through
    dictionaries, and are PyTorch's bit for bit.

    `rule(base, epoch)` gives the rate of a group; a list has one rule for each group.
    """
    ours = tf.optim.lr_scheduler
    whole = {}
    for kind in ("SGD", "Adam"):
        opt = optimizer(tf, kind)
        whole[kind] = trajectory(make(ours, opt), opt)
        first = optimizer(tf, kind)
        schedule = make(ours, first)
        trajectory(schedule, first, 25)
        states = copy.deepcopy((schedule.state_dict(), first.state_dict()))
        second = optimizer(tf, kind)
        again = make(ours, second)
        again.load_state_dict(states[0])
        second.load_state_dict(states[1])
        assert trajectory(again, second, 35) == whole[kind][25:]
    if rule is not None:
        rules = rule if isinstance(rule, list) else [rule] * 2
        want = [[r(base, epoch) for r, base in zip(rules, (0.1, 0.3))] for epoch in range(60)]
        for got, rates in zip(whole["SGD"], want, strict=True):
            assert got[0] == pytest.approx(rates, rel=1e-9, abs=1e-15) and got[1] == got[0]
    if INSTALLED:
        for kind in ("SGD", "Adam"):
            opt = optimizer(torch, kind)
            assert trajectory(make(torch.optim.lr_scheduler, opt), opt) == whole[kind]


def jumped(m, make):
    """The rates after jumps to epochs."""
    schedule = make(m.optim.lr_scheduler, optimizer(m))
    rates = []
    for epoch in JUMPS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            schedule.step(epoch)
        rates.append(schedule.get_last_lr()[:])
    return rates


def check_closed(make):
    """Asserts that jumping to epochs gives the rates that steps lead to, and PyTorch's."""
    opt = optimizer(tf)
    walked = trajectory(make(tf.optim.lr_scheduler, opt), opt)
    rates = jumped(tf, make)
    for epoch, got in zip(JUMPS, rates, strict=True):
        assert got == pytest.approx(walked[epoch][0], rel=1e-9, abs=1e-15)
    if INSTALLED:
        assert rates == jumped(torch, make)


def resumed(m, make):
    """Rates of a schedule that was made anew with `last_epoch`."""
    opt = optimizer(m)
    trajectory(make(m.optim.lr_scheduler, opt, -1), opt, 5)
    return trajectory(make(m.optim.lr_scheduler, opt, 4), opt, 10)


def check_resumed(make):
    """Asserts that a schedule made anew with `last_epoch` goes on, as PyTorch's does."""
    opt = optimizer(tf)
    whole = trajectory(make(tf.optim.lr_scheduler, opt, -1), opt, 15)
    got = resumed(tf, make)
    for a, b in zip(got, whole[5:], strict=True):
        assert a[0] == pytest.approx(b[0], rel=1e-9)
    if INSTALLED:
        assert got == resumed(torch, make)


def fails(make, error, text):
    """Asserts that making a schedule fails in this way."""
    with pytest.raises(error, match=text):
        make(tf.optim.lr_scheduler, optimizer(tf))
