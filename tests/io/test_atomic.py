"""Atomic writing: the old content or the new, whatever happens."""

import doctest
import os
import signal
import subprocess
import sys
import time

import pytest

from tinyfin.io import atomic
from tinyfin.io.atomic import write_atomically


def test_examples():
    assert doctest.testmod(atomic).failed == 0


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "a.bin"
    for content in (b"first", b"second, longer"):
        write_atomically(path, lambda f, c=content: f.write(c))
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["a.bin"]


def test_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fail(f):
        f.write(b"half")
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.bin"]


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "a.bin", lambda f: None)


def test_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", lambda f: f.write(b"new"))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"


def test_mode_follows_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", lambda f: None)
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_only_old_leftovers_are_removed(tmp_path):
    old, new, other = (tmp_path / n for n in (".a.1-00.tmp", ".a.2-00.tmp", ".b.1-00.tmp"))
    for path in (old, new, other):
        path.write_bytes(b"left")
    for path in (old, other):
        os.utime(path, (time.time() - 7200,) * 2)
    write_atomically(tmp_path / "a", lambda f: None)
    assert sorted(os.listdir(tmp_path)) == sorted([".a.2-00.tmp", ".b.1-00.tmp", "a"])


FULL = """
import resource, signal, sys
from tinyfin.io.atomic import write_atomically

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(sys.argv[1], lambda f: f.write(bytes(5000)))
except OSError as e:
    print("refused", e.errno)
"""


def test_no_room_left(tmp_path):
    pytest.importorskip("resource")
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", FULL, str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert shown.stdout.startswith("refused"), shown.stderr
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.bin"]


WRITER = """
import sys
from tinyfin.io.atomic import write_atomically

path, n = sys.argv[1], 0
while True:
    n += 1
    write_atomically(path, lambda f: [f.write(bytes([n % 256]) * 65536) for _ in range(40)])
    print(n, flush=True)
"""


def test_killed_at_any_moment(tmp_path):
    path = tmp_path / "a.bin"
    for k in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        process.stdout.readline()
        time.sleep(0.003 * k)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        content = path.read_bytes()
        assert len(content) == 40 * 65536 and len(set(content)) == 1
