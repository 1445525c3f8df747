"""Meanings of recurrent layers, and their gradients step by step."""

import numpy as np
from oracle import Typed, current_dtype, meaning


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gates_of(mode, x, own, h, c):
    """(h, c, what is kept) of one step."""
    n = h.shape[1]
    part = [slice(k * n, (k + 1) * n) for k in range(4)]
    z = x + own
    if mode == "LSTM":
        i, f, o = (sigmoid(z[:, part[k]]) for k in (0, 1, 3))
        g = np.tanh(z[:, part[2]])
        c = f * c + i * g
        return o * np.tanh(c), c, np.concatenate([i, f, g, o], 1)
    if mode == "GRU":
        r, u = sigmoid(z[:, part[0]]), sigmoid(z[:, part[1]])
        new = np.tanh(x[:, part[2]] + r * own[:, part[2]])
        return (1 - u) * new + u * h, None, np.concatenate([r, u, new, own[:, part[2]]], 1)
    return (np.tanh(z) if mode == "RNN_TANH" else np.maximum(z, 0)), None, None


def steps_of(input, h, c, weight, bias, mode, reverse=False):
    """h, c and gates of each step."""
    states = [None] * len(input)
    for t in reversed(range(len(input))) if reverse else range(len(input)):
        own = h @ weight.T + (0 if bias is None else bias)
        states[t] = h, c, _ = gates_of(mode, input[t], own, h, c)
    y, cells, gates = zip(*states)
    none = np.zeros(0)
    return (
        np.stack(y),
        np.stack(cells) if mode == "LSTM" else none,
        np.stack(gates) if mode in ("LSTM", "GRU") else none,
    )


@meaning("recurrence_steps", loose=16)
def recurrence_steps(input, h, c, weight, bias, mode, reverse=False):
    y, *kept = steps_of(input, h, c, weight, bias, mode, reverse)
    computed = "float64" if current_dtype() == "float64" else "float32"
    return y, *(Typed(k, computed) for k in kept)


@meaning("recurrence", loose=16)
def recurrence(input, h, c, weight, bias, mode, reverse=False):
    y, cells, _ = steps_of(input, h, c, weight, bias, mode, reverse)
    return y, cells[0 if reverse else -1] if mode == "LSTM" else cells


def lstm_back(gates, dh, dc, c, cell, more):
    i, f, g, o = np.split(gates, 4, 1)
    dc = dc + dh * o * (1 - np.tanh(cell) ** 2)
    made = np.concatenate([dc * g, dc * c, dc * i, dh * np.tanh(cell)], 1) + more
    slope = np.concatenate([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], 1)
    return made * slope, dc * f


def gru_back(gates, dh, h, more):
    r, u, new, own = np.split(gates, 4, 1)
    more = np.split(more, 4, 1)
    gn = (dh * (1 - u) + more[2]) * (1 - new * new)
    gu = (dh * (h - new) + more[1]) * u * (1 - u)
    gr = (gn * own + more[0]) * r * (1 - r)
    return (np.concatenate([gr, gu, k], 1) for k in (gn, gn * r + more[3]))


@meaning("recurrence_grad", loose=32)
def recurrence_grad(g, g_cells, g_gates, h, c, w, y, cells, gates, mode, reverse):
    steps = len(y)
    gx, own = [None] * steps, [None] * steps
    g = np.zeros(y.shape) if g is None else g
    g_cells = np.zeros(y.shape) if g_cells is None else g_cells
    g_gates = np.zeros(gates.shape) if g_gates is None else g_gates
    dh, dc = np.zeros(h.shape), np.zeros(h.shape)
    for t in range(steps) if reverse else reversed(range(steps)):
        former = t + 1 if reverse else t - 1
        first = not 0 <= former < steps
        dh = dh + g[t]
        left = 0
        if mode == "LSTM":
            start = c if first else cells[former]
            gx[t], dc = lstm_back(gates[t], dh, dc + g_cells[t], start, cells[t], g_gates[t])
            own[t] = gx[t]
        elif mode == "GRU":
            start = h if first else y[former]
            gx[t], own[t] = gru_back(gates[t], dh, start, g_gates[t])
            left = dh * np.split(gates[t], 4, 1)[1]
        else:
            gx[t] = own[t] = dh * (1 - y[t] ** 2 if mode == "RNN_TANH" else y[t] > 0)
        dh = own[t] @ w + left
    none = np.zeros(0)
    return (
        np.stack(gx),
        np.stack(own) if mode == "GRU" else none,
        dh,
        dc if mode == "LSTM" else none,
    )
