"""Layers that map vectors linearly, look them up, or reshape them."""

from __future__ import annotations

import math

from tinyfin.core.tensor import Tensor
from tinyfin.creation import empty
from tinyfin.nn import functional, init
from tinyfin.nn.functional.arguments import check_counts
from tinyfin.nn.functional.linear import padding_row
from tinyfin.nn.module import Module
from tinyfin.nn.parameter import Parameter
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Identity(Module):
    """Returns its input; takes and ignores any arguments when it is made.

    >>> nn.Identity(54, unused=True)(3)
    3
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """y = x W^T + b.

    Shapes: (..., in_features) to (..., out_features). `weight` is (out_features, in_features),
    `bias` (out_features); both start uniform between +-1 / sqrt(in_features).

    Args:
        in_features: size of the last dimension of the input.
        out_features: size of the last dimension of the output.
        bias: whether to add b.
        device: where the parameters are.
        dtype: their type.

    Raises:
        RuntimeError: in a call, the last dimension of the input is not `in_features`.

    >>> tuple(nn.Linear(4, 2)(tf.ones(3, 4)).shape)
    (3, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_counts(type(self).__name__, in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty((out_features,), device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        reset_uniform(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Maps the last dimension."""
        own = self._parameters  # __getattr__ would cost more than the product of a small layer
        if "weight" in own and "bias" in own:
            return F.linear(input, own["weight"], own["bias"])
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def reset_uniform(weight: Tensor, bias: Tensor | None) -> None:
    """Draws both between +-1 / sqrt(number of inputs of a unit)."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        inputs = math.prod(weight.shape[1:])
        bound = 1 / math.sqrt(inputs) if inputs else 0.0
        init.uniform_(bias, -bound, bound)


class Bilinear(Module):
    """y_k = x1 W_k x2 + b_k.

    Shapes: (..., in1_features) and (..., in2_features) to (..., out_features).

    Args:
        in1_features: size of the last dimension of the first input.
        in2_features: size of the last dimension of the second.
        out_features: size of the last dimension of the output.
        bias: whether to add b.
        device: where the parameters are.
        dtype: their type.

    Raises:
        ValueError: `in1_features` is not positive.
        RuntimeError: in a call, the shapes do not fit.

    >>> tuple(nn.Bilinear(3, 4, 2)(tf.ones(5, 3), tf.ones(5, 4)).shape)
    (5, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        counts = {"in1_features": in1_features, "in2_features": in2_features}
        check_counts("Bilinear", **counts, out_features=out_features)
        if in1_features == 0:
            raise ValueError(f"Bilinear: in1_features is {in1_features}, expected at least 1")
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty((out_features,), device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Maps the last dimensions."""
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Embedding(Module):
    """A table of vectors, looked up by index.

    Shapes: indices (...) to (..., embedding_dim). `weight` is (num_embeddings, embedding_dim) and
    starts normal.

    Args:
        num_embeddings: number of rows.
        embedding_dim: size of each.
        padding_idx: a row that starts at zero and is not learned.
        max_norm: rows that are longer are shortened to it when they are looked up.
        norm_type: the norm for `max_norm`.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.
        sparse: accepted for PyTorch's sake; gradients are dense.
        device: where the table is.
        dtype: its type.

    Raises:
        AssertionError: `padding_idx` is out of range.
        IndexError: in a call, an index is.

    >>> table = nn.Embedding(10, 3, padding_idx=0)
    >>> table(tf.tensor([0])).tolist()
    [[0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        counts = {"num_embeddings": num_embeddings, "embedding_dim": embedding_dim}
        check_counts(type(self).__name__, **counts)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            padding_idx = padding_row("Embedding", padding_idx, num_embeddings)
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            table = empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != shape:
                raise AssertionError(
                    f"Embedding: weight is {tuple(_weight.shape)}, expected {shape}"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draws the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight[self.padding_idx].detach())

    def forward(self, input: Tensor) -> Tensor:
        """Looks the rows up."""
        own = self._parameters
        weight = own["weight"] if "weight" in own else self.weight  # noqa: SIM401
        return functional.embedding(
            input,
            weight,  # pyright: ignore[reportArgumentType] (a table of None would be refused)
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A module over an existing table, which is not learned while `freeze` is true.

        Raises:
            AssertionError: `embeddings` is not a matrix.

        >>> nn.Embedding.from_pretrained(tf.tensor([[1.0], [2.0]]))(tf.tensor(1)).tolist()
        [2.0]
        """
        if len(embeddings.shape) != 2:
            raise AssertionError(
                f"Embedding.from_pretrained: embeddings is {tuple(embeddings.shape)}, "
                "expected two dimensions"
            )
        rows, size = embeddings.shape
        return cls(
            rows,
            size,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def extra_repr(self) -> str:
        """The options that are not the usual ones."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        usual = (
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2.0),
            ("scale_grad_by_freq", False),
        )
        for name, value in usual:
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text + (", sparse=True" if self.sparse else "")


class Flatten(Module):
    """Makes several dimensions one; by default all but the first.

    >>> tuple(nn.Flatten()(tf.ones(2, 3, 4)).shape)
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The same elements in fewer dimensions."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The options."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Makes one dimension several.

    Raises:
        TypeError: a size is not an integer.

    >>> tuple(nn.Unflatten(1, (3, 4))(tf.ones(2, 12)).shape)
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        sizes = (
            (unflattened_size,) if isinstance(unflattened_size, int) else tuple(unflattened_size)
        )
        for i, size in enumerate(sizes):
            if not isinstance(size, int):
                raise TypeError(
                    f"Unflatten: unflattened_size {i} is a {type(size).__name__}, expected an int"
                )
        self.dim, self.unflattened_size = dim, sizes

    def forward(self, input: Tensor) -> Tensor:
        """The same elements in more dimensions."""
        shape = list(input.shape)
        at = self.dim % len(shape)
        return input.reshape((*shape[:at], *self.unflattened_size, *shape[at + 1 :]))

    def extra_repr(self) -> str:
        """The options."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
