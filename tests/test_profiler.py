"""Profiles: what is noted, with which times, and how it is shown."""

import json
import threading
import time

import pytest
import samples
from nn import examples

import tinyfin as tf
from tinyfin import profiler
from tinyfin.core import tensor


def calls(p):
    return [e.name for e in p.events() if e.device is not None]


def test_examples():
    examples.run("tinyfin.profiler")


def test_calls_are_noted_in_order_while_it_is_open():
    x = tf.ones(4, 3)
    x.exp()
    with profiler.profile() as p:
        y = (x.exp() + 1).sum()
        x.mul_(2)
        x[1:].t()  # a view computes nothing
        tf.nn.init.uniform_(x)
    x.exp()
    assert calls(p) == ["exp", "add", "sum", "mul", "uniform_"]
    assert [e.bytes for e in p.events()] == [48, 48, 4, 48, 48] and y.item() > 0
    assert all(e.device == "cpu" and e.shapes is None and not e.dispatches for e in p.events())
    starts = [e.start_ns for e in p.events()]
    assert starts == sorted(starts) and all(e.end_ns >= e.start_ns for e in p.events())


def test_gradients_and_steps_are_noted():
    w = tf.ones(3, requires_grad=True)
    optimizer = tf.optim.SGD([w], 0.1)
    with profiler.profile() as p:
        (w * w).sum().backward()
        optimizer.step()
    assert calls(p)[0] == "mul" and "sgd_step_" in calls(p) and len(calls(p)) >= 4


def test_averages():
    x = tf.ones(10)
    with profiler.profile(record_shapes=True) as p:
        for _ in range(3):
            x + 1
        tf.ones(2, 5) + 1
        x.exp()
    found = {a.key: a for a in p.key_averages()}
    assert found["add"].count == 4 and found["exp"].count == 1
    assert found["add"].cpu_time_total == pytest.approx(
        sum(e.cpu_time for e in p.events() if e.name == "add")
    )
    assert found["add"].cpu_time == pytest.approx(found["add"].cpu_time_total / 4)
    apart = {(a.key, a.shapes): a.count for a in p.key_averages(group_by_input_shape=True)}
    assert apart["add", ((10,), ())] == 3 and apart["add", ((2, 5), ())] == 1


def test_the_table():
    a = [profiler.Average(n, "cpu") for n in ("first", "second")]
    for average, microseconds in zip(a, (1500.0, 2.5e6)):
        average.add(profiler.Event("", 0, 0, int(microseconds * 1e3), "cpu", [], 3 << 20, None))
    text = profiler.Averages(a).table()
    lines = text.splitlines()
    assert lines[0].split()[:4] == ["operation", "device", "calls", "CPU"]
    assert lines[2].split() == [
        "second",
        "cpu",
        "1",
        "2.500",
        "s",
        "2.500",
        "s",
        "99.9%",
        "3.0",
        "MiB",
    ]
    assert "first" in lines[3] and "1.500 ms" in lines[3] and "device total" not in text
    assert "... 1 more" in profiler.Averages(a).table(row_limit=1)
    assert "first" in profiler.Averages(a).table("count", 1)
    assert profiler.Averages().table().count("\n") == 2
    with pytest.raises(ValueError, match="sort_by is 'time', expected one of device_time_total"):
        profiler.Averages(a).table("time")
    for theirs, ours in profiler.ALIASES.items():
        assert ours in profiler.SORTS
        assert profiler.Averages(a).table(theirs) == profiler.Averages(a).table(ours)


def test_activities(gpu):
    """Without that of devices their times are not taken; calls are noted all the same."""
    x = tf.ones(3).to(gpu)
    for names, timed in (([profiler.ProfilerActivity.CPU], False), (["cpu", "device"], True)):
        with profiler.profile(activities=names) as p:
            (x + 1).cpu()
        assert [a.count for a in p.key_averages() if a.key == "add"] == [1]
        assert bool(p.timed) == timed
    with pytest.raises(ValueError, match="activities has 'gpu', expected"):
        profiler.profile(activities=["gpu"])


def test_ranges_and_threads():
    @profiler.record_function("work")
    def work():
        tf.ones(3).exp()
        return 5

    with profiler.profile() as p:
        with profiler.record_function("outer"):
            assert work() == 5
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    ranges = [e for e in p.events() if e.device is None]
    assert [e.name for e in ranges] == ["work", "outer", "work"]
    assert len({e.thread for e in p.events() if e.name == "exp"}) == 2
    assert "range work: 2 times" in p.summary() and "outer" not in {a.key for a in p.key_averages()}
    with pytest.raises(TypeError, match="record_function: name is 3"):
        profiler.record_function(3)


def test_one_at_a_time():
    p = profiler.profile()
    p.stop()  # nothing yet
    with p, pytest.raises(RuntimeError, match="another profile is open"):
        profiler.profile().start()
    with p:  # again
        tf.ones(2).exp()
    assert calls(p)[-1] == "exp"
    assert tensor.note_calls(0) == 0


def test_an_error_ends_it():
    with pytest.raises(RuntimeError, match="mul"), profiler.profile() as p:
        tf.ones(2).exp()
        tf.ones(2) * tf.ones(3)
    assert calls(p)[1] == "exp" and "mul" not in calls(p) and not profiler.profile.open


def test_memory():
    with profiler.profile(profile_memory=True) as p:
        x = tf.ones(1 << 20)
    assert "memory of cpu" in p.summary() and p.memory["cpu"]["peak"] >= 4 << 20
    assert p.memory["cpu"]["after"] - p.memory["cpu"]["before"] >= x.numel() * 4


def test_a_trace(tmp_path):
    with profiler.profile(record_shapes=True) as p, profiler.record_function("all"):
        tf.ones(3, 2).exp()
    p.export_chrome_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    spans = {e["name"]: e for e in events if e["ph"] == "X"}
    assert spans["exp"]["args"] == {"bytes": 24, "device": "cpu", "shapes": [[3, 2]]}
    inner, outer = spans["exp"], spans["all"]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]


def test_nothing_is_noted_when_it_is_closed():
    assert tensor.take_notes() == []
    tf.ones(3).exp()
    tensor.note("range", 0, 1)
    assert tensor.take_notes() == []


@pytest.mark.parametrize("api", ["vulkan", "opengl"])
def test_dispatches_are_timed(api, request):
    """Each call has its dispatches' times, in order, after the call put them on their way."""
    request.getfixturevalue(api)
    x = tf.rand(1 << 16).to(api)
    (x * 2).sum().item()
    with profiler.profile() as p:
        for _ in range(150):  # more than a command buffer, and than the ring of them holds
            y = x * 2
            for _ in range(5):
                y.add_(x)
        total = y.sum()
        total.item()
    assert samples.bits(y.cpu().sum()) == samples.bits(total.cpu())
    timed = [e for e in p.events() if e.device == f"{api}:0"]
    assert [e.name for e in timed] == (["mul"] + ["add"] * 5) * 150 + ["sum"]
    assert all(len(e.dispatches) >= 1 for e in timed)
    spans = [d for e in timed for d in e.dispatches]
    assert all(a <= b for a, b in spans) and all(a[1] <= b[0] for a, b in zip(spans, spans[1:]))
    slack = 50_000_000  # nanoseconds: the clocks are brought together by a wait
    assert all(d[0] >= e.start_ns - slack for e in timed for d in e.dispatches)
    assert sum(b - a for a, b in spans) > 0
    assert "device total" in p.key_averages().table()
    x.add_(1)  # untimed again
    tf.synchronize(api)
    with profiler.profile() as p:
        x.mul_(2)
    assert [len(e.dispatches) for e in p.events()] == [1]


def test_it_may_begin_and_end_while_other_threads_compute(gpu):
    """Their dispatches are timed or not, but what holds the times belongs to no work under way when it goes."""
    from threading import Event, Thread

    done, sums = Event(), []

    def work():
        x, last = tf.ones(2000, device=gpu), False
        while not last:
            last = done.is_set()  # once more then: the first may take long to compile
            sums.append((x + x).sum().item())

    thread = Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            with tf.profiler.profile() as p:
                (tf.ones(100, device=gpu) * 2).sum().item()
            assert p.events()
    finally:
        done.set()
        thread.join()
    assert set(sums) == {4000.0}


def test_a_device_is_timed_once(gpu):
    """Also where it was opened while the profile began."""
    from tinyfin.backends.base import REGISTRY

    x = tf.ones(10, device=gpu)
    with profiler.profile() as p:
        p.watch(REGISTRY[gpu], 0)
        x.add_(1)
    assert [len(e.dispatches) for e in p.events() if e.device == f"{gpu}:0"] == [1]


def test_a_driver_without_times(monkeypatch):
    """Zeros for all dispatches are no times: the profile says so and shows none."""
    backend, x = tf.backends.base.REGISTRY["null"], tf.ones(3, device="null")
    monkeypatch.setattr(backend, "time", lambda index: True)
    for spans, without in (([(7, 7), (9, 9)], ["null:0"]), ([(7, 7), (9, 10)], []), ([], [])):
        monkeypatch.setattr(backend, "untime", lambda index, spans=spans: (0, spans))
        with profiler.profile() as p:
            x + 1
        assert p.without_times == without
        said = "null:0 has no times: its driver gives 0 for every dispatch"
        assert (said in p.summary()) == bool(without)
        assert not p.events()[0].dispatches or not without
        assert not without or "device total" not in p.key_averages().table()


def test_no_time_is_no_zero_in_the_table():
    a = [profiler.Average(n, n) for n in ("cpu", "vulkan:0")]
    for average, spans in zip(a, ([], [(0, 1500)])):
        average.add(profiler.Event("", 0, 0, 1000, average.device, spans, 0, None))
    lines = profiler.Averages(a).table().splitlines()
    assert lines[2].split()[7:11] == ["1.500", "us", "1.500", "us"]
    assert lines[3].split()[7:9] == ["-", "-"]


def test_dispatches_in_a_trace(vulkan, tmp_path):
    x = tf.rand(100).to("vulkan")
    with profiler.profile() as p:
        x.exp()
        time.sleep(0.001)
    p.export_chrome_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X" and e["pid"] == 1] == ["exp"]
    assert {"vulkan:0"} == {
        e["args"]["name"] for e in events if e["name"] == "process_name" and e["pid"] == 1
    }
