"""Control groups of both versions, nested, limited and not, on made-up files."""

import pytest

from tinyfin.core import cgroup


@pytest.fixture
def files(monkeypatch):
    """Files that stand for the kernel's."""
    made = {}
    monkeypatch.setattr(cgroup, "read", made.get)
    return made


def test_no_groups(files):
    assert (
        cgroup.free_memory() is None
        and cgroup.cores() is None
        and cgroup.folders("cpu") == [cgroup.ROOT]
    )


def test_second_version_in_a_container(files):
    files["/proc/self/cgroup"] = "0::/\n"
    files["/sys/fs/cgroup/memory.max"] = "1000000\n"
    files["/sys/fs/cgroup/memory.current"] = "700000\n"
    assert cgroup.free_memory() == 300000
    files["/sys/fs/cgroup/memory.stat"] = "anon 5\ninactive_file 200000\nactive_file 7\n"
    assert cgroup.free_memory() == 500000
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert cgroup.free_memory() is None
    files["/sys/fs/cgroup/cpu.max"] = "150000 100000\n"
    assert cgroup.cores() == 2
    files["/sys/fs/cgroup/cpu.max"] = "max 100000\n"
    assert cgroup.cores() is None


def test_the_tightest_of_nested_groups_counts(files):
    files["/proc/self/cgroup"] = "0::/user/job\n"
    for folder, limit, used, quota in (
        ("", None, 9, "max"),
        ("/user", 900, 500, "400000"),
        ("/user/job", 5000, 100, "800000"),
    ):
        base = "/sys/fs/cgroup" + folder
        files[base + "/memory.current"] = str(used)
        files[base + "/cpu.max"] = f"{quota} 100000"
        if limit:
            files[base + "/memory.max"] = str(limit)
    assert cgroup.folders("memory") == [
        "/sys/fs/cgroup/user/job",
        "/sys/fs/cgroup/user",
        "/sys/fs/cgroup",
    ]
    assert cgroup.free_memory() == 400 and cgroup.cores() == 4


def test_first_version(files):
    files["/proc/self/cgroup"] = "4:memory:/job\n3:cpu,cpuacct:/job\n2:pids:/job\n"
    base = "/sys/fs/cgroup/memory/job"
    files[base + "/memory.limit_in_bytes"] = "1000"
    files[base + "/memory.usage_in_bytes"] = "400"
    files[base + "/memory.stat"] = "inactive_file 1\ntotal_inactive_file 100\n"
    files["/sys/fs/cgroup/memory/memory.limit_in_bytes"] = "9223372036854771712"
    files["/sys/fs/cgroup/memory/memory.usage_in_bytes"] = "5"
    assert cgroup.free_memory() == 700
    files["/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us"] = "50000"
    files["/sys/fs/cgroup/cpu/job/cpu.cfs_period_us"] = "100000"
    assert cgroup.cores() == 1
    files["/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us"] = "-1"
    assert cgroup.cores() is None


def test_more_used_than_granted(files):
    files["/sys/fs/cgroup/memory.max"] = "100"
    files["/sys/fs/cgroup/memory.current"] = "150"
    assert cgroup.free_memory() == 0


def test_real_files():
    assert cgroup.read("/no/such/file") is None and cgroup.number("/proc/self/cgroup") is None
    cores = cgroup.cores()
    assert cores is None or cores >= 1
