"""Every public subject against PyTorch on the CPU: values, dtypes, shapes, gradients, promotion."""

import itertools
import operator
import warnings

import numpy as np
import oracle
import pytest
import samples

import tinyfin as tf
from tinyfin.ops import table

torch = pytest.importorskip("torch")
import peer  # noqa: E402

SUBJECTS = samples.subjects()
oracle.load()
PUBLIC = [n for n in SUBJECTS if peer.counterpart(n) is not None]
HALF = ("float16", "bfloat16")
ABSENT = (
    "not implemented for",
    "does not support bool",
    "must be Tensor, not float",
    "must be Tensor, not int",
    "not differentiable with respect to",
    "derivative for",
    "invalid gradient",
)
"""What PyTorch says where it has no kernel for a dtype, takes no number, or lacks a derivative that we have."""


def tolerance(name, want, dtype):
    """As against NumPy; PyTorch's own rounding comes on top."""
    if name in oracle.ULPS and oracle.ULPS[name] > 0.5 and dtype not in HALF:
        return (oracle.ULPS[name] + 4) * oracle.spacing(want, dtype)
    finite = np.abs(want[np.isfinite(want)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    factor = 2.0 if dtype in HALF else max(oracle.LOOSE.get(name, 4), 4) * 4
    return np.full(want.shape, factor * samples.EPS[dtype] * scale)


def difference(name, ours, theirs):
    """What is different between two results, or None."""
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {tuple(ours.shape)}, PyTorch has {tuple(theirs.shape)}"
    if ours.dtype.name != peer.name_of(theirs.dtype):
        return f"dtype {ours.dtype.name}, PyTorch has {peer.name_of(theirs.dtype)}"
    a, b = samples.array(ours), peer.array(theirs)
    if a.dtype.kind != "f":
        return oracle.first_difference(a, b, a != b)
    a, b = a.astype("float64"), b.astype("float64")
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        off = ~same & ~(np.abs(a - b) <= tolerance(name, b, ours.dtype.name))
    return oracle.first_difference(a, b, off)


def theirs(name, sample, dtype, requires_grad=False):
    """PyTorch's results and leaves; None where PyTorch has no kernel for the dtype."""
    args, kwargs, leaves = peer.arguments(sample, dtype, requires_grad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return peer.counterpart(name)(*args, **kwargs), leaves
        except (RuntimeError, NotImplementedError, TypeError) as error:
            if any(text in str(error) for text in ABSENT):
                return None, leaves
            raise


@pytest.mark.parametrize("name", PUBLIC)
def test_values(name):
    wrong = []
    for sample in (s for s in samples.samples_of(name) if s.torch):
        for dtype in samples.dtypes_of(name):
            if sample.only is not None and not any(
                dtype in samples.LETTERS[c] for c in sample.only
            ):
                continue
            want, _ = theirs(name, sample, dtype)
            if want is None:
                continue
            args, kwargs = samples.mapped(sample, lambda a, d=dtype: samples.tensor(a, d))
            got = SUBJECTS[name](*args, **kwargs)
            ours, others = samples.flat(got), peer.flat(want)
            if len(ours) != len(others) or (
                not ours and got != want and not isinstance(want, torch.dtype)
            ):
                wrong.append(f"{name}{sample} {dtype}: {got!r}, PyTorch has {want!r}")
            for i, (a, b) in enumerate(zip(ours, others)):
                text = difference(name, a, b)
                wrong += [f"{name}{sample} {dtype}: result {i}: {text}"] if text else []
    assert not wrong, "\n" + "\n".join(wrong[:12])


def gradients(outputs, leaves, module):
    """Gradients of a weighted sum of the floating results."""
    total = None
    for k, y in enumerate(outputs):
        if y.requires_grad:
            w = np.cos(np.arange(y.numel()) + k).reshape(tuple(y.shape))
            part = (y * module.tensor(w)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    return [t.grad for t in leaves]


@pytest.mark.parametrize("name", PUBLIC)
def test_gradients(name):
    row = table.TABLE.get(name)
    if row is not None and (row.nondiff or row.mutates):
        pytest.skip("it has no derivative")
    for sample in (s for s in samples.samples_of(name) if s.torch and s.grad):
        want, their_leaves = theirs(name, sample, "float64", True)
        if want is None:
            continue
        leaves = []

        def leaf(a, made=leaves, sample=sample):
            need = a.dtype == np.float64 and len(made) not in sample.fixed
            made.append(samples.tensor(a, "float64", requires_grad=need))
            return made[-1]

        args, kwargs = samples.mapped(sample, leaf)
        ours = gradients(samples.flat(SUBJECTS[name](*args, **kwargs)), leaves, tf)
        try:
            others = gradients(peer.flat(want), their_leaves, torch)
        except RuntimeError as error:
            if any(text in str(error) for text in ABSENT):
                continue
            raise
        for i, (a, b) in enumerate(zip(ours, others)):
            zero = np.zeros(tuple(leaves[i].shape))
            a, b = zero if a is None else samples.array(a), zero if b is None else peer.array(b)
            np.testing.assert_allclose(
                a, b, rtol=1e-7, atol=1e-7, err_msg=f"{name}{sample} argument {i}"
            )


WRITTEN_OVER = {
    "flip": "a view of a leaf here",
    "fliplr": "a view of a leaf here",
    "flipud": "a view of a leaf here",
    "rot90": "a view of a leaf here",
    "scaled_dot_product_attention": "the tiled backward needs the result, as PyTorch's does on GPUs",
}
"""Subjects whose results cannot be written over, and why."""


@pytest.mark.parametrize("name", PUBLIC)
def test_results_may_be_written_over(name):
    """A result that PyTorch's backward does not need is not needed by ours: relu_(norm(x)) trains."""
    row = table.TABLE.get(name)
    if row is not None and (row.nondiff or row.mutates):
        pytest.skip("it has no derivative")
    refused = []
    for sample in (s for s in samples.samples_of(name) if s.torch and s.grad):

        def ours(sample=sample):
            places = iter(range(99))

            def leaf(a):
                free = next(places) not in sample.fixed
                return samples.tensor(a, "float64", requires_grad=free and a.dtype == np.float64)

            args, kwargs = samples.mapped(sample, leaf)
            return samples.flat(SUBJECTS[name](*args, **kwargs))

        def others(sample=sample):
            want, _ = theirs(name, sample, "float64", True)
            return peer.flat(want) if want is not None else []

        try:
            count = len([y for y in others() if y.requires_grad])
        except RuntimeError:
            continue
        for k in range(count):
            if outcome(lambda k=k: overwritten(others(), k)) == "done":
                got = outcome(lambda k=k: overwritten(ours(), k))
                if got != "done":
                    refused.append(f"{name}{sample} result {k}")
    assert bool(refused) == (name in WRITTEN_OVER), refused


def overwritten(outputs, k):
    """Writes over a result, then goes back through all of them."""
    wanted = [y for y in outputs if y.requires_grad]
    wanted[k].mul_(2)
    sum(y.sum() for y in wanted).backward()
    return "done"


# ---- promotion, exhaustively

BINARY = [
    n
    for n, row in table.TABLE.items()
    if row.expr is not None and len(row.arg_names) == 2 and (row.function or row.method)
]
KINDS = {"tensor": (3,), "number of a tensor": ()}
SCALARS = (True, 3, 2.5)


def outcome(call):
    """The dtype's name, or the kind of refusal."""
    try:
        return call()
    except (RuntimeError, TypeError, NotImplementedError):
        return "refused"


def pair(module, name, *sides):
    """The dtype of a binary operation; sides are (shape, dtype name) or numbers."""
    args = [
        module.ones(s[0], dtype=getattr(module, s[1])) if isinstance(s, tuple) else s for s in sides
    ]
    home = module if hasattr(module, name) else module.Tensor
    return str(getattr(home, name)(*args).dtype).split(".")[-1]


@pytest.mark.parametrize("name", BINARY)
def test_promotion(name):
    sides = [(shape, dtype) for shape in KINDS.values() for dtype in samples.ALL]
    wrong = []
    for a, b in itertools.chain(itertools.product(sides, sides), itertools.product(sides, SCALARS)):
        ours, want = outcome(lambda: pair(tf, name, a, b)), outcome(lambda: pair(torch, name, a, b))
        if want not in (ours, "refused") and (name, a[1]) not in WITHOUT:
            wrong.append(f"{name}({a}, {b}) gives {ours}, PyTorch {want}")
    assert not wrong, f"{len(wrong)} of {len(sides) * (len(sides) + 3)}:\n" + "\n".join(wrong[:15])


WITHOUT = {("square", "bool"), ("pow", "bool")} | {
    ("hardtanh", f"int{bits}") for bits in (8, 16, 32, 64)
}
"""Results that PyTorch has and we refuse: squares and powers of truth values, activations of integers."""
OPERATORS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "eq",
    "lt",
    "and_",
    "or_",
    "xor",
]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_numbers(name):
    """A number on either side of an operator, for every dtype, with 0-d tensors too."""
    fn, wrong = getattr(operator, name), []
    for shape, dtype, number, left in itertools.product(
        KINDS.values(), samples.ALL, SCALARS, (True, False)
    ):

        def run(m, shape=shape, dtype=dtype, number=number, left=left):
            t = m.ones(shape, dtype=getattr(m, dtype))
            return str((fn(t, number) if left else fn(number, t)).dtype).split(".")[-1]

        ours, want = outcome(lambda: run(tf)), outcome(lambda: run(torch))
        if want not in (ours, "refused") and (name, dtype) not in WITHOUT:
            wrong.append(
                f"{name} {shape} {dtype} {number!r} {'left' if left else 'right'}: {ours}, PyTorch {want}"
            )
    assert not wrong, "\n".join(wrong[:15])


@pytest.mark.parametrize("dtype", samples.FLOATS)
def test_numbers_keep_their_precision(dtype):
    """A Python number meets a half or float32 tensor as PyTorch has it."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal(200)
    for number in 0.3, 1 / 3, 1e-3, 7:
        for name in "add", "sub", "mul", "div", "pow", "rsub":
            a = samples.tensor(values, dtype)
            b = peer.tensor(values, dtype)
            ours, want = getattr(tf, name)(a, number), getattr(torch, name)(b, number)
            text = difference("add" if name != "pow" else name, ours, want)
            assert text is None, f"{name}({dtype}, {number}): {text}"


def test_unary_results():
    """The dtype of every operation of one tensor, for every dtype."""
    wrong = []
    for name, row in table.TABLE.items():
        if row.expr is None or len(row.arg_names) != 1 or not (row.function or row.method):
            continue
        fn = peer.counterpart(name)
        for dtype in samples.ALL:
            ours = outcome(lambda: table.OPS[name](tf.ones(2, dtype=getattr(tf, dtype))).dtype.name)
            want = outcome(
                lambda: peer.name_of(fn(torch.ones(2, dtype=getattr(torch, dtype))).dtype)
            )
            if want not in (ours, "refused") and (name, dtype) not in WITHOUT:
                wrong.append(f"{name}({dtype}) gives {ours}, PyTorch {want}")
    assert not wrong, "\n".join(wrong)
