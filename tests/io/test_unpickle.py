"""The pickle machine: plain data as pickle gives it, and nothing that pickle would execute."""

import builtins
import doctest
import os
import pickle
import pickletools
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyfin.io import unpickle
from tinyfin.io.unpickle import Call, Machine

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4)
        | st.sets(st.integers(), max_size=4)
    ),
    max_leaves=20,
)


class Evil:
    def __init__(self, call, *args):
        self.call, self.args = call, args

    def __reduce__(self):
        return self.call, self.args


def test_examples():
    assert doctest.testmod(unpickle).failed == 0


@given(plain, st.integers(2, 5))
def test_plain_data_comes_back(x, protocol):
    machine = Machine(pickle.dumps(x, protocol))
    got = machine.load()
    assert got == x and repr(type(got)) == repr(type(x))
    assert machine.at == len(machine.data)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_rarer_kinds(protocol):
    x = [
        OrderedDict(a=1),
        bytearray(b"\x01\xff"),
        1 + 2j,
        {1, 2},
        "x" * 300,
        b"y" * 300,
        list(range(300)),
        (),
        2**2100,
    ]
    x += [x[0], x[4]]
    got = Machine(pickle.dumps(x, protocol)).load()
    assert got == x and got[0] is got[-2]
    assert Machine(pickle.dumps([frozenset((1,))], 4)).load() == [frozenset((1,))]


def test_cycles():
    x = []
    x.append(x)
    got = Machine(pickle.dumps(x)).load()
    assert got[0] is got


CALLS = [
    (os.mkdir, "PATH"),
    (os.system, "touch PATH"),
    (eval, "open('PATH', 'w')"),
    (exec, "open('PATH', 'w')"),
    (getattr, builtins, "eval"),
    (__import__, "os"),
    (type, "x", (), {}),
    (object.__new__, dict),
    (bytearray, 10**12),
    (pickle.loads, b"N."),
]


@pytest.mark.parametrize("call, args", [(c[0], c[1:]) for c in CALLS])
@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_executed(call, args, protocol, tmp_path):
    mark = tmp_path / "executed"
    args = tuple(a.replace("PATH", str(mark)) if isinstance(a, str) else a for a in args)
    try:
        data = pickle.dumps({"w": [Evil(call, *args)]}, protocol)
    except (TypeError, pickle.PicklingError):
        pytest.skip("pickle cannot write this")
    with pytest.raises(pickle.UnpicklingError):
        Machine(data).load()
    assert not mark.exists()


@pytest.mark.parametrize(
    "body, text",
    [
        (b"cos\nsystem\n(U\x01xtR.", "os.system"),
        (b"\x8c\x02os\x8c\x06system\x93.", "os.system"),
        (b"(ios\nsystem\n.", "instruction b'i'"),
        (b"(cos\nsystem\no.", "os.system"),
        (b"(U\x01xo.", "instruction b'o'"),
        (b"\x82\x01.", "instruction"),
        (b"\x97.", "instruction"),
        (b"P1\n.", "instruction b'P'"),
        (b"NQ.", "outside"),
        (b"K\x01K\x02\x93.", "other than strings"),
        (b"N)R.", "calls NoneType"),
        (b"ccollections\nOrderedDict\nNR.", "calls Call"),
        (b"ccollections\nOrderedDict\n)}U\x01aK\x01s\x92.", "with keywords"),
        (b"ccollections\nOrderedDict\n}b.", "sets the state of a Call"),
        (b"]}b.", "sets the state of a list"),
        (b"}K\x01a.", "appends to a dict"),
        (b"]K\x01K\x01s.", "sets items of a list"),
        (b"](K\x01\x90.", "adds to a list"),
        (b"}(K\x01u.", "damaged"),
        (b"}]K\x01s.", "damaged"),
        (b"h\x07.", "damaged"),
        (b"q\x00.", "damaged"),
        (b"t.", "damaged"),
        (b"\x86.", "more from its stack"),
        (b".", "damaged"),
        (b"", "ends in the middle"),
        (b"X\xff\xff\xff\xffabc", "ends in the middle"),
        (b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", "ends in the middle"),
        (b"X\x01\x00\x00\x00\xff.", "damaged"),
        (b"cnever ends", "damaged"),
        (b"c_codecs\nencode\n(U\x01aU\x03rottR.", "encodes text as 'rot'"),
        (b"cbuiltins\nset\n(U\x03abctR.", "no list"),
        (b"cbuiltins\nbytearray\n(K\x09tR.", "damaged"),
        (b"ccollections\nOrderedDict\n(](K\x01K\x02etR.", "other than pairs"),
    ],
)
def test_what_is_refused(body, text):
    with pytest.raises(pickle.UnpicklingError, match=text):
        Machine(b"\x80\x02" + body).load()


NEST = b")" + b"\x85" * 2_000_000
TWICE = b")" + b"q\x00h\x00\x86" * 90
KEYED = {
    "dict": b"}%sNs.",
    "dict of many": b"}(%sNu.",
    "set": b"\x8f(%s\x90.",
    "frozenset": b"(%s\x91.",
    "ordered": b"ccollections\nOrderedDict\n(](]%sNetaetR.",
    "made set": b"cbuiltins\nset\n(](%setR.",
}


@pytest.mark.parametrize("kind", KEYED)
@pytest.mark.parametrize("key", [NEST, TWICE], ids=["deep", "many times"])
def test_keys_that_cannot_be_hashed(kind, key):
    """Python's hash of a tuple within tuples runs through all of them, without a check of depth."""
    body = KEYED[kind].replace(b"%s", key)
    if kind == "ordered":
        body = body.replace(b"](]", b"](").replace(b"Netae", b"N\x86e")
    with pytest.raises(pickle.UnpicklingError, match="deep|values"):
        Machine(b"\x80\x02" + body).load()


def test_tuples_nest_as_deep_as_data_do():
    x = {("a", (1, (2.5, "b"))): 1}
    for _ in range(unpickle.MAX_DEPTH - 1):
        x = (x,)
    assert Machine(pickle.dumps(x)).load() == x
    key = tuple(range(unpickle.MAX_KEY - 1))
    assert Machine(pickle.dumps({(key,): 1})).load() == {(key,): 1}
    with pytest.raises(pickle.UnpicklingError, match="key of more than"):
        Machine(pickle.dumps({(key, key): 1})).load()


@pytest.mark.parametrize("body", [b"]", b"}K\x00"], ids=["lists", "dicts"])
def test_deep_data_are_harmless(body):
    """Python itself minds the depth of what it compares and prints, and frees without recursion."""
    end = b"a" if body == b"]" else b"s"
    got = Machine(b"\x80\x02" + body * 500_000 + b"N" + end * 500_000 + b".").load()
    with pytest.raises(RecursionError):
        repr(got)
    with pytest.raises(RecursionError):
        bool(got == Machine(b"\x80\x02" + body * 400_000 + b"N" + end * 400_000 + b".").load())
    del got


@pytest.mark.parametrize(
    "call",
    [b"cbuiltins\nbytearray\n", b"cbuiltins\nset\n", b"c_codecs\nencode\n"],
    ids=["bytearray", "set", "encode"],
)
def test_small_pickles_do_not_fill_the_memory(call):
    held = {
        b"b": b"B\x00\x00\x10\x00" + bytes(1 << 20) + b"\x85",
        b"s": b"](" + b"N" * (1 << 20) + b"e\x85",
        b"e": b"X\x00\x00\x10\x00" + b"x" * (1 << 20) + b"U\x06latin1\x86",
    }[call.strip()[-9:-8] if call.endswith(b"bytearray\n") else call.split(b"\n")[1][:1]]
    body = b"\x80\x02" + call + b"q\x00" + held + b"q\x01](" + b"h\x00h\x01R" * 1000 + b"e."
    with pytest.raises(pickle.UnpicklingError, match="over and over"):
        Machine(body).load()


def test_state_of_ordered_dicts_is_kept_only_where_it_is_harmless():
    x = OrderedDict(a=1)
    x._metadata, x.other = {"v": 1}, 2
    got = Machine(pickle.dumps(x, 2)).load()
    assert got == x and got._metadata == {"v": 1} and not hasattr(got, "other")


def test_table_and_persistent_ids():
    table = {("m", "f"): Call(lambda a, b: a + b), ("m", "value"): "seven"}
    body = b"\x80\x02(cm\nf\n(K\x01K\x02tRcm\nvalue\nK\x05Qt."
    assert Machine(body, table=table, persistent=lambda pid: pid * 10).load() == (3, "seven", 50)


@given(st.binary(max_size=60))
def test_noise_gives_data_or_a_clean_refusal(noise):
    try:
        Machine(b"\x80\x02" + noise + b".").load()
    except pickle.UnpicklingError:
        pass


@given(plain, st.data())
def test_damage_gives_data_or_a_clean_refusal(x, data):
    body = bytearray(pickle.dumps(x, 4))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        Machine(bytes(body)).load()
    except pickle.UnpicklingError:
        pass


def test_every_instruction_is_one_that_pickle_knows():
    known = {ord(op.code) for op in pickletools.opcodes}
    assert set(unpickle._STEPS) <= known
    assert not {ord(c) for c in "io\x82\x83\x84PIFLSV"} & set(unpickle._STEPS)
