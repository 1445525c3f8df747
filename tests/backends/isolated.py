"""Code in a process of its own: what registers backends or reads switches must not reach other tests."""

import os
import subprocess
import sys


def run(code, path="", **env):
    """Runs Python code under some switches; gives (lines of output, errors)."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TINYFIN_")}
    if path:
        clean["PYTHONPATH"] = str(path)
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **env},
        capture_output=True,
        text=True,
        cwd="/",
        timeout=120,
    )
    assert out.returncode == 0, out.stderr + out.stdout
    return out.stdout.splitlines(), out.stderr


FAKE = """
import warnings
import tinyfin as tf
from tinyfin.backends import base
from tinyfin.backends.cpu import copy, elementwise

class Fake(tf.Backend):
    "A device in host memory that brings a few of the host's kernels."
    name = device = "fake"
    families = ("elementwise", "copy")
    log = []

    def kernels(self):
        return {f: {**copy.KERNELS, **elementwise.KERNELS}[f] for f in self.families}

    def allocate(self, nbytes, index):
        return bytearray(nbytes)

    def activate(self):
        self.log.append("on")

    def deactivate(self):
        self.log.append("off")

class Remote(Fake):
    "A device whose bytes the host does not see, with no kernel at all."
    name = device = "remote"
    families = ()
    blocks = {}

    class Block:
        def __init__(self, nbytes):
            self.block = len(Remote.blocks) + 1
            Remote.blocks[self.block] = bytearray(nbytes)

    def allocate(self, nbytes, index):
        return self.Block(nbytes)

    def write(self, block, offset, data):
        self.blocks[block.block][offset:offset + len(data)] = data

    def read(self, block, offset, out):
        out[:] = self.blocks[block.block][offset:offset + len(out)]

base.register(Fake())
base.register(Remote())
warnings.simplefilter("ignore")
"""
"""Two third-party backends, registered."""
