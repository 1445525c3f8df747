"""spin's commands for tinyfin: each is one line of what a developer would type."""

import os
import pathlib
import subprocess
import sys

import click

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHECKED = ROOT / "build" / "checked"
PIPELINES = "tests/backends/vulkan/test_elementwise.py"


def run(*command, **env):
    """Runs a command from the clone's root and stops where it fails."""
    click.secho("$ " + " ".join(map(str, command)), bold=True, fg="cyan")
    status = subprocess.run([*map(str, command)], cwd=ROOT, env={**os.environ, **env}).returncode
    if status:
        sys.exit(status)


def python(*args, **env):
    """Runs this environment's Python."""
    run(sys.executable, *args, **env)


@click.command()
def build():
    """Builds and installs tinyfin into this environment."""
    python("-m", "pip", "install", "--no-deps", ".")


def checked_build(sanitize):
    """A build with bounds checks and without the memory pool, in a folder of its own; its path."""
    target = CHECKED / ("sanitize" if sanitize else "valgrind")
    options = [
        "-Csetup-args=-Dchecked=true",
        "-Csetup-args=-Disa=sse2,avx2",
        "-Csetup-args=-Dbuildtype=debugoptimized",
    ]
    if sanitize:
        options += ["-Csetup-args=-Db_sanitize=address,undefined", "-Csetup-args=-Db_lundef=false"]
    python("-m", "pip", "install", "--no-deps", "--upgrade", "--target", target, *options, ".")
    return target


def library(name):
    """The path of one of GCC's runtime libraries."""
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True)
    return found.stdout.strip()


@click.command()
@click.option("--sanitize", is_flag=True, help="address and undefined-behaviour sanitizers")
@click.option("--valgrind", is_flag=True, help="the core tests under valgrind")
@click.argument("pytest_args", nargs=-1)
def test(sanitize, valgrind, pytest_args):
    """Runs the tests: spin test ops -- -k matmul; spin test --sanitize."""
    args = [f"tests/{a}" if (ROOT / "tests" / a).exists() else a for a in pytest_args]
    if sanitize:
        libraries = f"{library('libasan.so')} {library('libubsan.so')}"
        python(
            "-m",
            "pytest",
            # software drivers compile each pipeline through LLVM, which is far too slow here
            *(args or ["tests/core", "tests/ops", "tests/backends", f"--ignore={PIPELINES}"]),
            "-p",
            "no:cacheprovider",
            "-m",
            "not slow and not long",
            PYTHONPATH=str(checked_build(True)),
            LD_PRELOAD=libraries,
            PYTHONMALLOC="malloc",
            ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1",
            UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
        )
    elif valgrind:
        run(
            "valgrind",
            "--error-exitcode=1",
            "--errors-for-leak-kinds=none",
            # at the end of a forked child, glibc's cleanup frees what its loader took for OpenGL's libraries
            "--run-libc-freeres=no",
            f"--suppressions={ROOT / 'tools' / 'valgrind.supp'}",
            sys.executable,
            "-m",
            "pytest",
            *(args or ["tests/core"]),
            "-p",
            "no:cacheprovider",
            "-x",
            "-q",
            PYTHONPATH=str(checked_build(False)),
            PYTHONMALLOC="malloc",
            TINYFIN_ISA="avx2",
        )
    else:
        python("-m", "pytest", *args)


@click.command()
@click.option("--check", is_flag=True, help="only say whether they are current")
def gen(check):
    """Writes stubs and docs/ops.md anew from the rows."""
    flags = ["--check"] if check else []
    python("tools/gen_stubs.py", *flags)
    python("tools/gen_docs.py", *flags)


@click.command()
def lint():
    """ruff, cython-lint, basedpyright, generated files, lengths."""
    python("tools/lint.py")


@click.command()
def check():
    """All that CI does."""
    run("bash", ".ci/run")
