"""Runs the examples in docstrings, with the names that they take for granted."""

import doctest
from importlib import import_module

import tinyfin as tf

NAMES = {"tf": tf, "nn": tf.nn, "F": tf.nn.functional}


def run(name):
    """Asserts that the examples of a module hold, and that its public things have some."""
    module = import_module(name)
    failed, tried = 0, 0
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for case in doctest.DocTestFinder(exclude_empty=True).find(
        module, name, module, globs=dict(NAMES)
    ):
        result = runner.run(case, clear_globs=False)
        failed, tried = failed + result.failed, tried + result.attempted
    assert failed == 0 and tried > 0
    bare = [
        f"{name}.{k}"
        for k, v in vars(module).items()
        if not k.startswith("_")
        and getattr(v, "__module__", None) == name
        and not getattr(v, "__doc__", None)
    ]
    assert not bare, f"without docstring: {bare}"
