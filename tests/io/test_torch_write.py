"""Files for PyTorch: read back by ourselves, by the reference where it is installed, and byte for
byte the same each time.
"""

import doctest
import io
import os
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyfin
from tinyfin.io import load, save, torch_write

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

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**100), 2**100)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(-9, 9), inner, max_size=3)
    ),
    max_leaves=12,
)


def through(x):
    f = io.BytesIO()
    save(x, f)
    f.seek(0)
    return load(f)


def contents():
    base = tinyfin.arange(20).float().reshape(4, 5)
    state = OrderedDict(
        base=base,
        turned=base.t(),
        part=base[1:3, ::2],
        spread=base[0, :1].expand(3),
        backwards=base.flip(1),
        scalar=tinyfin.tensor(2.5),
        empty=tinyfin.zeros(0, 3),
        parameter=tinyfin.nn.Parameter(tinyfin.ones(2)),
        wanted=tinyfin.ones(2, requires_grad=True),
        kinds={n: (tinyfin.arange(4) % 2).to(getattr(tinyfin, n)) for n in DTYPES},
        plain=[
            1,
            -(2**40),
            2**200,
            2.5,
            None,
            True,
            "hé",
            b"\x00\xff",
            (),
            (1, 2),
            {3: "three"},
            1 + 2j,
            {1, 2},
        ],
        dtype=tinyfin.bfloat16,
        device=tinyfin.device("cpu"),
    )
    state._metadata = OrderedDict({"": {"version": 1}})
    return state


def check(got, want):
    assert got["base"].tolist() == want["base"].tolist()
    for name in ("turned", "part", "spread", "backwards", "scalar", "parameter", "wanted"):
        assert got[name].tolist() == want[name].tolist(), name
    assert tuple(got["empty"].shape) == (0, 3)
    for n in DTYPES:
        assert str(got["kinds"][n].dtype).endswith("." + n)
        assert got["kinds"][n].double().tolist() == [0, 1, 0, 1]
    assert got["plain"] == want["plain"] and got._metadata == want._metadata
    assert (
        got["parameter"].requires_grad
        and got["wanted"].requires_grad
        and not got["base"].requires_grad
    )
    assert str(got["dtype"]).endswith(".bfloat16") and str(got["device"]) == "cpu"
    got["base"][1, 0] = -7
    assert got["turned"][0, 1].item() == -7 and got["part"][0, 0].item() == -7, "memory is shared"
    assert tuple(got["turned"].stride()) == (1, 5)


def test_examples():
    assert doctest.testmod(torch_write).failed == 0


def test_we_read_what_we_write():
    got = through(contents())
    check(got, contents())
    assert isinstance(got["parameter"], tinyfin.nn.Parameter)


@pytest.mark.parametrize("mmap", [False, True])
def test_pytorch_reads_what_we_write(tmp_path, mmap):
    torch = pytest.importorskip("torch")
    save(contents(), tmp_path / "a.pt")
    got = torch.load(tmp_path / "a.pt", weights_only=True, mmap=mmap)
    check(got, contents())
    assert isinstance(got["parameter"], torch.nn.Parameter)


@given(plain)
@settings(max_examples=80)
def test_any_plain_data(x):
    assert through(x) == x


def test_tensors_keep_their_identity():
    x = tinyfin.ones(2)
    a, b = through([x, x])
    a += 1
    assert b.tolist() == [2, 2]
    inner = {"a": 1}
    got = through([inner, inner, [inner]])
    assert got[0] is got[1] is got[2][0]
    cycle = []
    cycle.append(cycle)
    got = through(cycle)
    assert got[0] is got


def test_a_lone_view_is_written_without_the_rest(tmp_path):
    large = tinyfin.zeros(1000, 1000)
    save(large[3], tmp_path / "row.pt")
    save(large[:, 3], tmp_path / "column.pt")
    save([large[3], large[5]], tmp_path / "rows.pt")
    assert os.path.getsize(tmp_path / "row.pt") < 8000 > os.path.getsize(tmp_path / "column.pt")
    assert os.path.getsize(tmp_path / "rows.pt") < 20_000
    assert load(tmp_path / "rows.pt")[1].shape == (1000,)


def test_same_object_same_bytes():
    a, b = io.BytesIO(), io.BytesIO()
    save(contents(), a), save(contents(), b)
    assert a.getvalue() == b.getvalue()


def test_records_are_aligned_and_sound():
    f = io.BytesIO()
    save(contents(), f)
    content = f.getvalue()
    with zipfile.ZipFile(f) as z:
        assert z.testzip() is None
        for info in z.infolist():
            at = info.header_offset
            lengths = content[at + 26 : at + 28], content[at + 28 : at + 30]
            assert (at + 30 + sum(int.from_bytes(n, "little") for n in lengths)) % 64 == 0


def test_numpy_scalars_become_numbers():
    got = through([np.float64(1.5), np.float32(0.5), np.int64(3), np.bool_(True)])
    assert got == [1.5, 0.5, 3, True] and [type(x) for x in got] == [float, float, int, bool]


@pytest.mark.parametrize(
    "x, where",
    [
        ({"a": [object()]}, r"the object\['a'\]\[0\] is a object"),
        ({"m": tinyfin.nn.Linear(1, 1)}, r"\['m'\] is a Linear"),
        ([np.zeros(2)], "is a ndarray"),
        (lambda: None, "the object is a function"),
        ({object(): 1}, "a key of the object is a object"),
    ],
)
def test_what_cannot_be_saved(x, where, tmp_path):
    with pytest.raises(TypeError, match=where):
        save(x, tmp_path / "a.pt")
    assert os.listdir(tmp_path) == []


def test_too_large_an_integer():
    with pytest.raises(ValueError, match="too large"):
        through(2**3000)
