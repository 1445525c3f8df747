"""All that lint does, here and in CI: lint.py."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = (
    ("ruff", "check", "--no-cache", "."),
    ("ruff", "format", "--no-cache", "--check", "."),
    ("cython-lint", "tinyfin"),
    ("basedpyright",),
    (sys.executable, "tools/gen_stubs.py", "--check"),
    (sys.executable, "tools/gen_docs.py", "--check"),
    (sys.executable, "tools/lines.py"),
    (sys.executable, "tools/shader_lint.py"),
)


def main():
    """Runs every command, also after one failed; the exit code says whether all passed."""
    failed = []
    for command in COMMANDS:
        line = " ".join(["python3" if part == sys.executable else part for part in command])
        print(f"$ {line}", flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(line)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
