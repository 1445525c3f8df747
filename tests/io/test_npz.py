"""NumPy archives: both ways against NumPy, and nothing pickled."""

import doctest
import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinyfin
from tinyfin.core import memory
from tinyfin.io import load, load_npz, npz, save_npz

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def packed(**arrays):
    f = io.BytesIO()
    np.savez(f, **arrays)
    return f


def test_examples():
    assert doctest.testmod(npz).failed == 0


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", DTYPES)
def test_both_ways(name, compressed, tmp_path):
    t = (tinyfin.arange(6) % 2).reshape(2, 3).to(getattr(tinyfin, name))
    save_npz({"a": t, "b": t.t(), "c": t[0, 0], "d": t[:0]}, tmp_path / "x.npz", compressed)
    with np.load(tmp_path / "x.npz") as z:
        assert z["a"].dtype == name and np.array_equal(z["b"], t.numpy().T) and z["c"].shape == ()
    got = load_npz(tmp_path / "x.npz")
    assert (
        got["a"].dtype == t.dtype
        and got["b"].tolist() == t.t().tolist()
        and tuple(got["d"].shape) == (0, 3)
    )


def test_we_read_what_numpy_writes():
    a = np.arange(6).reshape(2, 3)
    got = load_npz(packed(f=np.asfortranarray(a), big=a.astype(">i4"), t=a.T))
    assert got["f"].tolist() == got["big"].tolist() == a.tolist()
    assert got["big"].dtype == tinyfin.int32 and got["t"].tolist() == a.T.tolist()


def test_single_array(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3, dtype="float32"))
    assert load(tmp_path / "a.npy").tolist() == [0, 1, 2]


def test_same_tensors_same_bytes():
    a, b = io.BytesIO(), io.BytesIO()
    save_npz({"x": tinyfin.ones(3)}, a), save_npz({"x": tinyfin.ones(3)}, b)
    assert a.getvalue() == b.getvalue()


def test_loaded_tensors_can_be_written_to():
    t = load_npz(packed(a=np.zeros(2)))["a"]
    t += 1
    assert t.tolist() == [1, 1]


@pytest.mark.parametrize(
    "tensors, text",
    [({1: None}, "non-empty strings"), ({"": None}, "non-empty"), ({"a": 1}, "'a' is int")],
)
def test_what_cannot_be_saved(tensors, text):
    with pytest.raises(TypeError, match=text):
        save_npz(tensors, io.BytesIO())


def test_bfloat16_is_refused():
    with pytest.raises(TypeError, match="bfloat16"):
        save_npz({"a": tinyfin.ones(1).to(tinyfin.bfloat16)}, io.BytesIO())


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.array(["text"]),
        np.zeros(2, "datetime64[s]"),
        np.zeros(2, [("a", "i4")]),
        np.zeros(2, "longdouble"),
    ],
)
def test_what_is_no_tensor(array):
    with pytest.raises(ValueError, match="dtype"):
        load_npz(packed(a=array))


def single(shape, descr="'<f8'"):
    """A .npy file whose header says what it likes, and 16 bytes."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)


@pytest.mark.parametrize(
    "shape, text",
    [
        ("(1000000000000,)", "takes 8000000000000 bytes"),
        ("(-1,)", r"shape \(-1,\) is no shape"),
        ("(2)", "shape is not valid"),
        ("(0, 4611686018427387904, 4)", "too big|elements"),
        ("(" * 3000 + ")" * 3000, "load"),
        ("-" * 9000 + "1", "load"),
    ],
)
def test_headers_that_lie(shape, text):
    with pytest.raises(ValueError, match=text):
        load(io.BytesIO(single(shape)))


def test_what_memory_cannot_hold(monkeypatch):
    """Zeros are packed a thousandfold: the file is small and true, and asks for too much."""
    f = io.BytesIO()
    np.savez_compressed(f, a=np.zeros(100_000))
    monkeypatch.setattr(memory, "available", lambda: 799_999)
    with pytest.raises(ValueError, match="takes 800000 bytes, of which 799999 are free"):
        load_npz(f)
    monkeypatch.setattr(memory, "available", lambda: 800_000)
    assert load_npz(f)["a"].sum().item() == 0


def test_every_cut_is_noticed():
    whole = packed(a=np.arange(10), b=np.ones((3, 3))).getvalue()
    for n in range(len(whole)):
        with pytest.raises(ValueError):
            load_npz(io.BytesIO(whole[:n]))


@given(st.data())
def test_no_damage_crashes_the_reader(data):
    whole = bytearray(packed(a=np.arange(10)).getvalue())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        load_npz(io.BytesIO(whole))
    except ValueError:
        pass


def test_any_damage_is_one_kind_of_error(tmp_path):
    """Flags that say encrypted or packed otherwise, and ends that are cut off."""
    path = tmp_path / "a.npz"
    tinyfin.save({"a": tinyfin.arange(100.0), "b": tinyfin.arange(50)}, path)
    raw = path.read_bytes()
    flags = [i + 6 for i in range(len(raw)) if raw[i : i + 4] == b"PK\x03\x04"]
    flags += [i + 8 for i in range(len(raw)) if raw[i : i + 4] == b"PK\x01\x02"]
    damaged = [raw[:n] for n in (*range(4, len(raw), 97), *range(len(raw) - 60, len(raw)))]
    for at in flags:
        for value in (1, 0x21, 0x41):
            damaged.append(raw[:at] + bytes([value]) + raw[at + 1 :])
            damaged.append(raw[: at + 2] + bytes([value]) + raw[at + 3 :])
    for content in damaged:
        path.write_bytes(content)
        try:
            found = tinyfin.load(path)
        except (ValueError, pickle.UnpicklingError) as error:
            assert str(error).startswith("load: ")
        else:
            assert found["b"].tolist() == list(range(50))
