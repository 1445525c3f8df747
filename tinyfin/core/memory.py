"""How much memory this process may still take.

Imported with the core: an import that another thread has under way while a process forks stays locked in the child.
"""

import os

from tinyfin.core import cgroup

UNKNOWN = 1 << 62


def machine():
    """Bytes the machine can still give, by the kernel's own estimate."""
    for line in (cgroup.read("/proc/meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return UNKNOWN


def available():
    """Bytes free for this process: the smaller of the machine's and its control groups'."""
    group = cgroup.free_memory()
    return machine() if group is None else min(machine(), group)
