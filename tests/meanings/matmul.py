"""Meanings of matrix products."""

import numpy as np
from oracle import meaning


@meaning("matmul", "mm", "bmm", "mv", "dot", loose=32)
def matmul(a, b):
    return np.asarray(np.matmul(a, b))


@meaning("int_mm")
def int_mm(a, b):
    return np.asarray(np.matmul(a.astype("int32"), b.astype("int32")))


@meaning("inner", loose=8)
def inner(a, b):
    return np.asarray(np.inner(a, b))


@meaning("outer", ulps=0.5)
def outer(a, b):
    return a[:, None] * b[None]


@meaning("addmm", "baddbmm", "addmv", loose=16)
def based(base, a, b, beta=1, alpha=1):
    alpha, beta = (
        np.asarray(alpha).astype(base.dtype),
        np.asarray(beta).astype(base.dtype),
    )  # -1 wraps in uint8
    y = alpha * np.matmul(a, b)
    return (y if beta == 0 else beta * base + y).astype(base.dtype)


@meaning("matmul_onto", loose=32)
def onto(a, b, base, beta=1, alpha=1):
    return beta * base + alpha * (a @ b)


@meaning("linear", loose=32)
def linear(x, w, bias=None):
    y = x @ w.T
    return y if bias is None else y + bias


@meaning("linear_relu", loose=32)
def linear_relu(x, w, bias=None):
    return np.maximum(linear(x, w, bias), 0)
