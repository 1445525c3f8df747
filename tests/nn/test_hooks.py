"""Hooks of calls, against PyTorch where gradients are concerned."""

import copy

import pytest
from lazy import torch
from nn import against

import tinyfin as tf

nn = tf.nn


def test_before():
    layer = nn.Identity()
    first = layer.register_forward_pre_hook(lambda m, args: args[0] + 1)
    layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    layer.register_forward_pre_hook(lambda m, args: None)
    assert layer(1) == 4
    first.remove()
    first.remove()
    assert layer(1) == 2


def test_before_with_keywords():
    class Add(nn.Module):
        def forward(self, a, b=0):
            return a + b

    layer = Add()
    layer.register_forward_pre_hook(
        lambda m, args, kwargs: ((args[0],), {"b": 5}), with_kwargs=True
    )
    assert layer(1) == 6 and layer(1, b=2) == 6
    layer = Add()
    layer.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="expected None or a tuple"):
        layer(1)


def test_after():
    layer, seen = nn.Identity(), []
    layer.register_forward_hook(lambda m, args, output: seen.append((m is layer, args, output)))
    layer.register_forward_hook(lambda m, args, output: output * 10)
    layer.register_forward_hook(lambda m, args, kwargs, output: output + 1, with_kwargs=True)
    layer.register_forward_hook(lambda m, args, output: seen.append("first"), prepend=True)
    assert layer(2) == 21 and seen == ["first", (True, (2,), 2)]


def test_after_errors():
    class Broken(nn.Module):
        def forward(self, x):
            raise KeyError("broken")

    layer, seen = Broken(), []
    layer.register_forward_hook(lambda m, args, output: seen.append("usual"))
    layer.register_forward_hook(lambda m, args, output: seen.append(output), always_call=True)
    with pytest.raises(KeyError):
        layer(1)
    assert seen == [None]

    def fails(m, args, output):
        raise ValueError("also")

    layer.register_forward_hook(fails, always_call=True)
    with pytest.warns(UserWarning, match="also"), pytest.raises(KeyError):
        layer(1)


def test_as_context():
    layer = nn.Identity()
    with layer.register_forward_hook(lambda m, args, output: -output):
        assert layer(2) == -2
    assert layer(2) == 2


def test_copies_have_hooks_of_their_own():
    layer = nn.Identity()
    layer.handle = layer.register_forward_hook(lambda m, args, output: -output)
    twin = copy.deepcopy(layer)
    layer.handle.remove()
    assert layer(2) == 2 and twin(2) == -2
    twin.handle.remove()
    assert twin(2) == 2


def test_a_hook_may_remove_itself():
    layer = nn.Identity()
    handles = []

    def once(m, args, output):
        handles[0].remove()
        return output + 1

    handles.append(layer.register_forward_hook(once))
    assert layer(1) == 2 and layer(1) == 1


def test_what_cannot_be_called():
    with pytest.raises(TypeError, match="expected a function"):
        nn.Identity().register_forward_hook(3)


class Pair:
    """The same small module here and in PyTorch."""

    @staticmethod
    def make(m):
        class Mix(m.nn.Module):
            def forward(self, a, b, flag=None):
                return a * b, a + 2 * b

        return Mix()


def run(m, register, grads=(True, True)):
    module = Pair.make(m)
    seen = []
    register(module, seen)
    a = against.tensor(m, against.normal(3), grads[0])
    b = against.tensor(m, against.normal(3, seed=1), grads[1])
    y, z = module(a, b, 7)
    if y.requires_grad:
        (y.sum() + (z * z).sum()).backward()
    return seen + [a.grad, b.grad]


def values(seen):
    out = []
    for item in seen:
        if isinstance(item, (tuple, list)):
            out.append(values(item))
        elif isinstance(item, (tf.Tensor, torch.Tensor)):
            numbers = [round(v, 4) for v in item.tolist()]
            out.append(numbers if any(numbers) else None)  # PyTorch: zeros for what wants none
        else:
            out.append(item)
    return out


def log_post(module, seen):
    module.register_full_backward_hook(lambda m, gi, go: seen.append(("post", gi, go)))


def log_pre(module, seen):
    module.register_full_backward_pre_hook(lambda m, go: seen.append(("pre", go)))


def change_post(module, seen):
    module.register_full_backward_hook(
        lambda m, gi, go: tuple(None if g is None else g * 2 for g in gi)
    )


def change_pre(module, seen):
    module.register_full_backward_pre_hook(lambda m, go: (go[0] * 3, go[1]))


def both(module, seen):
    change_pre(module, seen)
    log_pre(module, seen)
    change_post(module, seen)
    log_post(module, seen)


@pytest.mark.parametrize("register", [log_post, log_pre, change_post, change_pre, both])
@pytest.mark.parametrize("grads", [(True, True), (False, True), (True, False), (False, False)])
def test_backward_hooks_agree_with_pytorch(register, grads):
    ours, theirs = run(tf, register, grads), run(torch, register, grads)
    assert values(ours) == values(theirs)


def test_backward_hook_when_only_parameters_learn():
    for m in (tf, torch):
        layer, seen = m.nn.Linear(2, 1), []
        layer.register_full_backward_hook(lambda mod, gi, go, seen=seen: seen.append((gi, go)))
        layer(m.ones(1, 2)).sum().backward()
        assert len(seen) == 1 and seen[0][0] == (None,) and seen[0][1][0].tolist() == [[1.0]]


def test_backward_hooks_of_single_results():
    layer, seen = nn.ReLU(), []
    layer.register_full_backward_hook(
        lambda m, gi, go: seen.append((gi[0].tolist(), go[0].tolist()))
    )
    x = tf.tensor([-1.0, 2.0], requires_grad=True)
    layer(x).sum().backward()
    assert seen == [([0.0, 1.0], [1.0, 1.0])] and x.grad.tolist() == [0.0, 1.0]


def test_backward_hooks_with_wrong_answers():
    layer = nn.ReLU()
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="returned 2 gradients, expected 1"):
        layer(tf.ones(2, requires_grad=True)).sum().backward()
    layer = nn.Linear(1, 1)
    layer.register_full_backward_hook(lambda m, gi, go: (tf.ones(1, 1),))
    with pytest.raises(RuntimeError, match="no input requires one"):
        layer(tf.ones(1, 1)).sum().backward()
