"""Tests with the fixture `gpu` run on each backend that has the shaders; alike.gpu() names it."""

import pytest
from backends.gpu.alike import Here

import tinyfin as tf


@pytest.fixture(autouse=True)
def here(request):
    """What alike.gpu() answers during a test."""
    if "gpu" in request.fixturenames:
        Here.name = request.getfixturevalue("gpu")


@pytest.fixture
def exact():
    """Deterministic mode: long chains of products have the CPU's bits on every device."""
    with tf.deterministic():
        yield
