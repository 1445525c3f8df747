"""Where a CBLAS is, what its functions are called, how wide its integers are, and what it says of itself."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_void_p
from importlib.util import find_spec
from pathlib import Path

from tinyfin import config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

COMMAND = "pip install 'tinyfin[blas]'"
"""What brings a library where there is none."""
WHEELS = ("scipy_openblas64", "scipy_openblas32")
"""Packages that hold OpenBLAS and nothing else."""
AFFIXES = (
    ("scipy_", "64_"),
    ("scipy_", ""),
    ("", "64_"),  # OpenBLAS with 64-bit integers
    ("", "_64"),  # MKL
    ("", "$NEWLAPACK$ILP64"),  # Accelerate
    ("", ""),
)
"""What stands before and behind the names of CBLAS; those of 64-bit integers first."""
SYSTEM = {
    "linux": (
        *("libopenblas64_.so.0", "libopenblas64.so.0", "libopenblas.so.0", "libopenblasp.so.0"),
        *("libopenblas.so", "libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"),
        *("libblis.so.4", "libblis.so.3", "libblis.so"),
    ),
    "darwin": (
        *("libopenblas.0.dylib", "libopenblas.dylib", "libmkl_rt.2.dylib", "libmkl_rt.dylib"),
        *("/opt/homebrew/opt/openblas/lib/libopenblas.dylib", "libblis.4.dylib", "libblis.dylib"),
        "/System/Library/Frameworks/Accelerate.framework/Accelerate",
    ),
    "win32": ("libopenblas.dll", "openblas.dll", "mkl_rt.3.dll", "mkl_rt.2.dll", "libblis.dll"),
}
"""Names that the system's loader may know, and folders of the Python environment may hold."""
ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112


class Unusable(Exception):
    """A file that is no CBLAS that can be used; the text says why."""


class Library:
    """A loaded CBLAS whose products were tried.

    Raises:
        Unusable: the file cannot be loaded, lacks functions, or computes wrong.
    """

    def __init__(self, name: str) -> None:
        try:
            self.handle = ctypes.CDLL(name)
        except OSError as error:
            raise Unusable(f"cannot be loaded ({error})") from None
        self.before, self.behind = self.affixes()
        if hasattr(self.handle, "MKL_Get_Version_String"):
            try_apart(name, f"{self.before}cblas_sgemm{self.behind}")
        self.sgemm, self.dgemm = self.function("cblas_sgemm"), self.function("cblas_dgemm")
        self.bits = self.integer_bits()
        self.try_products()
        self.path = file_of(self.sgemm) or name
        self.maker = self.made_by()

    def affixes(self) -> tuple[str, str]:
        """The first pair under which all that is needed is there."""
        for before, behind in AFFIXES:
            names = [f"{before}cblas_{name}{behind}" for name in ("sgemm", "dgemm", "sdot")]
            if all(hasattr(self.handle, name) for name in names):
                return before, behind
        raise Unusable("is no CBLAS (it has no cblas_sgemm, cblas_dgemm and cblas_sdot)")

    def function(self, name: str, *arguments: Any, result: Any = None) -> Any:
        """A function by its plain name, however the library calls it; None where it has none."""
        for full in (f"{self.before}{name}{self.behind}", f"{self.before}{name}", name):
            found = getattr(self.handle, full, None)
            if found is not None:
                found.argtypes, found.restype = arguments, result
                return found
        return None

    def integer_bits(self) -> int:
        """How wide the integers of its interface are, by a product whose length only one width takes.

        Names do not tell: a library of 64-bit integers may use the plain ones, and MKL decides when
        it is loaded. The length is 2 in its lower half and negative as a whole, which means nothing
        to add; all arguments travel in registers, so neither width reads more than it was given.
        """
        if sys.maxsize < 1 << 32:
            return 32
        dot = self.function(
            "cblas_sdot", c_int64, c_void_p, c_int64, c_void_p, c_int64, result=c_float
        )
        x, y = (c_float * 2)(3, 5), (c_float * 2)(7, 11)
        found = {76.0: 32, 0.0: 64}.get(dot(2 - (1 << 32), x, 1, y, 1))
        if found is None:
            raise Unusable("computes wrong (a dot product of two numbers)")
        return found

    def try_products(self) -> None:
        """Two small products into memory full of NaN, whose results are known."""
        for gemm, number in ((self.sgemm, c_float), (self.dgemm, c_double)):
            size = c_int64 if self.bits == 64 else c_int32
            arguments = [*(size,) * 3, number, c_void_p, size, c_void_p, size, number, c_void_p]
            gemm.argtypes = [c_int, c_int, c_int, *arguments, size]
            gemm.restype = None
            a = (number * 6)(1, 2, 3, 4, 5, 6)  # 3 x 2, read as 2 x 3
            b = (number * 6)(1, 0, 2, 1, 0, 3)  # 3 x 2
            c = (number * 4)(*[float("nan")] * 4)
            gemm(ROW_MAJOR, TRANSPOSED, PLAIN, 2, 2, 3, 1, a, 2, b, 2, 0, c, 2)
            if list(c) != [7, 18, 10, 22]:
                raise Unusable("computes wrong (a product of 2 x 3 and 3 x 2)")

    def made_by(self) -> str:
        """Whose library it is, as its own functions tell."""
        if self.function("openblas_get_config") is not None:
            return "OpenBLAS"
        if hasattr(self.handle, "MKL_Get_Version_String"):
            return "MKL"
        if hasattr(self.handle, "bli_info_get_version_str"):
            return "BLIS"
        return "Accelerate" if "Accelerate" in self.path or "vecLib" in self.path else "CBLAS"

    def version(self) -> str:
        """What the library says of itself."""
        if self.maker == "OpenBLAS":
            said = [
                found().decode(errors="replace").strip()
                for name in ("openblas_get_config", "openblas_get_corename")
                if (found := self.function(name, result=c_char_p)) is not None
            ]
            return ", ".join(dict.fromkeys(said))
        if self.maker == "MKL":
            text = ctypes.create_string_buffer(256)
            self.function("MKL_Get_Version_String", c_char_p, c_int)(text, len(text))
            return text.value.decode(errors="replace").strip()
        if self.maker == "BLIS":
            return "BLIS " + self.function("bli_info_get_version_str", result=c_char_p)().decode()
        return self.maker

    def addresses(self) -> tuple[int, int]:
        """Where the products of float32 and float64 are."""
        return address(self.sgemm), address(self.dgemm)

    def threads(self) -> int | None:
        """How many threads the library uses, where it tells."""
        name, number = {
            "OpenBLAS": ("openblas_get_num_threads", c_int),
            "MKL": ("MKL_Get_Max_Threads", c_int),
        }.get(self.maker, ("bli_thread_get_num_threads", c_int64))
        get = self.function(name, result=number)
        return None if get is None or get() < 1 else get()

    def thread_setter(self) -> tuple[int, bool]:
        """The address of the function that sets its thread count, 0 where there is none, and
        whether that takes 64 bits."""
        name = {"OpenBLAS": "openblas_set_num_threads", "MKL": "MKL_Set_Num_Threads"}.get(
            self.maker, "bli_thread_set_num_threads"
        )
        found = self.function(name)
        return (0 if found is None else address(found)), name.startswith("bli")

    def for_all_threads(self) -> bool:
        """Whether its thread count holds for callers in all threads: that of OpenMP is each caller's own."""
        return self.maker in ("MKL", "BLIS") or self.parallel() == 1

    def parallel(self) -> int:
        """How OpenBLAS makes threads: 0 not at all, 1 by itself, 2 by OpenMP; 2 for what does not tell."""
        found = self.function("openblas_get_parallel", result=c_int)
        return 2 if found is None else found()


APART = """
import ctypes, sys
one = (ctypes.c_float * 1)(1)
size, number = ctypes.c_int64(1), ctypes.c_float(1)
gemm = getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])
gemm(101, 111, 111, size, size, size, number, one, size, one, size, number, one, size)
"""


def try_apart(name: str, symbol: str) -> None:
    """A product in a process of its own: MKL ends the process that lacks one of its other files."""
    import subprocess

    if not sys.executable:
        return
    run = subprocess.run(
        [sys.executable, "-S", "-E", "-c", APART, name, symbol], capture_output=True, text=True
    )
    if run.returncode:
        said = (run.stdout + run.stderr).strip().splitlines() or [f"code {run.returncode}"]
        raise Unusable(f"ends the process that calls it ({said[-1]})")


def address(function: Any) -> int:
    """Where a function is in memory."""
    return ctypes.cast(function, c_void_p).value or 0


class Symbol(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = [("file", c_char_p), ("base", c_void_p), ("name", c_char_p), ("address", c_void_p)]


def file_of(function: Any) -> str | None:
    """The file in which a function lies, as far as the system tells."""
    dladdr = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "dladdr", None)
    found = Symbol()
    if dladdr is None or not dladdr(ctypes.cast(function, c_void_p), ctypes.byref(found)):
        return None
    return str(Path(os.fsdecode(found.file)).resolve()) if found.file else None


def folder_of(package: str) -> Path | None:
    """Where a package lies, which is not imported."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def shared(folder: Path, pattern: str) -> list[str]:
    """Shared libraries in a folder."""
    found = sorted(folder.glob(pattern)) if folder.is_dir() else []
    return [str(path) for path in found if {".so", ".dylib", ".dll"} & set(path.suffixes)]


def candidates() -> Iterator[str]:
    """Files and names that may be a CBLAS, in the order in which they are tried."""
    for package in WHEELS:
        home = folder_of(package)
        yield from [] if home is None else shared(home / "lib", "*openblas*")
    numpy = folder_of("numpy")
    if numpy is not None:
        yield from shared(numpy.parent / "numpy.libs", "*openblas*")
        yield from shared(numpy / ".dylibs", "*openblas*")
        # whatever NumPy was linked with: a library's symbols are those of all that it needs
        for core in ("_core", "core"):
            yield from shared(numpy / core, "_multiarray_umath*")
    homes = [Path(sys.prefix, "lib"), Path(sys.prefix, "Library", "bin")]
    for name in SYSTEM.get(sys.platform, SYSTEM["linux"]):
        yield from [str(home / name) for home in homes if (home / name).is_file()]
        yield name


def find() -> Library:
    """The first library that works; the one that TINYFIN_BLAS names, and no other, where it is set.

    Raises:
        Unusable: there is none; the text says what would help.
    """
    if config.BLAS:
        try:
            return Library(config.BLAS)
        except Unusable as error:
            raise Unusable(f"TINYFIN_BLAS={config.BLAS} {error}") from None
    wrong = []
    for name in candidates():
        try:
            return Library(name)
        except Unusable as error:
            if Path(name).is_file() and "_multiarray_umath" not in name:
                wrong.append(f"{name} {error}")
    why = "".join(f"; {text}" for text in wrong)
    raise Unusable(
        f"no CBLAS library was found; install one with {COMMAND}, or name one in TINYFIN_BLAS{why}"
    )
