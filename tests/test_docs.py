"""The documents are true: their code runs, their switches exist, their links lead somewhere."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FRAGMENTS = {"docs/howto/adding_an_op.md", "docs/howto/adding_a_backend.md"}
"""Pages whose blocks are pieces of source files."""


def name(path):
    return path.relative_to(ROOT).as_posix()


def blocks(path):
    return BLOCK.findall(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path", [p for p in PAGES if blocks(p) and name(p) not in FRAGMENTS], ids=name
)
def test_code_runs(path, tmp_path):
    """The blocks of a page, one after another, as a reader would type them."""
    code = tmp_path / "page.py"
    code.write_text("\n".join(blocks(path)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", [ROOT / page for page in sorted(FRAGMENTS)], ids=name)
def test_fragments_are_python(path):
    assert blocks(path)
    for block in blocks(path):
        compile(block, name(path), "exec")


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{name(path)} links to {target}"


def test_every_switch_is_described():
    """docs/env.md has a line for each TINYFIN_ variable in the sources, and no others."""
    found = set()
    for path in (ROOT / "tinyfin").rglob("*"):
        if path.suffix in (".py", ".pyx", ".pxi", ".pxd", ".c", ".h", ".inc"):
            found |= set(re.findall(r"[\"'](TINYFIN_[A-Z_]+)[\"']", path.read_text("utf-8")))
    described = set(re.findall(r"^\| `(TINYFIN_\w+)`", (ROOT / "docs/env.md").read_text(), re.M))
    assert len(found) > 4 and described == found


def test_every_page_can_be_found():
    """docs/index.md leads to every page; the folder of design notes counts as one."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        page = path.relative_to(ROOT / "docs").as_posix()
        assert page == "index.md" or page.startswith("design/") or f"({page})" in index, page
