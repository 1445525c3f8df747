"""Modes of the thread: no_grad and its kin, anomaly detection, the check for NaN."""

import os
import subprocess
import sys
import threading

import pytest

import tinyfin as tf
from tinyfin.core import tensor


def test_no_grad_and_enable_grad_nest():
    x = tf.ones(1, requires_grad=True)
    with tf.no_grad():
        assert not (x * 2).requires_grad
        with tf.enable_grad():
            assert (x * 2).requires_grad
        assert not tf.is_grad_enabled()
    assert tf.is_grad_enabled()


@pytest.mark.parametrize("mode", [tf.no_grad, tf.no_grad(), tf.inference_mode, tf.inference_mode()])
def test_decorators(mode):
    x = tf.ones(1, requires_grad=True)

    @mode
    def f(t, depth):
        """Doubles."""
        return t * 2 if depth == 0 else f(t, depth - 1)

    assert not f(x, 3).requires_grad
    assert f.__doc__ == "Doubles." and tf.is_grad_enabled()


def test_a_mode_restores_after_an_error():
    with pytest.raises(ValueError), tf.no_grad():
        raise ValueError
    assert tf.is_grad_enabled()


def test_set_grad_enabled():
    tf.set_grad_enabled(False)
    assert not tf.is_grad_enabled()
    tf.set_grad_enabled(True)
    with tf.set_grad_enabled(False):
        assert not tf.is_grad_enabled()
    assert tf.is_grad_enabled()
    with pytest.raises(TypeError):
        tf.set_grad_enabled(1)


def test_inference_mode():
    x = tf.ones(2, requires_grad=True)
    with tf.inference_mode():
        y = x * 2
        y.add_(1.0)
        with tf.inference_mode(False):
            assert tf.is_grad_enabled() and (x * 2).requires_grad
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="inference"):
        y.add_(1.0)
    with pytest.raises(RuntimeError, match="inference"):
        y.requires_grad_()
    with pytest.raises(RuntimeError, match="inference"):
        x * y
    assert (x * y.clone()).requires_grad


def test_modes_are_per_thread():
    seen = []
    with tf.no_grad():
        t = threading.Thread(target=lambda: seen.append(tf.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


# ---- anomalies


def test_anomaly_names_the_line():
    x = tf.tensor([0.0, 1.0], requires_grad=True)
    with tf.autograd.detect_anomaly():
        y = x.sqrt()  # the guilty line
        z = (y * tf.tensor([0.0, 1.0])).sum()
        with pytest.raises(RuntimeError) as info:
            z.backward()
    text = str(info.value)
    assert "backward of sqrt" in text and "the guilty line" in text and "NaN" in text


def test_anomaly_without_the_check_for_nan():
    x = tf.tensor([0.0], requires_grad=True)
    with tf.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0.0).sum().backward()
    assert x.grad.isnan().all()


def test_anomaly_explains_other_errors():
    class Broken(tf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no derivative today")

    x = tf.ones(1, requires_grad=True)
    with tf.autograd.set_detect_anomaly(True):
        y = Broken.apply(x)  # made here
        with pytest.raises(ValueError, match=r"(?s)no derivative today.*made here"):
            y.backward()
    assert not tensor.mode() & 1024


# ---- the first NaN


def test_first_nan_is_found():
    x = tf.tensor([1.0, 0.0])
    with tf.autograd.detect_nonfinite():
        y = x + 1
        with pytest.raises(tf.autograd.NonFiniteError) as info:
            (y - 1).log()  # here
    text = str(info.value)
    assert text.startswith("log:") and "(2,)" in text and "1 infinite" in text and "# here" in text


def test_nan_that_was_there_is_no_news():
    with tf.autograd.detect_nonfinite():
        x = tf.tensor([1.0, float("nan")])
        y = (x * 2).sum()
        z = tf.where(tf.tensor([True, False]), tf.ones(2), float("-inf"))
    assert y.isnan() and z[1].isinf()


@pytest.mark.parametrize(
    "act",
    [
        lambda x: x.div_(0.0),
        lambda x: x.exp_(),
        lambda x: tf.softmax(x * 1e38 * 1e3, 0),
        lambda x: x.to(tf.float16),
    ],
)
def test_kinds_of_operations(act):
    with tf.autograd.detect_nonfinite(), pytest.raises(FloatingPointError):
        act(tf.tensor([1e6, 2e6]))


def test_nan_in_the_backward_walk():
    x = tf.tensor(0.0, requires_grad=True)
    with tf.autograd.detect_nonfinite():
        y = x.sqrt()  # recorded here
        with pytest.raises((FloatingPointError, RuntimeError), match="recorded here"):
            y.backward()


def test_check_leaves_results_alone():
    x = tf.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def f():
        y = (x @ x).softmax(1).sort(1)[0][:, 1:]
        y = y + x.mean()
        y.mul_(2.0)
        return tf.autograd.grad(y.sum(), x)[0]

    want = f()
    with tf.autograd.detect_nonfinite():
        assert tf.equal(f(), want)


def test_the_switch():
    code = (
        "import tinyfin as tf\n"
        "try:\n"
        "    tf.tensor([0.0]).log()\n"
        "except FloatingPointError as error:\n"
        "    print('found', str(error)[:4])\n"
    )
    import os

    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TINYFIN_CHECK": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "found log:"


def test_import_stays_light():
    code = (
        "import sys, tinyfin\n"
        "late = [n for n in ('forward', 'vmap', 'transforms', 'check', 'function', 'levels')\n"
        "        if 'tinyfin.autograd.' + n in sys.modules]\n"
        "heavy = [n for n in ('typing', 'dataclasses', 'inspect', 'numpy') if n in sys.modules]\n"
        "print(late, heavy)\n"
    )
    args = [sys.executable, "-S", "-c", code]
    root = str(__import__("pathlib").Path(tf.__file__).parent.parent)
    out = subprocess.run(
        args, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": root}
    )
    assert out.stdout.strip() == "[] []"
