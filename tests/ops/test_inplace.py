"""In-place twins: the same values, histories and versions as the plain operations; errors leave no trace."""

import numpy as np
import pytest
import samples

import tinyfin as tf
from tinyfin.ops import table

TWINS = [name for name, row in table.TABLE.items() if row.inplace]
ALIASED = [
    n for n in TWINS if len(table.TABLE[n].arg_names) == 2 and table.TABLE[n].expr is not None
]
RANK = {"bool": 0, "float16": 2, "bfloat16": 2, "float32": 2, "float64": 2}


def calls(name):
    """Samples whose first argument is a tensor, with a dtype that the subject takes."""
    for sample in samples.samples_of(name):
        if isinstance(sample.args[0], np.ndarray) and sample.args[0].dtype == np.float64:
            for dtype in {samples.main_dtype(name), *samples.dtypes_of(name)} & {
                "float32",
                "int64",
                "bool",
                "uint8",
            }:
                yield sample, dtype


def fits(result, x):
    """Whether the result can be written over x."""
    return result.shape == x.shape and RANK.get(result.dtype.name, 1) <= RANK.get(x.dtype.name, 1)


def attempt(name, sample, dtype, relay):
    """(arguments, result or None, error or None) of an in-place call."""
    args, kwargs = samples.mapped(sample, lambda a: samples.tensor(a, dtype))
    args[0] = relay(args[0])
    try:
        return args[0], table.OPS[name + "_"](*args, **kwargs), None
    except RuntimeError as error:
        return args[0], None, error


@pytest.mark.parametrize("name", TWINS)
def test_same_as_plain(name):
    seen = 0
    for sample, dtype in calls(name):
        args, kwargs = samples.mapped(sample, lambda a, d=dtype: samples.tensor(a, d))
        want = table.OPS[name](*args, **kwargs)
        for label, relay in {"dense": lambda t: t, **samples.LAYOUTS}.items():
            x, got, error = attempt(name, sample, dtype, relay)
            where = f"{name}_{sample} {dtype} {label}"
            if fits(want, x):
                assert error is None, f"{where}: {error}"
                assert got is x, f"{where}: another tensor came back"
                assert samples.bits(x) == samples.bits(want.to(x.dtype)), where
                seen += 1
            else:
                assert error is not None, (
                    f"{where}: {want.dtype} {tuple(want.shape)} was squeezed into it"
                )
                assert str(error).startswith(f"{name}_: "), error
                assert samples.bits(x) == samples.bits(args[0]), f"{where}: refused, but written"
    assert seen, f"no sample of {name} can be computed in place"


@pytest.mark.parametrize("name", TWINS)
def test_version_and_holes(name):
    """The version rises by one, on the view and its base; nothing outside the view is touched."""
    for sample, dtype in calls(name):
        args, kwargs = samples.mapped(sample, lambda a, d=dtype: samples.tensor(a, d))
        n = args[0].numel()
        base = tf.ones(2 * n + 2, dtype=args[0].dtype)
        view = tf.as_strided(base, tuple(args[0].shape), dense_twice(args[0].shape), 1)
        view.copy_(args[0])
        before, outside = view._version, samples.bits(base[::2])
        if not fits(table.OPS[name](*args, **kwargs), view):
            continue
        table.OPS[name + "_"](view, *args[1:], **kwargs)
        assert view._version == base._version == before + 1, f"{name}_{sample} {dtype}"
        assert samples.bits(base[::2]) == outside, f"{name}_{sample} {dtype}"


def dense_twice(shape):
    """Row-major strides that leave out every second element."""
    steps, step = [], 2
    for size in reversed(shape):
        steps.append(step)
        step *= size
    return tuple(reversed(steps))


def recorded(name, sample, inplace):
    """Gradients of a weighted sum of the result with respect to all float64 arguments."""
    leaves = []

    def leaf(a):
        t = samples.tensor(a, "float64", requires_grad=a.dtype == np.float64)
        leaves.append(t)
        return t

    args, kwargs = samples.mapped(sample, leaf)
    if inplace:
        y = args[0].clone()
        table.OPS[name + "_"](y, *args[1:], **kwargs)
    else:
        y = table.OPS[name](*args, **kwargs)
    weights = samples.tensor(
        np.cos(np.arange(y.numel(), dtype="float64")).reshape(tuple(y.shape)), "float64"
    )
    if y.requires_grad:
        (y * weights).sum().backward()
    return y, [t.grad for t in leaves if t.requires_grad]


def has_gradient(name):
    """Whether floating inputs are taken and a derivative exists."""
    dtypes = table.TABLE[name].dtypes
    return "f" in dtypes or dtypes == "any"


@pytest.mark.parametrize("name", [n for n in TWINS if has_gradient(n)])
def test_gradients(name):
    for sample in samples.samples_of(name):
        if not isinstance(sample.args[0], np.ndarray) or sample.args[0].dtype != np.float64:
            continue
        plain, want = recorded(name, sample, False)
        if tuple(plain.shape) != sample.args[0].shape or not plain.is_floating_point():
            continue
        written, got = recorded(name, sample, True)
        assert samples.bits(written) == samples.bits(plain)
        for a, b in zip(got, want):
            a = None if a is None else samples.array(a)
            b = (
                np.zeros(a.shape)
                if b is None and a is not None
                else None
                if b is None
                else samples.array(b)
            )
            if a is not None or b is not None:
                a = np.zeros(b.shape) if a is None else a
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=f"{name}_{sample}")


@pytest.mark.parametrize("name", TWINS)
def test_refusals(name):
    """Leaves that record, elements that share memory, and memory that is read-only."""
    sample = next(s for s, _ in calls(name) if s.args[0].ndim and s.args[0].size)
    args, kwargs = samples.mapped(sample, lambda a: samples.tensor(a, samples.main_dtype(name)))
    x, rest = args[0], args[1:]
    twin = table.OPS[name + "_"]
    shared = (
        x.narrow(0, 0, 1).expand(x.shape) if x.shape[0] > 1 else x.unsqueeze(0).expand(2, *x.shape)
    )
    frozen = x.numpy().copy()
    frozen.flags.writeable = False
    targets = {"share memory": shared, "read-only": tf.from_numpy(frozen)}
    if x.is_floating_point():
        targets["leaf"] = x.clone().requires_grad_()
    for words, target in targets.items():
        before, version = samples.bits(target), target._version
        with pytest.raises(RuntimeError, match=f"^{name}_: .*{words}"):
            twin(target, *rest, **kwargs)
        assert samples.bits(target) == before and target._version == version


@pytest.mark.parametrize("name", ALIASED)
def test_aliases(name):
    """Arguments that overlap what is written are read as if they had been copied first."""
    first, second = (a for a in next(s for s in samples.samples_of(name)).args)
    dtype = samples.main_dtype(name)
    start = np.resize(np.abs(np.concatenate([np.ravel(first), np.ravel(second)])) + 0.5, (5, 5))
    pairs = {
        "itself": lambda t: (t, t),
        "shifted": lambda t: (t[1:], t[:-1]),
        "back": lambda t: (t[:-1], t[1:]),
        "transposed": lambda t: (t, t.t()),
        "reversed": lambda t: (t, t.flip((0, 1))),
        "row": lambda t: (t, t[2]),
        "expanded": lambda t: (t, t[:, 1:2]),
    }
    for label, pick in pairs.items():
        t = samples.tensor(np.rint(start) if dtype == "int64" else start, dtype)
        a, b = pick(t)
        want = table.OPS[name](a.clone(), b.clone())
        if not fits(want, a):
            continue
        table.OPS[name + "_"](a, b)
        assert samples.bits(a) == samples.bits(want), f"{name}_ {label}"


def test_copy_overlaps():
    """copy_ between overlapping views, both ways, in one and two dimensions."""
    for shape in (10,), (6, 5), (3000, 7):
        for forward in True, False:
            a = np.arange(np.prod(shape), dtype="float32").reshape(shape)
            t = tf.tensor(a)
            want = a.copy()
            (want[1:] if forward else want[:-1])[...] = a[:-1] if forward else a[1:]
            (t[1:] if forward else t[:-1]).copy_(t[:-1] if forward else t[1:])
            assert np.array_equal(t.numpy(), want)
    t = tf.arange(9.0).reshape(3, 3)
    t.copy_(t.t())
    assert t.tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


@pytest.mark.parametrize("name", ["exp", "sigmoid", "sqrt", "tanh", "rsqrt", "reciprocal"])
def test_overwritten_result_is_refused(name):
    """A gradient that needs a result which was overwritten is an error that names the operation."""
    x = tf.tensor([0.5, 1.0], requires_grad=True)
    y = table.OPS[name](x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match=name):
        y.sum().backward()


@pytest.mark.parametrize("name", ["sin", "log", "square", "mul", "pow", "atan2"])
def test_overwritten_input_is_refused(name):
    """The same for an argument, also when it was written through a view."""
    for view in (lambda h: h), (lambda h: h[:1]):
        x = tf.tensor([0.5, 1.0], requires_grad=True)
        h = x * 1
        y = table.OPS[name](h, h) if len(table.TABLE[name].arg_names) > 1 else table.OPS[name](h)
        view(h).add_(1)
        with pytest.raises(RuntimeError, match=name):
            y.sum().backward()


def test_history_of_copies_and_fills():
    """What `copy_` and random fills record: the source's gradient, and none for the old values."""
    x, src = tf.ones(3, requires_grad=True), tf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y.copy_(src)
    (y * tf.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad is None or x.grad.tolist() == [0, 0, 0]
    assert src.grad.tolist() == [1, 10, 100]
    x = tf.ones(3, requires_grad=True)
    y = x * 2
    y.uniform_()
    y.sum().backward()
    assert x.grad is None or x.grad.tolist() == [0, 0, 0]
