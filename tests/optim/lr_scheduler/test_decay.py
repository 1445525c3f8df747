"""Schedules with a rule of one line, against PyTorch."""

import pytest
from nn import examples
from optim import schedules

import tinyfin as tf


def falling(milestones, gamma):
    return lambda base, e: base * gamma ** sum(e >= m for m in milestones)


CLOSED = [
    (lambda m, o: m.StepLR(o, 7), lambda base, e: base * 0.1 ** (e // 7)),
    (lambda m, o: m.StepLR(o, step_size=1, gamma=0.9), lambda base, e: base * 0.9**e),
    (lambda m, o: m.MultiStepLR(o, [5, 20, 40]), falling([5, 20, 40], 0.1)),
    (lambda m, o: m.MultiStepLR(o, [30, 10, 10], gamma=0.5), falling([10, 10, 30], 0.5)),
    (lambda m, o: m.ConstantLR(o), lambda base, e: base / 3 if e < 5 else base),
    (
        lambda m, o: m.ConstantLR(o, factor=0.2, total_iters=17),
        lambda base, e: base * (0.2 if e < 17 else 1),
    ),
    (lambda m, o: m.LinearLR(o), lambda base, e: base * (1 / 3 + min(e, 5) / 5 * 2 / 3)),
    (
        lambda m, o: m.LinearLR(o, 0.1, 0.7, total_iters=31),
        lambda base, e: base * (0.1 + 0.6 * min(e, 31) / 31),
    ),
    (
        lambda m, o: m.LinearLR(o, 1.0, 0.0, total_iters=20),
        lambda base, e: base * (1 - min(e, 20) / 20),
    ),
    (lambda m, o: m.ExponentialLR(o, 0.93), lambda base, e: base * 0.93**e),
    (lambda m, o: m.PolynomialLR(o), lambda base, e: base * (1 - min(e, 5) / 5)),
    (
        lambda m, o: m.PolynomialLR(o, total_iters=44, power=2.5),
        lambda base, e: base * (1 - min(e, 44) / 44) ** 2.5,
    ),
]
OPEN = [
    (lambda m, o: m.LambdaLR(o, lambda e: 0.95**e), lambda base, e: base * 0.95**e),
    (
        lambda m, o: m.LambdaLR(o, [lambda e: 1 / (1 + e), lambda e: 0.5 + 0.1 * (e % 3)]),
        [lambda base, e: base / (1 + e), lambda base, e: base * (0.5 + 0.1 * (e % 3))],
    ),
    (
        lambda m, o: m.MultiplicativeLR(o, lambda e: 0.9 if e % 2 else 1.05),
        lambda base, e: base * 0.9 ** ((e + 1) // 2) * 1.05 ** (e // 2),
    ),
]


@pytest.mark.parametrize("make, rule", CLOSED + OPEN)
def test_rates(make, rule):
    schedules.check(make, rule)


@pytest.mark.parametrize("make", [make for make, _ in CLOSED])
def test_jumps(make):
    schedules.check_closed(make)


def test_functions_stay_out_of_the_state():
    class Rule:
        def __init__(self, base):
            self.base = base

        def __call__(self, epoch):
            return self.base**epoch

    make = tf.optim.lr_scheduler.LambdaLR
    state = make(schedules.optimizer(tf), [Rule(0.5), lambda e: 1.0]).state_dict()
    assert state["lr_lambdas"] == [{"base": 0.5}, None]
    other = make(schedules.optimizer(tf), [Rule(0.9), lambda e: 1.0])
    other.load_state_dict(state)
    assert other.lr_lambdas[0].base == 0.5


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda m, o: m.LambdaLR(o, [abs] * 3), ValueError, "lr_lambda has 3"),
        (lambda m, o: m.LambdaLR(o, 0.5), TypeError, "expected a function"),
        (lambda m, o: m.ConstantLR(o, 1.5), ValueError, "factor is 1.5"),
        (lambda m, o: m.LinearLR(o, 0), ValueError, "start_factor is 0"),
        (lambda m, o: m.LinearLR(o, 0.5, 2), ValueError, "end_factor is 2"),
    ],
)
def test_errors(make, error, text):
    schedules.fails(make, error, text)


def test_examples():
    examples.run("tinyfin.optim.lr_scheduler.decay")


def test_steps_that_are_none():
    opt = tf.optim.SGD([tf.nn.Parameter(tf.ones(1))], lr=0.1)
    with pytest.raises(ValueError, match="StepLR: step_size is 0, expected at least 1"):
        tf.optim.lr_scheduler.StepLR(opt, 0)
    with pytest.raises(TypeError, match=r"StepLR: step_size is 1\.5, expected an integer"):
        tf.optim.lr_scheduler.StepLR(opt, 1.5)
