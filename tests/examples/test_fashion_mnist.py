"""examples/fashion_mnist.py: learns from the real pictures, and step by step as PyTorch does."""

import os
from itertools import islice

import numpy as np
import programs
import pytest

import tinyfin

example = programs.program("fashion_mnist")
installed = pytest.mark.skipif(
    not os.path.isdir(example.DEBIAN), reason="needs Debian's package dataset-fashion-mnist"
)


@installed
def test_it_learns():
    x, y = example.load(example.DEBIAN, "train")
    x_test, y_test = example.load(example.DEBIAN, "t10k")
    assert x.shape == (60000, 1, 28, 28) and np.bincount(y).tolist() == [6000] * 10
    assert len(y_test) == 10000 and abs(x.mean()) < 1e-3 and abs(x.std() - 1) < 1e-3
    model = example.build(tinyfin, 0)
    losses = [loss for _, loss in islice(example.steps(tinyfin, model, x, y, 1, 0), 100)]
    assert np.mean(losses[-10:]) < 0.65 < losses[0]
    loss, accuracy = example.evaluate(tinyfin, model, x_test[:2000], y_test[:2000])
    assert accuracy > 0.78 and loss < 0.65


@installed
def test_first_losses_are_those_of_pytorch(capsys):
    programs.compare(example, capsys, data=example.DEBIAN)


def test_files_that_are_not_there_or_others(tmp_path):
    done = programs.run("fashion_mnist", "--data", tmp_path)
    assert done.returncode == 1 and "train-images-idx3-ubyte.gz is missing" in done.stderr
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"something else")
    done = programs.run("fashion_mnist", "--data", tmp_path)
    assert done.returncode == 1 and "is not the file of Fashion-MNIST" in done.stderr
