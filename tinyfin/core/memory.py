"""How much memory this process may still take; loaded when a large block is asked for."""

import os

CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
UNKNOWN = 1 << 62


def _number(path):
    try:
        with open(path) as f:
            text = f.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _machine():
    """Bytes the machine can still give, by the kernel's own estimate."""
    try:
        with open("/proc/meminfo") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return UNKNOWN


def available():
    """Bytes free for this process: the smaller of the machine's and the control group's."""
    free = _machine()
    for limit_file, used_file in CGROUP_FILES:
        limit, used = _number(limit_file), _number(used_file)
        if limit is not None and used is not None:
            free = min(free, max(limit - used, 0))
    return free
