"""Pipelines on disk: what one process compiled, the next one reads; a damaged file is no reason to fail."""

import pytest
from backends import isolated

from tinyfin.backends.vulkan import cache

CODE = """
import tinyfin as tf
from tinyfin.backends.base import REGISTRY
x = tf.ones(5, device="vulkan").sigmoid()
assert x.cpu()[0].item() == tf.ones(1).sigmoid().item()
device = REGISTRY["vulkan"].opened_devices[0]
print(len(cache.read(device.cache.path)) if device.cache.path else None)
""".replace(
    "import tinyfin as tf", "import tinyfin as tf\nfrom tinyfin.backends.vulkan import cache"
)


def run(folder):
    lines, errors = isolated.run(CODE, TINYFIN_CACHE=str(folder))
    assert not errors, errors
    return lines[-1]


@pytest.mark.usefixtures("vulkan")
def test_kept_and_read_again(tmp_path):
    assert run(tmp_path / "kept") == "0"
    (path,) = (tmp_path / "kept").iterdir()
    assert int(run(tmp_path / "kept")) == path.stat().st_size - 4 > 0
    for damage in (b"", b"xyz", path.read_bytes()[:-1], bytes(1000)):
        path.write_bytes(damage)
        assert cache.read(path) == b""
        assert run(tmp_path / "kept") == "0"


@pytest.mark.usefixtures("vulkan")
def test_nowhere_to_keep_it(tmp_path):
    """Said once, with what to do; an empty switch asks for none."""
    (tmp_path / "file").write_text("")
    lines, errors = isolated.run(CODE, TINYFIN_CACHE=str(tmp_path / "file"))
    assert lines[-1] == "0" and errors.count("RuntimeWarning") == 1
    assert f"cannot be kept in {tmp_path / 'file'} (" in errors and "set TINYFIN_CACHE to" in errors
    assert run("") == "None"
