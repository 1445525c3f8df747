"""The wording of errors that several places raise; loaded when one is raised."""


def amount(nbytes):
    """Bytes in words: 1.5 GiB.

    >>> amount(1536)
    '1.5 KiB'
    """
    value = float(nbytes)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1024 or unit == "PiB":
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return ""


def rename(error, name, names):
    """Where an error's text begins with one of the names, it begins with `name` afterwards."""
    text = error.args[0] if error.args else None
    if isinstance(text, str):
        first, colon, rest = text.partition(": ")
        if colon and first in names:
            error.args = (f"{name}: {rest}", *error.args[1:])


class IndexOutOfRange(IndexError, RuntimeError):
    """An index that a kernel met: IndexError as Python has it, RuntimeError as PyTorch has it for gather."""


class OutOfDomain(ValueError, RuntimeError):
    """A value that a kernel refuses: ValueError as Python has it, RuntimeError as PyTorch has it."""


DOMAINS = ("all elements between 0 and 1", "no NaN")


def out_of_domain(op, argument, value, domain):
    """The error for an element outside a domain, by the domain's number."""
    return OutOfDomain(f"{op}: {argument} has an element {value}, expected {DOMAINS[domain]}")


FAILED = {}
"""(device slot, number) -> what the last failing call there raised; backends enter it."""


def device_failed(op, slot, index):
    """The error of a call whose device failed."""
    error = FAILED.pop((slot, index), None)
    if isinstance(error, BaseException) and not isinstance(error, Exception):
        return error  # Ctrl-C while a kernel was being made
    kind = MemoryError if isinstance(error, MemoryError) else RuntimeError
    return kind(f"{op}: {error}")


KINDS = {
    "b": "bool",
    "i": "integers",
    "f": "float32 or float64",
    "h": "float16 or bfloat16",
}


def unsupported(op, kinds, dtypes):
    """What a kernel refuses: a dtype, or a layout of dtypes that it takes otherwise."""
    given = ", ".join(dict.fromkeys(map(str, dtypes)))
    if kinds != "any" and any(not set(kind_of(d)) <= set(kinds) for d in dtypes):
        wanted = ", ".join(words for kind, words in KINDS.items() if kind in kinds)
        return f"{op}: dtype {given} was given, expected {wanted}"
    return f"{op}: there is no kernel for arguments of {given} in these sizes and strides"


def kind_of(dtype):
    """A dtype's letter in a row's `dtypes`."""
    if dtype.is_floating_point:
        return "h" if dtype.itemsize < 4 else "f"
    return "b" if str(dtype).endswith("bool") else "i"


def out_of_memory(op, asked, free, stats, live):
    """Says how much was asked for, how much is free, and who holds what."""
    held = {}
    for nbytes, label in live:
        count, total = held.get(label, (0, 0))
        held[label] = (count + 1, total + nbytes)
    largest = sorted(held.items(), key=lambda item: -item[1][1])[:5]
    who = ", ".join(
        f"{count} of {amount(total)} in all from {label}" for label, (count, total) in largest
    )
    limit = "" if stats["limit"] is None else f", limit {amount(stats['limit'])}"
    return (
        f"{op}: {amount(asked)} asked for, {amount(free)} free; tensors hold {amount(stats['live'])}"
        f" (cached {amount(stats['cached'])}{limit})"
        + (f"; large tensors: {who}" if who else "")
        + "; delete what is no longer needed, or use a smaller batch or shape"
    )
