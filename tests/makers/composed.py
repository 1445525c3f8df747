"""Samples of public functions over the rows: shapes, splits, comparisons, bounds, extremes."""

import numpy as np
from makers.reduce import distinct
from samples import ALL, DTYPES, FLOATS, Sample, maker

import tinyfin as tf

INF, NAN = np.inf, np.nan


def normal(rng, *shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


def cases(rng, *calls):
    """Samples of one tensor each, from (shape, arguments ...)."""
    for shape, *args in calls:
        yield Sample(normal(rng, *shape), *args)


SHAPES = {
    "flatten": [((2, 3, 2),), ((2, 3, 2), 1), ((2, 3, 2), 0, 1), ((),), ((3,), -1, -1), ((0, 2),)],
    "unflatten": [((6, 2), 0, (2, 3)), ((2, 6), -1, (3, -1)), ((4,), 0, (2, 1, 2))],
    "movedim": [((2, 3, 4), 0, 2), ((2, 3, 4), (0, 1), (-1, 0)), ((2, 3), -1, 0)],
    "broadcast_to": [((3, 1), (3, 4)), ((3,), (2, 3)), ((), (2,))],
    "select": [((3, 4), 0, 1), ((3, 4), -1, -2), ((2, 3, 2), 1, 0)],
    "split": [
        ((5, 2), 2),
        ((5, 2), 2, 1),
        ((5,), [1, 4]),
        ((2, 4), [1, 0, 3], -1),
        ((4,), 4),
        ((0, 2), 1),
    ],
    "split_with_sizes": [((5,), [1, 4]), ((2, 4), [1, 0, 3], -1)],
    "chunk": [((5, 2), 2), ((5,), 3), ((2, 4), 2, 1), ((2,), 5)],
    "tensor_split": [((7,), 3), ((2, 7), 3, 1), ((7,), (1, 4)), ((7,), (-2, 9)), ((3,), 5)],
    "unbind": [((2, 3),), ((2, 3), -1), ((2, 0),)],
    "ravel": [((2, 3),), ((),)],
    "fliplr": [((2, 3),)],
    "flipud": [((2, 3),)],
    "rot90": [((2, 3),), ((2, 3), 2), ((2, 3), -1), ((2, 3, 2), 1, (1, 2)), ((2, 3), 4)],
    "trace": [((3, 4),), ((4, 2),)],
    "diag": [((3,),), ((3,), 1), ((3, 4), -1), ((3, 3),)],
    "diag_embed": [((2, 3),), ((3,), -1), ((3,), 2)],
    "as_strided": [
        ((3, 4), (2, 2), (4, 1), 1),
        ((8,), (3, 3), (1, 2)),
        ((6,), (2,), (3,), 2),
        ((4,), (2, 2), (0, 1)),
    ],
    "diff": [((5,),), ((3, 4), 1, 0), ((3, 4), 2), ((1, 2), 1, 0)],
}
for _name in SHAPES:
    DTYPES[_name] = ALL
DTYPES["diff"] = DTYPES["trace"] = tuple(d for d in ALL if d != "bool")


@maker(*SHAPES)
def shapes(rng, name):
    yield from cases(rng, *SHAPES[name])


@maker("broadcast_tensors", "meshgrid")
def several(rng, name):
    if name == "broadcast_tensors":
        yield Sample(normal(rng, 3, 1), normal(rng, 4), normal(rng))
        return
    for kwargs in ({}, {"indexing": "xy"}, {"indexing": "ij"}):
        yield Sample(normal(rng, 2), normal(rng, 3), **kwargs)
        yield Sample(normal(rng, 2), normal(rng, 3), normal(rng, 2), **kwargs)
    yield Sample(normal(rng, 3))


@maker("broadcast_shapes")
def broadcast_shapes(rng):
    yield Sample((2, 1), (3,))
    yield Sample((), (0, 1), (4,))


@maker("expand_as", "reshape_as", "view_as", "type_as")
def like(rng, name):
    """As another tensor."""
    other = {"expand_as": (3, 4), "type_as": (3, 1)}.get(name, (1, 3))
    yield Sample(normal(rng, 3, 1), np.zeros(other))


@maker("clamp")
def clamp(rng):
    x = normal(rng, 3, 4) * 2
    yield Sample(x, -1, 1)
    yield Sample(x, min=-0.5)
    yield Sample(x, max=0.5)
    yield Sample(x, normal(rng, 4) - 1, normal(rng, 3, 1) + 1)
    yield Sample(x, 1, -1)
    yield Sample(np.array([NAN, -INF, INF, 0.0]), -1, 1).but(grad=False, only="fh", note="special")


DTYPES["clamp"] = FLOATS


@maker("round")
def rounding(rng):
    yield Sample(normal(rng, 3, 4) * 3)
    yield Sample(np.array([0.5, 1.5, -0.5, 2.5, -INF, NAN, -0.2])).but(grad=False)
    yield Sample(normal(rng, 5), decimals=2)
    yield Sample(normal(rng, 5) * 100, decimals=-1)


@maker("lerp")
def lerp(rng):
    yield Sample(normal(rng, 3, 4), normal(rng, 3, 4), 0.25)
    yield Sample(normal(rng, 3, 4), normal(rng, 4), normal(rng, 3, 1))
    yield Sample(np.array([1.0, -3.0]), np.array([1e8, 2e8]), 1.0).but(
        grad=False, only="f", note="exact at the end"
    )


@maker("addcmul", "addcdiv")
def addc(rng, name):
    def positive(*shape):
        return np.asarray(rng.uniform(0.5, 2, shape))

    yield Sample(normal(rng, 3, 4), normal(rng, 3, 4), positive(3, 4))
    yield Sample(normal(rng, 3, 1), normal(rng, 4), positive(), value=-0.5)


@maker("rsub")
def rsub(rng):
    yield Sample(normal(rng, 3), normal(rng, 2, 1))
    yield Sample(normal(rng, 3), 1.5)


@maker("isclose", "allclose")
def closeness(rng):
    a = np.array([1.0, 1.0 + 1e-6, INF, -INF, NAN, 0.0, 2.0])
    b = np.array([1.0, 1.0, INF, INF, NAN, 1e-9, 2.1])
    for kwargs in ({}, {"equal_nan": True}, {"rtol": 0.1}, {"atol": 0.2, "rtol": 0.0}):
        yield Sample(a, b, **kwargs).but(grad=False)
    yield Sample(a[:2], b[:2]).but(grad=False)
    yield Sample(a[:6:5], b[:6:5]).but(grad=False)


@maker("equal")
def equal(rng):
    x = normal(rng, 2, 3)
    for other in x, x + 1, x[0], np.zeros((0, 3)):
        yield Sample(x, other).but(grad=False)


@maker("isin")
def isin(rng):
    x = np.rint(normal(rng, 3, 4) * 2) + 0.0
    yield Sample(x, np.array([0.0, 1.0, 9.0])).but(grad=False)
    yield Sample(x, np.array([2.0]), invert=True).but(grad=False)


@maker("max", "min")
def extremes(rng):
    yield Sample(distinct(rng, 3, 4))
    yield Sample(distinct(rng, 3, 4), 0)
    yield Sample(distinct(rng, 3, 4), -1, True)
    yield Sample(distinct(rng, 3, 4), distinct(rng, 4) + 0.01)
    yield Sample(np.asarray(2.0))
    yield Sample(np.asarray(2.0), 0)
    yield Sample(np.array([[1.0, NAN], [3.0, 2.0]])).but(grad=False, note="special")
    yield Sample(np.array([[1.0, NAN], [3.0, 2.0]]), 1).but(grad=False, note="special")


DTYPES["max"] = DTYPES["min"] = FLOATS


@maker("aminmax")
def aminmax(rng):
    yield Sample(distinct(rng, 3, 4))
    yield Sample(distinct(rng, 3, 4), dim=1, keepdim=True)


@maker("var_mean", "std_mean")
def spread(rng):
    yield Sample(normal(rng, 3, 4))
    yield Sample(normal(rng, 3, 4), dim=1, correction=0, keepdim=True)


@maker("nansum")
def nansum(rng):
    x = normal(rng, 3, 4)
    x[0, 1] = x[2, 2] = NAN
    yield Sample(x).but(grad=False)
    yield Sample(x, 1, True).but(grad=False)


@maker("nan_to_num")
def nan_to_num(rng):
    x = np.array([1.0, NAN, INF, -INF, -2.0])
    yield Sample(x).but(grad=False)
    yield Sample(x, 0.5, 9.0, -8.0).but(grad=False)
    yield Sample(normal(rng, 3))


@maker("polygamma")
def polygamma(rng):
    for n in (0, 1, 2, 5):
        # PyTorch's trigamma is good to nine digits only
        yield Sample(n, 0.3 + 5 * rng.random((2, 3))).but(torch=n != 1)
    yield Sample(3, np.asarray(-0.4 - rng.integers(0, 5, 6) + 0.3 * rng.random(6)))
    yield Sample(2, np.asarray(0.7))
    yield Sample(1, np.zeros((0, 2)))


@maker("result_type")
def result_type(rng):
    yield Sample(normal(rng, 2), 1).but(grad=False)


@maker("can_cast")
def can_cast(rng):
    yield Sample(tf.float32, tf.int64)
    yield Sample(tf.int64, tf.float16)


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    ("i,j->ij", (2,), (3,)),
    ("...ij->...ji", (2, 2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 2)),
    ("bn,anm,bm->ba", (2, 3), (2, 3, 2), (2, 2)),
    ("ij,j", (2, 3), (3,)),
    ("...a,...ab->...b", (2, 3), (1, 3, 2)),
    ("ijk->j", (2, 3, 2)),
    ("i,i", (4,), (4,)),
]


@maker("einsum")
def einsum(rng):
    for equation, *shapes_ in EQUATIONS:
        yield Sample(equation, *[normal(rng, *s) for s in shapes_])


NORMS = [
    ((3, 4), {}),
    ((3, 4), {"dim": 1}),
    ((3, 4), {"dim": (0, 1), "keepdim": True}),
    ((2, 3, 2), {"dim": -1}),
]


@maker("norm")
def norm(rng):
    for shape, kwargs in NORMS:
        yield Sample(normal(rng, *shape), **kwargs)
        for p in 1, 3, INF, -INF:
            yield Sample(distinct(rng, *shape) + 0.1, p, **kwargs)
    yield Sample(normal(rng, 5), 0).but(grad=False)


@maker("linalg.vector_norm")
def vector_norm(rng):
    for shape, kwargs in NORMS:
        yield Sample(normal(rng, *shape), **kwargs)
        for order in 1, 2.5, INF, -INF:
            yield Sample(distinct(rng, *shape) + 0.1, order, **kwargs)


@maker("tensordot")
def tensordot(rng):
    yield Sample(normal(rng, 2, 3, 2), normal(rng, 3, 2, 4))
    yield Sample(normal(rng, 2, 3), normal(rng, 3, 2), 1)
    yield Sample(normal(rng, 2, 3), normal(rng, 2), 0)
    yield Sample(normal(rng, 2, 3, 4), normal(rng, 4, 2, 5), ([0, 2], [1, 0]))
