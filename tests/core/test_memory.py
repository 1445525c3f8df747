"""How much memory is left: the machine's estimate and the control group's."""

from tinyfin.core import cgroup, memory


def test_available_is_what_the_kernel_says():
    with open("/proc/meminfo") as f:
        total = next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemTotal:"))
    assert 0 < memory.available() <= total


def test_the_tighter_bound_counts(monkeypatch):
    monkeypatch.setattr(memory, "machine", lambda: 100)
    for group, want in ((None, 100), (70, 70), (500, 100), (0, 0)):
        monkeypatch.setattr(cgroup, "free_memory", lambda group=group: group)
        assert memory.available() == want


def test_machines_without_proc(monkeypatch):
    monkeypatch.setattr(cgroup, "read", lambda path: None)
    assert memory.available() > 0
