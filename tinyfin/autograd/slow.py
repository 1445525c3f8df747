"""The slow road of a call: what mode bits ask for beyond running the operation.

Imported with the package, so it imports nothing itself; what it needs comes on first use.
"""

from tinyfin.core import tensor

FORWARD, VMAP, CAPTURE, AUTOCAST, CHECK, PROFILE = 16, 32, 64, 128, 256, 512

HANDLERS = {}
"""bit -> function(op, args, attrs) that answers a call, or NotImplemented to go on."""

ORDER = (AUTOCAST, CAPTURE, PROFILE, CHECK)
"""The bits beside those of wrappers, in the order in which they are asked."""


def offer(bit, handler):
    """Enters the function that answers calls made while `bit` is set."""
    HANDLERS[bit] = handler


def wrapped(op, args, attrs):
    """Tangents and batches; the first call brings the module in."""
    from tinyfin.autograd.levels import call

    HANDLERS[FORWARD] = call
    return call(op, args, attrs)


def check(op, args, attrs):
    """Looks for NaN and infinity; the first call brings the module in."""
    from tinyfin.autograd.check import call

    HANDLERS[CHECK] = call
    return call(op, args, attrs)


def check_reuse(name, got, want):
    """What the engine has written over a gradient is compared; the first call brings the module
    in."""
    from tinyfin.autograd.check import compare

    compare(name, got, want)


def straight(rule, kinds):
    """A rule's calls in their order; the first walk brings the module in."""
    from tinyfin.autograd.straight import straight

    return straight(rule, kinds)


def only_called(rule):
    """The row that a rule does nothing but call; the first walk brings the module in."""
    from tinyfin.autograd.straight import only_called

    return only_called(rule)


def slow(op, args, attrs, bits):
    """Answers a call made while one of the slow bits is set; NotImplemented means: go on as
    usual."""
    if bits & (FORWARD | VMAP):
        result = HANDLERS[FORWARD](op, args, attrs)
        if result is not NotImplemented:
            return result
    for bit in ORDER:
        if bits & bit and bit in HANDLERS:
            result = HANDLERS[bit](op, args, attrs)
            if result is not NotImplemented:
                return result
    return NotImplemented


offer(FORWARD, wrapped)
offer(CHECK, check)
tensor.install_hook("slow", slow)
tensor.install_hook("check_reuse", check_reuse)
tensor.install_hook("straight", straight)
tensor.install_hook("only_called", only_called)
