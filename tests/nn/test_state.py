"""state_dict and load_state_dict."""

import copy

import pytest
from nn import examples

import tinyfin as tf

nn = tf.nn


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def test_values_share_memory():
    m = net()
    state = m.state_dict()
    assert not state["0.weight"].requires_grad
    with tf.no_grad():
        state["0.weight"].fill_(4.0)
    assert m[0].weight.tolist() == [[4.0, 4.0]] * 3
    assert m.state_dict(keep_vars=True)["0.weight"] is m[0].weight


def test_prefix_and_destination():
    found = {"old": 1}
    state = nn.Linear(1, 1).state_dict(destination=found, prefix="p.")
    assert state is found and list(state) == ["old", "p.weight", "p.bias"]


def test_round_trip():
    a, b = net(), net()
    a[1].running_mean.fill_(3.0)
    keys = b.load_state_dict(a.state_dict())
    assert keys.missing_keys == [] and keys.unexpected_keys == []
    assert tuple(keys) == ([], [])
    assert repr(keys) == "<all keys matched>"
    assert b[0].weight.tolist() == a[0].weight.tolist() and b[1].running_mean.tolist() == [3.0] * 3
    a[0].weight.data.fill_(9.0)
    assert b[0].weight.tolist() != a[0].weight.tolist()


def test_parameters_stay_themselves():
    a, b = net(), net()
    before = list(b.parameters())
    b.load_state_dict(a.state_dict())
    assert all(x is y and y.requires_grad for x, y in zip(before, b.parameters(), strict=True))


def test_values_are_cast():
    a, b = net().double(), net()
    b.load_state_dict(a.state_dict())
    assert b[0].weight.dtype == tf.float32


def test_strict():
    m = net()
    state = m.state_dict()
    del state["0.bias"]
    state["0.extra"] = state["other.x"] = tf.ones(1)
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict(state)
    text = str(error.value)
    assert "load_state_dict of Sequential" in text
    assert "Missing key(s) in state_dict: '0.bias'" in text
    assert (
        "Unexpected key(s) in state_dict:" in text and "'0.extra'" in text and "'other.x'" in text
    )
    keys = m.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["0.bias"] and sorted(keys.unexpected_keys) == [
        "0.extra",
        "other.x",
    ]
    assert "0.bias" in repr(keys)


def test_all_misfits_are_listed():
    m = net()
    state = m.state_dict()
    state["0.weight"], state["0.bias"], state["1.weight"] = tf.ones(3, 3), 5, tf.ones(4)
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict(state, strict=False)
    text = str(error.value)
    assert "size mismatch for 0.weight: shape (3, 3) was given, the module has (3, 2)" in text
    assert "'0.bias' is a int, expected a Tensor" in text and "1.weight" in text


def test_nothing_changes_where_something_does_not_fit():
    m = net()
    before = [t.tolist() for t in m.state_dict().values()]
    good = {k: v + 1 for k, v in m.state_dict().items()}
    bad = {
        "shape": {**good, "1.running_var": tf.ones(2)},
        "kind": {**good, "1.running_var": None},
        "missing": {k: v for k, v in good.items() if k != "1.running_var"},
        "unexpected": {**good, "2.weight": tf.ones(1)},
    }
    for state in bad.values():
        for assign in (False, True):
            with pytest.raises(RuntimeError):
                m.load_state_dict(state, assign=assign)
            assert [t.tolist() for t in m.state_dict().values()] == before
    with pytest.raises(RuntimeError, match="'0.bias' cannot be assigned"):
        m.load_state_dict({**good, "0.bias": tf.ones(3, dtype=tf.int64)}, assign=True)
    assert [t.tolist() for t in m.state_dict().values()] == before
    m.load_state_dict(good)
    assert m[1].running_var.tolist() == [2.0] * 3


def test_nothing_changes_where_a_hook_or_extra_state_fails():
    class Picky(nn.Linear):
        extra = 1

        def get_extra_state(self):
            return self.extra

        def set_extra_state(self, state):
            if state < 0:
                raise ValueError("negative")
            self.extra = state

    m = nn.Sequential(Picky(1, 1), Picky(1, 1))
    before = [getattr(t, "tolist", lambda t=t: t)() for t in m.state_dict().values()]
    good = {k: v + 1 for k, v in m.state_dict().items()}
    with pytest.raises(ValueError, match="negative"):
        m.load_state_dict({**good, "1._extra_state": -1})
    assert [getattr(t, "tolist", lambda t=t: t)() for t in m.state_dict().values()] == before
    handle = m.register_load_state_dict_post_hook(lambda module, keys: 1)
    for assign in (False, True):
        with pytest.raises(RuntimeError, match="post-hook returned"):
            m.load_state_dict(good, assign=assign)
        assert [getattr(t, "tolist", lambda t=t: t)() for t in m.state_dict().values()] == before
    handle.remove()
    m.load_state_dict(good)
    assert m[0].extra == 2


def test_expanded_tensors_are_refused():
    m = nn.Module()
    m.a = nn.Parameter(tf.zeros(2))
    m.register_buffer("b", tf.zeros(1).expand(3))
    with pytest.raises(RuntimeError, match="'b' is an expanded tensor"):
        m.load_state_dict({"a": tf.ones(2), "b": tf.ones(3)})
    assert m.a.tolist() == [0.0, 0.0]


def test_a_module_may_load_by_itself():
    m = nn.Linear(1, 1, bias=False)
    m._load_from_state_dict({"p.weight": tf.tensor([[3.0]])}, "p.", {}, True, [], [], [])
    assert m.weight.item() == 3.0


def test_what_is_no_mapping():
    with pytest.raises(TypeError, match="state_dict is a list"):
        net().load_state_dict([])


def test_the_given_dictionary_is_not_changed():
    m = net()
    state = m.state_dict()
    before = list(state)
    del state["1.num_batches_tracked"]
    net().load_state_dict(state)
    assert list(state) == before[:-1]


def test_assign():
    m = nn.Linear(2, 2)
    m.weight.requires_grad_(False)
    w, b = tf.ones(2, 2, dtype=tf.float64), nn.Parameter(tf.zeros(2))
    m.load_state_dict({"weight": w, "bias": b}, assign=True)
    assert isinstance(m.weight, nn.Parameter) and m.weight.dtype == tf.float64
    assert not m.weight.requires_grad and m.bias is b
    w.fill_(7.0)
    assert m.weight.tolist() == [[7.0, 7.0]] * 2
    norm = nn.BatchNorm1d(1)
    mean = tf.tensor([4.0])
    norm.load_state_dict({**norm.state_dict(), "running_mean": mean}, assign=True)
    assert norm.running_mean is mean


def test_transient_buffers_stay_out():
    m = nn.Module()
    m.register_buffer("a", tf.ones(1), persistent=False)
    m.register_buffer("b", tf.ones(1))
    assert list(m.state_dict()) == ["b"]
    m.register_buffer("a", tf.ones(1))
    assert list(m.state_dict()) == ["a", "b"]


def test_extra_state():
    class Counting(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    a, b = nn.Sequential(Counting()), nn.Sequential(Counting())
    a[0].count = 5
    state = a.state_dict()
    assert state == {"0._extra_state": {"count": 5}}
    b.load_state_dict(state)
    assert b[0].count == 5
    with pytest.raises(RuntimeError, match="_extra_state"):
        b.load_state_dict({})
    with pytest.raises(RuntimeError, match="Unexpected"):
        nn.Sequential(nn.Identity()).load_state_dict(state)
    for method in ("get_extra_state", "set_extra_state"):
        with pytest.raises(RuntimeError, match=method):
            getattr(nn.Module(), method)(*[None] * (method[0] == "s"))


def test_saving_hooks():
    m, seen = net(), []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: seen.append((prefix, keep)))
    with m[0].register_state_dict_post_hook(
        lambda mod, state, prefix, meta: state.update({prefix + "note": 1})
    ):
        assert m.state_dict()["0.note"] == 1
    assert seen == [("", False)] and "0.note" not in m.state_dict()
    m._register_state_dict_hook(lambda mod, state, prefix, meta: {"whole": 1})
    assert m.state_dict() == {"whole": 1}


def test_loading_hooks():
    m, seen = net(), []

    def rename(module, state, prefix, meta, strict, missing, unexpected, errors):
        seen.append(prefix)
        state[prefix + "weight"] = state.pop(prefix + "w")

    m[0].register_load_state_dict_pre_hook(rename)
    m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    state = m.state_dict()
    state["0.w"] = state.pop("0.weight")
    del state["0.bias"]
    m.load_state_dict(state)
    assert seen == ["0."]
    m.register_load_state_dict_post_hook(lambda module, keys: 1)
    state["0.w"] = tf.ones(3, 2)
    with pytest.raises(RuntimeError, match="post-hook returned a value"):
        m.load_state_dict(state)


def test_own_loading():
    class Renamed(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, *args):
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")
            super()._load_from_state_dict(state_dict, prefix, *args)

    m = nn.Sequential(Renamed(1, 1, bias=False))
    m.load_state_dict({"0.old": tf.tensor([[5.0]])})
    assert m[0].weight.item() == 5.0


def test_deep_trees():
    m = nn.Linear(1, 1)
    for _ in range(50):
        m = nn.Sequential(m)
    state = m.state_dict()
    assert list(state) == ["0." * 50 + "weight", "0." * 50 + "bias"]
    copy.deepcopy(m).load_state_dict(state)


def test_examples():
    examples.run("tinyfin.nn.state")
