"""Samples of recurrent layers."""

from samples import Sample, maker

GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def layer(rng, mode, steps=3, batch=2, size=3, bias=True):
    """Mapped input, state, weights; numbers near which relu has no corner."""
    rows = GATES[mode] * size
    x, h = rng.standard_normal((steps, batch, rows)), rng.standard_normal((batch, size))
    c = rng.standard_normal((batch, size)) if mode == "LSTM" else None
    w = rng.standard_normal((rows, size)) * 0.5
    return x, h, c, w, rng.standard_normal(rows) if bias else None


@maker("recurrence", "recurrence_steps")
def recurrence(rng):
    for mode in GATES:
        yield Sample(*layer(rng, mode), mode)
    for mode in ("LSTM", "GRU"):
        yield Sample(*layer(rng, mode, steps=2, batch=1, bias=False), mode, True)
    for mode in GATES:
        yield Sample(*layer(rng, mode, 2, 19, 35), mode, True).but(grad=False, only="f")
    yield Sample(*layer(rng, "LSTM", batch=0), "LSTM").but(grad=False)


def kept(rng, mode, steps, batch, size):
    """Outputs, c and gates as steps may leave them: the gradient is a function of any."""
    y = rng.standard_normal((steps, batch, size))
    cells = rng.standard_normal(y.shape if mode == "LSTM" else 0)
    gates = rng.uniform(0.1, 0.9, (steps, batch, 4 * size) if GATES[mode] > 1 else 0)
    return y, cells, gates


@maker("recurrence_grad")
def recurrence_grad(rng):
    for mode in GATES:
        for reverse, *sizes in ((False, 3, 2, 3), (True, 2, 1, 3)):
            saved = kept(rng, mode, *sizes)
            g, gc, gg = (rng.standard_normal(a.shape) for a in saved)
            rest = (*layer(rng, mode, *sizes)[1:4], *saved, mode, reverse)
            yield Sample(g, gc, gg, *rest).but(only="f")
            yield Sample(g, None, None, *rest).but(only="f", grad=False)
            yield Sample(None, None, gg, *rest).but(only="f", grad=False)
    for mode in GATES:
        saved = kept(rng, mode, 2, 19, 35)
        g = (rng.standard_normal(a.shape) for a in saved)
        rest = layer(rng, mode, 2, 19, 35)[1:4]
        yield Sample(*g, *rest, *saved, mode, False).but(grad=False, only="f")
