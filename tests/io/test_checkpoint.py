"""Checkpoints: a run goes on as if it had never stopped; a damaged file is a clear error; a kill
leaves the old or the new.
"""

import doctest
import enum
import json
import os
import signal
import subprocess
import sys
import time
from collections import OrderedDict, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinyfin
from tinyfin import nn, optim
from tinyfin.data import DataLoader, TensorDataset
from tinyfin.io import CheckpointError, checkpoint, load, load_checkpoint, save, save_checkpoint
from tinyfin.io.checkpoint import _decode, _encode
from tinyfin.io.safetensors import Writer
from tinyfin.nn import functional

Pair = namedtuple("Pair", "a b")
Level = enum.IntEnum("Level", "low high")


class Run:
    """A small training run with every kind of state."""

    def __init__(self, seed=0):
        tinyfin.manual_seed(seed)
        self.generator = tinyfin.Generator().manual_seed(seed)
        x = tinyfin.rand(40, 3, generator=tinyfin.Generator().manual_seed(0))
        self.loader = DataLoader(
            TensorDataset(x, x.sum(1, keepdim=True)), 8, shuffle=True, generator=self.generator
        )
        self.model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = optim.lr_scheduler.StepLR(self.optimizer, 3, 0.5)

    def parts(self):
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "generator": {"global": True, "order": self.generator},
            "loader": self.loader,
        }

    def batches(self):
        while True:
            yield from self.loader

    def train(self, steps, batches):
        losses = []
        for _, (x, y) in zip(range(steps), batches):
            self.optimizer.zero_grad()
            loss = functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            losses.append(loss.item())
        return losses


def test_examples():
    assert doctest.testmod(checkpoint).failed == 0


@pytest.mark.parametrize("steps", [0, 3, 5, 7])
def test_a_run_goes_on_as_if_it_had_never_stopped(steps, tmp_path):
    whole = Run()
    losses = whole.train(13, whole.batches())
    first = Run()
    assert first.train(steps, first.batches()) == losses[:steps]
    save_checkpoint(tmp_path / "run.ckpt", **first.parts(), user={"step": steps})
    second = Run(seed=9)
    assert load_checkpoint(tmp_path / "run.ckpt", **second.parts()) == {"step": steps}
    batches = second.batches()
    assert second.train(13 - steps, batches) == losses[steps:]


def test_parts_can_be_left_out(tmp_path):
    run, other = Run(), Run(1)
    save_checkpoint(tmp_path / "a", model=run.model, user=[1, "x", None])
    before = other.optimizer.state_dict()
    assert load_checkpoint(tmp_path / "a", model=other.model) == [1, "x", None]
    assert load_checkpoint(tmp_path / "a") == [1, "x", None]
    assert other.model[0].weight.tolist() == run.model[0].weight.tolist()
    assert other.optimizer.state_dict().keys() == before.keys()
    with pytest.raises(CheckpointError, match="holds no optimizer: it was saved with model"):
        load_checkpoint(tmp_path / "a", model=other.model, optimizer=other.optimizer)


def test_several_objects_by_name(tmp_path):
    a, b = nn.Linear(2, 2), nn.Linear(3, 1)
    save_checkpoint(tmp_path / "x", model={"a": a, "b": b})
    c, d = nn.Linear(2, 2), nn.Linear(3, 1)
    load_checkpoint(tmp_path / "x", model={"b": d, "a": c})
    assert c.weight.tolist() == a.weight.tolist() and d.bias.tolist() == b.bias.tolist()
    with pytest.raises(CheckpointError, match=r"saved as \['a', 'b'\], asked for is \['a'\]"):
        load_checkpoint(tmp_path / "x", model={"a": c})
    with pytest.raises(CheckpointError, match="asked for is one object"):
        load_checkpoint(tmp_path / "x", model=c)


def test_nothing_is_touched_before_all_is_known_to_be_there(tmp_path):
    run, other = Run(), Run(1)
    save_checkpoint(tmp_path / "a", model=run.model)
    before = other.model[0].weight.tolist()
    with pytest.raises(CheckpointError):
        load_checkpoint(tmp_path / "a", model=other.model, loader=other.loader)
    assert other.model[0].weight.tolist() == before


def test_it_is_a_safetensors_file(tmp_path):
    run = Run()
    save_checkpoint(tmp_path / "a", model=run.model)
    assert load(tmp_path / "a")["model.0.weight"].tolist() == run.model[0].weight.tolist()


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(
            st.text(max_size=5) | st.integers() | st.sampled_from(["$tuple", "$dict"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(plain)
def test_any_state_survives_json(x):
    tensors = {}
    text = json.dumps(_encode(x, "state", tensors), allow_nan=False)
    assert _decode(json.loads(text), tensors.__getitem__) == x


def test_state_with_tensors_and_odd_numbers():
    x = {"t": [tinyfin.ones(2)], 3: float("inf"), "n": float("nan"), "d": tinyfin.float16}
    tensors = {}
    got = _decode(json.loads(json.dumps(_encode(x, "s", tensors))), tensors.__getitem__)
    assert list(tensors) == ["s.t.0"] and got["t"][0].tolist() == [1, 1]
    assert got[3] == float("inf") and got["n"] != got["n"] and got["d"] is tinyfin.float16


def test_tensors_whose_paths_look_alike_are_kept_apart(tmp_path):
    class Holder:
        def state_dict(self):
            return {"a.b": tinyfin.zeros(1), "a": {"b": tinyfin.ones(1)}}

        def load_state_dict(self, state):
            self.state = state

    h = Holder()
    save_checkpoint(tmp_path / "x", model=h)
    load_checkpoint(tmp_path / "x", model=h)
    assert h.state["a.b"].tolist() == [0] and h.state["a"]["b"].tolist() == [1]


def same(a, b):
    """Equality that tells 1 from True and 1.0, and lets nan be nan."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(
            same(k, n) and same(v, w) for (k, v), (n, w) in zip(a.items(), b.items())
        )
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b if isinstance(a, int) else repr(a) == repr(b)


@pytest.mark.parametrize(
    "user",
    [
        {1: 2},
        {True: "a", None: (1, 2), (1, "b"): [b"\x00\xff"], 2.5: {}},
        {"x": [float("nan"), float("-inf"), -0.0, 1e-320]},
        {"$tuple": [1], "$int": "12"},
        (1, (), [(2,)]),
        [2**64, -(2**64), 10**6000, 2**63],
        ["\ud800", "hé\u2028", "", "\x00"],
        tinyfin.float16,
    ],
)
def test_user_data_come_back_as_they_were(user, tmp_path):
    save_checkpoint(tmp_path / "a", user=user)
    assert same(load_checkpoint(tmp_path / "a"), user)


@given(plain)
def test_any_user_data_come_back_as_they_were(tmp_path_factory, x):
    path = tmp_path_factory.getbasetemp() / "user.ckpt"
    save_checkpoint(path, user=x)
    assert same(load_checkpoint(path), x)


def test_user_tensors(tmp_path):
    best = tinyfin.tensor([1.5, 2.0])
    save_checkpoint(tmp_path / "a", user={"best": best, 3: [best.int()]})
    got = load_checkpoint(tmp_path / "a")
    assert got["best"].tolist() == [1.5, 2.0] and got[3][0].dtype == tinyfin.int32


def values(*models):
    return [p.tolist() for m in models for p in m.state_dict().values()]


class Fragile:
    """Takes a state half, then fails."""

    def __init__(self):
        self.a = self.b = 0
        self.t = tinyfin.zeros(1)

    def state_dict(self):
        return {"a": self.a, "b": self.b, "t": self.t}

    def load_state_dict(self, state):
        self.a = state["a"]
        self.t.copy_(state["t"])
        if state["b"]:
            raise ZeroDivisionError
        self.b = state["b"]


@pytest.mark.parametrize("part", ["model", "optimizer", "scheduler", "loader"])
def test_all_parts_are_loaded_or_none(part, tmp_path):
    """One part does not fit, whichever it is: the others have not changed either."""

    def with_another(run, extra):
        return {**run.parts(), part: {"good": run.parts()[part], "bad": extra}}

    run, other, saved, fresh = Run(), Run(1), Fragile(), Fragile()
    run.train(3, run.batches())
    saved.a, saved.b, saved.t = 7, 1, tinyfin.ones(1)
    save_checkpoint(tmp_path / "a", **with_another(run, saved))
    before = values(other.model), other.scheduler.state_dict(), other.generator.get_state().tolist()
    rate = other.optimizer.param_groups[0]["lr"]
    with pytest.raises(ZeroDivisionError):
        load_checkpoint(tmp_path / "a", **with_another(other, fresh))
    after = values(other.model), other.scheduler.state_dict(), other.generator.get_state().tolist()
    assert after == before and not other.optimizer.state
    assert other.optimizer.param_groups[0]["lr"] == rate
    assert (fresh.a, fresh.b, fresh.t.item()) == (0, 0, 0.0)


def test_what_cannot_be_loaded_into(tmp_path):
    run, other = Run(), Run(1)
    save_checkpoint(tmp_path / "a", **run.parts())
    before = values(other.model)
    with pytest.raises(TypeError, match=r"load_checkpoint: int has no load_state_dict\(\)"):
        load_checkpoint(tmp_path / "a", model=other.model, scheduler=3)
    assert values(other.model) == before


def test_state_that_does_not_fit_changes_nothing(tmp_path):
    model, wide = nn.Linear(2, 1), nn.Linear(2, 1, bias=False)
    first, second = optim.SGD(model.parameters(), 0.1), optim.SGD(wide.parameters(), 0.1)
    save_checkpoint(tmp_path / "a", model=model, optimizer=first)
    fresh = nn.Linear(2, 1)
    before = values(fresh)
    with pytest.raises(ValueError, match="group 0 has 2 parameters"):
        load_checkpoint(tmp_path / "a", model=fresh, optimizer=second)
    assert values(fresh) == before
    twin = optim.SGD(model.parameters(), 9.0)
    with pytest.raises(RuntimeError, match="size mismatch"):
        load_checkpoint(tmp_path / "a", model=nn.Linear(3, 1), optimizer=twin)
    assert twin.param_groups[0]["lr"] == 9.0


@pytest.mark.parametrize(
    "state",
    [
        '{"user":{"$dtype":"save"}}',
        '{"user":{"$dtype":3}}',
        '{"user":{"$who":1}}',
        '{"user":{"$float":"much"}}',
        '{"user":{"$dict":[1]}}',
        '{"user":{"$dict":[[[],1]]}}',
        '{"user":{"$tensor":"none"}}',
        '{"user":1,"model":3}',
        '{"user":1,"model":{"each":3}}',
        '{"user":1,"model":{"one":{"$bytes":"x"}}}',
        '{"user":' + "[" * 100_000 + "]" * 100_000 + "}",
        "[]",
    ],
)
def test_hostile_states_are_refused(state, tmp_path):
    """Their checksum is right: whoever wrote the file meant it."""
    metadata = {"format": "tinyfin-checkpoint", "version": "1", "sha256": "0" * 64}
    writer = Writer({}, {**metadata, "state": state})
    with open(tmp_path / "a", "wb") as f:
        checkpoint._write(writer, f)
    with pytest.raises(CheckpointError, match="was not written by save_checkpoint"):
        load_checkpoint(tmp_path / "a", **({"model": nn.Linear(1, 1)} if "model" in state else {}))


def test_what_cannot_be_saved(tmp_path):
    class Odd:
        def state_dict(self):
            return {"rule": [lambda: None]}

    with pytest.raises(TypeError, match=r"optimizer.rule.0 is a function"):
        save_checkpoint(tmp_path / "a", optimizer=Odd())
    with pytest.raises(TypeError, match="has no state_dict"):
        save_checkpoint(tmp_path / "a", model=3)
    itself = []
    itself.append(itself)
    for user, text in (
        (object(), "user is a object"),
        ({1, 2}, "user is a set"),
        ([{"a": OrderedDict()}], r"user\.0\.a is a OrderedDict"),
        ({"p": Pair(1, 2)}, r"user\.p is a Pair"),
        ({(1, Level.high): 2}, r"a key of user\.1 is a Level"),
        (nn.Parameter(tinyfin.ones(1)), "user is a Parameter"),
        (itself, "user holds itself"),
    ):
        with pytest.raises(TypeError, match=f"save_checkpoint: {text}"):
            save_checkpoint(tmp_path / "a", user=user)
    assert os.listdir(tmp_path) == []


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "a"
    save_checkpoint(
        path, model=nn.Linear(2, 2), user={"note": 'a digest: "sha256":"' + "1" * 64 + '"'}
    )
    return path.read_bytes()


def test_every_flipped_bit_is_noticed(whole, tmp_path):
    path, model = tmp_path / "a", nn.Linear(2, 2)
    path.write_bytes(whole)
    load_checkpoint(path, model=model)
    for i in range(len(whole)):
        bad = bytearray(whole)
        bad[i] ^= 1 << i % 8
        path.write_bytes(bad)
        with pytest.raises(CheckpointError, match=r"\. (Use|Read|It)|copy"):
            load_checkpoint(path, model=model)


def test_every_cut_is_noticed(whole, tmp_path):
    path = tmp_path / "a"
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        with pytest.raises(CheckpointError):
            load_checkpoint(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError):
        load_checkpoint(path)


def rewritten(whole, change):
    n = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + n])
    change(header["__metadata__"])
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + whole[8 + n :]


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda m: m.update(version="2"), "checkpoint format '2'; this tinyfin .* reads up to 1"),
        (lambda m: m.update(version="new"), "checkpoint format 'new'"),
        (lambda m: m.pop("version"), "checkpoint format ''"),
        (lambda m: m.update(format="pt"), "plain safetensors file"),
        (lambda m: m.update(sha256="0" * 64), "checksum"),
        (lambda m: m.pop("sha256"), "checksum"),
    ],
)
def test_other_contents_are_named(whole, change, text, tmp_path):
    (tmp_path / "a").write_bytes(rewritten(whole, change))
    with pytest.raises(CheckpointError, match=text):
        load_checkpoint(tmp_path / "a")


def test_other_files_are_named(tmp_path):
    path = tmp_path / "a"
    for content, text in (
        (b"", "is empty"),
        (b"PK\x03\x04....", "PyTorch or NumPy file"),
        (b"plain text, nothing else", "no checkpoint"),
    ):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=text):
            load_checkpoint(path)
    save({"a": tinyfin.ones(1)}, tmp_path / "b.safetensors")
    with pytest.raises(CheckpointError, match=r"Read its tensors with tinyfin.load"):
        load_checkpoint(tmp_path / "b.safetensors")
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "none")


WRITER = """
import sys
import tinyfin
from tinyfin.io import save_checkpoint

model, n = tinyfin.nn.Linear(300, 300), 0
while True:
    n += 1
    model.weight.data.fill_(n)
    save_checkpoint(sys.argv[1], model=model, user=n)
    print(n, flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path):
    path = tmp_path / "run.ckpt"
    model = nn.Linear(300, 300)
    for k in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        done = int(process.stdout.readline())
        time.sleep(0.004 * k)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = max([done, *map(int, process.stdout.read().split())])
        process.stdout.close()
        n = load_checkpoint(path, model=model)
        assert n in (done, done + 1) and set(model.weight.detach().reshape(-1).tolist()) == {n}
