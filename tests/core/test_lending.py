"""Copies that share bytes until one side is written: no write shows on the other side, by whichever road it comes."""

import copy
import ctypes
import gc
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
import samples

import tinyfin as tf
from tinyfin.core import exchange, tensor
from tinyfin.ops import table

WRITERS = [n for n, row in table.TABLE.items() if row.inplace or row.mutates]
N = 1 << 16


@pytest.fixture
def small():
    """Copies share from one byte on."""
    old = tensor.lend_from(1)
    yield
    tensor.lend_from(old)


def live():
    """Bytes of all tensors on the host."""
    return tf.memory_stats()["live"]


def bits(t):
    """The elements' bytes, read in a way that ends no sharing."""
    return exchange.to_bytes(t.detach())


@pytest.fixture(autouse=True)
def no_collection():
    """What a collection frees would show in the memory that is counted."""
    gc.disable()
    yield
    gc.enable()


def copied(t):
    """A copy that surely shares the bytes of t."""
    before = live()
    c = t.clone()
    assert live() == before, "the copy took memory of its own"
    return c


# ---- every row that writes


def written_by(name, args):
    """The tensors among its arguments that a row writes."""
    row = table.TABLE[name]
    if row.inplace:
        return [0]
    return [i for i, a in enumerate(row.arg_names) if a in row.mutates and args[i] is not None]


def run(name, args, kwargs):
    """One writing call; whether it was accepted."""
    try:
        table.OPS[name + "_" if table.TABLE[name].inplace else name](*args, **kwargs)
    except RuntimeError:  # a result that does not fit
        return False
    return True


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("side", ["original", "copy", "view of the original", "view of the copy"])
@pytest.mark.parametrize("name", WRITERS)
def test_rows_write_one_side(name, side):
    seen = 0
    for sample in samples.samples_of(name):
        dtype = samples.main_dtype(name)

        def made(sample=sample, dtype=dtype):
            return samples.mapped(sample, lambda a: samples.tensor(a, dtype))

        args, kwargs = made()
        want, _ = made()
        if not isinstance(args[0], tf.Tensor) or not run(name, want, kwargs):
            continue
        places = [i for i in written_by(name, args) if args[i].numel()]
        others = {}
        for i in places:
            before, c = bits(args[i]), copied(args[i])
            x = args[i]
            if side.endswith("copy"):
                x, c = c, x
            args[i] = x.view(x.shape) if side.startswith("view") else x
            others[i] = (c, before, x)
        assert run(name, args, kwargs)
        for i, (c, before, x) in others.items():
            assert bits(c) == before, f"{name}{sample}: the other side changed"
            assert bits(x) == bits(args[i]) == bits(want[i]), f"{name}{sample}: other elements"
            seen += 1
    assert seen, f"no sample of {name} can be written"


# ---- every other road of a write

WRITES = {
    "setitem": lambda x: x.__setitem__(slice(3, 90), 5.0),
    "setitem by index": lambda x: x.__setitem__(tf.tensor([1, 7]), 5.0),
    "setitem by mask": lambda x: x.__setitem__(x > 0, 5.0),
    "element": lambda x: x.__setitem__(4, 5.0),
    "copy_": lambda x: x.copy_(tf.full((N,), 2.0)),
    "fill_": lambda x: x.fill_(3),
    "zero_": lambda x: x.zero_(),
    "operator": lambda x: x.__iadd__(1),
    "out": lambda x: tf.exp(tf.ones(N), out=x),
    "data": lambda x: x.data.add_(1),
    "detach": lambda x: x.detach().mul_(2),
    "view": lambda x: x[5:70].add_(1),
    "view of a view": lambda x: x.view(2, -1).t()[3].add_(1),
    "stepped view": lambda x: x[::2].neg_(),
    "uniform_": lambda x: x.uniform_(),
    "normal_": lambda x: x.normal_(),
    "bernoulli_": lambda x: x.bernoulli_(0.5),
    "init": lambda x: tf.nn.init.constant_(x, 4.0),
    "scatter_": lambda x: x.scatter_(0, tf.tensor([0, 5]), tf.tensor([7.0, 8.0])),
    "index_add_": lambda x: x.index_add_(0, tf.tensor([0, 5]), tf.tensor([7.0, 8.0])),
    "masked_fill_": lambda x: x.masked_fill_(x > 0, 2.0),
    "numpy": lambda x: x.numpy().__setitem__(2, 9.0),
    "__array__": lambda x: np.asarray(x).__setitem__(2, 9.0),
    "buffer": lambda x: memoryview(x).cast("B").__setitem__(2, 9),
    "memory_of": lambda x: memoryview(tensor.memory_of(x)).cast("B").__setitem__(2, 9),
    "dlpack": lambda x: np.from_dlpack(x).fill(9.0),
    "data_ptr": lambda x: ctypes.memset(x.data_ptr(), 1, 8),
    "own dlpack": lambda x: tf.from_dlpack(x).add_(1),
}


@pytest.mark.parametrize("side", ["original", "copy"])
@pytest.mark.parametrize("road", WRITES)
def test_roads_write_one_side(road, side):
    x = tf.linspace(-1, 1, N)
    early = x[10:20]
    c = copied(x)
    late = [x[10:20], c[10:20], c.view(2, -1), c.detach()]
    before = bits(x)
    written, other = (x, c) if side == "original" else (c, x)
    WRITES[road](written)
    assert bits(other) == before
    assert bits(written) != before
    assert bits(early) == bits(late[0]) == bits(x)[40:80]
    assert bits(late[1]) == bits(c)[40:80]
    assert bits(late[2]) == bits(late[3]) == bits(c)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "RMSprop"])
def test_optimizers_write_one_side(optimizer):
    p = tf.ones(N, requires_grad=True)
    kept, ahead = copied(p.detach()), copied(p.detach())
    step = getattr(tf.optim, optimizer)([p], lr=0.5)
    p.grad = tf.ones(N)
    step.step()
    assert bits(kept) == bits(ahead) == bits(tf.ones(N)) != bits(p)


@pytest.mark.parametrize(
    "road",
    [
        lambda x: x.numpy(),
        np.asarray,
        memoryview,
        np.from_dlpack,
        lambda x: x.data_ptr(),
        lambda x: tensor.memory_of(x),
    ],
)
def test_known_addresses_are_not_shared(road):
    """What was given away may be written by others at any time, so later copies are made at once."""
    x = tf.ones(N)
    window = road(x)
    before = live()
    c = x.clone()
    assert live() == before + x.nbytes
    if isinstance(window, int):
        ctypes.memset(window, 0, 4 * N)
    else:
        np.asarray(window).reshape(-1).view("float32")[:] = 0
    assert c.sum().item() == N and x.sum().item() == 0


@pytest.mark.parametrize("made", [tf.from_numpy, tf.from_dlpack])
def test_borrowed_memory_is_not_shared(made):
    a = np.ones(N, "float32")
    c = made(a).clone()
    a[:] = 0
    assert c.sum().item() == N
    frozen = np.ones(N, "float32")
    frozen.flags.writeable = False
    c = tf.from_numpy(frozen).clone()
    c.add_(1)
    assert c.sum().item() == 2 * N and frozen.sum() == N


def test_two_sides_have_two_addresses():
    x = tf.ones(N)
    c = copied(x)
    assert c.data_ptr() != x.data_ptr() and not tensor.shares_storage(c, x)


def test_windows_on_parts_are_copied_at_once():
    """A copy of a part must not keep the whole alive."""
    big = tf.ones(2 * N)
    before = live()
    c = big[:N].clone()
    assert live() == before + c.nbytes
    for odd in (big[::2], big.view(2, N).t(), big.flip(0), tf.ones(1).expand(N)):
        c = odd.clone()
        assert c.is_contiguous() and bits(c) == bits(odd.contiguous())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    """Copies, views, writes, addresses and deletions in any order, beside NumPy arrays that do the same at once."""
    rng = np.random.default_rng(seed)
    pairs = [
        (tf.from_numpy(a).add(0), a.copy()) for a in rng.normal(size=(2, 24)).astype("float32")
    ]
    start, most = live(), 0
    for _ in range(120):
        k = int(rng.integers(len(pairs)))
        t, a = pairs[k]
        act = rng.choice(["clone", "clone", "view", "detach", "write", "part", "delete", "numpy"])
        if act == "clone" and len(pairs) < 12:
            pairs.append((t.clone(), a.copy()))
        elif act == "view":
            lo, step = int(rng.integers(3)), int(rng.integers(1, 3))
            if len(a) > 8:
                pairs.append((t[lo::step], a[lo::step]))
        elif act == "detach":
            pairs[k] = (t.detach(), a)
        elif act == "write":
            t.mul_(1.5)
            a *= np.float32(1.5)
        elif act == "part":
            t[1:4] = k
            a[1:4] = k
        elif act == "numpy" and rng.random() < 0.3:
            t.numpy()[:2] = 7
            a[:2] = 7
        elif act == "delete" and len(pairs) > 1:
            del pairs[k]
        t = a = None
        most = max(most, live() - start)
        for t, a in pairs:
            assert bits(t.contiguous() if not t.is_contiguous() else t) == a.tobytes()
        t = a = None
    assert most <= 14 * 24 * 4, f"{most} bytes"
    pairs.clear()
    assert live() <= start


# ---- who copies, who gets the bytes


def test_memory_is_counted_once_and_one_copy_serves_all():
    start = live()
    x = tf.ones(N)
    size = x.nbytes
    a = copied(x)
    b, c = copied(x), copied(a)
    assert live() == start + size
    x.add_(1)
    assert live() == start + 2 * size and bits(a) == bits(b) == bits(c)
    b.add_(1)
    assert live() == start + 3 * size and bits(b) == bits(x) and bits(a) == bits(c)
    del a
    c.add_(1)
    assert live() == start + 3 * size, "the last one takes the bytes over"
    assert bits(c) == bits(b) == bits(x)
    del x, b, c
    assert live() == start


def test_the_last_one_takes_the_bytes_over():
    x = tf.ones(N)
    c = copied(x)
    v = c[1:3]
    del x
    requests = tf.memory_stats()["requests"]
    c.add_(1)
    assert tf.memory_stats()["requests"] == requests
    assert v.tolist() == [2.0, 2.0] and c.sum().item() == 2 * N


def test_late_copies_are_noted_for_profiles():
    x = tf.ones(N)
    c = copied(x)
    old = tensor.note_calls(1)
    try:
        x.add_(1)
        names = [note[0] for note in tensor.take_notes()]
    finally:
        tensor.note_calls(old)
    assert names == ["copy on write", "add"] and c.sum().item() == N


def test_writes_may_run_out_of_memory():
    x = tf.ones(N)
    a, b = copied(x), copied(x)
    versions = [t._version for t in (x, a, b)]
    tf.set_memory_limit(live() + x.nbytes // 2)
    try:
        for write in (
            lambda: x.add_(1),
            lambda: a.fill_(0),
            lambda: b.uniform_(),
            lambda: x.numpy(),
            lambda: a[3:5].copy_(tf.zeros(2)),
        ):
            with pytest.raises(MemoryError, match="float|bytes|limit"):
                write()
    finally:
        tf.set_memory_limit(None)
    assert versions == [t._version for t in (x, a, b)]
    assert bits(x) == bits(a) == bits(b) == bits(tf.ones(N))
    x.add_(1)
    assert a.sum().item() == N


def test_views_that_are_gone_leave_the_books():
    import tracemalloc

    x = tf.ones(N)
    c = copied(x)
    kept = c[7:9]
    tracemalloc.start()
    for _ in range(20000):
        c[3]
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used < 20000, f"{used} bytes for views that are gone"
    x.zero_()
    assert kept.tolist() == [1.0, 1.0] and c.sum().item() == N


def test_data_moves_a_window_away():
    x, y = tf.ones(N), tf.zeros(N)
    c = copied(x)
    d = c.detach()
    d.data = y
    x.add_(1)
    assert d.sum().item() == 0 and c.sum().item() == N
    z = tf.zeros(3)
    z.data = copied(x)
    x.add_(1)
    assert z.sum().item() == 2 * N


# ---- copies of other kinds


def test_deepcopy_and_state_dict():
    model = tf.nn.Linear(256, 256)
    before = live()
    twin = copy.deepcopy(model)
    assert live() - before < 4096
    state = {k: v.clone() for k, v in model.state_dict().items()}
    assert live() - before < 4096
    kept = {k: bits(v) for k, v in model.state_dict().items()}
    tf.optim.SGD(model.parameters(), lr=1.0)
    for p in model.parameters():
        p.grad = tf.ones(p.shape)
    tf.optim.SGD(model.parameters(), lr=1.0).step()
    assert {k: bits(v) for k, v in twin.state_dict().items()} == kept
    assert {k: bits(v) for k, v in state.items()} == kept
    model.load_state_dict(state)
    assert {k: bits(v) for k, v in model.state_dict().items()} == kept


def test_deepcopy_keeps_shared_memory_shared():
    x = tf.ones(N)
    pair = copy.deepcopy([x, x[2:4]])
    x.zero_()
    pair[0].add_(1)
    assert pair[1].tolist() == [2.0, 2.0]


def test_pickles_read_only():
    x = tf.ones(N)
    c = copied(x)
    before = live()
    data = pickle.dumps(c)
    assert live() == before
    x.zero_()
    assert pickle.loads(data).sum().item() == N


# ---- derivatives


def test_gradients_pass():
    x = tf.ones(N, requires_grad=True)
    c = x.clone()
    assert c.grad_fn is not None and not c.is_leaf
    (c * c).sum().backward()
    assert x.grad.sum().item() == 2 * N


def test_saved_copies_keep_their_values():
    """A write to the original neither raises in backward nor changes what was saved of the copy."""
    w = tf.ones(N, requires_grad=True)
    x = tf.full((N,), 3.0)
    c = copied(x)
    version = x._version
    y = (w * c).sum()
    x.mul_(100)
    assert x._version == version + 1 and c._version == 0
    y.backward()
    assert w.grad.sum().item() == 3 * N
    y = (w * c).sum()
    c.add_(1)
    with pytest.raises(RuntimeError, match="modified in place"):
        y.backward()


def test_gradients_that_two_leaves_share():
    a, b = tf.ones(N, requires_grad=True), tf.ones(N, requires_grad=True)
    (a + b).sum().backward()
    a.grad.mul_(5)
    assert b.grad.sum().item() == N and a.grad.sum().item() == 5 * N
    (a + b).sum().backward()
    assert b.grad.sum().item() == 2 * N and a.grad.sum().item() == 6 * N


# ---- threads and processes


def test_threads_read_a_copy_while_the_original_is_written():
    n = 1 << 21
    wrong, stop = [], threading.Event()
    x = tf.ones(n)
    box = [x.clone()]

    def read():
        while not stop.is_set():
            c = box[0]
            if c.exp().sum().item() != want or bits(c[:4]) != ones:
                wrong.append(c[:4].tolist())
                return

    ones, want = bits(tf.ones(4)), tf.ones(n).exp().sum().item()
    readers = [threading.Thread(target=read) for _ in range(2)]
    for r in readers:
        r.start()
    end = time.monotonic() + 1.5
    while time.monotonic() < end and not wrong:
        x.fill_(7)
        x.fill_(1)
        box[0] = x.clone()
    stop.set()
    for r in readers:
        r.join()
    assert not wrong, wrong


def test_a_kernel_that_reads_what_it_borrows_delays_the_write():
    """The write waits for the end of a kernel that began before it."""
    n = 1 << 22
    x = tf.ones(n)
    for _ in range(5):
        c = x.clone()
        begun, sums = threading.Event(), []

        def read(c=c, begun=begun, sums=sums):
            begun.set()
            sums.append(c.sin().sum().item())

        want = tf.ones(n).sin().sum().item()
        reader = threading.Thread(target=read)
        reader.start()
        begun.wait()
        x.fill_(5)
        reader.join()
        x.fill_(1)
        assert sums == [want]


def writing(x):
    """A thread that has begun to write x, without the GIL for most of the time."""
    begun = threading.Event()

    def write():
        begun.set()
        x.sin_()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait()
    return writer


def test_copies_of_what_is_being_written_are_made_at_once():
    """Their elements are those of some moment, but do not change later."""
    for _ in range(5):
        x = tf.ones(1 << 22)
        writer = writing(x)
        c = x.clone()
        first = bits(c)
        writer.join()
        assert bits(c) == first


def test_memory_that_a_kernel_writes_is_not_given_to_others():
    """Another thread takes it from under the tensor meanwhile."""
    n = 1 << 22
    for _ in range(5):
        x, other = tf.full((n,), 0.5), tf.zeros(n)
        writer = writing(x)
        time.sleep(0.002)
        x.data = other
        y = tf.full((n,), 5.0)
        writer.join()
        assert y.min().item() == y.max().item() == 5.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_does_not_wait_for_kernels_of_its_parent():
    x = tf.ones(1 << 22)
    c = x.clone()
    stop = threading.Event()

    def read():
        while not stop.is_set():
            c.sin()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(5):
            time.sleep(0.01)
            pid = os.fork()
            if not pid:
                signal.alarm(20)
                x[:10].fill_(2)
                os._exit(0 if c[:10].sum().item() == 10 else 1)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        reader.join()


def test_devices_copy_at_once():
    x = tf.ones(N).to("null")
    c = x.clone()
    assert tensor.storage_of(c) is not tensor.storage_of(x) and c.shape == x.shape


def test_finalizers_that_write_while_a_list_is_made():
    class Writer:
        def __init__(self):
            self.me = self

        def __del__(self):
            x.fill_(9)

    x = tf.ones(N)
    c = copied(x)
    for _ in range(3):
        Writer()
    values = c.tolist()
    gc.collect()
    assert set(values) == {1.0} and x[0].item() == 9.0


def test_a_tensor_that_comes_back_moves_once():
    """`data = ...` over the bytes that a tensor has already, or had before."""
    a = tf.ones(100_000)
    c = a.clone()
    c.data = c.data
    c.add_(1)
    assert c.sum().item() == 200_000 and a.sum().item() == 100_000
    c, z = a.clone(), tf.zeros(100_000)
    d = c.detach()
    d.data = z
    d.data = c
    a.add_(1)
    assert d.sum().item() == c.sum().item() == 100_000
    v = c[10:20]
    w = v.detach()
    w.data = v
    c.add_(2)
    assert w.tolist() == [3.0] * 10
