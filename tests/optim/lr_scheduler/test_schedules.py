"""Learning rates over 60 steps agree with PyTorch's, bit for bit, for every schedule and option."""
import copy
import math
import warnings

import pytest

import tinyfin as tf

torch = pytest.importorskip("torch")

CASES = {
    "LambdaLR": [
        lambda m, o: m.LambdaLR(o, lambda e: 0.95**e),
        lambda m, o: m.LambdaLR(o, [lambda e: 1 / (1 + e), lambda e: 0.5 + 0.1 * (e % 3)]),
    ],
    "MultiplicativeLR": [lambda m, o: m.MultiplicativeLR(o, lambda e: 0.9 if e % 2 else 1.05)],
    "StepLR": [lambda m, o: m.StepLR(o, 7), lambda m, o: m.StepLR(o, step_size=1, gamma=0.9)],
    "MultiStepLR": [
        lambda m, o: m.MultiStepLR(o, [5, 20, 40]),
        lambda m, o: m.MultiStepLR(o, [30, 10, 10], gamma=0.5),
    ],
    "ConstantLR": [
        lambda m, o: m.ConstantLR(o),
        lambda m, o: m.ConstantLR(o, factor=0.2, total_iters=17),
    ],
    "LinearLR": [
        lambda m, o: m.LinearLR(o),
        lambda m, o: m.LinearLR(o, 0.1, 0.7, total_iters=31),
        lambda m, o: m.LinearLR(o, 1.0, 0.0, total_iters=20),
    ],
    "ExponentialLR": [lambda m, o: m.ExponentialLR(o, 0.93)],
    "PolynomialLR": [
        lambda m, o: m.PolynomialLR(o),
        lambda m, o: m.PolynomialLR(o, total_iters=44, power=2.5),
    ],
    "CosineAnnealingLR": [
        lambda m, o: m.CosineAnnealingLR(o, 25),
        lambda m, o: m.CosineAnnealingLR(o, T_max=8, eta_min=0.003),
    ],
    "CosineAnnealingWarmRestarts": [
        lambda m, o: m.CosineAnnealingWarmRestarts(o, 9),
        lambda m, o: m.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2, eta_min=0.01),
    ],
    "OneCycleLR": [
        lambda m, o: m.OneCycleLR(o, 0.5, total_steps=60),
        lambda m, o: m.OneCycleLR(o, [0.5, 0.2], epochs=12, steps_per_epoch=5, pct_start=0.4,
                                  anneal_strategy="linear", div_factor=10.0, final_div_factor=50.0),
        lambda m, o: m.OneCycleLR(o, 0.5, total_steps=60, three_phase=True, base_momentum=0.7,
                                  max_momentum=[0.9, 0.8]),
        lambda m, o: m.OneCycleLR(o, 0.5, total_steps=60, cycle_momentum=False),
    ],
    "SequentialLR": [
        lambda m, o: m.SequentialLR(o, [m.ConstantLR(o, 0.1, 5), m.ExponentialLR(o, 0.9)], [10]),
        lambda m, o: m.SequentialLR(
            o, [m.LinearLR(o, 0.1, total_iters=7), m.CosineAnnealingLR(o, 20), m.StepLR(o, 5)],
            milestones=[7, 30]),
        lambda m, o: m.SequentialLR(
            o, [m.LinearLR(o, 0.1, total_iters=7), m.CosineAnnealingWarmRestarts(o, 10)], [7]),
        lambda m, o: m.SequentialLR(
            o, [m.SequentialLR(o, [m.ConstantLR(o, 0.5, 3), m.StepLR(o, 2)], [4]),
                m.PolynomialLR(o, 20)], [12]),
    ],
    "ChainedScheduler": [
        lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, 4), m.ExponentialLR(o, 0.9)]),
    ],
}
FLAT = [pytest.param(make, id=f"{name}-{i}") for name, makes in CASES.items()
        for i, make in enumerate(makes)]


def optimizer(m, kind="SGD"):
    a, b = m.nn.Parameter(m.ones(2)), m.nn.Parameter(m.ones(3))
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(m.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.3}], lr=0.1, **options)


def momenta(opt):
    return [group.get("momentum", group.get("betas")) for group in opt.param_groups]


def trajectory(schedule, opt, steps=60, metric=None):
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for i in range(steps):
            seen.append((schedule.get_last_lr()[:], [g["lr"] for g in opt.param_groups], momenta(opt)))
            opt.step()
            schedule.step() if metric is None else schedule.step(metric(i))
    return seen


@pytest.mark.parametrize("make", FLAT)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_rates_agree_with_pytorch(make, kind):
    ours, theirs = optimizer(tf, kind), optimizer(torch, kind)
    a = trajectory(make(tf.optim.lr_scheduler, ours), ours)
    b = trajectory(make(torch.optim.lr_scheduler, theirs), theirs)
    assert a == b


@pytest.mark.parametrize("make", FLAT)
def test_state_goes_on_where_it_stopped(make):
    m = tf.optim.lr_scheduler
    whole = optimizer(tf)
    expected = trajectory(make(m, whole), whole, 50)[25:]
    first = optimizer(tf)
    schedule = make(m, first)
    trajectory(schedule, first, 25)
    saved = copy.deepcopy((schedule.state_dict(), first.state_dict()))
    second = optimizer(tf)
    again = make(m, second)
    again.load_state_dict(saved[0])
    second.load_state_dict(saved[1])
    assert trajectory(again, second, 25) == expected


PLATEAU = [
    {},
    {"patience": 2},
    {"patience": 3, "factor": 0.5, "cooldown": 2},
    {"mode": "max", "patience": 2, "threshold": 0.05, "min_lr": [0.02, 0.05]},
    {"threshold_mode": "abs", "threshold": 0.3, "patience": 1, "min_lr": 0.01},
    {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "patience": 4, "eps": 1e-3},
]


@pytest.mark.parametrize("options", PLATEAU)
def test_plateau_agrees_with_pytorch(options):
    def metric(i):
        return 3.0 / (1 + i) + 0.2 * math.sin(i)

    got = []
    for m in (tf, torch):
        opt = optimizer(m)
        schedule = m.optim.lr_scheduler.ReduceLROnPlateau(opt, **options)
        got.append(trajectory(schedule, opt, 60, metric))
        assert schedule.last_epoch == 60
    assert got[0] == got[1]


def test_plateau_takes_tensors_and_counts_nan_as_worse():
    opt = optimizer(tf)
    schedule = tf.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0)
    schedule.step(tf.tensor(1.0))
    schedule.step(float("nan"))
    assert schedule.get_last_lr() == pytest.approx([0.01, 0.03])


@pytest.mark.parametrize("epochs", [[0, 3.5, 10, 11.25, 40, 2], [1, 2, 3, 0.5]])
@pytest.mark.parametrize("mult", [1, 2])
def test_warm_restarts_take_fractions_of_epochs(epochs, mult):
    seen = []
    for m in (tf, torch):
        opt = optimizer(m)
        schedule = m.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, 4, mult)
        rates = []
        for e in epochs:
            schedule.step(e)
            rates.append(schedule.get_last_lr()[:])
        seen.append(rates)
    assert seen[0] == seen[1]


def test_closed_forms_agree_with_pytorch():
    for name in ("StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR",
                 "PolynomialLR", "CosineAnnealingLR"):
        for make in CASES[name]:
            seen = []
            for m in (tf, torch):
                schedule = make(m.optim.lr_scheduler, optimizer(m))
                rates = []
                for e in (0, 3, 11, 5, 50):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", UserWarning)
                        schedule.step(e)
                    rates.append(schedule.get_last_lr()[:])
                seen.append(rates)
            assert seen[0] == seen[1], name


def test_resuming_by_last_epoch():
    for make in (lambda m, o, e: m.CosineAnnealingLR(o, 20, last_epoch=e),
                 lambda m, o, e: m.StepLR(o, 3, last_epoch=e),
                 lambda m, o, e: m.LinearLR(o, 0.2, total_iters=9, last_epoch=e),
                 lambda m, o, e: m.OneCycleLR(o, 0.3, total_steps=60, last_epoch=e)):
        seen = []
        for m in (tf, torch):
            opt = optimizer(m)
            trajectory(make(m.optim.lr_scheduler, opt, -1), opt, 5)
            schedule = make(m.optim.lr_scheduler, opt, 4)
            seen.append(trajectory(schedule, opt, 10))
        assert seen[0] == seen[1]


def test_order_of_steps_is_watched():
    opt = optimizer(tf)
    schedule = tf.optim.lr_scheduler.StepLR(opt, 2)
    with pytest.warns(UserWarning, match="before the optimizer"):
        schedule.step()
    opt = optimizer(tf)
    schedule = tf.optim.lr_scheduler.StepLR(opt, 2)
    opt.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
    assert "step" not in vars(opt)


def test_functions_stay_out_of_the_state():
    class Rule:
        def __init__(self, base):
            self.base = base

        def __call__(self, epoch):
            return self.base**epoch

    make = tf.optim.lr_scheduler.LambdaLR
    state = make(optimizer(tf), [Rule(0.5), lambda e: 1.0]).state_dict()
    assert state["lr_lambdas"] == [{"base": 0.5}, None]
    other = make(optimizer(tf), [Rule(0.9), lambda e: 1.0])
    other.load_state_dict(state)
    assert other.lr_lambdas[0].base == 0.5


ERRORS = [
    (TypeError, "optimizer is a int", lambda m, o: m.StepLR(3, 1)),
    (KeyError, "initial_lr", lambda m, o: m.StepLR(o, 1, last_epoch=3)),
    (ValueError, "lr_lambda has 3", lambda m, o: m.LambdaLR(o, [abs] * 3)),
    (TypeError, "expected a function", lambda m, o: m.LambdaLR(o, 0.5)),
    (ValueError, "factor is 1.5", lambda m, o: m.ConstantLR(o, 1.5)),
    (ValueError, "start_factor is 0", lambda m, o: m.LinearLR(o, 0)),
    (ValueError, "end_factor is 2", lambda m, o: m.LinearLR(o, 0.5, 2)),
    (ValueError, "T_0 is 0", lambda m, o: m.CosineAnnealingWarmRestarts(o, 0)),
    (ValueError, "T_mult is 0", lambda m, o: m.CosineAnnealingWarmRestarts(o, 2, 0)),
    (ValueError, "epoch is -1", lambda m, o: m.CosineAnnealingWarmRestarts(o, 2).step(-1)),
    (ValueError, "length is missing", lambda m, o: m.OneCycleLR(o, 1.0)),
    (ValueError, "total_steps is 0", lambda m, o: m.OneCycleLR(o, 1.0, 0)),
    (ValueError, "pct_start is 1", lambda m, o: m.OneCycleLR(o, 1.0, 5, pct_start=1)),
    (ValueError, "anneal_strategy", lambda m, o: m.OneCycleLR(o, 1.0, 5, anneal_strategy="x")),
    (ValueError, "max_lr has 3", lambda m, o: m.OneCycleLR(o, [1.0] * 3, 5)),
    (ValueError, "factor is 1", lambda m, o: m.ReduceLROnPlateau(o, factor=1.0)),
    (ValueError, "mode is 'x'", lambda m, o: m.ReduceLROnPlateau(o, "x")),
    (ValueError, "threshold_mode", lambda m, o: m.ReduceLROnPlateau(o, threshold_mode="x")),
    (ValueError, "min_lr has 1", lambda m, o: m.ReduceLROnPlateau(o, min_lr=[1.0])),
    (ValueError, "no schedulers", lambda m, o: m.SequentialLR(o, [], [])),
    (ValueError, "milestones", lambda m, o: m.SequentialLR(o, [m.StepLR(o, 1)], [4])),
    (ValueError, "metric", lambda m, o: m.ChainedScheduler([m.ReduceLROnPlateau(o)])),
    (ValueError, "another optimizer",
     lambda m, o: m.ChainedScheduler([m.StepLR(o, 1), m.StepLR(optimizer(tf), 1)])),
    (TypeError, "scheduler 0 is a int", lambda m, o: m.ChainedScheduler([3])),
]


@pytest.mark.parametrize("error, text, make", ERRORS)
def test_errors(error, text, make):
    with pytest.raises(error, match=text):
        make(tf.optim.lr_scheduler, optimizer(tf))


def test_one_cycle_ends():
    opt = optimizer(tf)
    schedule = tf.optim.lr_scheduler.OneCycleLR(opt, 0.5, total_steps=3)
    for _ in range(3):
        opt.step()
        schedule.step()
    with pytest.raises(ValueError, match="step 4 of a cycle of 3"):
        schedule.step()


def test_one_cycle_needs_momentum():
    opt = tf.optim.Optimizer([tf.nn.Parameter(tf.ones(1))], {"lr": 0.1})
    with pytest.raises(ValueError, match="neither momentum nor betas"):
        tf.optim.lr_scheduler.OneCycleLR(opt, 0.5, total_steps=3)
