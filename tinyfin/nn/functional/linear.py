"""Linear maps and look-ups in tables."""

from __future__ import annotations

from tinyfin.autograd.modes import no_grad
from tinyfin.core.dtype import dtype_by_name
from tinyfin.core.tensor import Tensor
from tinyfin.creation import ones, zeros
from tinyfin.ops.row import F
from tinyfin.shaping import need_tensors

INT64 = dtype_by_name("int64")

linear = F.linear


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """For each output k: input1 @ weight[k] @ input2, plus bias.

    Shapes: (..., A), (..., B), (K, A, B), (K) give (..., K).

    Raises:
        RuntimeError: the shapes do not fit.

    >>> F.bilinear(tf.ones(2, 3), tf.ones(2, 4), tf.ones(1, 3, 4)).tolist()
    [[12.0], [12.0]]
    """
    need_tensors("bilinear", input1=input1, input2=input2, weight=weight)
    a, b, w = tuple(input1.shape), tuple(input2.shape), tuple(weight.shape)
    if len(w) != 3 or a[:-1] != b[:-1] or (a[-1:], b[-1:]) != (w[1:2], w[2:]):
        raise RuntimeError(
            f"bilinear: input1 {a}, input2 {b} and weight {w} do not fit, expected "
            "(..., A), (..., B) and (K, A, B)"
        )
    k, n, m = w
    left = input1.reshape(-1, n) @ weight.permute(1, 0, 2).reshape(n, k * m)
    y = (left.reshape(a[:-1] + (k, m)) * input2.unsqueeze(-2)).sum(-1)
    return y if bias is None else y + bias


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table, by index.

    Args:
        input: indices of any shape.
        weight: the table, (number of rows, size).
        padding_idx: a row that gets no gradient.
        max_norm: rows that are longer are shortened to it, in the table itself.
        norm_type: the norm for `max_norm`.
        scale_grad_by_freq: divide a row's gradient by how often its index occurs.
        sparse: accepted for PyTorch's sake; gradients are dense.

    Raises:
        IndexError: an index is out of range.
        AssertionError: `padding_idx` is out of range.
        RuntimeError: the indices are not integers.

    >>> F.embedding(tf.tensor([2, 0]), tf.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])).tolist()
    [[4.0, 5.0], [0.0, 1.0]]
    """
    if not (isinstance(input, Tensor) and isinstance(weight, Tensor)):
        need_tensors("embedding", input=input, weight=weight)
    if padding_idx is not None:
        padding_idx = padding_row("embedding", padding_idx, weight.shape[0])
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    y = F.embedding(input, weight, padding_idx)
    return _by_frequency(y, input, weight) if scale_grad_by_freq else y


def _by_frequency(y: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    """The same values, with gradients divided by how often each index occurs."""
    index = input.detach().reshape(-1).long()
    once = ones(tuple(index.shape), dtype=weight.dtype, device=weight.device)
    counts = zeros((weight.shape[0],), dtype=weight.dtype, device=weight.device)
    counts = counts.index_add(0, index, once)
    share = (1.0 / counts[index]).reshape(tuple(input.shape) + (1,))
    return y.detach() + (y - y.detach()) * share


def padding_row(what: str, padding_idx: int, rows: int) -> int:
    """`padding_idx` counted from the start."""
    if not -rows <= padding_idx < rows:
        raise AssertionError(f"{what}: padding_idx is {padding_idx}, out of range for {rows} rows")
    return padding_idx % rows


def _shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        index = input.reshape(-1).long()
        rows = weight[index]
        norms = rows.norm(norm_type, -1, True)
        weight[index] = F.where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Vectors with a one at the given class and zeros elsewhere.

    Args:
        tensor: int64 classes of any shape.
        num_classes: length of the vectors; -1 takes the greatest class plus one.

    Raises:
        RuntimeError: a class is negative or too great, `tensor` is not int64, or is empty while
            `num_classes` is not given.

    >>> F.one_hot(tf.tensor([2, 0])).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    need_tensors("one_hot", tensor=tensor)
    if tensor.dtype != INT64:
        raise RuntimeError(f"one_hot: tensor is of {tensor.dtype}, expected int64")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError(
                f"one_hot: tensor {tuple(tensor.shape)} is empty and num_classes is "
                f"{num_classes}: the number of classes cannot be told"
            )
        return _no_class(tensor, num_classes)
    low, high = tensor.min().item(), tensor.max().item()
    if low < 0:
        raise RuntimeError(f"one_hot: tensor holds {low}, expected classes from 0")
    if num_classes == -1:
        num_classes = high + 1
    elif num_classes < 1:
        raise RuntimeError(f"one_hot: num_classes is {num_classes}, expected at least 1, or -1")
    elif high >= num_classes:
        raise RuntimeError(f"one_hot: tensor holds {high}, expected classes below {num_classes}")
    return _no_class(tensor, num_classes).scatter_(-1, tensor.unsqueeze(-1), 1)


def _no_class(tensor: Tensor, num_classes: int) -> Tensor:
    return zeros(tuple(tensor.shape) + (num_classes,), dtype=INT64, device=tensor.device)
