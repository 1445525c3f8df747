"""Runs random calls, one JSON line each, in a process that may die: started by test_fuzz.

A call is a name and arguments as data, or a sample of a subject with some arguments exchanged. The
answer is how it ended. Any exception of the kinds in FAIR is a fair end; others are mistakes of ours.
"""

import faulthandler
import json
import os
import re
import resource
import sys
import warnings

import numpy as np
import samples

import tinyfin as tf
from tinyfin.ops import table

FAIR = (
    TypeError,
    ValueError,
    RuntimeError,
    IndexError,
    MemoryError,
    NotImplementedError,
    ZeroDivisionError,
    OverflowError,
    BufferError,
    StopIteration,
    LookupError,
    AssertionError,  # what PyTorch raises for a padding_idx outside the table
)
UNFAIR = (RecursionError, KeyError, UnboundLocalError)
MEMORY = 3 << 30
SECONDS = 30
TRUSTED = {"as_strided_view": "the face checks that the geometry stays inside the storage"}
"""Subjects whose arguments are not changed, and why."""
LEFT_OUT = ("set_", "backend_", "use_", "_", "install", "load", "save", "share_memory", "is_shared")
SPECIAL = (
    "__getitem__",
    "__setitem__",
    "__contains__",
    "__len__",
    "__iter__",
    "__bool__",
    "__float__",
    "__int__",
    "__index__",
    "__add__",
    "__rsub__",
    "__iadd__",
    "__matmul__",
    "__pow__",
    "__and__",
    "__invert__",
    "__eq__",
    "__repr__",
    "__format__",
    "__deepcopy__",
    "__reduce_ex__",
    "__array__",
    "__dlpack__",
)
NUMBERS = {
    "nan": float("nan"),
    "inf": float("inf"),
    "huge": 1 << 62,
    "beyond": 1 << 70,
    "least": -(1 << 63),
    "none": None,
    "true": True,
    "dots": Ellipsis,
    "object": object(),
    "dtype": tf.float32,
    "half": tf.float16,
    "slice": slice(None, None, -1),
    "slice2": slice(-9, 1 << 62, 3),
}


def names():
    """Everything that is fuzzed: subjects, public functions, methods, nn.functional."""
    found = [n for n in samples.subjects()]
    found += [f"tf.{n}" for n in vars(tf) if callable(getattr(tf, n)) and keeps(n)]
    found += [f"Tensor.{n}" for n in dir(tf.Tensor) if n in SPECIAL or keeps(n)]
    found += [
        f"F.{n}"
        for n in dir(tf.nn.functional)
        if callable(getattr(tf.nn.functional, n)) and keeps(n)
    ]
    return sorted(set(found))


def keeps(name):
    """Whether a public name is fuzzed: no switches, no files."""
    return not name.startswith(LEFT_OUT) and not name.endswith("Error")


def resolve(name):
    """The callable behind a name."""
    home, _, rest = name.partition(".")
    if home == "tf":
        return getattr(tf, rest)
    if home == "F":
        return getattr(tf.nn.functional, rest)
    if home == "Tensor":
        return lambda self, *a, **k: read(self, rest, a, k)
    return samples.subjects()[name]


def read(self, name, args, kwargs):
    """A method, or an attribute that is no method."""
    if not isinstance(self, tf.Tensor):
        raise TypeError("no tensor")
    value = getattr(self, name)
    return value(*args, **kwargs) if callable(value) else value


def build(d):
    """A value from its description."""
    if isinstance(d, dict):
        if "t" in d:
            return tensor(**d["t"])
        if "c" in d:
            return NUMBERS[d["c"]]
        return tuple(map(build, d["tuple"]))
    return list(map(build, d)) if isinstance(d, list) else d


def tensor(shape, dtype, fill, views, grad=False):
    """A tensor: numbers by `fill`, then changes of geometry."""
    n = int(np.prod(shape))
    data = {
        "ramp": np.arange(n) % 7 - 2.0,
        "nan": np.full(n, np.nan),
        "inf": np.full(n, np.inf),
        "zero": np.zeros(n),
        "large": np.full(n, 1e30),
        "index": np.arange(n) % 3,
    }[fill]
    if dtype not in samples.FLOATS:
        data = np.where(np.isfinite(data), data, -1).clip(-(2**31), 2**31)
    t = tf.tensor(data.reshape(shape).astype("float64")).to(getattr(tf, dtype))
    for kind, a, b in views:
        t = view(t, kind, a, b)
    return t.requires_grad_() if grad and t.is_floating_point() else t


def view(t, kind, a, b):
    """One change of geometry; those that do not fit are left out."""
    if kind == "expand":
        return t.expand(*[s if s != 1 else a % 5 for s in t.shape]) if t.ndim else t.expand(a % 4)
    if kind == "null":
        return t.to("null")
    if not t.ndim:
        return t
    i, j = a % t.ndim, b % t.ndim
    if kind == "transpose":
        return t.transpose(i, j)
    if kind == "flip":
        return t.flip(i)
    if kind == "step":
        return t[(slice(None),) * i + (slice(b % 3, None, 1 + a % 3),)]
    return t.unsqueeze(i) if t.ndim < 8 else t


INTEGERS = {"int", "optint", "ints3", "dim", "dim1"}
"""Kinds of attributes that are integers."""


def places(name, most):
    """(sample, slot, part) of every integer in the first samples: arguments, parts of tuples and of
    index tensors, and attributes that a sample leaves out."""
    row = table.TABLE.get(name)
    attrs = [a.name for a in row.attrs if a.kind in INTEGERS] if row is not None else []
    for number, sample in enumerate(samples.samples_of(name)[:most]):
        given = [*enumerate(sample.args), *sample.kwargs.items()]
        for slot, value in given:
            if isinstance(value, int) and not isinstance(value, bool):
                yield number, slot, None
            elif isinstance(value, (tuple, list)) and all(isinstance(v, int) for v in value):
                yield from ((number, slot, part) for part in range(len(value)))
            elif isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size:
                yield number, slot, -1
        yield from ((number, a, None) for a in attrs if a not in sample.kwargs)


def put(value, part, integer):
    """The value with one integer in its place."""
    if part is None:
        return integer
    if isinstance(value, tf.Tensor):
        value = value.clone()
        value.reshape(-1)[part] = integer
        return value
    value = list(value)
    value[part] = integer
    return value


def exchanged(case):
    """The arguments of a sample, some of them exchanged for other values."""
    sample = samples.samples_of(case["name"])[case["sample"]]
    args, kwargs = samples.mapped(sample, lambda a: samples.tensor(a, case["dtype"]))
    args = list(args)
    if "integer" in case:
        slot, part, integer = case["integer"]
        home = kwargs if isinstance(slot, str) else args
        home[slot] = integer if part is None else put(home[slot], part, integer)
    for place, value in case["changes"]:
        slots = list(range(len(args))) + list(kwargs)
        slot = slots[place % len(slots)]
        (kwargs if isinstance(slot, str) else args)[slot] = build(value)
    if case["grad"]:
        for t in samples.flat(args):
            if t.is_floating_point() and t.is_leaf:
                t.requires_grad_()
    return args, kwargs


def use(result):
    """Looks at everything in a result, and goes backward from it."""
    repr(result)
    for t in samples.flat(result)[:8]:
        if t.device.type == "cpu" and t.numel() < 4096 and max(t.shape, default=0) < 4096:
            t.tolist()  # no tensor without elements either that is a list of many empty lists
        if t.requires_grad and t.is_floating_point() and t.numel() < 4096:
            t.sum().backward()


def run(case):
    """How a call ends: fine, a fair error, or a mistake."""
    try:
        if "sample" in case:
            args, kwargs = exchanged(case)
        else:
            args, kwargs = build(case["args"]), {k: build(v) for k, v in case["kwargs"].items()}
    except FAIR:
        return "not built"
    try:
        use(resolve(case["name"])(*args, **kwargs))
    except UNFAIR as error:
        return f"{type(error).__name__}: {error}"
    except FAIR as error:
        if not str(error) or re.search(r"-\d+ bytes", str(error)):
            return f"{type(error).__name__} that says nothing: '{error}'"
        return "fair"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "fine"


def main():
    """Answers until the input ends."""
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # its shadow needs the address space
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    tf.set_memory_limit(1 << 30)
    for line in sys.stdin:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        answer = run(json.loads(line))
        faulthandler.cancel_dump_traceback_later()
        tf.set_grad_enabled(True)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    main()
