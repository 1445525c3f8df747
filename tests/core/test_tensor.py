"""The tensor object: values, history flags, Python's protocols, writes."""

import copy
import gc
import operator
import pickle
import weakref

import numpy as np
import pytest

import tinyfin as tf

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
]  # fmt: skip


class Named(tf.Tensor):
    """A subclass with attributes."""


class Forgetful(tf.Tensor):
    """A subclass whose __init__ does not call the base's."""

    def __init__(self):
        self.note = "forgot"


# ---- values


@pytest.mark.parametrize("name", DTYPES)
def test_item_and_python_numbers(name):
    t = tf.tensor(1, dtype=getattr(tf, name))
    value = t.item()
    assert value == 1
    assert type(value) is (bool if name == "bool" else float if t.is_floating_point() else int)
    assert int(t) == 1 and float(t) == 1.0 and bool(t) is True
    assert tf.zeros(1, 1, dtype=t.dtype).item() == 0
    if t.is_floating_point():
        with pytest.raises(TypeError, match="index"):
            [0, 1][t]
    else:
        assert [0, 7][t] == 7


@pytest.mark.parametrize("shape", [(0,), (2,), (1, 2), (0, 3)])
def test_item_needs_one_element(shape):
    t = tf.zeros(shape)
    for call in (t.item, lambda: bool(t), lambda: int(t), lambda: float(t)):
        with pytest.raises(RuntimeError, match=r"element"):
            call()
    with pytest.raises(TypeError, match="index"):
        t.long().__index__()


def test_special_values():
    for text in ("nan", "inf", "-inf"):
        for d in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
            assert str(tf.tensor(float(text), dtype=d).item()) == text
    assert tf.tensor(-(2**63)).item() == -(2**63) and tf.tensor(2**63 - 1).item() == 2**63 - 1


def test_len_iter_contains():
    t = tf.arange(6).reshape(3, 2)
    assert len(t) == 3 and [r.tolist() for r in t] == [[0, 1], [2, 3], [4, 5]]
    assert next(iter(t)).data_ptr() == t.data_ptr()
    assert list(tf.zeros(0, 2)) == [] and len(tf.zeros(0, 2)) == 0
    assert 3 in t and 9 not in t and tf.tensor(2) in t and 1.5 not in t and 3.0 in t
    for call in (lambda: len(tf.tensor(1)), lambda: list(tf.tensor(1))):
        with pytest.raises(TypeError, match="without dimensions"):
            call()
    for item in ("a", None, [1]):
        with pytest.raises(RuntimeError, match="contains"):
            item in t  # noqa: B015
    with pytest.raises(TypeError, match="deleted"):
        del t[0]


def test_hash_is_identity():
    a, b = tf.ones(2), tf.ones(2)
    assert len({a, b, a}) == 2 and {a: 1}[a] == 1 and hash(a) == hash(a)


def test_comparison_with_what_is_no_number():
    t = tf.ones(2)
    for other in (None, "a", float, [1, 1], {}):
        assert (t == other) is False and (t != other) is True
        with pytest.raises(TypeError):
            t < other  # noqa: B015
        with pytest.raises(TypeError):
            t + other


def test_numbers_of_every_kind_are_operands():
    from decimal import Decimal
    from fractions import Fraction

    t = tf.ones(2, dtype=tf.int32)
    assert (
        (t + True).dtype is tf.int32 and (t + 2).dtype is tf.int32 and (t + 2.0).dtype is tf.float32
    )
    for n in (np.int8(2), np.float32(2), np.float64(2), np.bool_(True), Fraction(4, 2), Decimal(2)):
        assert (t * n).tolist() == (n * t).tolist() == [int(n)] * 2
    for array in (np.ones(2), np.array(1), np.array([1])):
        with pytest.raises(TypeError, match="add: one side is a numpy.ndarray.*from_numpy"):
            t + array
        with pytest.raises(TypeError):
            array + t
        with pytest.raises(TypeError, match="add_: one side is a numpy.ndarray"):
            t += array
        with pytest.raises(TypeError, match="matmul: one side is a numpy.ndarray"):
            t @ array
        for compare in (operator.eq, operator.ne, operator.lt, operator.ge):
            with pytest.raises(TypeError, match="one side is a numpy.ndarray"):
                compare(t, array)
            with pytest.raises(TypeError, match="one side is a numpy.ndarray"):
                compare(array, t)


def test_format():
    assert f"{tf.tensor(1.23456):.3f}" == "1.235" and f"{tf.tensor(7):03d}" == "007"
    assert (
        f"{tf.ones(2)}" == str(tf.ones(2)) == repr(tf.ones(2)) and f"{tf.tensor(1)}" == "tensor(1)"
    )
    with pytest.raises(TypeError, match="format"):
        f"{tf.ones(1):.3f}"


# ---- shape and type


def test_numbers_of_a_tensor():
    t = tf.zeros(2, 3, dtype=tf.int16)
    assert t.shape == (2, 3) and t.size() == t.shape and t.size(-1) == 3 and t.stride() == (3, 1)
    assert t.ndim == t.dim() == 2 and t.numel() == t.nelement() == 6 and t.stride(0) == 3
    assert t.itemsize == t.element_size() == 2 and t.nbytes == 12
    assert not t.is_floating_point() and not t.is_complex() and t.device == tf.device("cpu")
    assert isinstance(t.shape, tf.Size) and isinstance(t.shape, tuple)


def test_make_without_initialisation():
    """No way to create a tensor leaves one that crashes."""
    for t in (
        tf.Tensor.__new__(tf.Tensor),
        Named.__new__(Named),
        Forgetful(),
        tf.Tensor(),
        tf.Tensor(0),
    ):
        assert t.shape == (0,) and t.dtype is tf.float32 and t._version >= 0
        assert (t + 1).shape == (0,) and t.sum().item() == 0 and t.tolist() == []
        assert t.clone().shape == (0,) and repr(t) and t.is_leaf and t.numpy().size == 0
        assert t.add_(1) is t and pickle.loads(pickle.dumps(t)).shape == (0,)


def test_constructor():
    assert tf.Tensor(2, 3).shape == (2, 3) and tf.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert tf.Tensor(np.arange(3)).tolist() == [0.0, 1.0, 2.0]
    x = tf.ones(2)
    assert tf.Tensor(x).data_ptr() == x.data_ptr()
    for args in (("a",), (1.5,), (None,), (2, "a"), ([1], 2)):
        with pytest.raises(TypeError):
            tf.Tensor(*args)
    with pytest.raises(RuntimeError, match="negative"):
        tf.Tensor(-1)


# ---- copies


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_pickle(name, shape):
    t = tf.ones(shape, dtype=getattr(tf, name))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        u = pickle.loads(pickle.dumps(t, protocol))
        assert u.dtype is t.dtype and u.shape == t.shape and u.tolist() == t.tolist()
        assert u.data_ptr() != t.data_ptr() or not t.numel()


def test_pickle_of_views_and_history():
    t = tf.arange(6.0).reshape(2, 3).T[:, ::-1]
    assert pickle.loads(pickle.dumps(t)).tolist() == t.tolist()
    x = tf.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(x)).requires_grad
    y = pickle.loads(pickle.dumps(x * 2))
    assert y.is_leaf and y.tolist() == [2.0, 2.0]


def test_subclasses_survive_copies():
    n = Named([1.0, 2.0])
    n.note = {"a": [1]}
    for m in (pickle.loads(pickle.dumps(n)), copy.copy(n), copy.deepcopy(n)):
        assert type(m) is Named and m.note == {"a": [1]} and m.tolist() == [1.0, 2.0]
    assert copy.copy(n).note is n.note and copy.deepcopy(n).note is not n.note


def test_copy_shares_and_deepcopy_does_not():
    x = tf.tensor([1.0, 2.0], requires_grad=True)
    x.grad = tf.ones(2)
    assert copy.copy(x).data_ptr() == x.data_ptr() and copy.copy(x).requires_grad
    y, same = copy.deepcopy([x, x])
    assert y is same and y.data_ptr() != x.data_ptr() and y.requires_grad and y.is_leaf
    assert y.grad.tolist() == [1.0, 1.0] and y.grad.data_ptr() != x.grad.data_ptr()
    with pytest.raises(RuntimeError, match="leaves"):
        copy.deepcopy(x * 2)


# ---- subclasses


def test_results_of_subclasses_are_tensors():
    n = Named([1.0, 4.0])
    for r in (n + 1, 1 + n, n.sqrt(), n[0], n.view(2, 1), n.detach(), tf.cat([n, n])):
        assert type(r) is tf.Tensor
    assert (n.add_(1)) is n and isinstance(n, tf.Tensor)
    m = tf.Tensor._make_subclass(Named, tf.ones(2), True)
    assert type(m) is Named and m.requires_grad
    m.sum().backward()
    assert m.grad.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError):
        tf.Tensor._make_subclass(dict, tf.ones(2))


# ---- history


def test_requires_grad_rules():
    x = tf.ones(2)
    assert not x.requires_grad and x.is_leaf and x.grad_fn is None and x.grad is None
    assert x.requires_grad_() is x and x.requires_grad
    y = x * 2
    assert y.requires_grad and not y.is_leaf and y.grad_fn is not None and y.output_nr == 0
    with pytest.raises(RuntimeError, match="only leaves"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="floating-point"):
        tf.ones(2, dtype=tf.int64).requires_grad_()
    for call in (
        lambda: tf.ones(2, dtype=tf.int32, requires_grad=True),
        lambda: tf.tensor([1, 2], requires_grad=True),
        lambda: tf.arange(3, requires_grad=True),
    ):
        with pytest.raises(RuntimeError, match="floating-point"):
            call()
    assert not (x > 1).requires_grad and not x.argmax().requires_grad and not x.long().requires_grad
    x.requires_grad = False
    assert not (x * 2).requires_grad


def test_grad_assignment():
    x = tf.ones(2, requires_grad=True)
    x.grad = tf.ones(2)
    for bad, kind in (
        (3, TypeError), (tf.ones(3), RuntimeError), (tf.ones(2, dtype=tf.float64), RuntimeError),
        (tf.ones(2, device="null"), RuntimeError),
    ):  # fmt: skip
        with pytest.raises(kind, match="grad"):
            x.grad = bad
    del x.grad
    assert x.grad is None


def test_detach():
    x = tf.ones(2, requires_grad=True)
    y = (x * 2).detach()
    assert not y.requires_grad and y.is_leaf
    z = x * 2
    assert z.detach_() is z and z.is_leaf and not z.requires_grad
    with pytest.raises(RuntimeError, match="view"):
        (x * 2)[0].detach_()


def test_data_can_be_replaced():
    x = tf.ones(2, requires_grad=True)
    view, array = x.detach()[1:], x.detach().numpy()
    capsule = x.detach().__dlpack__()
    x.data = tf.zeros(3)
    gc.collect()
    assert x.shape == (3,) and x.requires_grad and x.is_leaf
    assert view.tolist() == [1.0] and array.tolist() == [1.0, 1.0]
    assert tf.from_dlpack(capsule).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="int64"):
        x.data = tf.zeros(2, dtype=tf.int64)
    with pytest.raises(TypeError):
        x.data = 3
    base = tf.zeros(4)
    part = base[1:3]
    part.data = tf.ones(5)
    part.mul_(tf.tensor(2.0, requires_grad=True))
    assert part.requires_grad and not base.requires_grad and part.tolist() == [2.0] * 5


def test_memory_of_exported_buffers_is_kept():
    x = tf.arange(1000.0)
    m = memoryview(x)
    x.data = tf.zeros(1)
    tf.empty_cache()
    others = [tf.full((1000,), 7.0) for _ in range(10)]
    assert m[999] == 999.0 and m.tolist() == list(range(1000)) and len(others) == 10


# ---- writes


def test_versions_count_writes():
    x = tf.zeros(4)
    v = x[1:3]
    start = x._version
    writes = [
        lambda: x.add_(1), lambda: v.mul_(2), lambda: x.__setitem__(0, 5), lambda: x.copy_(tf.ones(4)),
        lambda: x.uniform_(), lambda: x.__setitem__([0, 1], 3.0), lambda: x.detach().zero_(),
        lambda: x.relu_(),
    ]  # fmt: skip
    for k, write in enumerate(writes, 1):
        write()
        assert x._version == v._version == start + k
    with pytest.raises(RuntimeError):
        x.add_(tf.ones(3))
    with pytest.raises(TypeError):
        x.copy_("a")
    assert x._version == start + len(writes)


def test_failed_writes_change_nothing():
    x = tf.arange(4, dtype=tf.int32)
    for write in (
        lambda: x.add_(tf.ones(5, dtype=tf.int32)), lambda: x.add_(1.5), lambda: x.mul_("a"),
        lambda: x.floor_divide_(0), lambda: x.div_(2), lambda: x.fill_(1 << 40), lambda: x.fill_(None),
        lambda: x.__setitem__(slice(5), tf.ones(9, dtype=tf.int32)), lambda: x.__setitem__(7, 1),
        lambda: x.__setitem__([9], 1), lambda: x.normal_(), lambda: x.add_(tf.ones(4, 4, dtype=tf.int32)),
        lambda: x.fill_(float("nan")), lambda: x.__setitem__(0, 1e10),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, TypeError, IndexError, ArithmeticError)):
            write()
        assert x.tolist() == [0, 1, 2, 3] and x.dtype is tf.int32


@pytest.mark.parametrize("make", [lambda: tf.arange(10.0), lambda: tf.from_numpy(np.arange(10.0))])
def test_overlapping_writes(make):
    for write, want in [
        (lambda x: x[1:].copy_(x[:-1]), [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (lambda x: x[:-1].copy_(x[1:]), [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]),
        (lambda x: x.copy_(x.flip(0)), list(range(9, -1, -1))),
        (lambda x: x[1:].add_(x[:-1]), [0, 1, 3, 5, 7, 9, 11, 13, 15, 17]),
        (lambda x: x.add_(x), list(range(0, 20, 2))),
        (lambda x: x.mul_(x[3]), [3 * i for i in range(10)]),
        (lambda x: x.__setitem__(slice(2, None), x[:8]), [0, 1, 0, 1, 2, 3, 4, 5, 6, 7]),
        (lambda x: x[::2].add_(x[1::2]), [1, 1, 5, 3, 9, 5, 13, 7, 17, 9]),
        (lambda x: x.sub_(x.flip(0)), list(range(-9, 10, 2))),
        (lambda x: x.cumsum_(0), [i * (i + 1) // 2 for i in range(10)]),
    ]:
        x = make()
        if "cumsum_" in write.__code__.co_names and not hasattr(x, "cumsum_"):
            continue
        write(x)
        assert x.tolist() == want


def test_overlaps_of_arrays_that_were_borrowed_twice():
    a = np.arange(6.0)
    tf.from_numpy(a[1:]).add_(tf.from_numpy(a[:-1]))
    assert a.tolist() == [0, 1, 3, 5, 7, 9]
    tf.from_numpy(a[1:]).copy_(tf.from_dlpack(a[:-1]))
    assert a.tolist() == [0, 0, 1, 3, 5, 7]


def test_views_that_overlap_themselves_are_not_written():
    for v in (
        tf.ones(1).expand(3),
        tf.arange(9.0).unfold(0, 3, 1),
        tf.ones(3).as_strided((2, 2), (1, 1)),
    ):
        for write in (lambda v: v.add_(1), lambda v: v.fill_(1), lambda v: v.uniform_()):
            with pytest.raises(RuntimeError, match="share memory"):
                write(v)
    assert tf.ones(1).expand(1).add_(1).tolist() == [2.0]
    assert tf.arange(9.0).unfold(0, 3, 3).add_(1).sum().item() == 45


def test_writes_into_leaves_that_require_grad():
    x = tf.ones(3, requires_grad=True)
    for write in (
        lambda: x.add_(1),
        lambda: x[0].fill_(2),
        lambda: x.__setitem__(0, 2),
        lambda: x.view(3, 1).zero_(),
    ):
        with pytest.raises(RuntimeError, match="leaf that requires grad"):
            write()
    with tf.no_grad():
        x[0] = 5
        x.mul_(2)
    assert x.tolist() == [10.0, 2.0, 2.0] and x.is_leaf
    x.data.add_(1)
    assert x.tolist() == [11.0, 3.0, 3.0]


def test_views_follow_writes_into_their_base():
    w = tf.tensor([2.0, 3.0, 4.0], requires_grad=True)
    base = tf.ones(3)
    early = base[:2]
    assert not early.requires_grad
    base.mul_(w)
    assert early.requires_grad and not early.is_leaf and early.grad_fn is not None
    (early * 10).sum().backward()
    assert w.grad.tolist() == [10.0, 10.0, 0.0]
    w.grad = None
    other = tf.zeros(3)
    a, b = other[:2], other[1:]
    a.copy_(w[:2])
    (b * tf.tensor([1.0, 5.0])).sum().backward()
    assert w.grad.tolist() == [0.0, 1.0, 0.0]


# ---- inference mode


def test_inference_mode():
    w = tf.ones(2, requires_grad=True)
    with tf.inference_mode():
        made, result = tf.ones(2), w * 2
        assert made.is_inference() and result.is_inference() and made[0].is_inference()
        assert not w.is_inference() and not w[0].is_inference() and not result.requires_grad
        made.add_(1)
        w.detach().add_(0)
    assert (made + 1).tolist() == [3.0, 3.0] and not (made + 1).is_inference()
    assert not made.clone().is_inference()
    with pytest.raises(RuntimeError, match="inference mode"):
        made.add_(1)
    with pytest.raises(RuntimeError, match="inference mode"):
        made.requires_grad_()
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        made * w
    assert (made.clone() * w).requires_grad


# ---- cycles and leaks


def test_no_cycles():
    """What a call records never holds its own result: everything goes by reference counts alone."""
    gc.collect()
    gc.freeze()  # what other tests left need not be looked at again and again
    gc.disable()
    try:
        x, b = tf.rand(8, requires_grad=True), tf.rand(8)
        for f in (
            lambda: x.exp(), lambda: x.exp().mul_(b), lambda: x.exp().exp_(), lambda: (x * b).mul_(x),
            lambda: x.exp()[2:].mul_(b[2:]), lambda: x.softmax(0).sum(), lambda: x.max(0),
            lambda: x.exp().__setitem__(0, 1.0), lambda: (x * 2).copy_(x), lambda: x.sort(),
            lambda: x.view(2, 4).sum(0).backward(tf.ones(4)), lambda: (x * 1).sigmoid_().sum().backward(),
            lambda: x.cumsum(0).prod(), lambda: (x * 1).add_(x, alpha=2), lambda: (x * 1).clamp_(0, 1),
            lambda: x.exp().sum().retain_grad(), lambda: x.exp().register_hook(print),
            lambda: x.exp().relu_(), lambda: tf.zeros(8).mul_(x)[1:].add_(x[1:]), lambda: x.std(),
        ):  # fmt: skip
            f()
            x.grad = None
            assert gc.collect() == 0, f.__code__.co_firstlineno
    finally:
        gc.enable()
        gc.unfreeze()


# ---- what must not end the process


def test_objects_that_misbehave():
    """Exceptions of users' objects pass through, wrong self and half-made objects are TypeErrors."""

    class Bad:
        """Fails when it is read as a number."""

        def __float__(self):
            raise ZeroDivisionError("boom")

        __index__ = __float__

    class Endless:
        """A sequence that never ends by itself."""

        def __len__(self):
            return 3

        def __getitem__(self, i):
            return i

    x, bad = tf.ones(3), Bad()
    for call in (
        lambda: x + bad, lambda: bad * x, lambda: tf.tensor([bad]), lambda: x[bad], lambda: tf.zeros(bad), lambda: x.sum(bad),
        lambda: x.__setitem__(0, bad), lambda: x.fill_(bad), lambda: tf.full((2,), bad), lambda: x.add_(bad),
        lambda: x.reshape(bad), lambda: x.__setitem__(bad, 1),
    ):  # fmt: skip
        with pytest.raises(ZeroDivisionError, match="boom"):
            call()
    assert tf.tensor(Endless()).tolist() == [0, 1, 2]
    for call in (
        lambda: tf.Tensor.item(3), lambda: tf.Tensor.shape.__get__(3), lambda: tf.Tensor.tolist(3), lambda: tf.Tensor.add(1, 2),
        lambda: type(tf.exp).__new__(type(tf.exp))(x), lambda: type(x.sum).__new__(type(x.sum)), lambda: type(tf.float32)(),
        lambda: pow(x, 2, 5), lambda: setattr(x, "requires_grad", "yes"), lambda: tf.Tensor.numel("a"),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call()
    node = type((x.requires_grad_() * 2).grad_fn)
    assert node().next_functions == () and repr(node())


def test_keys_that_change_the_tensor():
    x = tf.ones(5)

    class Shrinking:
        """Takes the tensor's memory away while the key is read."""

        def __index__(self):
            x.data = tf.zeros(0)
            return 4

    for read in (lambda: x[Shrinking()], lambda: x[Shrinking() :], lambda: x[: Shrinking()]):
        x.data = tf.ones(5)
        with pytest.raises(IndexError, match="changed|out of range"):
            read()


def test_run_with_checks_what_it_is_given():
    x = tf.ones(3)
    for op, args, attrs in (
        (tf.where, (x > 0,), ()), (tf.sum, (x,), ()), (tf.cat, (), (0,)), (tf.add, (x, x, x), ()), (tf.exp, (x,), (1,)),
    ):  # fmt: skip
        with pytest.raises(
            TypeError, match=f"^{op.__name__}: run_with got {len(args)} arguments and {len(attrs)}"
        ):
            op.run_with(args, attrs)
    for op, args, attrs in ((tf.exp, (None,), ()), (tf.exp, ("x",), ()), (tf.cat, (x, 1), (0,))):
        with pytest.raises(TypeError, match="expected a Tensor"):
            op.run_with(args, attrs)
    assert tf.where.run_with((x > 0, x, 0.0), ()).tolist() == [1.0] * 3


def test_cycles_are_found_whenever_a_collection_runs():
    """One may run while a node is filled, when its tuples hold nothing but None yet."""
    x = tf.ones(4).requires_grad_(True)
    b = x * 1
    v = b[0:2]
    b.mul_(2)
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        y = v.exp()
    finally:
        gc.set_threshold(*before)
    y.sum().backward(create_graph=True)
    left = weakref.ref(x)
    del x, b, v, y
    gc.collect()
    assert left() is None
