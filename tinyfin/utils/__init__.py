"""PyTorch's module path, as re-exports only."""

from tinyfin.utils import data

__all__ = ["data"]
