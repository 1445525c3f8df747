"""Whether this build's memory is kept after it is freed, for tests that count on it."""

import pytest

import tinyfin as tf


def pooled():
    """Not in a build for sanitizers, which look at every block."""
    tf.empty(1000)
    return tf.memory_stats()["cached"] > 0


needs_pool = pytest.mark.skipif(not pooled(), reason="this build keeps no freed memory")
