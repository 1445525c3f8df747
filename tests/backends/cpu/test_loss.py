"""Losses: values, gradients of gradients, labels that are wrong, and equal bits everywhere."""

import itertools

import numpy as np
import pytest
from backends.cpu.fused import (
    DTYPES,
    check_derivatives,
    check_formula,
    check_instruction_sets,
    check_threads,
    close,
    digest,
    layouts,
    run,
    tensor,
    torch,
)

import tinyfin as tf

T = torch and torch.nn.functional

SHAPES = [(7,), (32, 10), (5, 30, 3), (3, 4, 5, 2), (2100, 5), (9, 1000), (2, 40, 60), (0, 3)]
REDUCTIONS = ["none", "mean", "sum"]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape) * 2


def labels(shape, seed=5):
    """Class labels for logits of a shape."""
    sizes = () if len(shape) == 1 else (shape[0], *shape[2:])
    return np.asarray(np.random.default_rng(seed).integers(0, classes(shape), sizes), "int64")


def classes(shape):
    return shape[0] if len(shape) == 1 else shape[1]


# ---- class labels


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_class_labels_of_every_layout(shape, reduction):
    x, t, w = numbers(*shape), labels(shape), np.abs(numbers(classes(shape), seed=1))
    for weight, ignore in itertools.product((None, w), (-100, 1)):
        options = {"reduction": reduction, "ignore_index": ignore}
        wanted = None if weight is None else torch.tensor(weight)
        p = torch.tensor(x, requires_grad=True)
        want = T.cross_entropy(p, torch.tensor(t), wanted, **options)
        (back,) = torch.autograd.grad(want.sum(), p)
        for a in layouts(x):
            a = a.detach().requires_grad_()
            y = tf.cross_entropy(a, tensor(t), tensor(weight), **options)
            y.sum().backward()
            close(y, want, 1e-11)
            close(a.grad, back, 1e-11)
            close(
                tf.nll_loss(
                    tf.log_softmax(a, 0 if a.ndim == 1 else 1), tensor(t), tensor(weight), **options
                ),
                want,
                1e-11,
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (33, 10), (2100, 6), (30, 1000), (8, 16, 30)])
def test_class_labels_have_the_bits_of_their_formula(dtype, shape):
    x, t = tensor(numbers(*shape), dtype), tensor(labels(shape))
    w = tensor(np.abs(numbers(classes(shape), seed=1)), dtype)
    for reduction, weight in itertools.product(REDUCTIONS, (None, w)):
        g = tensor(numbers(*(t.shape if reduction == "none" else ()), seed=3), dtype)
        _, *saved = check_formula("cross_entropy_forward", x, t, weight, reduction, 1)
        check_formula("cross_entropy_grad", g, x, t, weight, *saved, reduction, 1)
        _, total = check_formula("nll_loss_forward", x, t, weight, reduction, 1)
        check_formula("nll_loss_grad", g, t, weight, total, reduction, 1, tuple(shape))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(4, 5), (3, 5, 2), (5,)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smooth", [0.0, 0.2])
def test_class_label_derivatives(shape, reduction, weighted, smooth):
    t, p = labels(shape), np.abs(numbers(*shape, seed=4))
    w = np.abs(numbers(5, seed=1)) if weighted else None
    a, b = tensor(w), torch.tensor(w) if weighted else None
    some = {"reduction": reduction, "label_smoothing": smooth}
    check_derivatives(
        lambda x: tf.cross_entropy(x, tensor(t), a, ignore_index=2, **some),
        lambda x: T.cross_entropy(x, torch.tensor(t), b, ignore_index=2, **some),
        numbers(*shape),
        orders=3,
    )
    check_derivatives(
        lambda x, y: tf.cross_entropy(x, y, a, **some),
        lambda x, y: T.cross_entropy(x, y, b, **some),
        numbers(*shape),
        p,
    )
    check_derivatives(
        lambda x: tf.nll_loss(x, tensor(t), a, reduction=reduction),
        lambda x: T.nll_loss(x, torch.tensor(t), b, reduction=reduction),
        numbers(*shape),
    )


def test_large_logits_and_no_labels():
    for v in (0.0, 3e4, 5e7, -2e8, 1e33):
        close(tf.cross_entropy(tf.tensor([[v, v]]), tf.tensor([1])), np.log(2), 1e-6)
    ignored = tf.tensor([-100, -100])
    assert np.isnan(tf.nll_loss(tf.zeros(2, 3), ignored).item())
    assert tf.nll_loss(tf.zeros(2, 3), ignored, reduction="sum").item() == 0
    assert np.isnan(tf.cross_entropy(tf.zeros(0, 3), tf.zeros(0, dtype=tf.int64)).item())
    assert tf.cross_entropy(tf.zeros(2, 3), tf.tensor([0, 1]).to(tf.uint8)).item() == pytest.approx(
        np.log(3)
    )


def test_wrong_probabilities():
    x = tf.zeros(2, 3)
    with pytest.raises(ValueError, match="^cross_entropy: target has an element nan"):
        tf.cross_entropy(x, tf.tensor([[0.0, float("nan"), 0.0], [0.0, 0.0, 1.0]]))
    with pytest.raises(RuntimeError, match=r"expected target \(2,\)"):
        tf.cross_entropy(x, tf.zeros(2, 3, dtype=tf.int64))
    with pytest.raises(RuntimeError, match=r"target is \(2, 4\) of tinyfin.float32"):
        tf.cross_entropy(x, tf.zeros(2, 4))
    with pytest.raises(RuntimeError, match=r"label_smoothing is 1\.5"):
        tf.cross_entropy(x, tf.tensor([0, 1]), label_smoothing=1.5)


# ---- elementwise losses


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    "name, options",
    [
        ("mse_loss", {}),
        ("l1_loss", {}),
        ("smooth_l1_loss", {"beta": 0.7}),
        ("smooth_l1_loss", {"beta": 0.0}),
        ("huber_loss", {"delta": 0.6}),
    ],
)
def test_elementwise_losses(name, options, reduction):
    check_derivatives(
        lambda x, y: getattr(tf, name)(x, y, reduction=reduction, **options),
        lambda x, y: getattr(T, name)(x, y, reduction=reduction, **options),
        numbers(4, 3),
        numbers(4, 3, seed=1),
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(reduction):
    rng = np.random.default_rng(3)
    p, q, w = rng.random((4, 3)), rng.random((4, 3)), rng.random(3)
    check_derivatives(
        lambda x: tf.binary_cross_entropy(x, tensor(q), tensor(w), reduction=reduction),
        lambda x: T.binary_cross_entropy(x, torch.tensor(q), torch.tensor(w), reduction=reduction),
        p,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_cross_entropy_with_logits(reduction, weighted):
    w = np.random.default_rng(3).random(3) if weighted else None
    a, b = tensor(w), torch.tensor(w) if weighted else None
    f = "binary_cross_entropy_with_logits"
    check_derivatives(
        lambda x, y: getattr(tf, f)(x, y, pos_weight=a, reduction=reduction),
        lambda x, y: getattr(T, f)(x, y, pos_weight=b, reduction=reduction),
        numbers(4, 3) * 30,
        np.random.default_rng(4).random((4, 3)),
    )


def test_binary_cross_entropy_at_the_edges():
    p, q = [0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]
    close(
        tf.binary_cross_entropy(tf.tensor(p), tf.tensor(q), reduction="none"),
        np.array([0, 0, 100, 100.0]),
        1e-6,
    )
    for bad in (1.5, -0.25, float("nan")):
        for name, call in (
            ("input", (tf.tensor([bad]), tf.tensor([1.0]))),
            ("target", (tf.tensor([1.0]), tf.tensor([bad]))),
        ):
            text = f"binary_cross_entropy: {name} has an element {bad}, .* between 0 and 1"
            with pytest.raises(RuntimeError, match=text):
                tf.binary_cross_entropy(*call)
    with pytest.raises(ValueError, match="same shape"):
        tf.binary_cross_entropy(tf.tensor([0.5]), tf.tensor([1.0, 0.0]))
    x = tf.tensor([1e4, -1e4])
    close(
        tf.binary_cross_entropy_with_logits(x, tf.tensor([1.0, 0.0]), reduction="none"),
        np.zeros(2),
        0,
    )


@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.filterwarnings("ignore:reduction")
def test_kl_div(reduction, log_target):
    x, q = numbers(4, 3), np.random.default_rng(3).random((4, 3))
    check_derivatives(
        lambda x, y: tf.kl_div(x, y, reduction=reduction, log_target=log_target),
        lambda x, y: T.kl_div(x, y, reduction=reduction, log_target=log_target),
        x,
        q,
    )


def test_kl_div_of_zero_probability():
    x, q = tf.tensor([-1.0, -2.0]), tf.tensor([0.0, 1.0])
    close(tf.kl_div(x, q, reduction="none"), np.array([0.0, 2.0]), 1e-6)


# ---- bits


def everything():
    """Results of the kernels on sizes that are split over threads."""
    for dtype in ("float32", "float64"):
        for shape in ((33, 10), (5000, 7), (60, 3000), (8, 16, 700)):
            x, t = tensor(numbers(*shape), dtype), tensor(labels(shape))
            w, g = tensor(np.abs(numbers(shape[1], seed=1)), dtype), tensor(np.asarray(0.7), dtype)
            y, *saved = run("cross_entropy_forward", x, t, w, "mean", 1)
            yield from (y, *saved, *run("cross_entropy_grad", g, x, t, w, *saved, "mean", 1))
            yield from run("nll_loss_forward", x, t, w, "sum", 1)


def test_threads_do_not_change_bits():
    check_threads(everything)


def test_instruction_sets_do_not_change_bits():
    check_instruction_sets(__file__)


if __name__ == "__main__":
    print(digest(everything()))
