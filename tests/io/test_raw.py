"""Tensors as bytes and back, for every dtype and layout."""

import doctest
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinyfin
from tinyfin.io import raw
from tinyfin.io.raw import (
    BufferFile,
    dtype_name,
    dtype_named,
    map_file,
    strided,
    tensor_bytes,
    tensor_from,
)

DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
]


def test_examples():
    assert doctest.testmod(raw).failed == 0


@pytest.mark.parametrize("name", DTYPES)
def test_round_trip(name):
    dt = dtype_named(name)
    assert dtype_name(dt) == name
    x = (tinyfin.arange(12) % 2).reshape(3, 4).to(dt)
    for t in (x, x.t(), x[:, 1:3], x[0, 0], x[:0], x.flip(0)):
        back = tensor_from(bytearray(tensor_bytes(t)), dt, t.shape)
        assert back.dtype == dt and back.shape == t.shape
        assert back.double().tolist() == t.double().tolist()


def test_bytes_are_shared_where_they_can_be():
    buffer = bytearray(16)
    t = tensor_from(buffer, tinyfin.float32, (2,), 4)
    t += 1
    assert np.frombuffer(buffer, "float32").tolist() == [0, 1, 1, 0]
    odd = tensor_from(buffer, tinyfin.float32, (2,), 3)
    odd += 5
    assert np.frombuffer(buffer, "float32").tolist() == [0, 1, 1, 0]


def test_gradients_are_left_behind():
    assert len(tensor_bytes(tinyfin.ones(3, requires_grad=True))) == 12


@given(st.data())
def test_strided_views(data):
    n = data.draw(st.integers(0, 4))
    size = [data.draw(st.integers(1, 4)) for _ in range(n)]
    stride = [data.draw(st.integers(0, 5)) for _ in range(n)]
    offset = data.draw(st.integers(0, 3))
    flat = np.arange(
        offset + 1 + sum((k - 1) * s for k, s in zip(size, stride)) + data.draw(st.integers(0, 2))
    )
    want = np.lib.stride_tricks.as_strided(flat[offset:], size, [s * 8 for s in stride])
    view = strided(tinyfin.from_numpy(flat), size, stride, offset)
    assert tuple(view.shape) == tuple(size) and view.tolist() == want.tolist()
    flat += 1
    assert view.tolist() == want.tolist(), "a view, not a copy"


def test_mapped_file_is_private(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"abcd")
    buffer = map_file(path)
    buffer[0] = 65
    assert bytes(buffer[:4]) == b"Abcd" and path.read_bytes() == b"abcd"
    (tmp_path / "empty").write_bytes(b"")
    assert len(map_file(tmp_path / "empty")) == 0


@given(st.binary(max_size=20), st.lists(st.tuples(st.integers(0, 25), st.integers(-1, 25))))
def test_buffer_file_reads_as_a_file_does(content, moves):
    ours, theirs = BufferFile(content), io.BytesIO(content)
    assert ours.readable() and ours.seekable()
    for at, n in moves:
        assert ours.seek(at) == theirs.seek(at)
        assert ours.read(n) == theirs.read(n)
        assert ours.tell() == theirs.tell()
    with pytest.raises(OSError, match="before the beginning"):
        ours.seek(-1)
