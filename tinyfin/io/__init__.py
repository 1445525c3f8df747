"""Files of tensors: `save` and `load` choose the format; the modules below offer each by itself."""

from __future__ import annotations

from tinyfin.io.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from tinyfin.io.files import load, save
from tinyfin.io.npz import load_npz, save_npz
from tinyfin.io.safetensors import SafetensorError, load_file, safe_open, save_file

__all__ = [
    "CheckpointError",
    "SafetensorError",
    "load",
    "load_checkpoint",
    "load_file",
    "load_npz",
    "safe_open",
    "save",
    "save_checkpoint",
    "save_file",
    "save_npz",
]
