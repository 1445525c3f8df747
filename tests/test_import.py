"""`import tinyfin` is light: no heavy module, no thread."""

import subprocess
import sys

CODE = """
import sys, threading, os
before = set(sys.modules)
import tinyfin
heavy = {"numpy", "typing", "dataclasses", "inspect", "re", "argparse", "logging", "asyncio",
         "multiprocessing", "subprocess", "unittest"}
print(sorted(heavy & (set(sys.modules) - before)), len(os.listdir("/proc/self/task")))
"""


def test_import_is_light():
    run = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            CODE.replace("import sys,", "import site; site.main()\nimport sys,", 1),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[] 1"


def test_lazy_parts_load_when_used():
    code = "import sys, tinyfin; assert 'tinyfin.nn' not in sys.modules; tinyfin.nn.Linear; print('ok')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "ok"
