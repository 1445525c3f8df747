"""Every operation and public name says what it does, with a signature, and all examples in docstrings run."""

import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import warnings

import pytest
import samples

import tinyfin as tf
from tinyfin.ops import table

ROWS = list(table.TABLE)
KNOWN = {"tinyfin": tf, "tf": tf, "nn": tf.nn, "F": tf.nn.functional}
"""Names that examples use without importing them."""


@pytest.mark.parametrize("name", ROWS)
def test_row_is_documented(name):
    """One sentence or a few, a signature that calls can be bound to, and a name of its own."""
    op, row = table.OPS[name], table.TABLE[name]
    doc = inspect.getdoc(op)
    assert doc == row.doc and doc[-1] == "." and len(doc) > 7, doc
    assert not doc.lower().startswith(name.lower() + " ("), (
        "a doc says what happens, not the name again"
    )
    signature = inspect.signature(op)
    assert list(signature.parameters) == [p for p, *_ in op.params]
    assert op.__name__ == name and name in repr(op)
    if "?" in row.args:
        optional = [p for p, o in zip(row.public_names, row.optional) if o]
        assert all(signature.parameters[p].default is None for p in optional)


@pytest.mark.parametrize(
    "name", [n for n, row in table.TABLE.items() if row.function or row.method]
)
def test_samples_bind_to_the_signature(name):
    """What a sample passes is what the signature promises."""
    op = table.OPS[name]
    for sample in samples.samples_of(name):
        if op.row.varargs or op.row.overload is not None:
            continue
        inspect.signature(op).bind(*sample.args, **sample.kwargs)


@pytest.mark.parametrize("name", [n for n, row in table.TABLE.items() if row.method])
def test_method_is_the_operation(name):
    """A method of the same name, with help of its own."""
    method = getattr(tf.Tensor, name)
    assert method.__doc__, f"Tensor.{name} has no doc"
    if name in tf.__dict__ and table.TABLE[name].function:
        assert callable(getattr(tf, name))


def modules():
    """Names of all modules of the package."""
    found = ["tinyfin"]
    for info in pkgutil.walk_packages(tf.__path__, "tinyfin."):
        if info.name.split(".")[-1] != "__main__":
            found.append(info.name)
    return found


def documented(module):
    """(name, object) of what a module defines: functions, classes and their members."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__ or name.startswith("__"):
            continue
        yield name, value
        if inspect.isclass(value):
            yield from (
                (f"{name}.{n}", v) for n, v in vars(value).items() if getattr(v, "__doc__", None)
            )


@pytest.mark.parametrize("name", modules())
def test_examples_run(name):
    module = importlib.import_module(name)
    wrong, parser = [], doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for label, value in [("", module), *documented(module)]:
        text = getattr(value, "__doc__", None)
        if not isinstance(text, str) or ">>>" not in text:
            continue
        tf.manual_seed(0)
        out = io.StringIO()
        test = parser.get_doctest(text, {**vars(module), **KNOWN}, f"{name}.{label}", None, 0)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            if runner.run(test, out=out.write).failed:
                wrong.append(out.getvalue())
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", modules())
def test_public_things_are_documented(name):
    """Modules, and what they define without an underscore, have a docstring."""
    module = importlib.import_module(name)
    assert module.__doc__ or hasattr(module, "__path__"), f"{name} has no docstring"
    bare = [
        label
        for label, value in documented(module)
        if not label.split(".")[-1].startswith("_")
        and callable(value)
        and not getattr(value, "__doc__", None)
    ]
    assert not bare, f"{name}: no docstring on {', '.join(bare)}"


def test_examples_are_many():
    """The collection itself works: examples are found in Python and in compiled modules."""
    counts = {}
    for name in modules():
        module = importlib.import_module(name)
        counts[name] = sum(
            ">>>" in (getattr(v, "__doc__", None) or "") for _, v in documented(module)
        )
    assert sum(counts.values()) > 60
    assert counts["tinyfin.core.dtype"] and counts["tinyfin.creation"]
