"""PyTorch for tests that compare with it: where it is not installed, they are skipped as soon as they
ask it for something, and all that stands before runs.
"""

import importlib.util

import pytest

INSTALLED = importlib.util.find_spec("torch") is not None


class _Torch:
    """The package `torch`, imported when something of it is used."""

    def __getattr__(self, name):
        if name.startswith(("_", "pytest")):  # what pytest asks of every name in a module
            raise AttributeError(name)
        if not INSTALLED:
            pytest.skip("compares with PyTorch, which is not installed")
        return getattr(importlib.import_module("torch"), name)


torch = _Torch()
