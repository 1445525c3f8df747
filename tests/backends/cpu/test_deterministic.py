"""Deterministic mode on the processor: subnormals are flushed on every thread, and only while it is on."""

import threading

import numpy as np
import pytest
from backends.isolated import run

import tinyfin as tf

TINY = np.float32(1e-40)
LEAST = np.float32(1.17549435e-38)


@pytest.fixture(params=[1, 2])
def team(request):
    """One thread and two."""
    before = tf.get_num_threads()
    tf.set_num_threads(request.param)
    yield request.param
    tf.set_num_threads(before)


def subnormal(n=4):
    """A tensor of numbers below the least normal one."""
    return tf.tensor(np.full(n, TINY))


@pytest.mark.parametrize("n", [4, 1 << 20])
@pytest.mark.usefixtures("team")
def test_subnormal_inputs_and_results_are_zeros(n):
    x, least = subnormal(n), tf.tensor(np.full(n, LEAST))
    half = tf.tensor(np.float32(0.5))
    for f, kept in (
        (lambda: x + 0.0, TINY), (lambda: x * 1.0, TINY), (lambda: least * half, LEAST / 2), (lambda: -(least * half), -LEAST / 2),
        (lambda: (x * 1e30) * 1e10, None),
    ):  # fmt: skip
        normal = f()
        with tf.deterministic():
            flushed = f()
        if kept is not None:
            assert (normal.numpy() == kept).all()
        assert (flushed.numpy() == 0).all()
        assert tf.equal(f(), normal)


@pytest.mark.usefixtures("team")
def test_all_parts_of_a_large_tensor_are_computed_in_the_mode():
    """Every worker takes the caller's mode, and gives its own back."""
    x = subnormal(1 << 22)
    for _ in range(3):
        with tf.deterministic():
            assert not (x * 1.0).numpy().any() and (x.view(1 << 11, -1).sum(1).numpy() == 0).all()
        assert ((x * 1.0).numpy() == TINY).all() and (x.view(1 << 11, -1).sum(1).numpy() > 0).all()


def test_signs_stay():
    with tf.deterministic():
        z = (tf.tensor([-1e-40, 1e-40]) * 1.0).numpy()
    assert np.signbit(z).tolist() == [True, False] and not z.any()


def test_moves_never_flush():
    x = subnormal()
    with tf.deterministic():
        for y in (
            x.clone(),
            x.view(2, 2).T.contiguous(),
            x[[0, 1]],
            tf.cat([x, x]),
            x.flip(0).clone(),
            x.reshape(2, 2)[:, :1].clone(),
        ):
            assert (y.numpy() == TINY).all()


def test_float64_flushes_too():
    x = tf.tensor([1e-310], dtype=tf.float64)
    with tf.deterministic():
        assert (x * 1.0).item() == 0
    assert (x * 1.0).item() == 1e-310


def test_python_s_own_arithmetic_is_left_alone():
    with tf.deterministic():
        subnormal() * 1.0
        assert float(np.float32(1e-40) * np.float32(1)) > 0 and 5e-324 * 1.0 == 5e-324
        subnormal(1 << 20) * 1.0
        assert 5e-324 * 1.0 == 5e-324
    assert 5e-324 * 1.0 == 5e-324


def test_errors_restore_the_mode():
    with pytest.raises(RuntimeError), tf.deterministic():
        tf.ones(2, dtype=tf.int32) // 0
    assert not tf.is_deterministic() and 5e-324 * 1.0 == 5e-324
    with tf.deterministic(), pytest.raises(RuntimeError):
        tf.ones(2) + tf.ones(3)
    assert ((subnormal() * 1.0).numpy() == TINY).all()


def test_blocks_nest_and_decorate():
    assert not tf.is_deterministic()
    with tf.deterministic():
        with tf.deterministic(False):
            assert not tf.is_deterministic() and (subnormal() * 1.0).sum().item() > 0
        assert tf.is_deterministic() and (subnormal() * 1.0).sum().item() == 0

    @tf.deterministic()
    def inside():
        return tf.is_deterministic()

    assert inside() and not tf.is_deterministic()


def test_the_mode_belongs_to_its_thread():
    seen = []
    with tf.deterministic():
        t = threading.Thread(target=lambda: seen.append((subnormal() * 1.0).sum().item()))
        t.start()
        t.join()
    assert seen[0] > 0
    tf.use_deterministic_algorithms(True)
    try:
        t = threading.Thread(target=lambda: seen.append((subnormal() * 1.0).sum().item()))
        t.start()
        t.join()
        assert seen[1] == 0 and tf.is_deterministic()
    finally:
        tf.use_deterministic_algorithms(False)


def test_the_switch():
    code = (
        "import tinyfin as tf; print(tf.is_deterministic(), (tf.tensor([1e-40]) * 1.0).item() == 0)"
    )
    assert run(code, TINYFIN_DETERMINISTIC="1")[0] == ["True True"] and run(code)[0] == [
        "False False"
    ]


def test_gradients_are_computed_in_the_mode():
    w = tf.tensor(np.full(3, TINY), requires_grad=True)
    x = tf.ones(3, requires_grad=True)
    with tf.deterministic():
        (x * w).sum().backward()
    assert (x.grad.numpy() == 0).all()
    (x * w).sum().backward()
    assert (x.grad.numpy() == TINY).all()
    y = tf.tensor(np.full(3, LEAST), requires_grad=True)
    with tf.deterministic():
        (y * y * 1e38).sum().backward()
    assert y.grad.isfinite().all()


def trained():
    """The bytes of weights after a few steps in the mode."""
    with tf.deterministic():
        tf.manual_seed(0)
        net = tf.nn.Sequential(tf.nn.Linear(20, 64), tf.nn.ReLU(), tf.nn.Linear(64, 5))
        opt = tf.optim.SGD(net.parameters(), lr=0.1)
        x, y = tf.randn(512, 20), tf.randint(5, (512,))
        for _ in range(5):
            opt.zero_grad()
            tf.nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
    return b"".join(p.detach().numpy().tobytes() for p in net.parameters())


def test_training_gives_the_same_bits_on_any_number_of_threads():
    before, seen = tf.get_num_threads(), []
    for threads in 1, 2, 3:
        tf.set_num_threads(threads)
        seen.append(trained())
    tf.set_num_threads(before)
    assert seen[0] == seen[1] == seen[2] and any(seen[0])
