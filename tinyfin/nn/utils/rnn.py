"""Sequences of different lengths in one tensor: padded, or packed step by step for recurrent layers."""

from __future__ import annotations

from typing import NamedTuple

from tinyfin.core.dtype import dtype_by_name
from tinyfin.core.tensor import Tensor
from tinyfin.creation import full, tensor_
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

INT64 = dtype_by_name("int64")


class PackedSequence(NamedTuple):
    """Sequences laid out by steps: all first elements, all second ones of those that have one, ...

    Made by `pack_padded_sequence` or `pack_sequence`; recurrent layers take and give it.

    Attributes:
        data: (sum of the lengths, ...).
        batch_sizes: (longest length) of int64 on the CPU: how many sequences have a step.
        sorted_indices: places in the batch, longest first; None where they lay so.
        unsorted_indices: the way back.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with the data on another device, or of another dtype."""
        data = self.data.to(*args, **kwargs)
        moved = (i if i is None else i.to(data.device) for i in self[2:])
        return PackedSequence(data, self.batch_sizes, *moved)

    def cpu(self) -> PackedSequence:
        """The same on the CPU."""
        return self.to("cpu")

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device: there is none."""
        return False


def lengths_of(what: str, lengths: Any, batch: int) -> list[int]:
    """Lengths as a list, checked."""
    found = [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    if len(found) != batch:
        raise ValueError(
            f"{what}: lengths has {len(found)} entries, expected {batch}, one for each sequence"
        )
    if batch == 0 or min(found) < 1:
        raise RuntimeError(f"{what}: lengths is {found}, expected all of them to be positive")
    return found


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences.

    Args:
        input: (longest length, batch, ...), or (batch, longest length, ...) with `batch_first`.
        lengths: of each sequence: a list, or a tensor.
        enforce_sorted: refuse lengths that grow; else they are sorted, and put back by `pad_packed_sequence`.

    Raises:
        RuntimeError: a length is not positive, grows, or is larger than the input's.
        ValueError: there are not as many lengths as sequences.

    >>> import tinyfin as tf
    >>> from tinyfin.nn.utils.rnn import pack_padded_sequence
    >>> x = tf.tensor([[1, 2, 3], [4, 5, 0]])
    >>> p = pack_padded_sequence(x, [3, 2], batch_first=True)
    >>> p.data.tolist(), p.batch_sizes.tolist()
    ([1, 4, 2, 5, 3], [2, 2, 1])
    """
    what = "pack_padded_sequence"
    if input.ndim < 2:
        raise RuntimeError(f"{what}: input has {input.ndim} dimensions, expected at least 2")
    x = input.transpose(0, 1) if batch_first else input
    found = lengths_of(what, lengths, x.shape[1])
    if max(found) > x.shape[0]:
        raise RuntimeError(f"{what}: lengths has {max(found)}, the input only {x.shape[0]} steps")
    order = sorted(range(len(found)), key=lambda i: -found[i])
    if enforce_sorted:
        if any(a < b for a, b in zip(found, found[1:])):
            raise RuntimeError(
                f"{what}: lengths grow; sort the batch by length, longest first, or pass enforce_sorted=False"
            )
        places, back = None, None
    else:
        places = tensor_(order, dtype=INT64, device=input.device)
        back = inverse(places)
        x = x.index_select(1, places)
        found = [found[i] for i in order]
    sizes = [sum(n > t for n in found) for t in range(found[0])]
    data = F.cat([x[t, :n] for t, n in enumerate(sizes)], 0)
    return PackedSequence(data, tensor_(sizes, dtype=INT64, device="cpu"), places, back)


def inverse(places: Tensor) -> Tensor:
    """The permutation that undoes one."""
    found = places.tolist()
    return tensor_(
        sorted(range(len(found)), key=found.__getitem__), dtype=INT64, device=places.device
    )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(padded sequences, lengths) of packed ones, in the order in which they were packed.

    Args:
        padding_value: what stands behind the end of a sequence.
        total_length: steps of the result; the longest length if None.

    Raises:
        ValueError: `total_length` is less than the longest length.

    >>> import tinyfin as tf
    >>> from tinyfin.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([tf.tensor([1.0, 2.0]), tf.tensor([3.0])])
    >>> x, lengths = pad_packed_sequence(packed, batch_first=True)
    >>> x.tolist(), lengths.tolist()
    ([[1.0, 2.0], [3.0, 0.0]], [2, 1])
    """
    sizes = sequence.batch_sizes.tolist()
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise ValueError(
            f"pad_packed_sequence: total_length is {total_length}, expected at least {len(sizes)}"
        )
    rows, first = [], 0
    data, tail = sequence.data, tuple(sequence.data.shape[1:])
    for t in range(steps):
        n = sizes[t] if t < len(sizes) else 0
        parts = [data[first : first + n]]
        if n < sizes[0]:
            like = {"dtype": data.dtype, "device": data.device}
            parts.append(full((sizes[0] - n, *tail), padding_value, **like))
        rows.append(F.cat(parts, 0) if len(parts) > 1 else parts[0])
        first += n
    x = F.stack(rows, 1 if batch_first else 0)
    lengths = tensor_(
        [sum(n > i for n in sizes) for i in range(sizes[0])], dtype=INT64, device="cpu"
    )
    back = sequence.unsorted_indices
    if back is not None:
        x = x.index_select(0 if batch_first else 1, back)
        lengths = lengths[back.to("cpu")]
    return x, lengths


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stacks sequences (length, ...) of different lengths, filled up to the longest.

    Returns (longest length, batch, ...), or (batch, longest length, ...) with `batch_first`.

    Raises:
        RuntimeError: there is no sequence.
        ValueError: `padding_side` is neither 'right' nor 'left'.

    >>> import tinyfin as tf
    >>> from tinyfin.nn.utils.rnn import pad_sequence
    >>> pad_sequence([tf.tensor([1, 2]), tf.tensor([3])], batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    if padding_side not in ("right", "left"):
        raise ValueError(
            f"pad_sequence: padding_side is {padding_side!r}, expected 'right' or 'left'"
        )
    if not sequences:
        raise RuntimeError("pad_sequence: sequences is empty, expected at least one tensor")
    longest, rows = max(s.shape[0] for s in sequences), []
    for s in sequences:
        if s.shape[0] < longest:
            shape = (longest - s.shape[0], *s.shape[1:])
            fill = full(shape, padding_value, dtype=s.dtype, device=s.device)
            s = F.cat([s, fill] if padding_side == "right" else [fill, s], 0)
        rows.append(s)
    return F.stack(rows, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded tensor, each with its own length.

    >>> import tinyfin as tf
    >>> from tinyfin.nn.utils.rnn import unpad_sequence
    >>> x = tf.tensor([[1, 2], [3, 0]])
    >>> [s.tolist() for s in unpad_sequence(x, tf.tensor([2, 1]), batch_first=True)]
    [[1, 2], [3]]
    """
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    found = lengths_of("unpad_sequence", lengths, x.shape[0])
    return [x[i, :n] for i, n in enumerate(found)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences (length, ...) of different lengths; arguments and errors as `pack_padded_sequence`.

    >>> import tinyfin as tf
    >>> from tinyfin.nn.utils.rnn import pack_sequence
    >>> pack_sequence([tf.tensor([1, 2]), tf.tensor([3])]).data.tolist()
    [1, 3, 2]
    """
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed.

    >>> import tinyfin as tf
    >>> from tinyfin.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> [s.tolist() for s in unpack_sequence(pack_sequence([tf.tensor([1, 2]), tf.tensor([3])]))]
    [[1, 2], [3]]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences))
