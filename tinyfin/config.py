"""The environment switches, all in one place; read once, when tinyfin is imported."""

import os


def _flag(name, default):
    text = os.environ.get(name, "").strip().lower()
    if text in ("", "0", "1", "true", "false", "yes", "no", "on", "off"):
        return default if not text else text in ("1", "true", "yes", "on")
    _complain(name, text, "0 or 1")
    return default


def _number(name, default, least=0):
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if text.isdigit() and int(text) >= least:
        return int(text)
    _complain(name, text, f"a whole number from {least} on" if least else "a whole number")
    return default


def _complain(name, text, wanted):
    import sys

    sys.stderr.write(f"tinyfin: {name}={text!r} is ignored, expected {wanted}\n")


def _file(name, wanted):
    path = os.environ.get(name, "").strip()
    if path and not os.path.isfile(path):
        _complain(name, path, wanted)
        return ""
    return path


BACKEND = os.environ.get("TINYFIN_BACKEND", "").strip()
"""Backend set at import."""
THREADS = _number("TINYFIN_THREADS", 0)
"""Threads of CPU kernels; 0 takes the cores that this process may use."""
DETERMINISTIC = _flag("TINYFIN_DETERMINISTIC", False)
"""Bits that do not depend on the device; what cannot keep that raises."""
BLAS = os.environ.get("TINYFIN_BLAS", "").strip()
"""Library that backend `blas` loads; empty takes the first that is found."""
ISA = os.environ.get("TINYFIN_ISA", "").strip()
"""Instruction set of CPU kernels: sse2, avx2, avx512, neon; empty takes the best."""
SCRATCH_BYTES = _number("TINYFIN_SCRATCH_BYTES", 1 << 30)
"""Most bytes that one thread's kernel temporaries may take."""
FALLBACK = _flag("TINYFIN_FALLBACK", True)
"""Whether the CPU runs what a device lacks."""
GPU_TIMEOUT = _number("TINYFIN_GPU_TIMEOUT", 60, least=1)
"""Seconds that a wait for a GPU may take before its device counts as lost."""
CACHE = os.environ.get("TINYFIN_CACHE", "~/.cache/tinyfin").strip()
"""Folder of compiled pipelines; empty keeps none."""
SHADERS = _file("TINYFIN_SHADERS", "a file that 'tinyfin shaders build' wrote")
"""File of GPU modules in place of the package's own."""
CHECK = _flag("TINYFIN_CHECK", False)
"""Stop at the first operation that makes a NaN or infinity, and at a gradient that comes out otherwise where its
memory is reused."""
