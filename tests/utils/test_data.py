"""PyTorch's module path gives the very same objects."""

import tinyfin
from tinyfin.utils import data


def test_same_objects():
    assert tinyfin.utils.data is data
    for name in tinyfin.data.__all__:
        assert getattr(data, name) is getattr(tinyfin.data, name)
