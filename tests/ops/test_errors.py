"""Bad input: the exception's type is PyTorch's, its text begins with the operation's name and says what came."""

import math

import pytest
import tinyfin as tf

F = tf.nn.functional
INF, NAN = math.inf, math.nan


def ones(*shape, dtype=tf.float32):
    """A tensor to be misused."""
    return tf.ones(*shape, dtype=dtype)


LONG, BOOL = ones(2, dtype=tf.int64), ones(2, dtype=tf.bool)
HUGE = 1 << 62

TYPES = [
    ("add: other is 'x'", lambda: tf.add(ones(2), "x")),
    ("add: other is None", lambda: tf.add(ones(2), None)),
    ("add: input is [1]", lambda: tf.add([1], ones(2))),
    ("add: none of the arguments is a Tensor", lambda: tf.add(1, 2)),
    ("add: missing argument", lambda: tf.add(ones(2))),
    ("add: takes at most 2", lambda: tf.add(ones(2), 1, 2)),
    ("exp: unexpected keyword argument 'wrong'", lambda: tf.exp(ones(2), wrong=1)),
    ("exp: argument 'input' is given twice", lambda: tf.exp(ones(2), input=ones(2))),
    ("sum: dim is 'a'", lambda: ones(2).sum("a")),
    ("sum: dim is 1.5", lambda: ones(2).sum(1.5)),
    ("sum: keepdim is 3", lambda: ones(2).sum(0, 3)),
    ("sum: dtype is 'float32'", lambda: ones(2).sum(dtype="float32")),
    ("reshape: shape is 1.5", lambda: ones(2).reshape(1.5)),
    ("reshape: shape is 'ab'", lambda: ones(2).reshape("ab")),
    ("cat: tensors must be a tuple or list", lambda: tf.cat(ones(2))),
    ("cat: tensors[1] is 1", lambda: tf.cat([ones(2), 1])),
    ("gather: index is 0", lambda: tf.gather(ones(2), 0, 0)),
    ("softmax: missing argument 'dim'", lambda: tf.softmax(ones(2))),
    ("matmul: other is 2", lambda: tf.matmul(ones(2), 2)),
    ("where: ", lambda: tf.where(True, ones(2), ones(2))),
    ("topk: k is 1.5", lambda: ones(3).topk(1.5)),
    ("zeros: size is 1.5", lambda: tf.zeros(1.5)),
    ("zeros: size is 'a'", lambda: tf.zeros("a")),
    ("zeros: dtype is", lambda: tf.zeros(2, dtype="float32")),
    ("manual_seed: seed is", lambda: tf.manual_seed(1.5)),
    ("len: ", lambda: len(tf.tensor(1.0))),
    ("iter: ", lambda: list(tf.tensor(1.0))),
    ("item: |index: ", lambda: range(3)[ones(1)]),
    ("index: ", lambda: ones(3)["a"]),
    ("index: ", lambda: ones(3)[1.5]),
    ("from_numpy: ", lambda: tf.from_numpy([1])),
    ("tensor: ", lambda: tf.tensor("abc")),
    ("tensor: ", lambda: tf.tensor([1, None])),
    ("linear: ", lambda: F.linear(ones(2), None)),
    ("embedding: ", lambda: F.embedding([0], ones(2, 2))),
    ("conv2d: ", lambda: F.conv2d(ones(1, 1, 3, 3), None)),
    ("to: got", lambda: ones(2).to(1.5)),
]
SHAPES = [
    ("add: shapes (2,) and (3,) do not broadcast", lambda: ones(2) + ones(3)),
    ("where: shapes", lambda: tf.where(BOOL, ones(3), ones(3))),
    ("add_: the result has shape (2, 2), the tensor written to (2,)", lambda: ones(2).add_(ones(2, 2))),
    ("reshape: shape (3,) is invalid for (2,)", lambda: ones(2).reshape(3)),
    ("reshape: shape (-1, 0) is invalid|reshape: ", lambda: ones(0).reshape(-1, 0)),
    ("reshape: ", lambda: ones(4).reshape(-1, -1)),
    ("reshape: ", lambda: ones(4).reshape(-2, -2)),
    ("view: shape (2, 3) with strides", lambda: ones(3, 2).t().view(6)),
    ("expand: size 3 in dimension 0", lambda: ones(2).expand(3)),
    ("expand: ", lambda: ones(2, 2).expand(2)),
    ("permute: ", lambda: ones(2, 2).permute(0)),
    ("permute: ", lambda: ones(2, 2).permute(0, 0)),
    ("cat: ", lambda: tf.cat([ones(2, 2), ones(2, 3)])),
    ("stack: ", lambda: tf.stack([ones(2), ones(3)])),
    ("split: ", lambda: ones(4).split([1, 1])),
    ("chunk: ", lambda: ones(4).chunk(0)),
    ("matmul: a is (2, 3), b is (4, 5)|matmul: ", lambda: ones(2, 3) @ ones(4, 5)),
    ("matmul: ", lambda: tf.tensor(1.0) @ ones(2)),
    ("bmm: ", lambda: tf.bmm(ones(2, 2, 2), ones(3, 2, 2))),
    ("mm: ", lambda: tf.mm(ones(2), ones(2))),
    ("dot: ", lambda: tf.dot(ones(2), ones(3))),
    ("linear: ", lambda: F.linear(ones(2, 3), ones(4, 2))),
    ("linear: ", lambda: F.linear(ones(2, 3), ones(4, 3), ones(3))),
    ("conv2d: ", lambda: F.conv2d(ones(1, 3, 4, 4), ones(2, 2, 3, 3))),
    ("conv2d: ", lambda: F.conv2d(ones(1, 1, 2, 2), ones(1, 1, 3, 3))),
    ("conv2d: ", lambda: F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 3, 3), stride=0)),
    ("conv2d: ", lambda: F.conv2d(ones(1, 1, 4, 4), ones(1, 1, 3, 3), padding=-1)),
    ("conv2d: ", lambda: F.conv2d(ones(1, 3, 4, 4), ones(2, 1, 3, 3), groups=2)),
    ("max_pool2d: ", lambda: F.max_pool2d(ones(1, 1, 2, 2), 3)),
    ("max_pool2d: ", lambda: F.max_pool2d(ones(1, 1, 4, 4), 2, padding=2)),
    ("layer_norm: ", lambda: F.layer_norm(ones(2, 3), (4,))),
    ("group_norm: ", lambda: F.group_norm(ones(2, 3), 2)),
    ("batch_norm: ", lambda: F.batch_norm(ones(2, 3), ones(2), ones(2))),
    ("gather: ", lambda: tf.gather(ones(2, 2), 0, ones(3, dtype=tf.int64))),
    ("index_select: ", lambda: tf.index_select(ones(3), 0, ones(1, 1, dtype=tf.int64))),
    ("sum: dim 0 appears twice", lambda: ones(2, 2).sum((0, 0))),
    ("einsum: ", lambda: tf.einsum("ij,jk", ones(2, 2))),
    ("einsum: ", lambda: tf.einsum("ij,jk->ik", ones(2, 3), ones(2, 3))),
    ("t: ", lambda: ones(2, 2, 2).t()),
    ("item: ", lambda: ones(2).item()),
    ("bool: ", lambda: bool(ones(2))),
    ("scaled_dot_product_attention: |sdpa_forward: ", lambda: F.scaled_dot_product_attention(
        ones(1, 2, 3), ones(1, 2, 4), ones(1, 2, 4))),
]
DOMAINS = [
    ("where: condition has dtype", lambda: tf.where(ones(2), ones(2), ones(2))),
    ("bitwise_and: ", lambda: ones(2) & ones(2)),
    ("nll_loss: |nll_loss_forward: ", lambda: F.nll_loss(ones(2, 3), ones(2))),
    ("embedding: ", lambda: F.embedding(ones(2), ones(2, 2))),
    ("gather: ", lambda: tf.gather(ones(2), 0, ones(2))),
    ("add_: the result has dtype", lambda: ones(2, dtype=tf.int64).add_(0.5)),
    ("div_: the result has dtype", lambda: ones(2, dtype=tf.int64).div_(2)),
    ("clamp: ", lambda: ones(2).clamp()),
    ("arange: ", lambda: tf.arange(0, 1, 0)),
    ("arange: ", lambda: tf.arange(0, 5, -1)),
    ("arange: ", lambda: tf.arange(0, INF, 1)),
    ("zeros: size -1", lambda: tf.zeros(-1)),
    ("linspace: ", lambda: tf.linspace(0, 1, -1)),
    ("topk: ", lambda: ones(3).topk(4)),
    ("narrow: ", lambda: ones(3).narrow(0, 2, 2)),
    ("unfold: ", lambda: ones(3).unfold(0, 4, 1)),
    ("unfold: ", lambda: ones(3).unfold(0, 2, 0)),
    ("as_strided: ", lambda: tf.as_strided(ones(3), (4,), (1,))),
    ("cross_entropy: ", lambda: F.cross_entropy(ones(2, 3), LONG, label_smoothing=2.0)),
    ("binary_cross_entropy: ", lambda: F.binary_cross_entropy(ones(2) * 2, ones(2))),
    ("binary_cross_entropy: ", lambda: F.binary_cross_entropy(ones(2) * NAN, ones(2))),
    ("huber_loss: ", lambda: F.huber_loss(ones(2), ones(2), delta=0.0)),
    ("multinomial: ", lambda: tf.multinomial(ones(2) * -1, 1)),
    ("multinomial: ", lambda: tf.multinomial(ones(2), 3)),
    ("uniform_: ", lambda: ones(2).uniform_(1, 0)),
    ("normal_: ", lambda: ones(2).normal_(0, -1)),
    ("normal_: ", lambda: ones(2, dtype=tf.int64).normal_()),
    ("randint: ", lambda: tf.randint(3, 3, (2,))),
    ("exp_: input is a leaf", lambda: ones(2).requires_grad_().exp_()),
    ("add_: input is a view", lambda: ones(1).expand(3).add_(1)),
    ("backward: ", lambda: ones(2).backward()),
    ("backward: ", lambda: (ones(2).requires_grad_() * 2).backward()),
    ("backward: ", lambda: freed().backward()),
    ("requires_grad: ", lambda: ones(2, dtype=tf.int64).requires_grad_()),
    ("grad: ", lambda: setattr(ones(2), "grad", ones(3))),
    ("one_hot: ", lambda: F.one_hot(LONG * 5, 3)),
    ("add: the tensors are on different devices", lambda: ones(2) + tf.ones(2, device="null")),
    ("pow: ", lambda: ones(2, dtype=tf.int64) ** -1),
]
INDICES = [
    ("sum: dim 2 is out of range", lambda: ones(2).sum(2)),
    ("sum: dim -2 is out of range", lambda: ones(2).sum(-2)),
    ("softmax: dim 1", lambda: ones(2).softmax(1)),
    ("transpose: dim1 5", lambda: ones(2, 2).transpose(0, 5)),
    ("unsqueeze: dim 3", lambda: ones(2).unsqueeze(3)),
    ("squeeze: dim 3", lambda: ones(2).squeeze(3)),
    ("flip: dims 1", lambda: ones(2).flip(1)),
    ("select: index 5", lambda: ones(2).select(0, 5)),
    ("index: index 5 is out of range for dim 0 of size 2", lambda: ones(2)[5]),
    ("index: index -3 is out of range", lambda: ones(2)[-3]),
    ("index: too many indices", lambda: ones(2)[0, 0]),
    ("index: an index can only have a single ellipsis", lambda: ones(2)[..., ...]),
    ("index: index 7 is out of range", lambda: ones(2)[tf.tensor([7])]),
    ("index: ", lambda: ones(2)[tf.tensor([True, False, True])]),
    ("index: ", lambda: ones(2)[tf.tensor([0.5])]),
    ("argmax: |max: ", lambda: ones(0).argmax()),
    ("amax: dim 0 of shape (0,)", lambda: ones(0).amax(0)),
    ("gather: index 9", lambda: tf.gather(ones(2), 0, tf.tensor([9]))),
    ("gather: index -1", lambda: tf.gather(ones(2), 0, tf.tensor([-1]))),
    ("scatter: index 9", lambda: ones(2).scatter(0, tf.tensor([9]), 1.0)),
    ("index_select: index 9", lambda: tf.index_select(ones(2), 0, tf.tensor([9]))),
    ("embedding: index 9", lambda: F.embedding(tf.tensor([9]), ones(2, 2))),
    ("nll_loss: |nll_loss_forward: ", lambda: F.nll_loss(ones(2, 3), LONG * 3)),
    ("cross_entropy: |cross_entropy_forward: ", lambda: F.cross_entropy(ones(2, 3), LONG * 3)),
    ("cross_entropy: |cross_entropy_forward: ", lambda: F.cross_entropy(ones(2, 3), LONG * -1)),
]
OTHERS = [
    (ZeroDivisionError, "floor_divide: ", lambda: LONG // 0),
    (ZeroDivisionError, "remainder: ", lambda: LONG % 0),
    (MemoryError, "zeros: ", lambda: tf.zeros(1 << 50)),
    (MemoryError, "ones: ", lambda: tf.ones(HUGE, HUGE)),
    (MemoryError, "add: ", lambda: ones(1).expand(1 << 50) + 1),
    (MemoryError, "arange: ", lambda: tf.arange(1 << 50)),
    (MemoryError, "mul: ", lambda: tf.ones(1 << 26, 1) * tf.ones(1, 1 << 26)),
    (OverflowError, "reshape: ", lambda: ones(2).reshape(1 << 70)),
    (OverflowError, "zeros: ", lambda: tf.zeros(1 << 70)),
    (NotImplementedError, "zeros: dtype tinyfin.complex64 is reserved", lambda: tf.zeros(2, dtype=tf.complex64)),
    (NotImplementedError, "cast: |to: ", lambda: ones(2).to(tf.complex64)),
    (AttributeError, "", lambda: ones(2).no_such_method()),
    (AttributeError, "module 'tinyfin' has no attribute", lambda: tf.no_such_name),
    (ValueError, "batch_norm: ", lambda: F.batch_norm(ones(1, 3), None, None, training=True)),
    (ValueError, "dropout: ", lambda: F.dropout(ones(2), 1.5)),
    (ValueError, "cat: tensors is empty", lambda: tf.cat([])),
    (ValueError, "zeros: 9 dimensions|reshape: |unsqueeze: ", lambda: tf.zeros(*[1] * 9)),
    (ValueError, "reshape: ", lambda: ones(1).reshape([1] * 9)),
    (ValueError, "set_memory_limit: ", lambda: tf.set_memory_limit(-1)),
]


def freed():
    """A result whose graph was gone through already."""
    y = (ones(2).requires_grad_() * 2).sin().sum()
    y.backward()
    return y


CASES = [(TypeError, *c) for c in TYPES] + [(RuntimeError, *c) for c in SHAPES + DOMAINS]
CASES += [(IndexError, *c) for c in INDICES] + OTHERS


@pytest.mark.parametrize(("kind", "begin", "call"), CASES, ids=[f"{i}-{c[1][:24]}" for i, c in enumerate(CASES)])
def test_error(kind, begin, call):
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind, f"{type(caught.value).__name__}, a subclass"
    text = str(caught.value)
    assert any(text.startswith(b) for b in begin.split("|")), text
    assert "\n" not in text.strip() and len(text) < 400, "one line that can be read"


def test_errors_leave_nothing_behind():
    """A failed call keeps no tensor alive and no mode changed."""
    x = ones(3)
    before, grad = tf.memory_stats()["live"], tf.is_grad_enabled()
    for _, _, call in CASES:
        try:
            call()
        except Exception:
            pass
    assert tf.memory_stats()["live"] == before and tf.is_grad_enabled() == grad
    assert x.tolist() == [1, 1, 1]
