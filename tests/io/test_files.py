"""save and load: the right format for each name, and for each content."""

import doctest
import io
import pickle

import numpy as np
import pytest

import tinyfin
from tinyfin.io import files, load, save


def test_examples():
    assert doctest.testmod(files).failed == 0


@pytest.mark.parametrize(
    "name, start",
    [
        ("a.safetensors", None),
        ("a.npz", b"PK"),
        ("a.pt", b"PK"),
        ("a.pth", b"PK"),
        ("a", b"PK"),
        ("A.SAFETENSORS", None),
    ],
)
def test_suffix_chooses_and_content_is_recognised(name, start, tmp_path):
    path = tmp_path / name
    save({"a": tinyfin.arange(3), "b": tinyfin.ones(2, 2)}, path)
    content = path.read_bytes()
    assert content[8:9] == b"{" if start is None else content.startswith(start)
    renamed = tmp_path / "no suffix at all"
    path.rename(renamed)
    for got in (
        load(renamed),
        load(str(renamed)),
        load(io.BytesIO(content)),
        tinyfin.load(renamed),
    ):
        assert got["a"].tolist() == [0, 1, 2] and got["b"].dtype == tinyfin.float32


def test_flat_formats_refuse_what_they_cannot_hold(tmp_path):
    for suffix in (".safetensors", ".npz"):
        for x in ({"a": 1}, [tinyfin.ones(1)], {"a": {"b": tinyfin.ones(1)}}):
            with pytest.raises(TypeError, match=r"use \.pt"):
                save(x, tmp_path / f"a{suffix}")


@pytest.mark.parametrize(
    "content, error, text",
    [
        (b"", ValueError, "is empty"),
        (b"some text that is no tensor", ValueError, "no known format"),
        (b"\x00" * 600, ValueError, "no known format"),
        (b"\x00" * 257 + b"ustar" + b"\x00" * 300, ValueError, "tar archive"),
        (pickle.dumps({"a": 1}, 0), pickle.UnpicklingError, "protocol 0 or 1"),
        (b"\x93NUMPY", ValueError, "file"),
        (b"\x10\0\0\0\0\0\0\0{", ValueError, "cut off"),
        (b"PK\x03\x04", pickle.UnpicklingError, "damaged"),
    ],
)
def test_unreadable_files(content, error, text, tmp_path):
    path = tmp_path / "bad.bin"
    path.write_bytes(content)
    with pytest.raises(error, match=text) as e:
        load(path)
    assert "bad.bin" in str(e.value)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        save({}, tmp_path / "none" / "a.pt")


def test_file_object_is_read_from_where_it_stands():
    f = io.BytesIO(b"before")
    f.seek(6)
    np.save(f, np.arange(2))
    f.seek(6)
    assert load(f).tolist() == [0, 1]


def test_model_moves_over(tmp_path):
    a, b = tinyfin.nn.Linear(3, 2), tinyfin.nn.Linear(3, 2)
    for name in ("m.pt", "m.safetensors", "m.npz"):
        save(dict(a.state_dict()), tmp_path / name)
        b.load_state_dict(load(tmp_path / name))
        assert b.weight.tolist() == a.weight.tolist() and b.bias.tolist() == a.bias.tolist()


def test_what_is_no_file():
    for call in (lambda: load(None), lambda: save({}, None), lambda: load(3)):
        with pytest.raises(TypeError, match=r"f is (None|3), expected a path or a binary file"):
            call()


@pytest.mark.parametrize("suffix", [".pt", ".safetensors", ".npz"])
def test_loaded_tensors_do_not_follow_the_file(suffix, tmp_path):
    """Another file written over the same place, or the place cut short, changes nothing."""
    path = tmp_path / ("a" + suffix)
    save({"w": tinyfin.ones(100_000)}, path)
    size = path.stat().st_size
    kept = load(path)["w"]
    path.write_bytes(bytes(size))
    assert kept.sum().item() == 100_000
    path.write_bytes(b"x")
    assert kept.sum().item() == 100_000


def test_mapping_on_request(tmp_path):
    save({"w": tinyfin.ones(3)}, tmp_path / "a.pt")
    for mmap in (True, False, None):
        found = load(tmp_path / "a.pt", mmap=mmap)["w"]
        found += 1
        assert found.tolist() == [2.0] * 3
    assert load(tmp_path / "a.pt")["w"].tolist() == [1.0] * 3
