"""gradcheck finds wrong derivatives and passes right ones."""

import pytest

import tinyfin as tf
from tinyfin.autograd import Function, GradcheckError, gradcheck, gradgradcheck

F64 = tf.float64


def leaf(*shape, seed=0):
    gen = tf.Generator().manual_seed(seed)
    return (tf.rand(*shape, generator=gen, dtype=F64) + 0.5).requires_grad_()


class Wrong(Function):
    """The gradient is off by a factor."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        return 2.1 * g * ctx.saved_tensors[0]


class WrongForward(Function):
    """Reverse mode is right, forward mode is not."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return 3 * t * ctx.saved_tensors[0]


class WrongSecond(Function):
    """The first derivative is right, its own derivative is not."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x * x.detach()


RIGHT = {
    "one": (lambda x: x.sin() * x, [(3,)]),
    "two": (lambda x, y: (x @ y, x.sum() * y), [(2, 3), (3, 2)]),
    "views": (lambda x: x.t()[1:].reshape(-1) ** 2, [(2, 3)]),
    "scalar": (lambda x: x.exp(), [()]),
    "empty": (lambda x: x * 2, [(0,)]),
    "unused": (lambda x, y: x * 2, [(2,), (2,)]),
    "conv": (lambda x, w: tf.nn.functional.conv2d(x, w, padding=1), [(1, 2, 3, 3), (2, 2, 2, 2)]),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("fast", [False, True])
def test_right_derivatives(name, fast):
    f, shapes = RIGHT[name]
    inputs = tuple(leaf(*s, seed=i) for i, s in enumerate(shapes))
    batched = name not in ("empty",)
    assert gradcheck(f, inputs, check_forward_ad=True, fast_mode=fast, check_batched_grad=batched,
                     check_batched_forward_grad=batched, check_grad_dtypes=True)  # fmt: skip
    if name not in ("empty", "unused"):
        assert gradgradcheck(f, inputs, check_fwd_over_rev=True, fast_mode=fast)


def test_other_arguments_are_passed_on():
    assert gradcheck(lambda x, n, c: x**n * c, (leaf(2), 3, tf.ones(2, dtype=F64)))


@pytest.mark.parametrize("fast", [False, True])
def test_wrong_reverse(fast):
    with pytest.raises(GradcheckError, match="reverse mode disagrees for input 0 and output 0"):
        gradcheck(Wrong.apply, leaf(2), fast_mode=fast)
    assert gradcheck(Wrong.apply, leaf(2), raise_exception=False) is False
    assert gradcheck(Wrong.apply, leaf(2), check_backward_ad=False)


@pytest.mark.parametrize("fast", [False, True])
def test_wrong_forward(fast):
    assert gradcheck(WrongForward.apply, leaf(2), fast_mode=fast)
    with pytest.raises(GradcheckError, match="forward mode disagrees"):
        gradcheck(WrongForward.apply, leaf(2), check_forward_ad=True, fast_mode=fast)


def test_modes_that_are_not_adjoint():
    """Within the tolerance of the differences, but not of each other."""

    class Almost(WrongForward):
        @staticmethod
        def jvp(ctx, t):
            return 2 * (1 + 1e-5) * t * ctx.saved_tensors[0]

    with pytest.raises(GradcheckError, match="adjoint"):
        gradcheck(Almost.apply, leaf(2), check_forward_ad=True)


def test_wrong_second():
    assert gradcheck(WrongSecond.apply, leaf(2))
    with pytest.raises(GradcheckError, match="gradgradcheck|disagrees"):
        gradgradcheck(WrongSecond.apply, leaf(2))


def test_unsteady_gradients():
    state = [0]

    class Unsteady(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            state[0] += 1
            return g * (2 + 1e-7 * state[0])

    with pytest.raises(GradcheckError, match="two backward walks"):
        gradcheck(Unsteady.apply, leaf(2))
    assert gradcheck(Unsteady.apply, leaf(2), nondet_tol=1e-3)


def test_what_is_refused():
    with pytest.raises(ValueError, match="requires grad"):
        gradcheck(lambda x: x, tf.ones(2, dtype=F64))
    with pytest.raises(ValueError, match="no floating-point"):
        gradcheck(lambda x: x > 0, leaf(2))


def test_single_precision_is_warned_about():
    with pytest.warns(RuntimeWarning, match="float64"):
        gradcheck(lambda x: x * 2, tf.ones(2, requires_grad=True), eps=1e-2, atol=1e-2)


def test_cotangents_of_ones_own():
    x = leaf(2)
    assert gradgradcheck(lambda x: x**3, x, tf.ones(2, dtype=F64, requires_grad=True))
    assert gradgradcheck(lambda x: x**3, x, gen_non_contig_grad_outputs=True)


def test_the_module_is_callable():
    import tinyfin.autograd.gradcheck as module

    assert module(lambda x: x * 2, leaf(2)) and tf.autograd.gradcheck(lambda x: x * 2, leaf(2))


def test_the_default_generator_is_left_alone():
    tf.manual_seed(1)
    want = tf.rand(1)
    tf.manual_seed(1)
    gradcheck(lambda x: x * 2, leaf(2), fast_mode=True, check_forward_ad=True)
    assert tf.equal(tf.rand(1), want)
