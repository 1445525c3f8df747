"""Backend `blas` as a whole: chosen, left, refused, described, and compared over the table of operations."""

import json

import pytest
import samples
from backends.blas.close import close
from backends.isolated import run
from ops.test_devices import CHAINS

import tinyfin as tf
from tinyfin.cli import main


def results(name, sample, dtype, graded):
    """The results, and the gradients of the sum of their squares."""
    inputs, places = [], iter(range(1000))

    def prepare(a):
        t = samples.tensor(a, dtype)
        free = next(places) not in sample.fixed
        if graded and free and t.is_floating_point():
            t = t.detach().requires_grad_()
            inputs.append(t)
        return t

    args, kwargs = samples.mapped(sample, prepare)
    found = samples.flat(samples.outcome(name, args, kwargs))
    out = [t.detach() for t in found]
    if any(t.requires_grad for t in found):
        total = sum((t * t).sum() for t in found if t.requires_grad)
        out += [g for g in tf.autograd.grad(total, inputs, allow_unused=True) if g is not None]
    return out


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", sorted(CHAINS))
def test_table(name):
    """Every sample of everything that is made of products, in every dtype, forward and backward."""
    for dtype in samples.dtypes_of(name):
        for sample in samples.samples_of(name):
            if not samples.applies(sample, dtype):
                continue
            graded = sample.grad and dtype in ("float32", "float64")
            got = results(name, sample, dtype, graded)
            tf.backend_set("cpu")
            want = results(name, sample, dtype, graded)
            tf.backend_set("blas")
            assert len(got) == len(want)
            for a, b in zip(got, want):
                close(a, b, f"{name}{sample} {dtype}")


def bits_of_a_product():
    """Of numbers whose sum depends on its order."""
    a = tf.arange(90_000).reshape(300, 300).float().sin()
    return (a @ a.t()).numpy().tobytes(), tf.nn.functional.conv2d(
        a.reshape(1, 100, 30, 30), a[:64].flatten()[: 64 * 100].reshape(64, 100, 1, 1)
    ).numpy().tobytes()


def test_switching_back_restores_our_kernels(built):
    """To the bit; and the library is not called any more."""
    code = """
import ctypes
import tinyfin as tf
from tinyfin.backends import base
blas = base.REGISTRY["blas"]
a = tf.ones(100, 100)
counts = []
for name in ("blas", "cpu", "null", "blas", "blas", "vulkan:99", "cpu"):
    with __import__("warnings").catch_warnings():
        __import__("warnings").simplefilter("ignore")
        tf.backend_set(name)
    calls = ctypes.CDLL(blas.library.path).fake_calls
    before = calls()
    a @ a
    counts.append(calls() - before)
print(counts, blas.active)
"""
    assert run(code, TINYFIN_BLAS=built())[0] == ["[1, 0, 0, 1, 1, 1, 0] False"]
    before = bits_of_a_product()
    assert tf.backend_set("blas") and tf.backend_set("cpu")
    assert bits_of_a_product() == before


def test_tensors_stay_on_the_host(blas):
    assert tf.backend_name() == "blas" and tf.default_device() == tf.device("cpu")
    x = tf.ones(2)
    assert x.device.type == "cpu" and tf.zeros(1, device="cpu").device == x.device
    support = tf.backend_support()
    assert all(row["blas"] == row["cpu"] for row in support.values())
    assert tf.memory_stats()["live"] > 0
    tf.synchronize()


def test_switch_at_import(built):
    code = "import tinyfin as tf; print(tf.backend_name(), (tf.ones(99, 99) @ tf.ones(99, 99)).sum().item())"
    path = built(INT="int64_t")
    assert run(code, TINYFIN_BACKEND="blas", TINYFIN_BLAS=path)[0] == ["blas 970299.0"]
    out, err = run(code, TINYFIN_BACKEND="blas", TINYFIN_BLAS="/nowhere.so")
    assert out == ["cpu 970299.0"] and "TINYFIN_BLAS=/nowhere.so cannot be loaded" in err


def test_import_loads_nothing():
    code = """
import sys, tinyfin
print([m for m in ("ctypes", "numpy", "tinyfin.backends.blas.library", "tinyfin.backends.blas.cblas") if m in sys.modules])
print(any("blas" in line.lower() for line in open("/proc/self/maps")) if sys.platform == "linux" else False)
"""
    assert run(code)[0] == ["[]", "False"]


def test_none_is_a_warning(monkeypatch, blas):
    """It names the command that brings a library."""
    from tinyfin.backends.blas import library

    tf.backend_set("cpu")
    tf.backends.base.STATE["warned"].clear()
    monkeypatch.setattr(blas, "library", None)
    monkeypatch.setattr(library, "candidates", lambda: [])
    with pytest.warns(RuntimeWarning, match=r"no CBLAS library .* pip install 'tinyfin\[blas\]'"):
        assert tf.backend_set("blas") is False
    assert tf.backend_name() == "cpu" and "pip install" in tf.backend_list()["blas"]


REFUSED = r"backend blas is refused in deterministic mode: .* use backend_set\('cpu'\)"


def test_deterministic_mode_refuses_the_backend(blas):
    tf.backend_set("cpu")
    with tf.deterministic():
        with pytest.raises(RuntimeError, match=REFUSED):
            tf.backend_set("blas")
        assert tf.backend_name() == "cpu" and not blas.active
        assert (tf.ones(99, 99) @ tf.ones(99, 99) == 99).all()
    assert tf.backend_set("blas")


def test_the_backend_refuses_deterministic_mode(blas):
    with pytest.raises(RuntimeError, match=REFUSED):
        tf.use_deterministic_algorithms(True)
    with pytest.raises(RuntimeError, match=REFUSED), tf.deterministic():
        pytest.fail("entered")
    assert not tf.is_deterministic()
    tf.use_deterministic_algorithms(False)
    with tf.deterministic(False):
        assert (tf.ones(99, 99) @ tf.ones(99, 99) == 99).all()


def test_another_threads_mode_refuses_the_calls(blas):
    """Modes belong to threads: where one was on before the backend was chosen, its products are refused."""
    import threading

    said, entered, chosen = [], threading.Event(), threading.Event()
    tf.backend_set("cpu")

    def work():
        with tf.deterministic():
            entered.set()
            chosen.wait(60)
            for call in (lambda: tf.ones(2, 2) @ tf.ones(2, 2), lambda: tf.ones(2) + 1):
                try:
                    said.append(call().sum().item())
                except RuntimeError as error:
                    said.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(60)
    tf.backend_set("blas")
    chosen.set()
    thread.join()
    assert said[0].startswith("matmul: refused in deterministic mode") and said[1] == 4.0


def test_both_switches_leave_the_cpu():
    code = "import tinyfin; from tinyfin.cli import main; main.main(['info'])"
    both = {"TINYFIN_BACKEND": "blas", "TINYFIN_DETERMINISTIC": "1"}
    out, err = run(code, **both)
    assert any(line.split() == ["backend", "cpu"] for line in out)
    assert any("blas" in line and "refused in deterministic mode" in line for line in out)
    assert "backend blas is not available: refused in deterministic mode" in "".join(err)


def test_commands_say_that_it_is_refused(capsys):
    with tf.deterministic():
        assert main.main(["demo", "--backend", "blas"]) == 2
    assert "refused in deterministic mode" in capsys.readouterr().err


def test_info_says_which(capsys, built):
    about = tf.backends.base.REGISTRY["blas"].about()
    assert main.main(["info"]) == 0
    assert about and about in capsys.readouterr().out
    main.main(["info", "--json"])
    assert json.loads(capsys.readouterr().out)["about"]["blas"] == about
    path = built(OPENBLAS="1", INT="int64_t")
    code = "from tinyfin.cli import main; main.main(['info'])"
    out, _ = run(code, TINYFIN_BLAS=path, TINYFIN_THREADS="3")
    line = next(text for text in out if "OpenBLAS" in text)
    assert line.strip() == f"OpenBLAS 9.8.7 for tests, Abacus; 64-bit integers, threads: 3; {path}"
    out, _ = run(code, TINYFIN_BLAS="/nowhere.so")
    assert any("missing: TINYFIN_BLAS=/nowhere.so cannot be loaded" in text for text in out)


def test_a_network_learns_as_on_the_cpu(rng):
    """Some steps with convolutions and layers large enough for the library."""
    from tinyfin import nn

    images = tf.tensor(rng.standard_normal((16, 3, 16, 16)).astype("float32"))
    classes = tf.tensor(rng.integers(0, 10, 16))
    losses = {}
    for name in ("cpu", "blas"):
        assert tf.backend_set(name)
        tf.manual_seed(0)
        net = nn.Sequential(
            *(nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(), nn.Conv2d(64, 64, 3, stride=2, padding=1), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(4096, 100), nn.ReLU(), nn.Linear(100, 10)),
        )  # fmt: skip
        opt = tf.optim.SGD(net.parameters(), lr=0.05)
        losses[name] = []
        for _ in range(5):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(images), classes)
            loss.backward()
            opt.step()
            losses[name].append(loss.item())
    tf.backend_set("cpu")
    assert losses["cpu"][-1] < losses["cpu"][0] - 0.1
    assert losses["blas"] == pytest.approx(losses["cpu"], rel=1e-4)
