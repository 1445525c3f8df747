"""Options, seeds, and a check that tests leave the library's switches as they found them."""

import os
import pathlib
import sys
import zlib

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
GPUS = ("vulkan", "opengl")
"""Backends that run the shaders."""
# The installed package is under test, also for `python -m pytest` from the source folder.
sys.path[:] = [p for p in sys.path if pathlib.Path(p or ".").resolve() != ROOT]

import tinyfin as tf  # noqa: E402


def pytest_report_header():
    """Says where the package under test is, and which of its files are not those of the clone."""
    home = pathlib.Path(tf.__file__).parent
    stale = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tinyfin").rglob("*.py"))
        if not (home / path.relative_to(ROOT / "tinyfin")).exists()
        or (home / path.relative_to(ROOT / "tinyfin")).read_bytes() != path.read_bytes()
    ]
    lines = [f"tinyfin: {home}"]
    if stale:
        more = f" and {len(stale) - 3} more" if len(stale) > 3 else ""
        lines.append(f"NOT INSTALLED AS IT IS HERE: {', '.join(stale[:3])}{more}; run 'spin build'")
    return lines


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu,null", help="backends to run on, separated by commas")


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        names = metafunc.config.getoption("--device").split(",")
        known = tf.backend_list()
        for name in names:
            if name not in known:
                raise pytest.UsageError(
                    f"--device: no backend named {name}; have {', '.join(known)}"
                )
        metafunc.parametrize("device", [n for n in names if n != "null"], scope="session")
    if "gpu" in metafunc.fixturenames:
        names = metafunc.config.getoption("--device").split(",")
        metafunc.parametrize("gpu", [n for n in GPUS if n in names] or GPUS, indirect=True)


def pytest_collection_modifyitems(config, items):
    """Without a GPU on --device, one test stands for the table that compares devices, and says so."""
    if any(name in config.getoption("--device") for name in GPUS):
        return
    table = [item for item in items if "elsewhere" in item.fixturenames][1:]
    if table:
        config.hook.pytest_deselected(items=table)
        items[:] = [item for item in items if item not in set(table)]


@pytest.fixture(scope="session")
def need_device():
    """Skips a test whose backend is not to be had here, with the reason; fails where
    TINYFIN_TEST_DEVICES says that it must be there, as CI does."""
    promised = os.environ.get("TINYFIN_TEST_DEVICES", "").split(",")

    def check(name):
        reason = tf.backend_list()[name]
        if reason is not None:
            (pytest.fail if name in promised else pytest.skip)(f"backend {name}: {reason}")

    return check


@pytest.fixture(autouse=True, scope="module")
def memory_back():
    """What a module of tests leaves cached on devices goes back to the drivers, compiled kernels too."""
    yield
    for name in GPUS:
        for device in tf.backends.base.REGISTRY[name].opened_devices.values():
            device.pool.release()
            if name == "vulkan":
                device.use(device.pipelines.soft)


@pytest.fixture
def vulkan(need_device):
    """For tests that need a Vulkan device."""
    need_device("vulkan")


@pytest.fixture
def opengl(need_device):
    """For tests that need an OpenGL device."""
    need_device("opengl")


@pytest.fixture
def gpu(request, need_device):
    """For tests of shaders: the name of each backend that runs them, of those that --device names or of all."""
    need_device(request.param)
    return request.param


@pytest.fixture(autouse=True, scope="session")
def away_from_the_source(tmp_path_factory):
    """Subprocesses started by tests import the installed package, not the source folder."""
    old = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("cwd"))
    yield
    os.chdir(old)


@pytest.fixture
def rng(request):
    """Random numbers that depend on the test alone."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


def switches():
    """What a test must not leave changed."""
    return {
        "grad": tf.is_grad_enabled(),
        "inference": tf.is_inference_mode_enabled(),
        "deterministic": tf.is_deterministic(),
        "dtype": tf.get_default_dtype(),
        "backend": tf.backend_name(),
        "threads": tf.get_num_threads(),
    }


@pytest.fixture(autouse=True)
def unchanged():
    """Fails a test that leaves a switch changed, and puts it back."""
    if hasattr(tf, "manual_seed"):
        tf.manual_seed(0)
    before = switches()
    yield
    after = switches()
    if after != before:
        tf.set_grad_enabled(before["grad"])
        tf.use_deterministic_algorithms(before["deterministic"])
        tf.set_default_dtype(before["dtype"])
        tf.backend_set(before["backend"])
        tf.set_num_threads(before["threads"])
        pytest.fail(f"the test changed {[k for k in before if before[k] != after[k]]}")
