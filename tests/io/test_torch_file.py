"""PyTorch's files: real ones are read, both kinds; damaged and hostile ones are refused, and run
nothing.
"""

import io
import os
import pathlib
import pickle
import struct
import zipfile

import pytest

import tinyfin
from tinyfin.io import load, torch_file
from tinyfin.io.torch_file import read_legacy, read_zip

# PyTorch 2.13 wrote the same object twice: as it does today, and as it did before 1.6.
SAMPLES = pathlib.Path(__file__).parent / "samples"
KINDS = ["zip.pt", "legacy.pt"]


@pytest.fixture(params=KINDS)
def got(request):
    return load(SAMPLES / request.param)


def address(t):
    return t.data_ptr() - t.storage_offset() * t.dtype.itemsize


def test_values(got):
    base = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert got["base"].tolist() == base and got["base"].dtype == tinyfin.float32
    assert got["turned"].tolist() == [list(row) for row in zip(*base)]
    assert got["part"].tolist() == [[4, 6], [8, 10]]
    assert got["row"].tolist() == [base[2]] * 2 and got["row"].stride()[0] == 0
    assert got["scalar"].item() == 2.5 and got["scalar"].dtype == tinyfin.float64
    assert tuple(got["empty"].shape) == (0, 3)
    assert got["half"].tolist() == [1.5, -2] and got["half"].dtype == tinyfin.float16
    assert got["brain"].float().tolist() == [1, -3] and got["brain"].dtype == tinyfin.bfloat16
    assert got["flags"].tolist() == [True, False]
    for name, t in got["numbers"].items():
        assert t.tolist() == [1, 2, 3] and t.dtype == getattr(tinyfin, name)


def test_plain_data(got):
    assert got["plain"] == [1, -(2**40), 2.5, None, True, "hé", b"\x00\xff", (1, 2), {3: "three"}]
    assert (
        got["size"] == (2, 3) and got["dtype"] is tinyfin.bfloat16 and str(got["device"]) == "cpu"
    )
    assert got._metadata == {"": {"version": 1}} and list(got)[:2] == ["base", "turned"]


def test_gradient_flags(got):
    assert isinstance(got["parameter"], tinyfin.nn.Parameter) and got["parameter"].requires_grad
    assert got["wanted"].requires_grad and not got["base"].requires_grad


def test_shared_storage_is_shared_again(got):
    assert len({address(got[n]) for n in ("base", "turned", "part", "row")}) == 1
    got["base"][1, 0] = -1
    assert got["turned"][0, 1].item() == -1 and got["part"][0, 0].item() == -1


@pytest.mark.parametrize("kind", KINDS)
def test_file_objects_and_names(kind):
    content = (SAMPLES / kind).read_bytes()
    assert load(io.BytesIO(content))["base"].sum().item() == 66
    assert load(str(SAMPLES / kind), "cpu")["base"].sum().item() == 66
    with pytest.raises(ValueError, match="weights_only=False would run code"):
        load(SAMPLES / kind, weights_only=False)


def test_dtype_that_may_be_missing():
    try:
        t = load(SAMPLES / "uint16.pt")["u"]
        assert str(t.dtype).endswith("uint16") and tuple(t.shape) == (2,)
    except pickle.UnpicklingError as e:
        assert "uint16" in str(e)


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_is_noticed(kind):
    content = (SAMPLES / kind).read_bytes()
    for n in range(0, len(content), 7):
        with pytest.raises((pickle.UnpicklingError, ValueError)):
            load(io.BytesIO(content[:n]))


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_crashes_the_reader(kind):
    content = (SAMPLES / kind).read_bytes()
    for i in range(0, len(content), 5):
        bad = bytearray(content)
        bad[i] ^= 0x41
        try:
            load(io.BytesIO(bad))
        except (pickle.UnpicklingError, ValueError):
            pass


def test_damaged_numbers_are_noticed():
    content = bytearray((SAMPLES / "zip.pt").read_bytes())
    with zipfile.ZipFile(SAMPLES / "zip.pt") as z:
        info = z.getinfo("zip/data/0")
    start = content.index(z_header(content, info), info.header_offset)
    content[start] ^= 1
    with pytest.raises(pickle.UnpicklingError, match="'data/0' does not match its checksum"):
        load(io.BytesIO(content))


def z_header(content, info):
    """The first bytes of a record's content."""
    name = int.from_bytes(content[info.header_offset + 26 : info.header_offset + 28], "little")
    extra = int.from_bytes(content[info.header_offset + 28 : info.header_offset + 30], "little")
    start = info.header_offset + 30 + name + extra
    return bytes(content[start : start + info.file_size])


def archive(pickled, name="a/data.pkl", records=(), method=zipfile.ZIP_STORED):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w", method) as z:
        z.writestr(name, pickled)
        for key, content in records:
            z.writestr(key, content)
    return bytearray(f.getvalue())


def storage(numel=4, kind="FloatStorage", key="0"):
    return b"(U\x07storagectorch\n%s\nU\x01%sU\x03cpuK%ctQ" % (kind.encode(), key.encode(), numel)


def tensor(
    size=b"(K\x02K\x02t",
    stride=b"(K\x02K\x01t",
    offset=b"K\x00",
    store=None,
    call="_rebuild_tensor_v2",
    end=b"\x89N",
):
    store = storage() if store is None else store
    return (
        b"\x80\x02ctorch._utils\n%s\n(" % call.encode()
        + store
        + offset
        + size
        + stride
        + end
        + b"tR."
    )


DATA = ("a/data/0", bytes(16))


def test_smallest_archive():
    assert read_zip(archive(tensor(), records=[DATA])).tolist() == [[0, 0], [0, 0]]
    assert read_zip(archive(tensor(call="_rebuild_tensor", end=b""), records=[DATA])).numel() == 4


def test_other_byte_order():
    swapped = b"".join(x.to_bytes(4, "big") for x in (1, 2, 3, 4))
    records = [("a/data/0", swapped), ("a/byteorder", "big")]
    pickled = tensor(store=storage(4, "IntStorage"))
    assert read_zip(archive(pickled, records=records)).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: archive(tensor()), "no record 'data/0'"),
        (lambda: archive(tensor(), records=[("a/data/0", bytes(15))]), "has 15 bytes"),
        (lambda: archive(tensor(offset=b"K\x01"), records=[DATA]), "reaches element 4"),
        (lambda: archive(tensor(stride=b"(K\x03K\x01t"), records=[DATA]), "reaches element 4"),
        (lambda: archive(tensor(size=b"(J\xff\xff\xff\xffK\x02t"), records=[DATA]), "has offset"),
        (lambda: archive(tensor(stride=b"(J\xff\xff\xff\xffK\x01t"), records=[DATA]), "has offset"),
        (lambda: archive(tensor(size=b"(K\x02t"), records=[DATA]), "has offset"),
        (lambda: archive(tensor(size=b"(G" + bytes(8) + b"K\x02t"), records=[DATA]), "has offset"),
        (lambda: archive(tensor(store=b"K\x01"), records=[DATA]), "built on a int"),
        (
            lambda: archive(tensor(store=storage(kind="Tensor")), records=[DATA]),
            "describes a storage",
        ),
        (lambda: archive(b"\x80\x02K\x01Q."), "other than a storage"),
        (lambda: archive(b"\x80\x02(U\x06moduleNNNNtQ."), "other than a storage"),
        (
            lambda: archive(tensor(call="_rebuild_parameter", store=b"N", end=b"")),
            "damaged|built on",
        ),
        (lambda: archive(b"N.", "a/other"), "no record data.pkl"),
        (lambda: archive(b"N.", records=[("b/data.pkl", b"N.")]), "no record data.pkl"),
        (lambda: archive(b"N.", records=[("a/constants.pkl", b"N.")]), "TorchScript"),
        (lambda: archive(tensor(), records=[DATA], method=zipfile.ZIP_DEFLATED), "compressed"),
        (lambda: bytearray(b"PK\x03\x04 and nothing more"), "damaged or incomplete"),
    ],
)
def test_what_is_refused(make, text):
    with pytest.raises(pickle.UnpicklingError, match=text):
        load(io.BytesIO(make()))


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", range(6))
def test_hostile_files_run_nothing(protocol, tmp_path):
    mark = str(tmp_path / "executed")
    for x in (Evil(mark), {"w": Evil(mark)}, [tinyfin.io.torch_file.MAGIC, Evil(mark)]):
        data = pickle.dumps(x, protocol)
        head = b"".join(
            pickle.dumps(p, 2) for p in (torch_file.MAGIC, 1001, {"little_endian": True})
        )
        for content in (data, head + data, archive(data)):
            with pytest.raises(pickle.UnpicklingError):
                load(io.BytesIO(content))
    assert not os.path.exists(mark)


def test_refusal_names_the_culprit_and_the_file(tmp_path):
    path = tmp_path / "evil.pt"
    path.write_bytes(pickle.dumps(Evil("x"), 2))
    with pytest.raises(
        pickle.UnpicklingError,
        match=r"evil.pt: the file refers to `\w+.mkdir`.*nothing of it was executed",
    ):
        load(path)


def test_pickles_that_are_no_tensor_files():
    with pytest.raises(pickle.UnpicklingError, match="not one that PyTorch wrote"):
        read_legacy(pickle.dumps({"a": 1}, 2))
    head = pickle.dumps(torch_file.MAGIC, 2) + pickle.dumps(7, 2) + pickle.dumps({}, 2)
    with pytest.raises(pickle.UnpicklingError, match="version 7"):
        read_legacy(head)


MANY = b")" + b"q\x00h\x00\x86" * 90


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02(U\x07storage" + MANY + b"NNNtQ.",
        tensor(size=MANY),
        tensor(stride=MANY),
        tensor(offset=MANY),
        tensor(call="_rebuild_tensor_v3", end=b"\x89N" + MANY),
        b"\x80\x02ctorch\ndevice\n" + MANY + b"\x85R.",
        b"\x80\x02ctorch\ndevice\nU\x03cpu" + MANY + b"\x86R.",
    ],
)
def test_messages_stay_short(pickled):
    """A tuple of two tuples of two, and so on: printed whole, it would fill any memory."""
    with pytest.raises(pickle.UnpicklingError) as error:
        load(io.BytesIO(archive(pickled, records=[DATA])))
    assert len(str(error.value)) < 1000


def test_sizes_that_cannot_be_counted():
    huge = b"\x8a\x08" + (1 << 61).to_bytes(8, "little")
    for size, stride in (
        (b"(%s%st" % (huge, huge), b"(K\x00K\x00t"),
        (b"(" + b"K\x01" * 1000 + b"t", b"(" + b"K\x01" * 1000 + b"t"),
    ):
        with pytest.raises(pickle.UnpicklingError):
            load(io.BytesIO(archive(tensor(size=size, stride=stride), records=[DATA])))


def test_only_tensors_are_rebuilt_from_types():
    body = (
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nbytearray\nctorch\nTensor\n"
        b"C\x01x\x85NtR."
    )
    with pytest.raises(pickle.UnpicklingError, match="not plain data"):
        load(io.BytesIO(archive(body)))


def legacy(pickled, storages):
    """A file in the format from before PyTorch 1.6."""
    head = (torch_file.MAGIC, 1001, {"little_endian": True})
    body = b"".join(pickle.dumps(p, 2) for p in head) + pickled
    body += pickle.dumps([key for key, _ in storages], 2)
    for _, content in storages:
        body += (len(content) // 4).to_bytes(8, "little") + content
    return bytearray(body)


def part(offset, numel):
    view = b"(U\x01vK%cK%ct" % (offset, numel)
    return b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x08" + view + b"tQ"


def test_parts_of_one_storage_share_its_memory():
    """However many parts a file names, and however its bytes are aligned, they are copied once."""
    one = b"ctorch._utils\n_rebuild_tensor_v2\n("
    rest = b"K\x00K\x04\x85K\x01\x85\x89NtR"
    pickled = b"\x80\x02](" + b"".join(one + part(i, 4) + rest for i in range(5)) + b"e."
    content = struct.pack("<8f", *range(8))
    for padding in range(4):
        first = pickled[:-1] + b"N0" * padding + b"."
        got = load(io.BytesIO(legacy(first, [("0", content)])))
        assert [t.tolist() for t in got] == [[float(i + j) for j in range(4)] for i in range(5)]
        assert [t.data_ptr() - got[0].data_ptr() for t in got] == [0, 4, 8, 12, 16]
    with pytest.raises(pickle.UnpicklingError, match="beyond storage 0"):
        bad = b"\x80\x02" + one + part(5, 4) + rest + b"."
        load(io.BytesIO(legacy(bad, [("0", content)])))


def test_against_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    base = torch.randn(6, 5)
    state = {
        "w": base,
        "t": base.t()[1:3],
        "p": torch.nn.Parameter(base[0].clone()),
        "h": base.to(torch.bfloat16),
    }
    optimizer = torch.optim.AdamW([state["p"]])
    state["p"].sum().backward()
    optimizer.step()
    state["optimizer"] = optimizer.state_dict()
    for new in (True, False):
        torch.save(state, tmp_path / "a.pt", _use_new_zipfile_serialization=new)
        got = load(tmp_path / "a.pt")
        assert got["w"].tolist() == base.tolist() and got["t"].tolist() == state["t"].tolist()
        assert (
            got["p"].tolist() == state["p"].tolist()
            and got["h"].float().tolist() == state["h"].float().tolist()
        )
        assert got["optimizer"]["param_groups"] == state["optimizer"]["param_groups"]
        for k, v in state["optimizer"]["state"][0].items():
            assert got["optimizer"]["state"][0][k].tolist() == v.tolist()
    torch.save(torch.nn.Linear(1, 1), tmp_path / "m.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\.linear\.Linear"):
        load(tmp_path / "m.pt")


def test_checksums_left_out(tmp_path):
    torch = pytest.importorskip("torch")
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert load(tmp_path / "a.pt")["w"].tolist() == [1, 1, 1]
