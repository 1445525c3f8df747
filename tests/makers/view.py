"""Samples of views: every geometry that a view can have."""

import numpy as np
from samples import Sample, maker


def normal(rng, *shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


@maker("reshape", "view")
def reshape(rng):
    for shape, new in (
        ((2, 6), (3, 4)),
        ((2, 6), (-1,)),
        ((3, 4), (2, 1, -1)),
        ((4,), (2, 2)),
        ((), (1, 1)),
        ((1,), ()),
        ((0, 3), (3, 0)),
        ((2, 3), (2, 3)),
        ((2, 2, 2), (4, -1)),
    ):
        yield Sample(normal(rng, *shape), new)


@maker("permute")
def permute(rng):
    yield Sample(normal(rng, 2, 3, 4), (2, 0, 1))
    yield Sample(normal(rng, 2, 3), (-1, 0))
    yield Sample(normal(rng, 2, 1, 3, 2), (3, 1, 0, 2))
    yield Sample(normal(rng), ())
    yield Sample(normal(rng, 0, 2), (1, 0))


@maker("transpose")
def transpose(rng):
    yield Sample(normal(rng, 2, 3, 4), 0, 2)
    yield Sample(normal(rng, 2, 3), -1, -2)
    yield Sample(normal(rng, 3), 0, 0)
    yield Sample(normal(rng), 0, -1)


@maker("permute_back")
def permute_back(rng):
    yield Sample(normal(rng, 2, 3, 4), (2, 0, 1))
    yield Sample(normal(rng, 2, 1, 3, 2), (3, 1, 0, 2))
    yield Sample(normal(rng), ())


@maker("select_view")
def select_view(rng):
    yield Sample(normal(rng, 3, 4), 0, 1)
    yield Sample(normal(rng, 3, 4), -1, -2)
    yield Sample(normal(rng, 2, 3, 2), 1, 0)


@maker("t")
def t(rng):
    yield Sample(normal(rng, 2, 3))
    yield Sample(normal(rng, 3))
    yield Sample(normal(rng))
    yield Sample(normal(rng, 0, 2))


@maker("expand")
def expand(rng):
    yield Sample(normal(rng, 3, 1), (3, 4))
    yield Sample(normal(rng, 3), (2, 3))
    yield Sample(normal(rng), (2, 2))
    yield Sample(normal(rng, 1, 2), (-1, 2))
    yield Sample(normal(rng, 1, 3, 1), (2, -1, 2))
    yield Sample(normal(rng, 1), (0,))


@maker("unsqueeze")
def unsqueeze(rng):
    for shape, dim in (((2, 3), 0), ((2, 3), -1), ((2, 3), 1), ((), 0), ((0,), 1)):
        yield Sample(normal(rng, *shape), dim)


@maker("squeeze")
def squeeze(rng):
    yield Sample(normal(rng, 1, 3, 1))
    yield Sample(normal(rng, 1, 3, 1), 0)
    yield Sample(normal(rng, 1, 3, 1), 1)
    yield Sample(normal(rng, 1, 3, 1), (0, -1))
    yield Sample(normal(rng))
    yield Sample(normal(rng), 0)
    yield Sample(normal(rng, 0, 1), -1)


@maker("flip")
def flip(rng):
    for shape, dims in (
        ((2, 3), (0,)),
        ((2, 3), (-1, 0)),
        ((4,), (0,)),
        ((2, 3, 2), (1,)),
        ((0, 2), (0, 1)),
        ((), ()),
    ):
        yield Sample(normal(rng, *shape), dims)


@maker("narrow")
def narrow(rng):
    yield Sample(normal(rng, 4, 3), 0, 1, 2)
    yield Sample(normal(rng, 4, 3), -1, 0, 3)
    yield Sample(normal(rng, 4, 3), 0, 4, 0)
    yield Sample(normal(rng, 5), 0, -3, 2)


@maker("diagonal")
def diagonal(rng):
    yield Sample(normal(rng, 3, 4))
    yield Sample(normal(rng, 3, 4), 1)
    yield Sample(normal(rng, 3, 4), offset=-2)
    yield Sample(normal(rng, 3, 4), 9)
    yield Sample(normal(rng, 2, 3, 3), 0, 1, 2)
    yield Sample(normal(rng, 2, 3, 4), 1, 2, 0)
    yield Sample(normal(rng, 2, 3, 4), -1, -1, -2)


@maker("unfold")
def unfold(rng):
    yield Sample(normal(rng, 7), 0, 3, 2)
    yield Sample(normal(rng, 7), 0, 2, 1)
    yield Sample(normal(rng, 2, 6), -1, 3, 3)
    yield Sample(normal(rng, 6, 2), 0, 2, 3)
    yield Sample(normal(rng, 4), 0, 4, 1)
    yield Sample(normal(rng, 4), 0, 1, 5)


@maker("alias")
def alias(rng):
    yield Sample(normal(rng, 2, 3))
    yield Sample(normal(rng))


def spec(ndim, *parts, fresh=0):
    """Attributes of basic indexing: (start, step, size) for each axis, or (place, 0, -1)."""
    numbers = [n for part in parts for n in part]
    return tuple(numbers + [0] * (24 - len(numbers)) + [fresh])


@maker("getitem_view")
def getitem_view(rng):
    yield Sample(normal(rng, 4, 5), spec(2, (1, 2, 2), (4, -1, 5)))
    yield Sample(normal(rng, 4, 5), spec(2, (2, 0, -1), (0, 1, 3)))
    yield Sample(normal(rng, 3), spec(1, (0, 0, -1)))
    yield Sample(normal(rng, 3), spec(1, (0, 1, 3), fresh=1))
    yield Sample(normal(rng, 3), spec(1, (0, 1, 0)))


@maker("as_strided_view")
def as_strided_view(rng):
    yield Sample(normal(rng, 3, 4), (2, 2), (4, 1), 1, (4, 1), 0)
    yield Sample(normal(rng, 8), (3, 3), (1, 2), 0, (1,), 0)
    yield Sample(normal(rng, 6), (2,), (3,), 2, (1,), 0)


@maker("rows")
def rows(rng):
    yield Sample(normal(rng, 2, 3, 4))
    yield Sample(normal(rng, 3, 4))
    yield Sample(normal(rng, 4))
    yield Sample(normal(rng, 2, 3, 0))


@maker("unreduce")
def unreduce(rng):
    yield Sample(normal(rng, 3), (3, 4), (1,), False)
    yield Sample(normal(rng, 3, 1), (3, 4), (1,), True)
    yield Sample(normal(rng), (2, 3), (0, 1), False)
    yield Sample(normal(rng, 2, 2), (2, 3, 2), (1,))
