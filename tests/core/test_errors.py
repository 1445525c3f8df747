"""Wording of errors that several places raise."""

import pytest

from tinyfin.core.errors import amount, out_of_memory


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
