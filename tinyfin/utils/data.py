"""PyTorch's name for `tinyfin.data`."""

from tinyfin.data import *  # noqa: F403
from tinyfin.data import __all__ as __all__
