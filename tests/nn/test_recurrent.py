"""Recurrent layers and cells, against PyTorch."""

import numpy as np
import pytest
from lazy import torch
from nn import against, examples

import tinyfin as tf
from tinyfin.nn.utils import rnn
from tinyfin.ops.row import F

normal = against.normal
LAYERS = ["RNN", "LSTM", "GRU"]
OPTIONS = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"bias": False, "batch_first": True},
    {"num_layers": 3, "bidirectional": True, "batch_first": True, "bias": False},
]


def states(name, layers, batch=3, hidden=5, projected=None):
    h = normal(layers, batch, projected or hidden, seed=1)
    return (h, normal(layers, batch, hidden, seed=2)) if name == "LSTM" else h


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("given", [False, True])
def test_layers(name, options, given):
    shape = (3, 4, 2) if options.get("batch_first") else (4, 3, 2)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    args = [normal(*shape), *([states(name, count)] if given else [])]
    against.module(lambda nn: getattr(nn, name)(2, 5, **options), *args, tolerance=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_without_a_batch(name):
    start = states(name, 2)
    start = tuple(s[:, 0].copy() for s in start) if name == "LSTM" else start[:, 0].copy()
    against.module(lambda nn: getattr(nn, name)(2, 5, bidirectional=True), normal(4, 2), start)


def test_options_of_one_layer():
    against.module(lambda nn: nn.RNN(2, 5, nonlinearity="relu"), normal(4, 3, 2), smooth=False)
    options = {"proj_size": 3, "num_layers": 2, "bidirectional": True}
    start = states("LSTM", 4, projected=3)
    against.module(lambda nn: nn.LSTM(2, 5, **options), normal(4, 3, 2), start)
    against.module(lambda nn: nn.GRU(2, 5, num_layers=2, dropout=0.5), normal(4, 3, 2), train=False)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 2), (2,)])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name, shape, bias, given):
    h = normal(*shape[:-1], 5, seed=1)
    start = (h, normal(*shape[:-1], 5, seed=2)) if name == "LSTMCell" else h
    args = [normal(*shape), *([start] if given else [])]
    against.module(lambda nn: getattr(nn, name)(2, 5, bias=bias), *args)


def test_a_cell_with_relu():
    against.module(lambda nn: nn.RNNCell(2, 5, nonlinearity="relu"), normal(3, 2), smooth=False)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_its_cell_step_by_step(name):
    layer, cell = getattr(tf.nn, name)(2, 5), getattr(tf.nn, name + "Cell")(2, 5)
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x, state = tf.from_numpy(normal(4, 3, 2)), None
    y, end = layer(x)
    for t in range(4):
        state = cell(x[t], state)
        h = state[0] if name == "LSTM" else state
        assert (h - y[t]).abs().max().item() < 1e-6
    assert (h - (end[0] if name == "LSTM" else end)[0]).abs().max().item() < 1e-6


def test_dropout_between_layers():
    net = tf.nn.GRU(2, 5, num_layers=2, dropout=0.5)
    x = tf.from_numpy(normal(4, 3, 2))
    tf.manual_seed(1)
    a = net(x)[0]
    assert not a.equal(net(x)[0])
    tf.manual_seed(1)
    assert a.equal(net(x)[0]) and net.eval()(x)[0].equal(net(x)[0])


@pytest.mark.parametrize("lengths", [[5, 3, 3, 1], [2, 5, 1, 4]])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_packed_sequences(name, bidirectional, lengths):
    x, found = normal(4, 5, 2), []
    start = states(name, 4 if bidirectional else 2, batch=4)
    weights = (
        torch.nn.utils.rnn
        and getattr(torch.nn, name)(2, 5, 2, bidirectional=bidirectional).state_dict()
    )
    for m in (tf, torch):
        net = getattr(m.nn, name)(2, 5, 2, bidirectional=bidirectional)
        net.load_state_dict(
            {k: against.tensor(m, v.numpy(), grad=False) for k, v in weights.items()}
        )
        data, hx = against.tensor(m, x), against.tensor(m, start)
        ordered = sorted(lengths, reverse=True) == lengths
        packed = m.nn.utils.rnn.pack_padded_sequence(data, lengths, True, enforce_sorted=ordered)
        out, end = net(packed, hx)
        padded, back = m.nn.utils.rnn.pad_packed_sequence(out, batch_first=True, padding_value=-1.0)
        results = [padded, *(end if name == "LSTM" else (end,))]
        weighted = sum(
            (r * against.tensor(m, normal(*r.shape, seed=9), grad=False)).sum() for r in results
        )
        weighted.backward()
        assert back.tolist() == lengths
        found.append([against.array(t) for t in (*results, data.grad, net.weight_hh_l0.grad)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_packed_batch_is_its_sequences_one_by_one():
    net = tf.nn.LSTM(2, 5, bidirectional=True)
    sequences = [tf.from_numpy(normal(n, 2, seed=n)) for n in (2, 5, 1, 4)]
    out, (h, _) = net(rnn.pack_sequence(sequences, enforce_sorted=False))
    for i, (whole, y) in enumerate(zip(sequences, rnn.unpack_sequence(out))):
        alone, (end, _) = net(whole)
        assert (alone - y).abs().max().item() < 1e-6 and (end - h[:, i]).abs().max().item() < 1e-6


@pytest.mark.parametrize("name", LAYERS)
def test_results_may_be_written_over(name):
    """Small ones, which are copied, and large ones, which share memory until they are written."""
    for batch in (1, 64):
        net, grads = getattr(tf.nn, name)(2, 40), []
        for write in (False, True):
            x = tf.from_numpy(normal(5, batch, 2)).requires_grad_()
            y, end = net(x)
            if write:
                (end[0] if name == "LSTM" else end).zero_()
                y.mul_(2)
            else:
                y = y * 2
            y.sum().backward()
            grads.append(x.grad)
        assert grads[0].equal(grads[1])


@pytest.mark.parametrize("name", LAYERS)
def test_recording_does_not_change_results(name):
    net, x = getattr(tf.nn, name)(2, 40, bidirectional=True), tf.from_numpy(normal(5, 3, 2))
    with tf.no_grad():
        y, end = net(x)
    z, last = net(x)
    ends = (end, last) if name != "LSTM" else (F.cat(list(end), 0), F.cat(list(last), 0))
    assert y.equal(z) and ends[0].equal(ends[1]) and z.requires_grad and not y.requires_grad


@pytest.mark.parametrize("name", LAYERS)
def test_a_padded_batch_has_the_bits_of_a_packed_one(name):
    """The row of all steps, and step by step."""
    net, x = getattr(tf.nn, name)(2, 40), tf.from_numpy(normal(5, 3, 2))
    y, _ = net(x)
    for t in range(1, 6):
        packed = rnn.pack_padded_sequence(x, [5, t, t] if t < 5 else [5, 5, 4])
        z, _ = rnn.pad_packed_sequence(net(packed)[0])
        assert z[:, 0].equal(y[:, 0])


def test_a_batch_of_none():
    for name in LAYERS:
        y, _ = getattr(tf.nn, name)(3, 5)(tf.rand(4, 0, 3))
        assert tuple(y.shape) == (4, 0, 5)


def test_the_gradient_costs_as_much_as_its_steps():
    """Bytes that its kernels write: twice the steps, about twice as many."""
    written = []
    for steps in (64, 128):
        loss = tf.nn.GRU(2, 8)(tf.rand(steps, 4, 2))[0].sum()
        with tf.profiler.profile() as p:
            loss.backward()
        written.append(sum(e.bytes for e in p.events()))
    assert written[1] < 2.5 * written[0]


def test_second_derivatives():
    net = tf.nn.LSTM(2, 3).double()
    x = tf.from_numpy(normal(3, 2, 2).astype("float64")).requires_grad_()
    (g,) = tf.autograd.grad(net(x)[0].sum(), x, create_graph=True)
    (second,) = tf.autograd.grad((g * g).sum(), x)
    step, way = 1e-5, tf.from_numpy(normal(3, 2, 2, seed=3).astype("float64"))

    def value(shift):
        p = (x.detach() + shift * way).requires_grad_()
        (g,) = tf.autograd.grad(net(p)[0].sum(), p)
        return (g * g).sum().item()

    slope = (value(step) - value(-step)) / (2 * step)
    assert abs((second * way).sum().item() - slope) < 1e-6 * (1 + abs(slope))


def test_it_learns():
    """The parity of bits so far, which needs a memory."""
    tf.manual_seed(0)
    net, out = tf.nn.LSTM(1, 16, batch_first=True), tf.nn.Linear(16, 1)
    optimizer = tf.optim.AdamW([*net.parameters(), *out.parameters()], 0.02)
    bits = tf.from_numpy((normal(64, 8, 1) > 0).astype("float32"))
    want = bits.cumsum(1).remainder(2)
    for _ in range(150):
        optimizer.zero_grad()
        loss = tf.nn.functional.binary_cross_entropy_with_logits(out(net(bits)[0]), want)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_on_a_gpu(gpu):
    net = tf.nn.LSTM(3, 6, num_layers=2, bidirectional=True)
    x = tf.from_numpy(normal(5, 2, 3))
    want = net(x)[0].detach()
    got = net.to(gpu)(x.to(gpu))[0]
    got.sum().backward()
    assert got.device.type == gpu and (got.cpu() - want).abs().max().item() < 1e-5
    assert net.weight_hh_l0.grad.device.type == gpu


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: tf.nn.LSTM(2, 0), RuntimeError, "LSTM: hidden_size is 0, expected at least 1"),
        (lambda: tf.nn.GRU(2.5, 3), TypeError, "GRU: input_size is 2.5, expected an integer"),
        (lambda: tf.nn.RNN(2, 3, nonlinearity="elu"), ValueError, "RNN: nonlinearity is 'elu'"),
        (
            lambda: tf.nn.RNNCell(2, 3, nonlinearity="elu"),
            ValueError,
            "RNNCell: nonlinearity is 'elu'",
        ),
        (lambda: tf.nn.LSTM(2, 3, proj_size=3), ValueError, "LSTM: proj_size is 3, expected less"),
        (lambda: tf.nn.LSTM(2, 3, 2, dropout=1.5), ValueError, "LSTM: dropout is 1.5"),
        (lambda: tf.nn.RNNBase("LSTM2", 2, 3), ValueError, "RNNBase: mode is 'LSTM2'"),
        (lambda: tf.nn.RNNBase("GRU", 2, 3, proj_size=1), ValueError, "which only LSTM has"),
        (lambda: tf.nn.LSTM(2, 3)(tf.zeros(4)), RuntimeError, "LSTM: input has 1 dimensions"),
        (lambda: tf.nn.LSTM(2, 3)(tf.zeros(4, 2, 5)), RuntimeError, "LSTM: input has 5 features"),
        (lambda: tf.nn.LSTM(2, 3)(tf.zeros(0, 2, 2)), RuntimeError, "LSTM: input has no steps"),
        (
            lambda: tf.nn.LSTM(2, 3)(tf.zeros(4, 1, 2), tf.zeros(1, 1, 3)),
            RuntimeError,
            r"LSTM: hx is 1 tensors, expected 2: \(h, c\)",
        ),
        (
            lambda: tf.nn.GRU(2, 3)(tf.zeros(4, 5, 2), tf.zeros(1, 4, 3)),
            RuntimeError,
            r"GRU: h_0 is \(1, 4, 3\), expected a tensor of shape \(1, 5, 3\)",
        ),
        (
            lambda: tf.nn.GRU(2, 3)(tf.zeros(4, 2), tf.zeros(1, 4)),
            RuntimeError,
            r"GRU: h_0 without a batch is \(1, 4\), expected a tensor of shape \(1, 3\)",
        ),
        (
            lambda: tf.nn.GRUCell(2, 3)(tf.zeros(4, 3)),
            RuntimeError,
            r"GRUCell: input is of shape \(4, 3\)",
        ),
        (
            lambda: tf.nn.GRUCell(2, 3)(tf.zeros(4, 2), tf.zeros(3, 3)),
            RuntimeError,
            r"GRUCell: hx is of shape \(3, 3\), expected \(4, 3\)",
        ),
    ],
)
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_state_of_one_tensor():
    with pytest.raises(RuntimeError, match=r"LSTMCell: hx is 1 tensors, expected 2: \(h, c\)"):
        tf.nn.LSTMCell(2, 3)(tf.zeros(4, 2), (tf.zeros(4, 3),))


def test_a_warning():
    with pytest.warns(UserWarning, match="dropout=0.5 does nothing with num_layers=1"):
        tf.nn.LSTM(2, 3, dropout=0.5)


def test_examples():
    examples.run("tinyfin.nn.recurrent")
