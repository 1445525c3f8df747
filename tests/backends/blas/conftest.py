"""A CBLAS from source, and the backend switched on for a test."""

import pathlib
import shutil
import subprocess

import pytest

import tinyfin as tf
from tinyfin.backends.blas import cblas

SOURCE = pathlib.Path(__file__).with_name("cblas.c")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Function that compiles cblas.c with definitions of macros and gives the library's path."""
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        pytest.skip("there is no C compiler")
    made = {}

    def build(**macros):
        key = tuple(sorted(macros.items()))
        if key not in made:
            path = tmp_path_factory.mktemp("cblas") / "libcblas.so"
            flags = [f"-D{name}={value}" for name, value in key]
            command = [compiler, "-O2", "-w", "-shared", "-fPIC", *flags, str(SOURCE)]
            subprocess.run([*command, "-o", str(path)], check=True)
            made[key] = str(path)
        return made[key]

    return build


@pytest.fixture
def blas():
    """The backend, on until the test ends."""
    reason = tf.backend_list()["blas"]
    assert reason is None, f"NumPy brings a CBLAS of its own: {reason}"
    assert tf.backend_set("blas")
    yield tf.backends.base.REGISTRY["blas"]
    tf.backend_set("cpu")


@pytest.fixture
def eager(blas):
    """The library computes small products too."""
    cblas.set_eager(True)
    yield blas
    cblas.set_eager(False)
