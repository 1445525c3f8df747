"""Samples of rows that pick, place and add by index."""

import numpy as np
from samples import Sample, maker


def normal(rng, *shape):
    """Random numbers as an array, 0-d ones too."""
    return np.asarray(rng.standard_normal(shape))


def ints(*values):
    """An index."""
    return np.array(values, "int64")


@maker("index_select")
def index_select(rng):
    yield Sample(normal(rng, 4, 3), 0, ints(2, 0, 2))
    yield Sample(normal(rng, 4, 3), -1, ints(1, 1, 0, 2))
    yield Sample(normal(rng, 2, 3, 2), 1, ints(2))
    yield Sample(normal(rng, 5), 0, ints())
    yield Sample(normal(rng, 5), 0, ints(3, 1).astype("int32"))
    yield Sample(normal(rng, 5), 0, np.asarray(3, "int64"))


@maker("index_embed")
def index_embed(rng):
    yield Sample(normal(rng, 3, 2), ints(1, 0, 1), (4, 2), 0)
    yield Sample(normal(rng, 2, 3), ints(1, 1, 0), (2, 5), 1)


@maker("index_add")
def index_add(rng):
    yield Sample(normal(rng, 4, 3), 0, ints(1, 3, 1), normal(rng, 3, 3))
    yield Sample(normal(rng, 4, 3), 1, ints(0, 0), normal(rng, 4, 2), alpha=2)
    yield Sample(normal(rng, 5), -1, ints(), normal(rng, 0))


@maker("embedding")
def embedding(rng):
    yield Sample(ints(1, 0, 1, 3), normal(rng, 4, 3))
    yield Sample(np.array([[0, 2], [2, 1]]), normal(rng, 3, 2), padding_idx=2).but(grad=False)
    yield Sample(np.asarray(1), normal(rng, 3, 2))
    yield Sample(np.zeros((2, 0), "int64"), normal(rng, 3, 2), -1)


@maker("gather")
def gather(rng):
    yield Sample(normal(rng, 3, 4), 1, np.array([[0, 3, 3], [1, 1, 0], [2, 0, 1]]))
    yield Sample(normal(rng, 3, 4), 0, np.array([[0, 2, 2]]))
    yield Sample(normal(rng, 2, 3, 2), -2, np.array([[[2, 0], [1, 1]]]))
    yield Sample(normal(rng, 5), 0, ints())
    yield Sample(normal(rng), 0, np.asarray(0))


@maker("scatter_embed")
def scatter_embed(rng):
    yield Sample(normal(rng, 2, 3), np.array([[0, 3, 3], [1, 1, 0]]), (2, 4), 1)
    yield Sample(normal(rng, 2), ints(1, 1), (3,), 0)


@maker("scatter")
def scatter(rng):
    yield Sample(normal(rng, 3, 4), 1, np.array([[0, 3], [1, 2], [2, 0]]), normal(rng, 3, 2))
    yield Sample(normal(rng, 3, 4), 0, np.array([[2, 0, 1, 1]]), normal(rng, 2, 4))
    yield Sample(normal(rng, 3, 4), 1, np.array([[0, 3], [1, 2], [2, 0]]), 2.5)
    yield Sample(normal(rng, 5), 0, ints(), normal(rng, 3))


@maker("scatter_add")
def scatter_add(rng):
    yield Sample(
        normal(rng, 3, 4), 1, np.array([[0, 3, 0], [1, 2, 1], [2, 0, 2]]), normal(rng, 3, 3)
    )
    yield Sample(normal(rng, 3, 4), 0, np.array([[2, 0, 1, 1], [2, 0, 0, 1]]), normal(rng, 3, 4))
    yield Sample(normal(rng, 5), 0, ints(4, 4, 0), normal(rng, 3))


@maker("index")
def index(rng):
    yield Sample(normal(rng, 4, 3), [ints(2, -1, 0, 2)], 1).but(torch=False)
    yield Sample(normal(rng, 4, 3), [ints(2, 0), ints(1, -3)], 3).but(torch=False)
    yield Sample(normal(rng, 4, 3, 2), [np.array([[0, 2], [1, 1]])], 2).but(torch=False)
    yield Sample(normal(rng, 4, 3, 2), [ints(3, 0), ints(1, 1)], 5).but(torch=False)


@maker("put_embed")
def put_embed(rng):
    yield Sample(normal(rng, 4, 3), [ints(2, -1, 0, 2)], (4, 3), 1).but(torch=False)
    yield Sample(normal(rng, 2), [ints(2, 2), ints(1, 1)], (4, 3), 3).but(torch=False)


@maker("index_put")
def index_put(rng):
    yield Sample(normal(rng, 4, 3), normal(rng, 2, 3), [ints(2, 0)], 1).but(torch=False)
    yield Sample(normal(rng, 4, 3), normal(rng), [ints(2, -4)], 1).but(torch=False)
    yield Sample(normal(rng, 4, 3), 1.5, [ints(2, 0), ints(1, 1)], 3).but(torch=False)
    yield Sample(normal(rng, 4, 3), normal(rng, 3), [ints(1, 1)], 1, True).but(torch=False)


@maker("nonzero_sized")
def nonzero_sized(rng):
    x = np.where(normal(rng, 3, 4) > 0, 1.0, 0.0)
    yield Sample(x, int(np.count_nonzero(x)))
    yield Sample(np.zeros((2, 2)), 0)


@maker("nonzero")
def nonzero(rng):
    for x in (
        np.where(normal(rng, 3, 4) > 0, 1.0, 0.0),
        np.zeros(3),
        np.asarray(2.0),
        np.zeros((0, 2)),
        np.array([0.0, np.nan]),
    ):
        yield Sample(x)


@maker("tril", "triu")
def triangles(rng):
    for shape, args in (
        ((3, 4), ()),
        ((3, 4), (1,)),
        ((4, 3), (-1,)),
        ((2, 3, 3), (9,)),
        ((2, 3, 3), (-9,)),
        ((0, 2), ()),
    ):
        yield Sample(normal(rng, *shape), *args)
    yield Sample(np.full((2, 2), np.nan)).but(grad=False, only="fh", note="special")


@maker("take")
def take(rng):
    yield Sample(normal(rng, 3, 4), np.array([[0, 11], [5, 5]]))
    yield Sample(normal(rng, 3), ints(-1, 0))


@maker("take_along_dim")
def take_along_dim(rng):
    yield Sample(normal(rng, 3, 4), np.array([[0], [3], [1]]), 1)
    yield Sample(normal(rng, 3, 4), np.array([[0, 2, 1, 1]]), 0)
    yield Sample(normal(rng, 3, 4), ints(7, 0))


@maker("masked_fill")
def masked_fill(rng):
    yield Sample(normal(rng, 3, 4), normal(rng, 3, 4) > 0, 2.0)
    yield Sample(normal(rng, 3, 4), normal(rng, 4) > 0, np.asarray(1.5))
    yield Sample(normal(rng), np.asarray(True), 3.0)


@maker("masked_select")
def masked_select(rng):
    yield Sample(normal(rng, 3, 4), normal(rng, 3, 4) > 0)
    yield Sample(normal(rng, 3, 1), normal(rng, 4) > 0)


@maker("index_copy")
def index_copy(rng):
    yield Sample(normal(rng, 4, 3), 0, ints(2, 0), normal(rng, 2, 3))
    yield Sample(normal(rng, 4, 3), 1, ints(2, 0), normal(rng, 4, 2))


@maker("index_fill")
def index_fill(rng):
    yield Sample(normal(rng, 4, 3), 0, ints(2, 0), 1.5)
    yield Sample(normal(rng, 4, 3), -1, ints(1), np.asarray(2.0))


# shape, dim, low and high of each slice
BETWEEN = [
    ((2, 3, 4), 2, [0, 0, 1, 2, 3], [1, 0, 2, 3, 3]),
    ((3, 2, 5), 0, [2, 0], [1, 0]),
    ((2, 6, 33), 1, [0, 1, 1, 4, 5, 5, 2], [1, 2, 2, 5, 5, 0, 2]),
]


@maker("select_between")
def select_between(rng):
    for shape, dim, low, high in BETWEEN:
        part = rng.uniform(0, 1, len(low))
        yield Sample(normal(rng, *shape), np.array(low), np.array(high), part, dim).but(
            only="f", fixed=(1, 2, 3)
        )


@maker("between_embed")
def between_embed(rng):
    for shape, dim, low, high in BETWEEN:
        part = rng.uniform(0, 1, len(low))
        u = normal(rng, *shape[:dim], len(low), *shape[dim + 1 :])
        yield Sample(u, np.array(low), np.array(high), part, shape, dim).but(
            only="f", fixed=(1, 2, 3)
        )
