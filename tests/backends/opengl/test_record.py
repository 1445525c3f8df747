"""Streams: order, barriers, and what the driver's answers become, with functions that play a driver."""

import ctypes
import itertools
import threading

import pytest

import tinyfin as tf
from tinyfin.backends.base import REGISTRY
from tinyfin.backends.gpu import backend, modules
from tinyfin.backends.gpu.launch import set_device
from tinyfin.backends.gpu.slabs import Pool, Slab
from tinyfin.backends.opengl.record import ADDRESS_SHIFT, FUNCTIONS, STAGED, Stream
from tinyfin.core.device import SLOTS

COUNTS = {
    "UseProgram": 1, "ProgramUniform1uiv": 4, "ProgramUniform2uiv": 4, "BindBufferBase": 3, "DispatchCompute": 3,
    "MemoryBarrier": 1, "BindBuffer": 2, "BufferSubData": 4, "GetBufferSubData": 4, "CopyBufferSubData": 5,
    "FenceSync": 2, "ClientWaitSync": 3, "DeleteSync": 1, "Flush": 0, "GenQueries": 2, "DeleteQueries": 2,
    "QueryCounter": 2, "GetQueryObjectui64v": 3, "GetError": 0, "GetGraphicsResetStatus": 0,
}  # fmt: skip
SIGNALLED, EXPIRED, FAILED = 0x911A, 0x911B, 0x911D
KEEP = []
NUMBERS = itertools.count(20)


class Quiet:
    """A record of bad indices that stays empty."""

    def check(self, device):
        pass


class Driver(backend.Device):
    """A device whose functions note their calls; `answers` holds what they return, `wait` what they wait for."""

    name, int64, float64 = "played", True, True

    def __init__(self, seconds=5.0, **answers):
        self.answers = {"FenceSync": 1, "ClientWaitSync": SIGNALLED, **answers}
        self.calls, self.wait = [], {}
        self.memory, self.bound, self.staged = bytearray(40 << 20), {}, {}
        self.stream = Stream("played", seconds)
        self.faults, self.slabs = Quiet(), itertools.count(1)
        self.pool = Pool(self.new_slab, lambda slab: None, "played", 64 << 20)
        self.stream.connect([self.address(name) for name in FUNCTIONS])
        self.stream.take(lambda shader, constants: 7 | 0 << 32 | 1 << 48)
        self.thread = threading.Thread(target=self.stream.serve, daemon=True)
        self.thread.start()

    def new_slab(self, nbytes):
        number = next(self.slabs)
        return Slab(number, number << ADDRESS_SHIFT, 0, nbytes)

    def stage(self, write=501, read=502):
        """Gives the stream buffers that the host sees."""
        made = [(ctypes.c_ubyte * n)() for n in STAGED]
        self.staged.update(zip((write, read), (memoryview(m).cast("B") for m in made)))
        to_write, to_read = map(ctypes.addressof, made)
        self.stream.stage(write, to_write, read, to_read)

    def write(self, block, offset, data):
        self.stream.write(block.block + offset, data)

    def read(self, block, offset, out):
        self.stream.read(block.block + offset, out)

    def address(self, name):
        """A C function that notes its call and gives the planned answer."""

        def play(*args):
            self.calls.append((name, *args))
            if name in self.wait:
                self.wait[name].wait(10)
            if name == "BindBuffer":
                self.bound[args[0]] = args[1]
            elif name == "CopyBufferSubData":
                source, target = (self.staged.get(self.bound[k], self.memory) for k in args[:2])
                target[args[3] : args[3] + args[4]] = source[args[2] : args[2] + args[4]]
            elif name.endswith("BufferSubData"):
                here = slice(args[1], args[1] + args[2])
                there = (ctypes.c_char * args[2]).from_address(args[3])
                if name == "BufferSubData":
                    self.memory[here] = there.raw
                else:
                    there[:] = bytes(self.memory[here])
            return self.answers.get(name, 0)

        result = ctypes.c_void_p if name == "FenceSync" else ctypes.c_uint32
        made = ctypes.CFUNCTYPE(result, *[ctypes.c_size_t] * COUNTS[name])(play)
        KEEP.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value

    def names(self, *wanted):
        return [c[0] for c in self.calls if c[0] in wanted]


@pytest.fixture
def played(monkeypatch):
    """A maker of drivers, each with the name under which tensors are made there."""
    opengl = REGISTRY["opengl"]
    monkeypatch.setattr(opengl, "find", lambda: ([Driver] * 200, None))
    if not modules.FILE.exists():
        pytest.skip("this build has no shaders")
    made = []

    def make(**answers):
        driver, number = Driver(**answers), next(NUMBERS)
        opengl.opened_devices[number] = driver
        set_device(SLOTS["opengl"], number, driver.stream, True, True, 0)
        made.append((number, driver))
        return driver, f"opengl:{number}"

    yield make
    for number, driver in made:
        for event in driver.wait.values():
            event.set()
        driver.stream.stop()
        driver.thread.join(5)
        del opengl.opened_devices[number]


def test_a_dispatch(played):
    driver, where = played()
    x = tf.empty(100, device=where)
    y = x + x
    driver.stream.synchronize()
    used = driver.names("UseProgram", "BindBufferBase", "DispatchCompute")
    assert used == ["BindBufferBase"] * 3 + ["UseProgram", "DispatchCompute"]
    (_, program, place, n, _), (_, _, word_place, words, _) = (
        c for c in driver.calls if c[0].startswith("ProgramUniform")
    )
    assert (program, place, n, word_place, words) == (7, 0, 3, 1, 23) and y.shape == (100,)
    driver.calls.clear()
    x + x
    driver.stream.synchronize()
    assert driver.names("UseProgram", "BindBufferBase", "DispatchCompute") == ["DispatchCompute"]


@pytest.mark.parametrize(
    ("work", "barriers"),
    [
        (lambda x, y: (x + 1, y + 1), 0),
        (lambda x, y: (x + y, x * y), 0),
        (lambda x, y: (x + 1) * 2, 1),
        (lambda x, y: (x + 1) * 2 - 1, 2),
        (lambda x, y: x.add_(1).mul_(2), 1),
        (lambda x, y: (x + 1, x.mul_(2)), 1),
        (lambda x, y: (x[:50] + 1, x[50:].mul_(2)), 0),
    ],
)
def test_a_barrier_only_where_work_depends_on_work(played, work, barriers):
    driver, where = played()
    x, y = tf.empty(100, device=where), tf.empty(100, device=where)
    kept = work(x, y)
    driver.stream.synchronize()
    assert len(driver.names("MemoryBarrier")) == barriers, kept


def test_transfers(played):
    """Parts of large ones arrive in order; what is written may change afterwards."""
    driver, _ = played()
    data = bytearray(bytes(range(256)) * 80_000)  # 20 MB: five parts
    address = 3 << ADDRESS_SHIFT | 1000
    driver.stream.write(address, data)
    wanted, data[:] = bytes(data), bytes(len(data))
    out = bytearray(len(data))
    driver.stream.read(address, out)
    assert out == wanted and len(driver.names("BufferSubData")) == 5
    bound = [c[1:3] for c in driver.calls if c[0] == "BindBuffer"]
    assert bound == [(0x8F37, 3)] * 5 + [(0x8F36, 3)] * 5 and not driver.names("CopyBufferSubData")
    small = bytearray(5)
    driver.stream.read(address + 7, small)
    driver.stream.read(address, bytearray())
    assert small == wanted[7:12]


def test_transfers_through_buffers_that_the_host_sees(played):
    """Large buffers are neither given nor asked for bytes by the host."""
    driver, _ = played()
    driver.stage()
    data = bytearray(bytes(range(256)) * 80_000)
    address = 3 << ADDRESS_SHIFT | 1000
    driver.stream.write(address, data)
    wanted, data[:] = bytes(data), bytes(len(data))
    out = bytearray(len(data))
    driver.stream.read(address, out)
    assert out == wanted and not driver.names("BufferSubData", "GetBufferSubData")
    copies = [c[3:] for c in driver.calls if c[0] == "CopyBufferSubData"]
    part, side = STAGED[1], STAGED[0] // 2
    starts = [c[0] for c in copies[:5]]
    assert starts == [0, part, side, side + part, 0]  # back on a side that the device has read
    places = [i for i, c in enumerate(driver.calls) if c[0] == "CopyBufferSubData"]
    waits = [i for i, c in enumerate(driver.calls) if c[0] == "ClientWaitSync"]
    assert any(places[3] < i < places[4] for i in waits)
    assert not any(i < places[3] for i in waits)
    for n in (1, 5, 63, 64, 65, 4095):
        piece = wanted[n : 2 * n]
        driver.stream.write(address + n, piece)
        small = bytearray(n)
        driver.stream.read(address + n, small)
        assert small == piece


@pytest.mark.parametrize(
    ("answers", "error", "text"),
    [
        ({"GetError": 0x505}, MemoryError, "the device is out of memory"),
        ({"GetError": 0x507}, RuntimeError, "the driver has lost the context"),
        ({"GetError": 0x502}, RuntimeError, "the driver answered 0x502"),
        ({"GetGraphicsResetStatus": 0x8253}, RuntimeError, "the driver has reset the device"),
        ({"ClientWaitSync": EXPIRED}, RuntimeError, r"did not finish within 0\.5 s"),
        ({"ClientWaitSync": FAILED}, RuntimeError, "gave up waiting"),
    ],
)
def test_the_first_failure_ends_the_stream(played, answers, error, text):
    driver, where = played(seconds=0.5, **answers)
    x = tf.empty(10, device=where)
    x.add_(1)
    with pytest.raises(error, match=f"opengl: played: .*{text}"):
        driver.synchronize()
    assert driver.stream.lost
    driver.answers.clear()
    driver.calls.clear()
    with pytest.raises(error, match=text):
        x + 1
    with pytest.raises(error, match=text):
        x.tolist()
    assert driver.calls == [] and (tf.ones(2) + 1).tolist() == [2.0, 2.0]


def test_a_driver_that_hangs(played):
    driver, where = played(seconds=0.3)
    driver.wait["DispatchCompute"] = threading.Event()
    x = tf.empty(10, device=where)
    y = x + 1
    with pytest.raises(RuntimeError, match="did not finish"):
        y.tolist()
    with pytest.raises(RuntimeError, match="did not finish"):
        x + 1
    driver.wait["DispatchCompute"].set()


def test_more_commands_than_places(played):
    driver, where = played()
    driver.wait["DispatchCompute"] = threading.Event()
    threading.Timer(0.2, driver.wait["DispatchCompute"].set).start()
    x = tf.empty(10, device=where)
    for _ in range(1000):
        x.add_(1)
    driver.synchronize()
    assert len(driver.names("DispatchCompute")) == 1000
    assert 1000 // 64 <= len(driver.names("FenceSync")) <= 1000 // 64 + 2


def test_jobs_run_on_the_thread_of_the_context(played):
    driver, _ = played()
    assert driver.stream.call(threading.get_ident) == driver.thread.ident

    def fails():
        raise LookupError("no such shader")

    with pytest.raises(LookupError, match="no such shader"):
        driver.stream.call(fails)
    driver.stream.stop()
    driver.thread.join(5)
    with pytest.raises(RuntimeError, match="the process is ending"):
        driver.stream.synchronize()


def test_times_of_dispatches(played):
    """One timestamp when it begins, two around each dispatch; none before and after."""
    driver, device = played()
    x = tf.ones(4).to(device)
    x.exp()
    first = driver.stream.call(driver.stream.begin_times)
    x.exp()
    x.exp()
    assert len(driver.stream.call(driver.stream.end_times)) == 5
    x.exp()
    driver.stream.synchronize()
    assert first == 1
    names = driver.names("DispatchCompute", "QueryCounter", "GetQueryObjectui64v", "DeleteQueries")
    dispatch, stamp = names[0], names[1]
    around = [stamp, dispatch, stamp]
    assert names == [
        dispatch, stamp, *around, *around, *["GetQueryObjectui64v"] * 5, "DeleteQueries", dispatch,
    ]  # fmt: skip


def test_in_a_fork(played):
    driver, _ = played()
    driver.stream.synchronize()
    driver.stream.orphan()
    driver.thread.join = lambda seconds: None
    with pytest.raises(RuntimeError, match="the process is a fork"):
        driver.stream.synchronize()


def test_wrong_functions():
    stream = Stream("x", 1.0)
    with pytest.raises(ValueError, match="2 functions, expected 20"):
        stream.connect([1, 2])
    with pytest.raises(RuntimeError, match="x has no function glUseProgram"):
        stream.connect([0] * 20)
