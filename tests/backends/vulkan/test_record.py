"""Streams: what the driver's answers become, with functions that play a failing driver."""

import ctypes

import pytest
from backends.isolated import run

from tinyfin.backends.gpu.slabs import Slab
from tinyfin.backends.vulkan.record import FUNCTIONS, RING, Stream

KEEP = []


class Driver:
    """Functions with the signatures of a device; `answers` holds what they return."""

    def __init__(self, **answers):
        self.answers, self.calls = answers, []
        self.signalled = 0

    def address(self, name):
        """A C function that notes its call and gives the planned answer."""

        def play(*args):
            self.calls.append(name)
            if name == "GetSemaphoreCounterValue":
                ctypes.cast(args[2], ctypes.POINTER(ctypes.c_uint64))[0] = self.signalled
            return self.answers.get(name, 0)

        made = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * COUNTS[name])(play)
        KEEP.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value

    def stream(self, seconds=1.0):
        """A stream on this driver."""
        return Stream(
            "played", [self.address(n) for n in FUNCTIONS], 1, 2, 3, range(1, RING + 1), seconds
        )


STAGES_CODE = """
import ctypes
import tinyfin as tf
from tinyfin.backends.vulkan import device
was, seen = device.Opened.function, []
def function(self, name):
    address = was(self, name)
    if name != "vkCmdPipelineBarrier":
        return address
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 10)
    real = kind(address)
    function.kept = kind(lambda *args: (seen.append(args[1]), real(*args))[1])
    return ctypes.cast(function.kept, ctypes.c_void_p).value
device.Opened.function = function
x = tf.ones(1000, device="vulkan")
tf.synchronize("vulkan")
x.add_(1.0)
seen.clear()
x.add_(1.0)
x.add_(1.0)
y = tf.from_numpy(tf.ones(1000).numpy()).to("vulkan")  # copied: the device has work
y.add_(x)
y.add_(x)
print(*map(hex, seen))
"""
COUNTS = {
    "BeginCommandBuffer": 2,
    "EndCommandBuffer": 1,
    "CmdBindPipeline": 3,
    "CmdPushConstants": 6,
    "CmdDispatch": 4,
    "CmdPipelineBarrier": 10,
    "CmdCopyBuffer": 5,
    "CmdResetQueryPool": 4,
    "CmdWriteTimestamp": 4,
    "GetQueryPoolResults": 8,
    "QueueSubmit": 4,
    "WaitSemaphores": 3,
    "GetSemaphoreCounterValue": 3,
}


def copies(stream, *pairs):
    for source, target in pairs:
        stream.copy(Slab(1, source, 0, 1000), 0, Slab(2, target, 0, 1000), 0, 100)


def test_nothing_is_submitted_before_it_must():
    driver = Driver()
    stream = driver.stream()
    copies(stream, *[(1000 * i, 500_000 + 1000 * i) for i in range(63)])
    assert "QueueSubmit" not in driver.calls and stream.value == 0
    copies(stream, (900_000, 950_000))
    assert driver.calls.count("QueueSubmit") == 1 and stream.value == 1
    driver.signalled = 1
    stream.synchronize()
    assert "WaitSemaphores" not in driver.calls


@pytest.mark.parametrize(
    ("pairs", "barriers"),
    [
        ([(0, 1000), (2000, 3000)], 0),
        ([(0, 1000), (0, 2000)], 0),
        ([(0, 1000), (1000, 2000)], 1),
        ([(0, 1000), (1099, 2000)], 1),
        ([(0, 1000), (1100, 2000)], 0),
        ([(0, 1000), (2000, 0)], 1),
        ([(0, 1000), (2000, 1000)], 1),
        ([(0, 1000), (1000, 2000), (2000, 3000)], 2),
    ],
)
def test_a_barrier_only_where_work_depends_on_work(pairs, barriers):
    driver = Driver()
    copies(driver.stream(), *pairs)
    assert driver.calls.count("CmdPipelineBarrier") == barriers


@pytest.mark.parametrize(
    ("answers", "error", "text"),
    [
        ({"QueueSubmit": -4}, RuntimeError, "the device was lost"),
        ({"WaitSemaphores": 2}, RuntimeError, r"did not finish within 0\.5 s"),
        ({"WaitSemaphores": -4}, RuntimeError, "the device was lost"),
        ({"BeginCommandBuffer": -2}, MemoryError, "the device is out of memory"),
        ({"EndCommandBuffer": -1}, MemoryError, "the host is out of memory"),
        ({"QueueSubmit": -99}, RuntimeError, "the driver answered -99"),
    ],
)
def test_the_first_failure_ends_the_stream(answers, error, text):
    driver = Driver(**answers)
    stream = driver.stream(0.5)
    with pytest.raises(error, match=f"played: .*{text}"):
        copies(stream, (0, 1000))
        stream.synchronize()
    assert stream.lost
    driver.answers.clear()
    driver.calls.clear()
    with pytest.raises(error, match=text):
        copies(stream, (0, 1000))
    assert driver.calls == []


def test_wrong_numbers_of_functions():
    with pytest.raises(ValueError, match="2 functions and 1 buffers, expected 13 and 8"):
        Stream("x", [1, 2], 1, 1, 1, [1], 1.0)


def test_no_timestamps_unless_asked_for():
    driver = Driver()
    stream = driver.stream()
    copies(stream, (0, 1000))
    stream.synchronize()
    assert not {"CmdResetQueryPool", "CmdWriteTimestamp", "GetQueryPoolResults"} & set(driver.calls)
    assert stream.time(9) == 0 and driver.calls.count("CmdWriteTimestamp") == 1
    assert len(stream.untime()) == 1 and driver.calls.count("GetQueryPoolResults") == 1
    driver.calls.clear()
    copies(stream, (0, 1000))
    assert "CmdResetQueryPool" not in driver.calls


def test_timestamps_that_cannot_be_read():
    driver = Driver(GetQueryPoolResults=-4)
    stream = driver.stream()
    stream.time(9)
    with pytest.raises(RuntimeError, match="the device was lost"):
        stream.untime()


@pytest.mark.usefixtures("vulkan")
def test_dispatches_wait_at_barriers_of_their_own():
    lines, errors = run(STAGES_CODE)
    assert lines == ["0x800 0x800 0x1800 0x1800 0x800"], "\n".join(lines) + errors
