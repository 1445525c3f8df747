"""The safetensors format: both ways against the reference package, and every way for a file to be
wrong.
"""

import doctest
import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinyfin
from tinyfin.io import safetensors as ours
from tinyfin.io.safetensors import (
    MAX_HEADER,
    SafetensorError,
    load,
    load_file,
    read_header,
    safe_open,
    save,
    save_file,
)

reference = pytest.importorskip("safetensors")
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


def sample(name, shape=(2, 3)):
    n = int(np.prod(shape))
    return (
        (tinyfin.arange(n) % 2 if name == "bool" else tinyfin.arange(n))
        .reshape(shape)
        .to(getattr(tinyfin, name))
    )


def build(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def equal(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.double().tolist() == b.double().tolist()


def test_examples():
    assert doctest.testmod(ours).failed == 0


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (3, 0, 2), (1,) * 6])
def test_round_trip(name, shape):
    t = sample(name, shape)
    got = load(save({"t": t}))
    assert list(got) == ["t"] and equal(got["t"], t)


def test_the_package_reads_what_we_write(tmp_path):
    tensors = {name: sample(name) for name in DTYPES}
    save_file(tensors, tmp_path / "a.safetensors", {"made": "hére"})
    with reference.safe_open(tmp_path / "a.safetensors", framework="np") as f:
        assert f.metadata() == {"made": "hére"}
        assert set(f.keys()) == set(DTYPES)
        for name in set(DTYPES) - {"bfloat16"}:
            assert np.array_equal(f.get_tensor(name), tensors[name].numpy())
        assert f.get_slice("bfloat16").get_dtype() == "BF16"
    raw = dict(reference.deserialize((tmp_path / "a.safetensors").read_bytes()))
    assert raw["bfloat16"]["data"] == bytes(ours.tensor_bytes(tensors["bfloat16"]))


def test_we_read_what_the_package_writes(tmp_path):
    from safetensors.numpy import save_file as theirs

    arrays = {name: sample(name).numpy() for name in DTYPES if name != "bfloat16"}
    arrays |= {"scalar": np.array(3, "float32"), "empty": np.zeros((0, 2), "int16")}
    theirs(arrays, tmp_path / "a.safetensors", {"k": "v"})
    got = load_file(tmp_path / "a.safetensors")
    assert set(got) == set(arrays)
    for name, a in arrays.items():
        assert got[name].numpy().dtype == a.dtype and np.array_equal(got[name].numpy(), a)
    data = build({"x": entry("BF16", [2])}, b"\x80\x3f\x00\x40")
    assert load(data)["x"].float().tolist() == [1.0, 2.0]


names = st.text(max_size=12).filter(
    lambda n: n != "__metadata__" and "\x00" not in n and n.isprintable()
)
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(
    st.dictionaries(names, st.tuples(st.sampled_from(DTYPES), shapes), max_size=6),
    st.dictionaries(names, names, max_size=3),
)
@settings(max_examples=60)
def test_any_tensors_both_ways(spec, metadata):
    tensors = {name: sample(*s) for name, s in spec.items()}
    data = save(tensors, metadata)
    assert save(tensors, metadata) == data, "the same tensors give the same bytes"
    got = load(data)
    assert set(got) == set(tensors) and all(equal(got[n], tensors[n]) for n in tensors)
    assert read_header(data).metadata == metadata
    raw = dict(reference.deserialize(data))
    assert {n: (t["shape"], bytes(t["data"])) for n, t in raw.items()} == {
        n: (list(t.shape), bytes(ours.tensor_bytes(t))) for n, t in tensors.items()
    }


@given(st.binary(max_size=200))
def test_noise_is_refused(data):
    with pytest.raises(SafetensorError):
        load(data)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_damage_crashes_the_reader(data):
    whole = bytearray(save({"a": sample("float32"), "b": sample("int8")}, {"k": "v"}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        load(bytes(whole))
    except SafetensorError:
        pass


def test_every_cut_is_noticed():
    whole = save({"a": sample("float32"), "b": sample("int8")})
    for n in range(len(whole)):
        with pytest.raises(SafetensorError):
            load(whole[:n])
    with pytest.raises(SafetensorError, match="1 bytes after the last tensor"):
        load(whole + b"\0")


DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    "data, text",
    [
        (b"", "has 0 bytes"),
        (b"1234567", "has 7 bytes"),
        (build({}, length=MAX_HEADER + 1), "at most"),
        (build({}, length=2**64 - 1), "at most"),
        (build({}, length=3), "cut off"),
        (build(b""), "does not begin"),
        (build(b" {}"), "does not begin"),
        (build(b"{\xff}"), "UTF-8"),
        (build(b"{"), "not JSON"),
        (build(b"{}\0"), "not JSON"),
        (build(DEEP), "not JSON"),
        (build(b'{"a":NaN}'), "NaN"),
        (build(b'{"a":1,"a":1}'), "'a' twice"),
        (build(b'{"a":{"dtype":"F32","dtype":"F32"}}'), "'dtype' twice"),
        (build({"__metadata__": []}), "expected an object"),
        (build({"__metadata__": {"k": 1}}), "expected a string"),
        (build({"a": []}), "expected an object with"),
        (build({"a": {"dtype": "F32", "shape": [1]}}, b"1234"), "expected an object with"),
        (build({"a": entry("F33")}, b"1234"), "dtype 'F33' is unknown"),
        (build({"a": entry(dtype=["F32"])}, b"1234"), "is unknown"),
        (build({"a": entry(shape=[-1])}, b"1234"), "no list of sizes"),
        (build({"a": entry(shape=[True])}, b"1234"), "no list of sizes"),
        (build({"a": entry(shape=[1.0])}, b"1234"), "no list of sizes"),
        (build({"a": entry() | {"shape": 1}}, b"1234"), "no list of sizes"),
        (build({"a": entry(shape=[2**63])}, b"1234"), "no list of sizes"),
        (build({"a": entry(shape=[2**40, 2**40])}, b"1234"), "takes"),
        (build({"a": entry(shape=[2**62] * 200_000)}, b"1234"), "no list of sizes"),
        (build({"a": entry(shape=[[[1] * 99] * 99] * 99)}, b"1234"), "shape .{1,400} is no list"),
        (build({"a": entry(offsets=(0,))}, b"1234"), "not \\[begin, end\\]"),
        (build({"a": entry(offsets=(0, "4"))}, b"1234"), "not \\[begin, end\\]"),
        (build({"a": entry(offsets=(-4, 0))}, b"1234"), "not \\[begin, end\\]"),
        (build({"a": entry(offsets=(4, 0))}, b"1234"), "hold -4"),
        (build({"a": entry(offsets=(0, 8))}, b"12345678"), "hold 8"),
        (build({"a": entry()}, b"123"), "cut off"),
        (build({"a": entry()}, b"12345"), "belong to no tensor"),
        (build({"a": entry(), "b": entry(offsets=(2, 6))}, b"123456"), "inside the one before"),
        (build({"a": entry(), "b": entry()}, b"1234"), "inside the one before"),
        (
            build({"a": entry(), "b": entry(offsets=(8, 12))}, b"123456789012"),
            "belong to no tensor",
        ),
        (build({"a": entry(offsets=(4, 8))}, b"12345678"), "belong to no tensor"),
        (build({"a": entry(shape=[0], offsets=(9, 9))}), "belong to no tensor"),
    ],
)
def test_broken_rules_are_named(data, text):
    with pytest.raises(SafetensorError, match=text):
        load(data)


def test_the_second_of_many_names_is_found_at_once():
    names = ",".join(f'"{i}":0' for i in range(100_000))
    with pytest.raises(SafetensorError, match="the name '99999' twice"):
        load(build(f'{{{names},"99999":1}}'.encode()))


def test_padded_header_and_unaligned_data():
    assert load(build(b"{}   ")) == {}
    header = {"b": entry("U8", offsets=(0, 1)), "a": entry(offsets=(1, 5))}
    assert load(build(header, b"\x07" + struct.pack("<f", 1.5)))["a"].tolist() == [1.5]


def test_dtypes_that_tensors_lack():
    for dtype, size in (("F8_E4M3", 1), ("U64", 8)):
        data = build({"a": entry(dtype, offsets=(0, size))}, bytes(size))
        try:
            load(data)
        except SafetensorError as e:
            assert "'a'" in str(e) and dtype in str(e)


def test_tensors_lie_at_multiples_of_their_element_size():
    data = save({"a": sample("int8", (3,)), "b": sample("float64"), "c": sample("float16", (5,))})
    header = read_header(data)
    assert header.start % 8 == 0
    assert header.entries["b"].begin % 8 == 0 and header.entries["c"].begin % 2 == 0


def test_layouts_are_written_row_by_row():
    x = tinyfin.arange(6).reshape(2, 3)
    got = load(
        save(
            {
                "t": x.t(),
                "s": x[:, ::2],
                "e": x[:1].expand(2, 3),
                "g": x.float().requires_grad_(True),
            }
        )
    )
    assert got["t"].tolist() == [[0, 3], [1, 4], [2, 5]] and got["s"].tolist() == [[0, 2], [3, 5]]
    assert got["e"].tolist() == [[0, 1, 2]] * 2 and not got["g"].requires_grad


def test_what_cannot_be_saved():
    with pytest.raises(TypeError, match="'a' is int"):
        save({"a": 1})
    with pytest.raises(TypeError, match="names are strings"):
        save({1: sample("int8")})
    with pytest.raises(SafetensorError, match="taken by the format"):
        save({"__metadata__": sample("int8")})
    with pytest.raises(TypeError, match="map strings to strings"):
        save({}, {"k": 1})


def test_mapped_tensors_outlive_the_file_and_leave_it_alone(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"a": sample("float32")}, path)
    before = path.read_bytes()
    t = load_file(path, mmap=True)["a"]
    save_file({"a": sample("float32") * 9}, path)
    t += 1
    assert t.tolist() == [[1, 2, 3], [4, 5, 6]]
    save_file({"a": sample("float32")}, path)
    assert path.read_bytes() == before


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(b"123")
    for read in (load_file, safe_open):
        with pytest.raises(SafetensorError, match=r"bad\.safetensors"):
            read(path)
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "none")


def test_safe_open(tmp_path):
    save_file({"a": sample("int8"), "b": sample("float32")}, tmp_path / "x", {"k": "v"})
    with safe_open(tmp_path / "x") as f:
        assert sorted(f.keys()) == ["a", "b"] and f.metadata() == {"k": "v"}
        assert equal(f.get_tensor("a"), sample("int8"))
        with pytest.raises(KeyError, match="'c'"):
            f.get_tensor("c")
    with pytest.raises(ValueError, match="closed"):
        f.get_tensor("a")
