"""What programs written for PyTorch ask about CUDA."""

from nn import examples

import tinyfin as tf


def test_there_is_none():
    assert tf.cuda.is_available() is False and tf.cuda.device_count() == 0
    device = "cuda" if tf.cuda.is_available() else "cpu"
    assert tf.ones(2).to(device).device.type == "cpu"
    tf.cuda.manual_seed(1)
    tf.cuda.manual_seed_all(1)
    tf.cuda.empty_cache()


def test_examples():
    examples.run("tinyfin.cuda")
