"""Containers of modules and of parameters."""

import collections
import copy
import pickle

import pytest
from lazy import torch
from nn import examples

import tinyfin as tf

nn = tf.nn


def layers(n=3):
    return [nn.Linear(1, 1, bias=False) for _ in range(n)]


def names(container):
    return list(container._modules)


def test_sequential_runs_in_order():
    class Add(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def forward(self, x):
            return x * 10 + self.n

    assert nn.Sequential(Add(1), Add(2), Add(3))(0) == 123
    assert nn.Sequential()(5) == 5
    named = nn.Sequential(collections.OrderedDict([("one", Add(1)), ("two", Add(2))]))
    assert named(0) == 12 and names(named) == ["one", "two"] and named.two is named[1]


def test_sequential_indexing():
    a, b, c = layers()
    s = nn.Sequential(a, b, c)
    assert len(s) == 3 and list(s) == [a, b, c] and s[0] is a and s[-1] is c
    part = s[1:]
    assert isinstance(part, nn.Sequential) and list(part) == [b, c] and names(part) == ["1", "2"]
    s[-1] = a
    assert list(s) == [a, b, a]
    del s[0]
    assert list(s) == [b, a] and names(s) == ["0", "1"]
    s = nn.Sequential(a, b, c)
    del s[:2]
    assert list(s) == [c] and names(s) == ["0"]


def test_sequential_growing():
    a, b, c = layers()
    s = nn.Sequential(a)
    assert s.append(b) is s and s.extend([c]) is s and list(s) == [a, b, c]
    s.insert(1, c)
    assert list(s) == [a, c, b, c] and names(s) == ["0", "1", "2", "3"]
    assert s.pop(-1) is c and s.pop(0) is a and list(s) == [c, b]
    assert list(s + nn.Sequential(a)) == [c, b, a] and list(s) == [c, b]
    s += nn.Sequential(a)
    assert list(s) == [c, b, a]
    assert list(nn.Sequential(a) * 3) == [a] * 3 and list(2 * nn.Sequential(a)) == [a] * 2
    s = nn.Sequential(a, b)
    s *= 2
    assert list(s) == [a, b, a, b]


@pytest.mark.parametrize("kind", [nn.Sequential, lambda *m: nn.ModuleList(m)])
def test_bad_indices(kind):
    s = kind(*layers())
    for index in (3, -4):
        with pytest.raises(IndexError, match="out of range for 3 modules"):
            s[index]
    with pytest.raises(TypeError, match="expected an int or a slice"):
        s["a"]
    with pytest.raises(IndexError, match="insert"):
        s.insert(9, nn.ReLU())
    with pytest.raises(TypeError, match="expected a Module"):
        s.insert(0, 3)
    with pytest.raises(TypeError, match="expected a Module"):
        s.append(3)
    with pytest.raises(TypeError, match="to iterate over"):
        s.extend(3)


def test_bad_arithmetic():
    s = nn.Sequential(nn.ReLU())
    with pytest.raises(TypeError):
        s + 3
    with pytest.raises(TypeError, match="multiply by a str"):
        s * "x"
    with pytest.raises(ValueError, match="multiply by 0"):
        s * 0


def test_module_list():
    a, b, c = layers()
    m = nn.ModuleList([a, b])
    m.append(c).extend([a])
    assert list(m) == [a, b, c, a] and m[-2] is c and len(m) == 4
    assert (
        isinstance(m[1:3], nn.ModuleList) and list(m[1:3]) == [b, c] and names(m[1:3]) == ["0", "1"]
    )
    m[0] = c
    del m[1]
    assert list(m) == [c, c, a] and names(m) == ["0", "1", "2"]
    m.insert(0, b)
    assert list(m) == [b, c, c, a] and m.pop(1) is c
    m += [b]
    assert list(m + [a]) == [b, c, a, b, a]
    with pytest.raises(NotImplementedError):
        m(1)


def test_module_list_repr_counts_repeats():
    for m in (tf, torch):
        make = m.nn.ModuleList([m.nn.ReLU(), m.nn.ReLU(), m.nn.Linear(1, 2), m.nn.ReLU()])
        assert repr(make).splitlines()[1:-1] == [
            "  (0-1): 2 x ReLU()",
            "  (2): Linear(in_features=1, out_features=2, bias=True)",
            "  (3): ReLU()",
        ]
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    a, b, c = layers()
    m = nn.ModuleDict({"a": a})
    m["b"] = b
    m.update([("c", c)])
    m.update(nn.ModuleDict({"a": c}))
    assert list(m) == ["a", "b", "c"] and m["a"] is c and "b" in m and len(m) == 3
    assert list(m.keys()) == ["a", "b", "c"] and list(m.values()) == [c, b, c]
    assert dict(m.items())["b"] is b and m.b is b
    assert m.pop("b") is b and "b" not in m
    del m["c"]
    m.clear()
    assert len(m) == 0
    with pytest.raises(TypeError, match="expected a mapping or pairs"):
        m.update(3)
    with pytest.raises(ValueError, match="element 0 has 1 parts"):
        m.update([("a",)])
    with pytest.raises(KeyError):
        m["zzz"]


def test_parameter_list():
    p = nn.Parameter(tf.ones(1))
    m = nn.ParameterList([p, tf.zeros(2)])
    m.append(5)
    assert len(m) == 3 and m[0] is p and isinstance(m[1], nn.Parameter) and m[-1] == 5
    assert list(m.state_dict()) == ["0", "1"]
    m[0] = tf.ones(3)
    m += [p]
    assert m.extend([p]) is m and len(m) == 5 and m[3] is p
    assert len(m[1:3]) == 2 and isinstance(m[1:3], nn.ParameterList)
    with pytest.raises(IndexError, match="out of range for 5 values"):
        m[5]
    with pytest.raises(TypeError, match="to iterate over"):
        m.extend(3)
    assert "(2): object of type int" in repr(m) and "of size 3]" in repr(m)


def test_parameter_dict():
    p = nn.Parameter(tf.ones(1))
    m = nn.ParameterDict({"b": p, "a": tf.zeros(2)})
    assert list(m) == ["a", "b"]
    m["c"] = 5
    assert m["b"] is p and isinstance(m["a"], nn.Parameter) and m["c"] == 5
    assert list(m.state_dict()) == ["a", "b"]
    assert list(m.keys()) == ["a", "b", "c"] and list(reversed(m)) == ["c", "b", "a"]
    assert dict(m.items())["c"] == 5 and list(m.values())[1] is p
    assert m.get("z") is None and m.get("c") == 5
    assert m.setdefault("d", tf.ones(1)) is m["d"] and m.setdefault("c", 9) == 5
    assert list(m | {"e": 1}) == ["a", "b", "c", "d", "e"] and "e" not in m
    m |= {"f": 2}
    assert m.pop("f") == 2 and "f" not in m
    assert m.popitem()[0] == "d"
    twin = m.copy()
    assert twin["b"] is p and list(twin) == list(m)
    assert list(m.fromkeys(["x", "y"], 1).items()) == [("x", 1), ("y", 1)]
    del m["c"]
    with pytest.raises(KeyError):
        m["c"]
    m.clear()
    assert len(m) == 0 and list(m.parameters()) == []
    with pytest.raises(TypeError, match="expected a str"):
        m[3] = p


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.ParameterDict(
            {
                "b": m.Parameter(tf.ones(1) if m is nn else torch.ones(1)),
                "a": m.Parameter(tf.ones(2) if m is nn else torch.ones(2)),
            }
        ),
        lambda m: m.ModuleDict({"b": m.Linear(1, 1), "a": m.Linear(2, 1)}),
        lambda m: m.ParameterList([m.Parameter(tf.ones(1) if m is nn else torch.ones(1))]),
    ],
)
def test_names_are_those_of_pytorch(make):
    assert list(make(nn).state_dict()) == list(make(torch.nn).state_dict())


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(twin_of):
    p = nn.Parameter(tf.ones(1))
    net = nn.ModuleDict(
        {
            "s": nn.Sequential(nn.Linear(1, 1)),
            "l": nn.ModuleList([nn.ReLU()]),
            "p": nn.ParameterList([p, p]),
            "d": nn.ParameterDict({"a": p, "n": 3}),
        }
    )
    twin = twin_of(net)
    assert list(twin.state_dict()) == list(net.state_dict())
    assert twin["p"][0] is twin["p"][1] is twin["d"]["a"] is not p and twin["d"]["n"] == 3


def test_examples():
    examples.run("tinyfin.nn.container")


def test_linear_layers_before_relu(monkeypatch):
    """One operation without gradients, with the same bits; two where a hook or a subclass looks on."""
    from tinyfin.ops.row import F

    class Own(nn.Linear):
        pass

    calls = []
    fused = F.linear_relu
    monkeypatch.setattr(F, "linear_relu", lambda *a: calls.append(1) or fused(*a), raising=False)
    for first in (nn.Linear(5, 70), Own(5, 70)):
        s = nn.Sequential(
            first, nn.ReLU(), nn.Linear(70, 3), nn.Linear(3, 3), nn.ReLU(inplace=True), nn.ReLU()
        )
        for x in (tf.randn(4, 5), tf.randn(5), tf.randn(2, 3, 5)):
            want = s(x).detach()
            with tf.no_grad():
                calls.clear()
                assert tf.equal(s(x), want) and len(calls) == (2 if type(first) is nn.Linear else 1)
                handle = s[0].register_forward_hook(lambda m, a, y: y * 0)
                before = s[1].register_forward_pre_hook(lambda m, a: None)
                calls.clear()
                assert not tf.equal(s(x), want) and len(calls) == 1
                handle.remove()
                before.remove()
    s = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with tf.no_grad():
        assert s.half()(tf.ones(1, 2).half()).dtype is tf.float16
        with pytest.raises(RuntimeError, match="linear: input"):
            nn.Sequential(nn.Linear(2, 2), nn.ReLU())(tf.ones(3, 3))
        assert nn.Sequential(nn.Linear(2, 2))(tf.ones(2)).shape == (2,)
