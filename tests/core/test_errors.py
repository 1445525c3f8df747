"""Wording of errors that several places raise."""

import pytest

import tinyfin as tf
from tinyfin.core.errors import amount, out_of_memory, rename, unsupported


@pytest.mark.parametrize(
    "nbytes, text",
    [
        (0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1 << 20, "1.0 MiB"),
        (3 << 29, "1.5 GiB"), (1 << 40, "1.0 TiB"), (1 << 50, "1.0 PiB"), (1 << 62, "4096.0 PiB"),
    ],
)  # fmt: skip
def test_amount(nbytes, text):
    assert amount(nbytes) == text


def test_out_of_memory_names_the_largest_holders():
    live = [(1 << 20, "zeros"), (3 << 20, "cat"), (1 << 20, "zeros")] + [
        (5, f"op{i}") for i in range(9)
    ]
    stats = {"live": 5 << 20, "cached": 1024, "limit": 6 << 20}
    text = out_of_memory("exp", 4 << 20, 1 << 20, stats, live)
    assert text.startswith(
        "exp: 4.0 MiB asked for, 1.0 MiB free; tensors hold 5.0 MiB (cached 1.0 KiB, limit 6.0 MiB)"
    )
    assert "1 of 3.0 MiB in all from cat, 2 of 2.0 MiB in all from zeros" in text
    assert "op0" in text and "op8" not in text and text.endswith("smaller batch or shape")


def test_out_of_memory_without_limit_or_holders():
    text = out_of_memory("exp", 1, 0, {"live": 0, "cached": 0, "limit": None}, [])
    assert "limit" not in text and "large tensors" not in text


def test_rename_keeps_everything_but_the_name():
    error = IndexError("inner: index 3: too large", 7)
    rename(error, "outer", {"inner"})
    assert error.args == ("outer: index 3: too large", 7)
    for args in ((), (3,), ("no name",), ("other: text",)):
        error = ValueError(*args)
        rename(error, "outer", {"inner"})
        assert error.args == args


def test_errors_of_a_formula_bear_the_name_that_was_called():
    nn = tf.nn.functional
    x = tf.ones(1, 2, 3, 3)
    for call, begin in (
        (lambda t: nn.conv_transpose2d(t, tf.ones(3, 1, 2, 2)), "conv_transpose2d: input has 2"),
        (lambda t: nn.max_pool2d(t, 4), "max_pool2d: window of reach 4"),
        (lambda t: nn.layer_norm(t, (4,)), "layer_norm: input is"),
        (lambda t: nn.nll_loss(t[0, 0], tf.tensor([0, 1, 9])), "nll_loss: index 9"),
    ):
        for t in (x, x.clone().requires_grad_()):
            try:
                call(t)
            except (RuntimeError, IndexError) as error:
                assert str(error).startswith(begin)
            else:
                raise AssertionError(begin)


def test_unsupported_names_dtypes_and_what_is_expected():
    text = unsupported("bitwise_and", "bi", [tf.float32, tf.float32, tf.int64])
    assert text == (
        "bitwise_and: dtype tinyfin.float32, tinyfin.int64 was given, expected bool, integers"
    )
    assert "float16 or bfloat16" in unsupported("exp", "h", [tf.bool])
    assert "sizes and strides" in unsupported("exp", "fh", [tf.float32, tf.float16])
    assert "sizes and strides" in unsupported("exp", "any", [tf.float32])
