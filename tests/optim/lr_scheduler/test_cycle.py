"""Schedules along a cosine or a cycle, against PyTorch."""

import math

import pytest
from nn import examples
from optim import schedules

import tinyfin as tf


def between(a, b, part):
    """From a to b along half a cosine."""
    return b + (a - b) * (1 + math.cos(math.pi * part)) / 2


def restarts(first, mult, low):
    def rule(base, e):
        length = first
        while e >= length:
            e, length = e - length, length * mult
        return between(base, low, e / length)

    return rule


def one_cycle(top, up, total, div=25.0, final=1e4, way=between):
    def rule(base, e):
        low, last = top / div, top / div / final
        if e <= up:
            return way(low, top, e / up)
        return way(top, last, (e - up) / (total - 1 - up))

    return rule


def straight(a, b, part):
    return a + (b - a) * part


@pytest.mark.parametrize(
    "make, rule",
    [
        (
            lambda m, o: m.CosineAnnealingLR(o, 25),
            lambda base, e: between(base, 0.0, e / 25),
        ),
        (
            lambda m, o: m.CosineAnnealingLR(o, T_max=8, eta_min=0.003),
            lambda base, e: between(base, 0.003, e / 8),
        ),
        (lambda m, o: m.CosineAnnealingWarmRestarts(o, 9), restarts(9, 1, 0.0)),
        (
            lambda m, o: m.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2, eta_min=0.01),
            restarts(5, 2, 0.01),
        ),
        (lambda m, o: m.OneCycleLR(o, 0.5, total_steps=60), one_cycle(0.5, 17.0, 60)),
        (
            lambda m, o: m.OneCycleLR(
                o,
                [0.5, 0.2],
                epochs=12,
                steps_per_epoch=5,
                pct_start=0.4,
                anneal_strategy="linear",
                div_factor=10.0,
                final_div_factor=50.0,
            ),
            [one_cycle(top, 23.0, 60, 10.0, 50.0, straight) for top in (0.5, 0.2)],
        ),
        (
            lambda m, o: m.OneCycleLR(
                o, 0.5, total_steps=60, three_phase=True, base_momentum=0.7, max_momentum=[0.9, 0.8]
            ),
            None,
        ),
        (
            lambda m, o: m.OneCycleLR(o, 0.5, total_steps=60, cycle_momentum=False),
            one_cycle(0.5, 17.0, 60),
        ),
    ],
)
def test_rates(make, rule):
    schedules.check(make, rule)


def test_jumps():
    schedules.check_closed(lambda m, o: m.CosineAnnealingLR(o, 25))


@pytest.mark.parametrize("epochs", [[0, 3.5, 10, 11.25, 40, 2], [1, 2, 3, 0.5]])
@pytest.mark.parametrize("mult", [1, 2])
def test_warm_restarts_take_fractions(epochs, mult):
    seen = []
    for m in (tf, schedules.torch):
        schedule = m.optim.lr_scheduler.CosineAnnealingWarmRestarts(schedules.optimizer(m), 4, mult)
        rates = []
        for epoch in epochs:
            schedule.step(epoch)
            rates.append(schedule.get_last_lr()[:])
        seen.append(rates)
    assert seen[0] == seen[1]


def test_one_cycle_ends():
    opt = schedules.optimizer(tf)
    schedule = tf.optim.lr_scheduler.OneCycleLR(opt, 0.5, total_steps=3)
    for _ in range(3):
        opt.step()
        schedule.step()
    with pytest.raises(ValueError, match="step 4 of a cycle of 3"):
        schedule.step()


def test_one_cycle_with_a_rise_of_one_step():
    opt = schedules.optimizer(tf)
    schedule = tf.optim.lr_scheduler.OneCycleLR(opt, 0.5, total_steps=10, pct_start=0.1)
    assert schedule.get_last_lr() == [0.5, 0.5]


def test_one_cycle_needs_momentum():
    opt = tf.optim.Optimizer([tf.nn.Parameter(tf.ones(1))], {"lr": 0.1})
    with pytest.raises(ValueError, match="neither momentum nor betas"):
        tf.optim.lr_scheduler.OneCycleLR(opt, 0.5, total_steps=3)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda m, o: m.CosineAnnealingWarmRestarts(o, 0), "T_0 is 0"),
        (lambda m, o: m.CosineAnnealingWarmRestarts(o, 2, 0), "T_mult is 0"),
        (lambda m, o: m.CosineAnnealingWarmRestarts(o, 2, 1, "x"), "eta_min is 'x'"),
        (lambda m, o: m.CosineAnnealingWarmRestarts(o, 2).step(-1), "epoch is -1"),
        (lambda m, o: m.OneCycleLR(o, 1.0), "length is missing"),
        (lambda m, o: m.OneCycleLR(o, 1.0, epochs=3), "length is missing"),
        (lambda m, o: m.OneCycleLR(o, 1.0, 0), "total_steps is 0"),
        (lambda m, o: m.OneCycleLR(o, 1.0, epochs=2, steps_per_epoch=-1), "steps_per_epoch is -1"),
        (lambda m, o: m.OneCycleLR(o, 1.0, 5, pct_start=1), "pct_start is 1"),
        (lambda m, o: m.OneCycleLR(o, 1.0, 5, anneal_strategy="x"), "anneal_strategy is 'x'"),
        (lambda m, o: m.OneCycleLR(o, [1.0] * 3, 5), "max_lr has 3"),
    ],
)
def test_errors(make, text):
    schedules.fails(make, ValueError, text)


def test_examples():
    examples.run("tinyfin.optim.lr_scheduler.cycle")
