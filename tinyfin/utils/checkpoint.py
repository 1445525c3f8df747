"""PyTorch's name for `tinyfin.autograd.checkpoint`."""

from tinyfin.autograd.checkpoint import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
