"""Module: registration, attributes, walking, modes, casts, copies, repr."""

import copy
import pickle

import pytest
from lazy import torch
from nn import against, examples

import tinyfin as tf

nn = tf.nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Linear(3, 1)
        self.scale = nn.Parameter(tf.ones(1))
        self.register_buffer("count", tf.zeros(2))
        self.size = 7

    def forward(self, input):
        return self.second(tf.relu(self.first(input))) * self.scale


def zoo(m):
    """Modules of many kinds, made by tinyfin.nn or torch.nn."""
    return [
        m.Sequential(m.Linear(2, 3), m.BatchNorm1d(3), m.ReLU(), m.Linear(3, 1, bias=False)),
        m.Sequential(
            m.Conv2d(1, 2, 3), m.BatchNorm2d(2), m.MaxPool2d(2), m.Flatten(), m.Dropout(0.2)
        ),
        m.ModuleList([m.Conv1d(1, 2, 3), m.ConvTranspose2d(2, 4, 3, groups=2)]),
        m.ModuleDict({"a": m.Embedding(5, 2), "b": m.LayerNorm(3), "c": m.GroupNorm(2, 4)}),
        m.MultiheadAttention(4, 2, add_bias_kv=True),
        m.MultiheadAttention(4, 2, kdim=3, vdim=5),
        m.TransformerEncoderLayer(4, 2, 8),
        m.TransformerDecoderLayer(4, 2, 8),
        m.Transformer(4, 2, 1, 1, 8),
        m.RMSNorm(3),
        m.PReLU(2),
        m.Bilinear(2, 3, 4),
        m.InstanceNorm2d(3, affine=True, track_running_stats=True),
        m.BatchNorm3d(2, affine=False),
        m.BatchNorm1d(2, track_running_stats=False),
        m.Conv3d(1, 2, 2),
    ]


@pytest.mark.parametrize("number", range(len(zoo(nn))))
def test_names_and_shapes_are_those_of_pytorch(number):
    ours, theirs = zoo(nn)[number], zoo(torch.nn)[number]
    for kind in ("named_parameters", "named_buffers"):
        a = [(n, tuple(x.shape), x.requires_grad) for n, x in getattr(ours, kind)()]
        assert a == [(n, tuple(x.shape), x.requires_grad) for n, x in getattr(theirs, kind)()]
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    a, b = ours.state_dict(), theirs.state_dict()
    assert [(n, tuple(x.shape)) for n, x in a.items()] == [
        (n, tuple(x.shape)) for n, x in b.items()
    ]
    assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear")


def test_registration_by_assignment():
    net = Net()
    assert list(net._parameters) == ["scale"] and list(net._modules) == ["first", "second"]
    assert list(net._buffers) == ["count"] and net.size == 7
    assert [n for n, _ in net.named_parameters()] == [
        "scale",
        "first.weight",
        "first.bias",
        "second.weight",
        "second.bias",
    ]


def test_assignment_moves_between_kinds():
    net = Net()
    net.size = nn.Parameter(tf.ones(1))
    assert "size" in net._parameters and "size" not in vars(net)
    net.size = nn.Linear(1, 1)
    assert "size" in net._modules and "size" not in net._parameters
    net.count = nn.Parameter(tf.ones(1))
    assert "count" in net._parameters and "count" not in net._buffers


def test_assignment_of_none_keeps_the_name():
    net = Net()
    net.scale = net.count = net.first = None
    assert net.scale is None and net.count is None and net.first is None
    assert list(net._parameters) == ["scale"]
    assert [n for n, _ in net.named_children()] == ["second"]
    assert list(net.state_dict()) == ["second.weight", "second.bias"]


def test_buffers_take_tensors():
    net = Net()
    net.count = tf.ones(5)
    assert net._buffers["count"].tolist() == [1.0] * 5


@pytest.mark.parametrize(
    "name, value",
    [("scale", 3), ("count", 3), ("first", 3), ("scale", tf.ones(1)), ("first", tf.ones(1))],
)
def test_assignment_of_the_wrong_kind(name, value):
    with pytest.raises(TypeError, match=f"'{name}' of Net"):
        setattr(Net(), name, value)


def test_deletion():
    net = Net()
    del net.scale, net.count, net.first, net.size
    assert not net._parameters and not net._buffers and list(net._modules) == ["second"]
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'scale'"):
        _ = net.scale
    with pytest.raises(AttributeError):
        del net.scale


def test_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.part = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="did not call Module"):
        Early()

    class Bare(nn.Module):
        def __init__(self):
            pass

    with pytest.raises(AttributeError):
        _ = Bare().anything
    with pytest.raises(AttributeError, match="did not call Module"):
        Bare().register_buffer("b", tf.ones(1))


@pytest.mark.parametrize("method", ["register_parameter", "register_buffer", "add_module"])
@pytest.mark.parametrize(
    "name, error, text",
    [
        ("", KeyError, "not empty"),
        ("a.b", KeyError, "no dot"),
        ("size", KeyError, "already exists"),
        (3, TypeError, "expected a str"),
    ],
)
def test_bad_names(method, name, error, text):
    with pytest.raises(error, match=text):
        getattr(Net(), method)(name, None)


def test_bad_values():
    net = Net()
    with pytest.raises(TypeError, match="expected a tinyfin"):
        net.register_parameter("p", tf.ones(1))
    with pytest.raises(TypeError, match="expected a Tensor"):
        net.register_buffer("b", 3)
    with pytest.raises(TypeError, match="expected a Module"):
        net.add_module("m", 3)


def test_shared_parts_are_listed_once():
    net = Net()
    net.again, net.tied = net.first, net.scale
    assert len(list(net.parameters())) == 5
    assert len(list(net.named_parameters(remove_duplicate=False))) == 8
    assert len(list(net.modules())) == 3
    assert len(list(net.named_modules(remove_duplicate=False))) == 4
    assert len(list(net.state_dict())) == 9


def test_walking():
    net = nn.Sequential(Net(), nn.Sequential(Net()))
    assert [n for n, _ in net.named_modules(prefix="x")] == [
        "x",
        "x.0",
        "x.0.first",
        "x.0.second",
        "x.1",
        "x.1.0",
        "x.1.0.first",
        "x.1.0.second",
    ]
    assert [n for n, _ in net.named_children()] == ["0", "1"]
    assert [n for n, _ in net.named_buffers()] == ["0.count", "1.0.count"]
    assert list(net.parameters(recurse=False)) == []
    assert [n for n, _ in Net().named_parameters("p", recurse=False)] == ["p.scale"]
    assert len(list(net.buffers())) == 2


def test_reaching_by_path():
    net = nn.Sequential(Net())
    assert net.get_submodule("") is net and net.get_submodule("0.first") is net[0].first
    assert net.get_parameter("0.first.weight") is net[0].first.weight
    assert net.get_buffer("0.count") is net[0].count
    net.set_submodule("0.first", nn.Identity())
    assert isinstance(net[0].first, nn.Identity)
    for call, text in (
        (lambda: net.get_submodule("0.third"), "no attribute 'third'"),
        (lambda: net.get_submodule("0.size"), "no module 'size'"),
        (lambda: net.get_parameter("0.count"), "no parameter 'count'"),
        (lambda: net.get_buffer("0.scale"), "no buffer 'scale'"),
    ):
        with pytest.raises(AttributeError, match=text):
            call()
    with pytest.raises(ValueError, match="target is empty"):
        net.set_submodule("", net)


def test_apply_goes_from_the_leaves_up():
    seen = []
    net = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh()))
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["ReLU", "Tanh", "Sequential", "Sequential"]


def test_modes():
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert net.eval() is net and not any(m.training for m in net.modules())
    net.train()
    assert all(m.training for m in net.modules())
    with pytest.raises(ValueError, match="mode is 1"):
        net.train(1)


def test_freezing_and_zeroing():
    net = Net()
    net(tf.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all(p.grad.abs().sum().item() == 0.0 for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())


@pytest.mark.parametrize(
    "cast, dtype",
    [
        (lambda n: n.double(), "float64"),
        (lambda n: n.half(), "float16"),
        (lambda n: n.float(), "float32"),
        (lambda n: n.bfloat16(), "bfloat16"),
        (lambda n: n.to(tf.float64), "float64"),
        (lambda n: n.to("cpu", tf.float64), "float64"),
        (lambda n: n.to(dtype=tf.float16), "float16"),
        (lambda n: n.to(tf.ones(1, dtype=tf.float64)), "float64"),
        (lambda n: n.type(tf.float64), "float64"),
        (lambda n: n.to("cpu"), "float32"),
        (lambda n: n.cpu(), "float32"),
        (lambda n: n.to(device="cpu", non_blocking=True), "float32"),
    ],
)
def test_casts(cast, dtype):
    net = Net()
    parameters = list(net.parameters())
    assert cast(net) is net
    assert all(p.dtype == getattr(tf, dtype) for p in net.parameters())
    assert net.count.dtype == getattr(tf, dtype)
    assert all(
        a is b and a.is_leaf and a.requires_grad
        for a, b in zip(parameters, net.parameters(), strict=True)
    )


def test_casts_leave_integers_and_take_gradients_along():
    net = nn.BatchNorm1d(2)
    net(tf.tensor([[1.0, 2.0], [3.0, 5.0]])).sum().backward()
    net.double()
    assert net.num_batches_tracked.dtype == tf.int64 and net.weight.grad.dtype == tf.float64


def test_casts_to_what_is_no_floating_type():
    with pytest.raises(TypeError, match="expected a floating dtype"):
        Net().to(tf.int64)
    with pytest.raises(TypeError, match="unexpected argument 'where'"):
        Net().to(where="cpu")


def test_an_optimizer_follows_casts():
    net = nn.Linear(1, 1, bias=False)
    opt = tf.optim.SGD(net.parameters(), lr=1.0)
    net.double()
    net.weight.data.fill_(1.0)
    net(tf.ones(1, 1, dtype=tf.float64)).sum().backward()
    opt.step()
    assert net.weight.item() == 0.0


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_sharing(twin_of):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    net.register_buffer("b", tf.zeros(1), persistent=False)
    twin = twin_of(net)
    assert twin[0].weight is twin[1].weight and twin[0].weight is not net[0].weight
    assert isinstance(twin[0].weight, nn.Parameter)
    assert list(twin.state_dict()) == list(net.state_dict())
    x = tf.ones(1, 2)
    assert twin(x).tolist() == net(x).tolist()
    twin(x).sum().backward()
    assert net[0].weight.grad is None


def test_calls():
    class Many(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    many = Many()
    assert many() == ((), {}) and many(1) == ((1,), {}) and many(None) == ((None,), {})
    assert many(1, 2, c=3) == ((1, 2), {"c": 3}) and many(input=4) == ((), {"input": 4})
    with pytest.raises(NotImplementedError, match="Module: the method forward"):
        nn.Module()(1)


def test_repr():
    class Two(nn.Module):
        def extra_repr(self):
            return "one\ntwo"

    assert repr(nn.Module()) == "Module()"
    assert repr(Two()) == "Two(\n  one\n  two\n)"
    net = Net()
    assert (
        repr(net).splitlines()[1] == "  (first): Linear(in_features=2, out_features=3, bias=True)"
    )


def test_dir():
    assert {"first", "scale", "count", "forward"} <= set(dir(Net()))


def test_a_model_trains():
    tf.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = tf.optim.Adam(net.parameters(), lr=0.02)
    x = against.tensor(tf, against.normal(64, 1), grad=False)
    y = (x * 2).sin()
    first = last = None
    for _ in range(150):
        opt.zero_grad()
        loss = tf.nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        last = loss.item()
        first = first or last
    assert last < first / 20


def test_examples():
    examples.run("tinyfin.nn.module")
