"""Zip archives whose table of contents promises more than the file can hold are refused."""

import doctest
import io
import pickle
import struct
import zipfile

import pytest

from tinyfin.io import archive
from tinyfin.io.archive import ArchiveError, directory, opened


def packed(records, method=zipfile.ZIP_STORED):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", method) as z:
        for name, content in records.items():
            z.writestr(name, content)
    return bytearray(f.getvalue())


def entries(data):
    """Where the entries of the table of contents begin."""
    found, at = [], data.find(b"PK\x01\x02")
    while at >= 0:
        found.append(at)
        at = data.find(b"PK\x01\x02", at + 4)
    return found


def test_examples():
    assert doctest.testmod(archive).failed == 0


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_records_are_found(method):
    data = packed({"a": b"x" * 100, "b/c": b"", "d": bytes(100_000)}, method)
    names = directory(data)
    assert sorted(names) == ["a", "b/c", "d"] and names["d"].file_size == 100_000
    with opened(io.BytesIO(data)) as z:
        assert z.read("a") == b"x" * 100


def test_records_that_share_bytes():
    data = packed({"a": bytes(1000), "b": bytes(1000)})
    second = entries(data)[1]
    struct.pack_into("<I", data, second + 42, 0)  # where the record begins
    with pytest.raises(ArchiveError, match="begins inside of record"):
        opened(io.BytesIO(data))
    with pytest.raises(pickle.UnpicklingError, match="begins inside of record"):
        directory(data)


@pytest.mark.parametrize(
    "method, size", [(zipfile.ZIP_STORED, 1001), (zipfile.ZIP_DEFLATED, 10_000_000)]
)
def test_records_that_promise_too_much(method, size):
    data = packed({"a": bytes(1000)}, method)
    struct.pack_into("<I", data, entries(data)[0] + 24, size)
    with pytest.raises(ArchiveError, match=f"record 'a' promises {size} bytes"):
        opened(io.BytesIO(data))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_without_a_bound(method):
    """They make gigabytes of a few hundred bytes; neither NumPy nor PyTorch writes them."""
    with pytest.raises(ArchiveError, match="only stored and deflated"):
        opened(io.BytesIO(packed({"a": bytes(10**6)}, method)))


def test_every_cut_is_noticed():
    data = packed({"a": b"12345", "b": b""})
    for n in range(len(data)):
        with pytest.raises(pickle.UnpicklingError, match="damaged or incomplete"):
            directory(data[:n])
