"""Tests with the fixture `gpu` run on each backend that has the shaders; alike.gpu() names it."""

import pytest
from backends.gpu.alike import Here


@pytest.fixture(autouse=True)
def here(request):
    """What alike.gpu() answers during a test."""
    if "gpu" in request.fixturenames:
        Here.name = request.getfixturevalue("gpu")
