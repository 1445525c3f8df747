"""Which library is taken, how its integers are found out, and what is said of one that is none."""

import pathlib
import sys

import pytest
from backends.isolated import run

from tinyfin import config
from tinyfin.backends.blas import library
from tinyfin.backends.blas.library import Library, Unusable

WIDTHS = {"int32_t": 32, "int64_t": 64}


@pytest.mark.parametrize("integer", WIDTHS)
@pytest.mark.parametrize(
    "before, behind",
    [("", ""), ("", "64_"), ("", "_64"), ("scipy_", ""), ("scipy_", "64_")],
)
def test_names_and_widths(built, before, behind, integer):
    """The width is found out by a product, not guessed from the name."""
    found = Library(built(BEFORE=before, BEHIND=behind, INT=integer))
    assert (found.before, found.behind, found.bits) == (before, behind, WIDTHS[integer])
    assert found.maker == found.version() == "CBLAS" and found.threads() is None
    assert found.thread_setter() == (0, True) and all(found.addresses())


def test_names_of_64_bits_come_first(built):
    path = built(BEHIND="64_", INT="int64_t", OPENBLAS="1")
    found = Library(path)
    assert found.behind == "64_" and found.maker == "OpenBLAS" and found.parallel() == 1
    assert found.version() == "OpenBLAS 9.8.7 for tests, Abacus" and found.threads() == 5
    assert pathlib.Path(found.path) == pathlib.Path(path).resolve()


@pytest.mark.parametrize("package", library.WHEELS)
def test_wheels(package):
    home = library.folder_of(package)
    if home is None:
        pytest.skip(f"{package} is not installed")
    (path,) = library.shared(home / "lib", "*openblas*")
    found = Library(path)
    assert found.maker == "OpenBLAS" and f"{found.bits}" == package[-2:]
    assert found.before == "scipy_" and "OpenBLAS" in found.version()


def test_numpy_has_one():
    """It is found without importing NumPy, also by way of what NumPy was linked with."""
    code = """
import sys
from tinyfin.backends.blas import library
library.WHEELS, library.SYSTEM = (), {"linux": ()}
names = list(library.candidates())
print(library.find().maker, "numpy" in sys.modules)
core = [n for n in names if "_multiarray_umath" in n]
print(len(core), bool(library.Library(core[0]).path))
"""
    out, _ = run(code)
    assert out[0].endswith(" False") and out[1] == "1 True"


def test_order_of_candidates(monkeypatch, tmp_path):
    """Wheels, then NumPy, then the environment and the system."""
    for folder, name in (
        ("scipy_openblas64", "lib/libscipy_openblas64_.so"),
        ("scipy_openblas32", "lib/libscipy_openblas.so"),
        ("numpy", "_core/_multiarray_umath.cpython-311.so"),
        ("numpy.libs", "libscipy_openblas64_-1a.so"),
        ("numpy.libs", "libgfortran-1.so.5"),
        ("env", "lib/libmkl_rt.so.2"),
    ):
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(library, "folder_of", lambda package: tmp_path / package)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(library, "SYSTEM", {sys.platform: ("libmkl_rt.so.2", "libblis.so.4")})
    assert [name.removeprefix(str(tmp_path) + "/") for name in library.candidates()] == [
        "scipy_openblas64/lib/libscipy_openblas64_.so",
        "scipy_openblas32/lib/libscipy_openblas.so",
        "numpy.libs/libscipy_openblas64_-1a.so",
        "numpy/_core/_multiarray_umath.cpython-311.so",
        "env/lib/libmkl_rt.so.2",
        "libmkl_rt.so.2",
        "libblis.so.4",
    ]


def test_first_that_works_is_taken(monkeypatch, built, tmp_path):
    broken = tmp_path / "libopenblas.so"
    broken.write_text("no library")
    works = built(INT="int64_t")
    monkeypatch.setattr(library, "candidates", lambda: ["libnowhere.so.7", str(broken), works])
    monkeypatch.setattr(config, "BLAS", "")
    assert library.find().path == str(pathlib.Path(works).resolve())


def test_none_at_all(monkeypatch, tmp_path):
    """What is missing, what brings it, and what was there but did not work."""
    broken = tmp_path / "libopenblas.so"
    broken.write_text("no library")
    monkeypatch.setattr(config, "BLAS", "")
    monkeypatch.setattr(library, "candidates", lambda: ["libnowhere.so.7", str(broken)])
    with pytest.raises(Unusable) as error:
        library.find()
    text = str(error.value)
    assert "pip install 'tinyfin[blas]'" in text and "TINYFIN_BLAS" in text
    assert f"{broken} cannot be loaded" in text and "nowhere" not in text


def test_the_switch_names_the_only_one(monkeypatch, built):
    path = built(INT="int64_t", BEHIND="_64")
    monkeypatch.setattr(config, "BLAS", path)
    assert library.find().path == str(pathlib.Path(path).resolve())


@pytest.mark.parametrize(
    "macros, text",
    [
        ({"LACKS_DGEMM": "1"}, "is no CBLAS (it has no cblas_sgemm, cblas_dgemm and cblas_sdot)"),
        ({"ERROR": "1"}, "computes wrong (a product of 2 x 3 and 3 x 2)"),
        ({"LACKS_DOT": "1"}, "is no CBLAS"),
        ({"DOT_ERROR": "1"}, "computes wrong (a dot product of two numbers)"),
    ],
)
def test_files_that_are_none(monkeypatch, built, macros, text):
    path = built(**macros)
    monkeypatch.setattr(config, "BLAS", path)
    with pytest.raises(Unusable) as error:
        library.find()
    assert str(error.value).startswith(f"TINYFIN_BLAS={path} ") and text in str(error.value)


def test_files_that_cannot_be_loaded(tmp_path):
    text = tmp_path / "text.so"
    text.write_text("no library")
    code = """
import warnings
import tinyfin as tf
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(tf.backend_set("blas"), tf.backend_name(), len(told), told[0].message)
print(tf.backend_list()["blas"])
"""
    for path in (text, tmp_path, tmp_path / "nowhere.so"):
        out, _ = run(code, TINYFIN_BLAS=str(path))
        want = f"backend blas is not available: TINYFIN_BLAS={path} cannot be loaded ("
        assert out[0].startswith(f"False cpu 1 tinyfin: {want}"), out
        assert out[1] == out[0].partition("available: ")[2]


def test_a_library_that_ends_the_process(built):
    """MKL does so where one of its files is missing: it is tried in another process first."""
    path = built(MKL="1")
    with pytest.raises(Unusable, match=r"ends the process that calls it \(gone\)"):
        Library(path)
