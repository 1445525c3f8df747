"""`import tinyfin` is light: few modules of the standard library, no NumPy, no thread, nothing opened."""

import json
import pathlib
import subprocess
import sys

CODE = """
import site; site.main()
import sys
before = set(sys.modules)
import tinyfin
new = set(sys.modules) - before
own = [m for m in new if m.split(".")[0] == "tinyfin"]
import json, os
threads = len(os.listdir("/proc/self/task"))
print(json.dumps({"new": sorted(new - set(own)), "own": sorted(own), "threads": threads}))
"""
ALLOWED = {
    "__future__",
    "_bisect",
    "_collections",
    "_functools",
    "_heapq",
    "_operator",
    "_weakref",
    "_weakrefset",
    "abc",
    "binascii",
    "bisect",
    "collections",
    "contextlib",
    "copyreg",
    "cython_runtime",
    "functools",
    "heapq",
    "importlib",
    "itertools",
    "keyword",
    "operator",
    "reprlib",
    "types",
    "warnings",
    "weakref",
}
"""Top-level modules that importing may load; each was weighed."""
MODULES, OWN_MODULES = 45, 105
"""Above what importing loads of the standard library, bare Python 3.10 to 3.13, and of tinyfin."""
LATE = {"nn", "optim", "data", "io", "cli", "func", "utils"}
"""Parts of tinyfin that load when they are used."""


def fresh(code):
    """What a new interpreter prints; without site, so that .pth files load nothing first."""
    run = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_import_loads_little():
    found = json.loads(fresh(CODE))
    heavy = {m.split(".")[0] for m in found["new"]} - ALLOWED
    heavy = sorted(m for m in heavy if not m.startswith("_cython_"))
    assert not heavy, f"import tinyfin loads {heavy}"
    assert found["threads"] == 1
    assert len(found["new"]) < MODULES, sorted(found["new"])
    assert len(found["own"]) < OWN_MODULES, sorted(found["own"])
    late = [m for m in found["own"] if m.split(".")[1:2] and m.split(".")[1] in LATE]
    assert not late, f"import tinyfin loads {late}"


def test_first_steps_stay_light():
    """Arithmetic and a backward pass need no NumPy, and small work wakes no thread."""
    code = CODE.replace(
        "import tinyfin\n",
        "import tinyfin as tf\n"
        "x = tf.ones(3, requires_grad=True)\n(x * 2 + x.exp()).sum().backward()\nx[1:].tolist()\n",
    )
    found = json.loads(fresh(code))
    assert "numpy" not in {m.split(".")[0] for m in found["new"]}
    assert found["threads"] == 1


def test_parts_load_when_used():
    code = "import site; site.main(); import sys, tinyfin; before = 'tinyfin.nn' in sys.modules; tinyfin.nn.Linear; print(before)"
    assert fresh(code) == "False"


def test_one_version():
    """The package's version is the build's."""
    build = pathlib.Path(__file__).resolve().parent.parent / "meson.build"
    wanted = build.read_text().split("version: '")[1].split("'")[0]
    assert fresh("import site; site.main(); import tinyfin; print(tinyfin.__version__)") == wanted
