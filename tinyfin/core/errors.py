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
