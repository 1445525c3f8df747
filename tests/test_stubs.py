"""The stubs name what is there, and nothing else: half of them is written by hand."""

import ast
import importlib
import pathlib
import types

import pytest

import tinyfin as tf

HOME = pathlib.Path(tf.__file__).parent
COMPILED = [
    path.relative_to(HOME.parent).with_suffix("").as_posix().replace("/", ".")
    for path in sorted(HOME.rglob("*.pyi"))
    if path.name != "__init__.pyi"
]
FOR_CHECKERS = {"tinyfin.core.dtype": {"DTypeLike"}}
"""Names that only annotations use."""


def names_in(body):
    """Names that the body of a stub, or of a class in it, gives to users."""
    found = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets)
        elif isinstance(node, ast.ImportFrom):  # only `from a import b as b` is given on
            found.update(a.asname for a in node.names if a.asname == a.name)
    return found


def body_of(name):
    """The statements of a module's stub."""
    path = HOME.parent.joinpath(*name.split("."))
    path = path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")
    return ast.parse(path.read_text()).body


def public(thing):
    """Names without an underscore in front that belong to no module beside."""
    return {
        name
        for name in dir(thing)
        if not name.startswith("_") and not isinstance(getattr(thing, name), types.ModuleType)
    }


def test_the_package():
    have = names_in(body_of("tinyfin"))
    assert public(tf) - have == set()
    assert {name for name in have if not hasattr(tf, name)} == set()


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_modules(name):
    module = importlib.import_module(name)
    for node in body_of(name):
        if isinstance(node, ast.ClassDef):
            have = names_in(node.body)
            missing = {n for n in have if not hasattr(getattr(module, node.name), n)}
            assert missing == set(), f"{node.name} in the stub has what it lacks"
    have = names_in(body_of(name)) - FOR_CHECKERS.get(name, set())
    assert {n for n in have if not n.startswith("_") and not hasattr(module, n)} == set()


def test_tensor():
    body = body_of("tinyfin.core.tensor")
    have = names_in(next(n for n in body if getattr(n, "name", "") == "Tensor").body)
    assert public(tf.Tensor) - have == set()
