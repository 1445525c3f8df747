"""What the control groups of this process grant: bytes of memory and cores; loaded when asked."""

import os

ROOT = "/sys/fs/cgroup"


def read(path):
    """The file's text, or None where it cannot be read."""
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return None


def number(path):
    """The file's number; None where there is none, or no limit."""
    text = (read(path) or "").strip()
    return int(text) if text.isdigit() else None


def folders(controller):
    """Folders of the process's groups, innermost first: limits of all of them count.

    Inside a container the group's own files stand at the root, whatever path the kernel names.
    """
    found = []
    for line in (read("/proc/self/cgroup") or "").splitlines():
        _, names, path = line.split(":", 2)
        if not names or controller in names.split(","):
            base = os.path.join(ROOT, controller) if names else ROOT
            while path.strip("/"):
                found.append(base + path)
                path = os.path.dirname(path)
            found.append(base)
    return found or [ROOT]


def free_memory():
    """Bytes that the tightest group still grants, or None without a limit.

    Pages of files that nobody uses at the moment count as free: the kernel drops them under pressure.
    """
    free = None
    for folder in folders("memory"):
        limit = number(f"{folder}/memory.max") or number(f"{folder}/memory.limit_in_bytes")
        used = number(f"{folder}/memory.current") or number(f"{folder}/memory.usage_in_bytes")
        if limit is None or used is None or limit >= 1 << 62:
            continue
        droppable = 0
        for line in (read(f"{folder}/memory.stat") or "").splitlines():
            name, _, value = line.partition(" ")
            if name in ("inactive_file", "total_inactive_file"):
                droppable = max(droppable, int(value))
        here = max(limit - max(used - droppable, 0), 0)
        free = here if free is None else min(free, here)
    return free


def cores():
    """Cores that the tightest group grants, rounded up, or None without a limit."""
    best = None
    for folder in folders("cpu"):
        quota, _, period = (read(f"{folder}/cpu.max") or "").strip().partition(" ")
        if not period:
            quota = str(number(f"{folder}/cpu.cfs_quota_us") or "")
            period = str(number(f"{folder}/cpu.cfs_period_us") or "")
        if quota.isdigit() and period.isdigit() and int(quota) and int(period):
            here = max(1, -(-int(quota) // int(period)))
            best = here if best is None else min(best, here)
    return best
