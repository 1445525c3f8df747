"""PyTorch as a second oracle: where a subject stands there, and its tensors."""

import functools

import numpy as np
import pytest
import samples

import tinyfin as tf
from tinyfin.ops import table

torch = pytest.importorskip("torch")

ELSEWHERE = {
    **{
        f"{kind}max_pool{n}d": functools.partial(
            getattr(torch.nn.functional, f"{kind}max_pool{n}d"), return_indices=True
        )
        for kind in ("", "adaptive_")
        for n in (1, 2, 3)
    },
    "avg_pool1d": lambda x, kernel_size, stride, **k: torch.nn.functional.avg_pool1d(
        x, kernel_size, stride, **k
    ),
    "avg_pool2d": lambda *a, divisor=None, **k: torch.nn.functional.avg_pool2d(
        *a, divisor_override=divisor, **k
    ),
    "avg_pool3d": lambda *a, divisor=None, **k: torch.nn.functional.avg_pool3d(
        *a, divisor_override=divisor, **k
    ),
    "embedding": lambda index, w, padding_idx=None: torch.nn.functional.embedding(
        index, w, padding_idx
    ),
    "elu": lambda x, alpha=1.0, scale=1.0, input_scale=1.0: torch.ops.aten.elu(
        x, alpha, scale, input_scale
    ),
    "count_nonzero": lambda x, dim=None: torch.count_nonzero(x, dim),
    "int_mm": torch._int_mm,
    "relu6": torch.nn.functional.relu6,
}
"""Rows whose public face is another function: how PyTorch writes the same call."""
OWN = {"linear_scan", "native_layer_norm", "backend_support"}
"""Public subjects that PyTorch does not have, or has with other results."""


def counterpart(name):
    """PyTorch's function for a subject; None where there is none and need not be."""
    row = table.TABLE.get(name)
    if name in OWN:
        return None
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    for home in (
        (torch, torch.Tensor) if name in ("unfold",) else (torch.nn.functional, torch, torch.Tensor)
    ):
        found = home
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return (
                found
                if row is None or row.function or row.method or home is torch.nn.functional
                else None
            )
    if row is None or row.function or row.method:
        raise LookupError(
            f"{name} is public, but PyTorch has no such name: enter it under OWN with a reason"
        )
    return None


def dtype_of(dtype):
    """PyTorch's dtype of the same name."""
    return getattr(torch, dtype.name)


def tensor(a, dtype, requires_grad=False):
    """A PyTorch tensor of a sample's array."""
    data = samples.convert(a, dtype)
    t = torch.tensor(np.ascontiguousarray(data).reshape(data.shape))
    if a.dtype == np.float64 and dtype in samples.FLOATS:
        t = t.to(getattr(torch, dtype))
    return t.requires_grad_() if requires_grad and a.dtype == np.float64 else t


def arguments(sample, dtype, requires_grad=False):
    """(args, kwargs) for PyTorch; dtypes are translated."""
    leaves = []

    def convert(a):
        k = len(leaves)
        leaves.append(tensor(a, dtype, requires_grad and k not in sample.fixed))
        return leaves[-1]

    args, kwargs = samples.mapped(sample, convert)
    swap = [dtype_of(a) if isinstance(a, tf.dtype) else a for a in args]
    return (
        swap,
        {k: dtype_of(v) if isinstance(v, tf.dtype) else v for k, v in kwargs.items()},
        leaves,
    )


def flat(result):
    """The tensors of a result in a list."""
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for part in result for t in flat(part)] if isinstance(result, (tuple, list)) else []


def array(t):
    """A PyTorch tensor's values; half types as float64."""
    t = t.detach()
    return t.double().numpy() if t.dtype in (torch.float16, torch.bfloat16) else t.numpy()


def name_of(dtype):
    """The name of a PyTorch dtype."""
    return str(dtype).removeprefix("torch.")
