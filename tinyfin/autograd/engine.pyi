"""Type stub of the compiled backward walk."""

from collections.abc import Sequence
from typing import overload

from tinyfin.core.tensor import Tensor

def backward_method(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None: ...
@overload
def run_backward(
    tensors: list[Tensor], grads: list[Tensor], retain: bool, keep: bool, inputs: None
) -> None: ...
@overload
def run_backward(
    tensors: list[Tensor], grads: list[Tensor], retain: bool, keep: bool, inputs: list[Tensor]
) -> list[Tensor | None]: ...
def reaches_beyond(tensors: list[Tensor], inner: set[Tensor]) -> bool: ...
