"""Type stub of the compiled probe of plain arithmetic."""

from tinyfin.core.tensor import Tensor

def probe(out: Tensor, a: Tensor, b: Tensor, c: Tensor, which: int) -> None: ...
