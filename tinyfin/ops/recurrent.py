"""Rows of recurrent layers: all steps of one layer in one direction, and what one step is.

A step adds what `w` makes of the state to its input, which has been mapped already. The formulas go
step by step and say the order of every sum; the gradient's takes the steps' results as arguments,
so its own gradients flow on through them.
"""

from tinyfin.ops.norm import wide
from tinyfin.ops.row import F, attr, composite

MODES = ("RNN_TANH", "RNN_RELU", "LSTM", "GRU")
MODE, REVERSE = attr("mode", "choice", choices=MODES), attr("reverse", "bool", False)


# ---- one step: (its input, what w makes of h, state) -> (state, what the gradient needs)


def tanh_cell(x, own, state):
    """h' = tanh(x + W h)."""
    return (F.tanh(x + own),), ()


def relu_cell(x, own, state):
    """h' = relu(x + W h)."""
    return (F.relu(x + own),), ()


def lstm_cell(x, own, state):
    """c' = f c + i g, h' = o tanh(c') (Hochreiter and Schmidhuber, 1997)."""
    c = state[1]
    n = c.shape[1]
    gates = x + own
    i, f = gates.narrow(1, 0, n), gates.narrow(1, n, n)
    g, o = gates.narrow(1, 2 * n, n), gates.narrow(1, 3 * n, n)
    c = F.sigmoid_gated(f, c, F.sigmoid_tanh(i, g))
    return (F.sigmoid_tanh(o, c), c), (gates,)


def gru_cell(x, own, state):
    """h' = n + z (h - n) with n = tanh(x_n + r (W h)_n) (Cho et al., 2014, as cuDNN has it)."""
    h = state[0]
    n = h.shape[1]
    both = x.narrow(1, 0, 2 * n) + own.narrow(1, 0, 2 * n)
    r, z = both.narrow(1, 0, n), both.narrow(1, n, n)
    own = own.narrow(1, 2 * n, n)
    new = F.tanh(F.sigmoid_gated(r, own, x.narrow(1, 2 * n, n)))
    return (F.sigmoid_gated(z, h - new, new),), (both, new, own)


CELLS = dict(zip(MODES, (tanh_cell, relu_cell, lstm_cell, gru_cell)))


def step(mode, x, state, w, b=None, p=None):
    """The next state, whose h is mapped by `p` where it is given."""
    (h, *c), _ = CELLS[mode](x, F.linear(state[0], w, b), state)
    return (h if p is None else F.linear(h, p, None), *c)


# ---- all steps


def walk(x, h, c, w, b, mode, reverse):
    """The states, and what the gradient needs, of all steps in the sequence's order; the state at the end."""
    state, w = (wide(h),) if c is None else (wide(h), wide(c)), wide(w)
    b = None if b is None else wide(b)
    parts, states, kept = wide(x).unbind(0), [], []
    for part in reversed(parts) if reverse else parts:
        state, more = CELLS[mode](part, F.linear(state[0], w, b), state)
        states.append(state)
        kept.append(more)
    return (states[::-1], kept[::-1], state) if reverse else (states, kept, state)


def none_of(x):
    """What stands in the place of a result that a mode does not have."""
    return F.zeros_of((0,), x)


def recurrence_formula(x, h, c, w, b, mode, reverse):
    """h of each step, and c at the end."""
    states, _, state = walk(x, h, c, w, b, mode, reverse)
    y = F.stack([s[0] for s in states], 0).to(x.dtype)
    return y, none_of(x) if c is None else state[-1].to(x.dtype)


def gates_of(mode, kept):
    """What the gradient needs: an LSTM's gates i, f, g, o; of a GRU r, z, n and (W h)_n."""
    first, *more = [F.stack(list(parts), 0) for parts in zip(*kept)]
    if mode == "GRU":
        return F.cat([F.sigmoid(first), *more], 2)
    n = first.shape[2] // 4
    g = F.tanh(first.narrow(2, 2 * n, n))
    return F.cat([F.sigmoid(first.narrow(2, 0, 2 * n)), g, F.sigmoid(first.narrow(2, 3 * n, n))], 2)


def recurrence_steps_formula(x, h, c, w, b, mode, reverse):
    """h and c of each step, and its gates."""
    states, kept, _ = walk(x, h, c, w, b, mode, reverse)
    y = F.stack([s[0] for s in states], 0)
    cells = none_of(y) if c is None else F.stack([s[1] for s in states], 0)
    return y.to(x.dtype), cells, gates_of(mode, kept) if kept[0] else none_of(y)


def before(first, all_of_them, reverse):
    """What each step began with: `first`, then what the steps gave."""
    n = all_of_them.shape[0] - 1
    first, rest = first.unsqueeze(0), all_of_them.narrow(0, 1 if reverse else 0, n)
    return F.cat([rest, first] if reverse else [first, rest], 0)


def flat(x):
    """All steps of all sequences as rows."""
    return x.reshape((x.shape[0] * x.shape[1], x.shape[2]))


def recurrence_all(h, c, w, b, y, y1, y2, mode, reverse, g=None, g1=None, g2=None):
    """Gradients through time; those of the weights are one product over all steps."""
    gx, own, gh, gc = F.recurrence_grad(g, g1, g2, h, c, w, y, y1, y2, mode, reverse)
    own = own if mode == "GRU" else gx
    gw = F.matmul(F.transpose(flat(own), 0, 1), flat(before(h, y, reverse)))
    return gx, gh, None if c is None else gc, gw, None if b is None else F.sum(own, (0, 1))


# ---- gradients: (arguments) -> function of (step, gradients of h and c) -> those of x, W h, h, c


def rnn_slopes(mode, y):
    """What a step's gradient is multiplied by."""
    slope = 1 - y * y if mode == "RNN_TANH" else None

    def back(t, dh, dc):
        gx = F.relu_grad(dh, y[t]) if slope is None else dh * slope[t]
        return gx, gx, None, None

    return back


def lstm_slopes(gates, g_gates, cells, former):
    """Of i, f, g by the gradient of c, and of o by that of h."""
    n = cells.shape[2]
    i, f, g, o = (gates.narrow(2, k * n, n) for k in range(4))
    slopes = [(1 - i) * i, (1 - f) * f, 1 - g * g, (1 - o) * o]
    tanh = F.tanh(cells)
    through = o * (1 - tanh * tanh)
    factors = [g * slopes[0], former * slopes[1], i * slopes[2], tanh * slopes[3]]
    factor = F.stack(factors, 2)
    more = None if g_gates is None else g_gates * F.cat(slopes, 2)

    def back(t, dh, dc):
        dc = dc + dh * through[t]
        gx = (F.stack([dc, dc, dc, dh], 1) * factor[t]).reshape((dh.shape[0], 4 * n))
        gx = gx if more is None else gx + more[t]
        return gx, gx, None, dc * f[t]

    return back


def gru_slopes(gates, g_gates, former):
    """Of r through n, of z and n by the gradient of h; h itself goes on by z."""
    n = former.shape[2]
    r, z, new, own = (gates.narrow(2, k * n, n) for k in range(4))
    by_r, by_z, by_n = (1 - r) * r, (1 - z) * z, 1 - new * new
    factor_r, factor_z, factor_n = own * by_r, (former - new) * by_z, (1 - z) * by_n
    more = None
    if g_gates is not None:
        more = [g_gates.narrow(2, k * n, n) for k in range(4)]
        more = [more[0] * by_r, more[1] * by_z, more[2] * by_n, more[3]]

    def back(t, dh, dc):
        gn, gz = dh * factor_n[t], dh * factor_z[t]
        gn, gz = (gn, gz) if more is None else (gn + more[2][t], gz + more[1][t])
        gr, go = gn * factor_r[t], gn * r[t]
        gr, go = (gr, go) if more is None else (gr + more[0][t], go + more[3][t])
        return F.cat([gr, gz, gn], 1), F.cat([gr, gz, go], 1), dh * z[t], None

    return back


def slopes_of(mode, y, cells, gates, g_gates, h, c, reverse):
    """The function that goes one step back."""
    if mode == "LSTM":
        return lstm_slopes(gates, g_gates, cells, before(c, cells, reverse))
    if mode == "GRU":
        return gru_slopes(gates, g_gates, before(h, y, reverse))
    return rnn_slopes(mode, y)


def recurrence_grad_formula(g, g_cells, g_gates, h, c, w, y, cells, gates, mode, reverse):
    """From the last step to the first: (g + what w makes of the step after it) + what that left of h."""
    dtype = w.dtype
    h, w, y, g = wide(h), wide(w), wide(y), None if g is None else wide(g)
    c, g_cells = (None, None) if c is None else (wide(c), g_cells)
    back = slopes_of(mode, y, cells, gates, g_gates, h, c, reverse)
    none = F.full_of(h.shape, -0.0, h)  # changes nothing where it is added
    product = left = dc = none
    found = []
    steps = range(y.shape[0])
    for t in steps if reverse else reversed(steps):
        dh = product if g is None else g[t] + product
        dc = dc if g_cells is None else g_cells[t] + dc
        gx, own, left_of_h, dc = back(t, dh if left is none else dh + left, dc)
        left, dc = none if left_of_h is None else left_of_h, none if dc is None else dc
        product = F.matmul(own, w)
        found.append((gx, own))
    gx, own = (F.stack(list(p if reverse else p[::-1]), 0).to(dtype) for p in zip(*found))
    gh = (product if left is none else product + left).to(dtype)
    return gx, own if mode == "GRU" else none_of(gx), gh, none_of(gh) if c is None else dc.to(dtype)


composite(
    "recurrence",
    "x h c? w b?",
    recurrence_formula,
    attrs=(MODE, REVERSE),
    infer="recurrence",
    family="recurrence",
    nout=2,
    dtypes="fh",
    amp="low",
    public={"c": "c", "b": "bias"},
    function=False,
    method=False,
    doc="The outputs of a recurrent layer's steps, and c at the end; nothing that a gradient needs.",
)
composite(
    "recurrence_steps",
    "x h c? w b?",
    recurrence_steps_formula,
    attrs=(MODE, REVERSE),
    infer="recurrence_steps",
    family="recurrence_steps",
    nout=3,
    whole=True,
    dtypes="fh",
    amp="low",
    vjp_all=recurrence_all,
    public={"c": "c", "b": "bias"},
    function=False,
    method=False,
    doc="The outputs of a recurrent layer's steps, c of each step, and the gates.",
)
composite(
    "recurrence_grad",
    "g? g_cells? g_gates? h c? w y cells gates",
    recurrence_grad_formula,
    attrs=(MODE, REVERSE),
    infer="recurrence_grad",
    family="recurrence_grad",
    nout=4,
    dtypes="fh",
    function=False,
    method=False,
    public={"c": "c"},
    doc="Gradients of a recurrent layer's input, of what w makes of h, of h and of c.",
)
