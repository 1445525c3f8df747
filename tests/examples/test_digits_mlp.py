"""examples/digits_mlp.py: learns what it says, and step by step as PyTorch does."""

import numpy as np
import programs
import pytest

import tinyfin

example = programs.program("digits_mlp")


@pytest.mark.parametrize("seed", [0, 1])
def test_it_learns(seed):
    x, y, x_test, y_test = example.load()
    model = example.build(tinyfin, seed)
    before = example.accuracy(tinyfin, model, x_test, y_test)
    losses = [loss for _, loss in example.steps(tinyfin, model, x, y, 15, seed)]
    assert before < 0.3 and len(losses) == 15 * 45
    assert np.mean(losses[-45:]) < 0.25
    assert example.accuracy(tinyfin, model, x_test, y_test) > 0.92


def test_command_line():
    done = programs.run("digits_mlp", "--epochs", "50", "--seed", "0")
    assert done.returncode == 0, done.stderr
    last = (done.stdout + done.stderr).strip().splitlines()[-1].split()
    assert last[:2] == ["epoch", "50"] and float(last[-1]) >= 0.96
    done = programs.run("digits_mlp", "--backend", "none")
    assert done.returncode == 2 and "'none' is not available" in done.stderr


def test_first_losses_are_those_of_pytorch(capsys):
    programs.compare(example, capsys)
