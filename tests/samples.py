"""Inputs for every subject of the suite: the rows, and the public compositions over them.

A sample is a call as a user writes it. NumPy arrays in it stand for tensors: float64 arrays are
converted to the dtype under test, arrays of any other dtype (indices, masks) stay as they are.
A subject without samples is an error, so none can go untested.
"""

import functools
import importlib
import inspect
import pathlib
import zlib

import numpy as np

import tinyfin as tf
from tinyfin.ops import table

FLOATS = ("float64", "float32", "float16", "bfloat16")
INTS = ("uint8", "int8", "int16", "int32", "int64")
ALL = ("bool", *INTS, *FLOATS)
LETTERS = {"b": ("bool",), "i": INTS, "f": ("float64", "float32"), "h": ("float16", "bfloat16")}
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
MAKERS = {}
"""subject -> function of a random generator that yields samples."""
HERE = pathlib.Path(__file__).resolve().parent


class Sample:
    """One call: positional and keyword arguments, and what of the suite applies to it."""

    __slots__ = ("args", "fixed", "grad", "kwargs", "note", "only", "torch")

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs
        self.grad = self.torch = True
        self.note, self.only, self.fixed = "", None, ()

    def but(self, **changes):
        """The sample with other settings.

        grad: may be differentiated; torch: means the same to PyTorch; only: letters of dtypes;
        fixed: numbers of the arrays that must not require a gradient.
        """
        for name, value in changes.items():
            setattr(self, name, value)
        return self

    def __repr__(self):
        parts = [describe(a) for a in self.args]
        parts += [f"{k}={describe(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(parts)}){' ' + self.note if self.note else ''}"


def describe(a):
    """An argument in a few letters."""
    if isinstance(a, np.ndarray):
        return f"{a.dtype}{list(a.shape)}"
    if isinstance(a, (list, tuple)) and any(isinstance(v, np.ndarray) for v in a):
        return f"[{', '.join(map(describe, a))}]"
    return repr(a)


def maker(*names):
    """Registers a function that yields the samples of the subjects named."""

    def register(fn):
        for name in names:
            assert name not in MAKERS, f"two makers for {name}"
            MAKERS[name] = fn
        return fn

    return register


# ---- subjects

RECORDED = {"assign", "zero_gradient"}
"""Rows that stand in graphs only, where `copy_` and random fills put them: tests/ops/test_inplace.py."""


def load():
    """Reads the makers, once."""
    if not MAKERS:
        for path in sorted((HERE / "makers").glob("*.py")):
            importlib.import_module(f"makers.{path.stem}")


def compositions():
    """name -> function of the public functions over the rows that are no rows themselves."""
    found = {}
    for module in ("functional", "linalg", "conversion"):
        for name, fn in importlib.import_module(f"tinyfin.{module}").PUBLIC.items():
            if callable(fn) and name not in table.OPS:
                found[name] = fn
    return found


@functools.cache
def subjects():
    """name -> callable of all that has to be tested."""
    load()
    found = {name: table.OPS[name] for name in table.TABLE if name not in RECORDED}
    found.update(compositions())
    for name in MAKERS:
        if name not in found:
            found[name] = resolve(name)
    return found


def resolve(name):
    """The public object behind a dotted name: a function, or a method if there is no function."""
    found = tf
    for part in name.split("."):
        found = getattr(found, part, None) or getattr(tf.Tensor, part, None)
        if found is None:
            return lambda *args, **kwargs: absent(name)
    return found


def absent(name):
    """What calling a name does that has samples and is not there."""
    raise LookupError(f"{name} has samples, but there is no such name")


def samples_of(name, **options):
    """The samples of a subject, the same ones in every run."""
    load()
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    fn = MAKERS.get(name)
    row = table.TABLE.get(name)
    if fn is None and row is not None and row.expr is not None:
        fn = importlib.import_module("makers.elementwise").elementwise
    if fn is None:
        raise LookupError(f"{name} has no samples: write a maker in tests/makers")
    wanted = {"name": name, "row": row, **options}
    takes = inspect.signature(fn).parameters
    return list(fn(rng, **{k: v for k, v in wanted.items() if k in takes}))


def dtypes_of(name):
    """The dtypes under test of a subject."""
    row = table.TABLE.get(name)
    if name in DTYPES:
        return DTYPES[name]
    if row is None:
        return ("float64", "float32")
    if row.dtypes == "any" or row.result == "float":
        return ALL
    return tuple(d for d in ALL if any(d in LETTERS[c] for c in row.dtypes))


def main_dtype(name):
    """One dtype for tests that need no other: float32 where the subject takes it."""
    dtypes = dtypes_of(name) or ("float32",)
    return "float32" if "float32" in dtypes else dtypes[-1]


DTYPES = {}
"""Dtypes of subjects where neither the row nor the rule for compositions says it; makers fill it."""


# ---- arrays and tensors


def round_to_bfloat16(a):
    """float64 numbers to the nearest bfloat16, ties to even; still float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        u = np.asarray(a, "float32").view("uint32")
    rounded = ((u + 0x7FFF + ((u >> 16) & 1)) & np.uint32(0xFFFF0000)).astype("uint32")
    f = np.where(np.isnan(a), np.float32(np.nan), rounded.view("float32"))
    return f.astype("float64").reshape(np.shape(a))


def rounded(a, dtype):
    """float64 numbers rounded to a float dtype, as float64."""
    if dtype == "bfloat16":
        return round_to_bfloat16(a)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(a).astype(dtype).astype("float64")


def convert(a, dtype):
    """An array of a sample in the dtype under test; half types stay float64 with rounded values."""
    if a.dtype != np.float64:
        return a
    if dtype in FLOATS:
        return rounded(a, dtype)
    if dtype == "bool":
        return a > 0
    whole = a if (a == np.rint(a)).all() else np.rint(a * 3)
    return (np.abs(whole) if dtype == "uint8" else whole).astype(dtype)


def tensor(a, dtype, device="cpu", requires_grad=False):
    """A tensor of the converted array; its dtype is the one under test."""
    data = convert(a, dtype)
    if a.dtype != np.float64 or dtype not in ("float16", "bfloat16"):
        wanted = dtype if a.dtype == np.float64 else data.dtype.name
        t = tf.tensor(np.ascontiguousarray(data).astype(wanted).reshape(data.shape))
    else:
        t = tf.tensor(np.ascontiguousarray(data, "float32").reshape(data.shape))
        t = t.to(getattr(tf, dtype))
    t = t if device == "cpu" else t.to(device)
    return t.requires_grad_() if requires_grad else t


def mapped(sample, fn):
    """(args, kwargs) with every array replaced by fn(array)."""

    def change(v):
        if isinstance(v, np.ndarray):
            return fn(v)
        if isinstance(v, (list, tuple)) and any(isinstance(w, np.ndarray) for w in v):
            return type(v)(map(change, v))
        return v

    return [change(a) for a in sample.args], {k: change(v) for k, v in sample.kwargs.items()}


def arrays(sample):
    """All arrays of a sample, in the order in which `mapped` meets them."""
    found = []
    mapped(sample, lambda a: found.append(a) or a)
    return found


def with_arrays(sample, values):
    """(args, kwargs) with the arrays replaced by `values`, one for each."""
    rest = iter(values)
    return mapped(sample, lambda a: next(rest))


def flat(result):
    """The tensors of a result in a list; other values are left out."""
    if isinstance(result, tf.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in flat(part)]
    return []


def applies(sample, dtype):
    """Whether a sample is meant for a dtype."""
    return sample.only is None or any(dtype in LETTERS[c] for c in sample.only)


def outcome(name, args, kwargs):
    """The results of a call; for rows that write their arguments, what is written."""
    row = table.TABLE.get(name)
    result = subjects()[name](*args, **kwargs)
    if row is None or not row.mutates:
        return result
    assert result is args[0], f"{name} must return its first argument"
    return [a for a, n in zip(args, row.arg_names) if n in row.mutates and a is not None]


def array(t):
    """A tensor's values; half types as float64."""
    t = t.detach()
    if t.dtype in (tf.float16, tf.bfloat16):
        return np.array(t.to(tf.float32).contiguous().numpy(), "float64")
    return np.array(t.contiguous().numpy())


def bits(t):
    """(dtype, shape, bytes) with one NaN for all: what must be equal where equal bits are promised."""
    a = array(t)
    if a.dtype.kind == "f":
        a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
    return t.dtype.name, tuple(t.shape), a.tobytes()


# ---- odd layouts: each gives a tensor equal to its argument, differently stored


def transposed(t):
    """Column-major storage."""
    dims = tuple(reversed(range(t.ndim)))
    return t.permute(dims).contiguous().permute(dims)


def negative(t):
    """Every axis runs backwards."""
    dims = tuple(range(t.ndim))
    return t.flip(dims).contiguous().flip(dims) if dims else t


def gapped(t):
    """Every second element of a larger storage that is full of other numbers."""
    if not t.ndim:
        return offset(t)
    big = tf.full(tuple(2 * s + 1 for s in t.shape), 1, dtype=t.dtype)
    big = big * float("nan") if t.is_floating_point() else big
    view = big[tuple(slice(1, None, 2) for _ in t.shape)]
    view.copy_(t)
    return view


def offset(t):
    """Dense, behind other elements in its storage and not aligned."""
    storage = tf.ones(t.numel() + 5, dtype=t.dtype)
    view = storage[3 : 3 + t.numel()].view(tuple(t.shape))
    view.copy_(t)
    return view


def swapped(t):
    """Two axes exchanged in storage, the others in order."""
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.ndim > 1 else gapped(t)


LAYOUTS = {
    "transposed": transposed,
    "negative": negative,
    "gapped": gapped,
    "offset": offset,
    "swapped": swapped,
}


def expanded(a):
    """An array whose first axis of several repeats one value, and the axis; None where there is none."""
    for k, size in enumerate(a.shape):
        if size > 1:
            return np.repeat(np.take(a, [0], k), size, k), k
    return None, None
