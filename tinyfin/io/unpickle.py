"""A pickle machine that can build plain data and nothing else. Knows nothing of tensors.

It understands the instructions by which containers, numbers and strings are built. A name in the
pickle is looked up in a table that the caller gives, never imported; only entries of that table
are called; no attribute of any object is set. What it builds is bounded by the bytes that are there.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from pickle import UnpicklingError

from tinyfin.io.shown import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Table = dict[tuple[str, str], Any]

MAX_DEPTH = 100
"""Tuples within tuples: Python hashes them by recursion in C, without a check of its own."""
MAX_KEY = 10_000
"""Values in one key: a tuple that holds the same tuple twice, and so on, has exponentially many."""
_COPIES = 16
"""How often calls may copy as much as the pickle is long: writers copy nothing twice."""
_SIZED = (str, bytes, bytearray, list, tuple, dict)


class Call:
    """A table entry that pickles may call: its arguments are whatever the file says, so it must
    check them. One that hashes what it is given gets the machine first, to ask it what can be.
    """

    __slots__ = ("function", "hashes")

    def __init__(self, function: Callable[..., Any], hashes: bool = False) -> None:
        self.function = function
        self.hashes = hashes


class Machine:
    """Runs one pickle from a buffer: `load()` gives the object, and `at` is then the position
    after it.

    Args:
        table: what each allowed name stands for; a `Call` may be called, anything else is a value.
        persistent: what a persistent id stands for.

    >>> import pickle
    >>> Machine(pickle.dumps([1, {"a": (2.5, None)}])).load()
    [1, {'a': (2.5, None)}]
    """

    def __init__(
        self,
        data: Any,
        at: int = 0,
        table: Table | None = None,
        persistent: Callable[[Any], Any] | None = None,
    ) -> None:
        self.data = memoryview(data)
        self.at = at
        self.table = PLAIN if table is None else table
        self.persistent = persistent
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.nested: dict[int, tuple[int, int, tuple[Any, ...]]] = {}
        self.copies = _COPIES * len(self.data)

    def load(self) -> Any:
        """The object that the pickle builds.

        Raises:
            UnpicklingError: the pickle asks for something that is not allowed, or is damaged;
                nothing of it was executed.
        """
        try:
            while (code := self.take(1)[0]) != _STOP:
                step = _STEPS.get(code)
                if step is None:
                    raise UnpicklingError(
                        f"the pickle holds the instruction {bytes((code,))!r}, which plain data "
                        "does not need"
                    )
                step(self)
            return self.stack.pop()
        except (UnpicklingError, MemoryError):
            raise
        except Exception as e:
            raise UnpicklingError(
                f"the pickle is damaged near byte {self.at}: {type(e).__name__}: {e}"
            ) from e

    def take(self, n: int) -> memoryview:
        """The next `n` bytes."""
        end = self.at + n
        if end > len(self.data):
            raise UnpicklingError(
                f"the pickle ends in the middle of an instruction, at byte {len(self.data)}"
            )
        chunk = self.data[self.at : end]
        self.at = end
        return chunk

    def line(self) -> str:
        """The text up to the next newline."""
        end = self.at
        while self.data[end] != 10:
            end += 1
        text = str(self.data[self.at : end], "utf-8")
        self.at = end + 1
        return text

    def number(self, layout: str) -> Any:
        """The next number, laid out as `struct` says."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def marked(self) -> list[Any]:
        """What was put on the stack since the last mark."""
        items, self.stack = self.stack, self.marks.pop()
        return items

    def name(self, module: str, name: str) -> None:
        """Puts what a name stands for on the stack."""
        try:
            self.stack.append(self.table[module, name])
        except KeyError:
            raise UnpicklingError(
                f"the file refers to `{module}.{name}`, which is not among the names that plain "
                "tensors need; nothing of it was executed. If you trust the file, open it with "
                "what wrote it and save plain tensors, for instance a state_dict"
            ) from None

    def call(self, function: Any, args: Any) -> None:
        """Puts the result of an allowed call on the stack."""
        if type(function) is not Call or not isinstance(args, tuple):
            raise UnpicklingError(
                f"the pickle calls {type(function).__name__}, which is not among what it may call"
            )
        self.copies -= sum(len(x) for x in args if type(x) in _SIZED)
        if self.copies < 0:
            raise UnpicklingError("the pickle copies the same data over and over")
        self.stack.append(
            function.function(self, *args) if function.hashes else function.function(*args)
        )

    def global_line(self) -> None:
        """A name in two lines of text."""
        module = self.line()
        self.name(module, self.line())

    def stack_global(self) -> None:
        """A name from the stack."""
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise UnpicklingError("the pickle names something by other than strings")
        self.name(module, name)

    def reduce(self) -> None:
        """Function and arguments on the stack become a result."""
        args = self.stack.pop()
        self.call(self.stack.pop(), args)

    def newobj_ex(self) -> None:
        """As `reduce`, with keywords, of which none are allowed."""
        if self.stack.pop():
            raise UnpicklingError("the pickle builds an object with keywords")
        self.reduce()

    def build(self) -> None:
        """State for an object: kept only where PyTorch's state dicts have it, dropped on none."""
        state = self.stack.pop()
        if type(self.stack[-1]) is not OrderedDict or type(state) is not dict:
            raise UnpicklingError(f"the pickle sets the state of a {type(self.stack[-1]).__name__}")
        if "_metadata" in state:
            # an OrderedDict, which takes attributes
            self.stack[-1]._metadata = state["_metadata"]  # pyright: ignore[reportAttributeAccessIssue]

    def persid(self) -> None:
        """A persistent id becomes what the caller says."""
        if self.persistent is None:
            raise UnpicklingError("the pickle refers to data outside of it")
        self.stack.append(self.persistent(self.stack.pop()))

    def mark(self) -> None:
        """Begins a group."""
        self.marks.append(self.stack)
        self.stack = []

    def tuple_of(self, n: int) -> None:
        """The last `n` values become a tuple."""
        if len(self.stack) < n:
            raise UnpicklingError("the pickle takes more from its stack than it put there")
        self.stack[-n:] = [self.joined(self.stack[-n:])]

    def joined(self, items: list[Any]) -> tuple[Any, ...]:
        """A tuple of the items; how deep it is, and how much it holds, is kept for `checked`."""
        whole = tuple(items)
        inner = [self.extent(x) for x in items if type(x) is tuple]
        if inner:
            depth = 1 + max(depth for depth, _ in inner)
            if depth > MAX_DEPTH:
                raise UnpicklingError(
                    f"the pickle nests tuples more than {MAX_DEPTH} deep, which no plain data is"
                )
            # The tuple is kept, so that no other object can get its id.
            self.nested[id(whole)] = depth, len(whole) + sum(held for _, held in inner), whole
        return whole

    def extent(self, x: tuple[Any, ...]) -> tuple[int, int]:
        """How deep a tuple is, and how many values it holds, repeated ones counted each time."""
        depth, held, _ = self.nested.get(id(x), (1, len(x), None))
        return depth, held

    def checked(self, keys: list[Any]) -> list[Any]:
        """Keys that Python can hash."""
        for x in keys:
            if type(x) is tuple and self.extent(x)[1] > MAX_KEY:
                raise UnpicklingError(
                    f"the pickle has a key of more than {MAX_KEY} values, which no plain data has"
                )
        return keys

    def group(self) -> None:
        """What was put on the stack since the last mark becomes a tuple."""
        items = self.marked()  # which puts the stack of before back
        self.stack.append(self.joined(items))

    def frozen(self) -> None:
        """What was put on the stack since the last mark becomes a frozenset."""
        items = self.marked()
        self.stack.append(frozenset(self.checked(items)))

    def extend(self, items: list[Any]) -> None:
        """Adds to a list."""
        if type(self.stack[-1]) is not list:
            raise UnpicklingError(f"the pickle appends to a {type(self.stack[-1]).__name__}")
        self.stack[-1].extend(items)

    def update(self, items: list[Any]) -> None:
        """Adds keys and values to a dict."""
        if type(self.stack[-1]) not in (dict, OrderedDict):
            raise UnpicklingError(f"the pickle sets items of a {type(self.stack[-1]).__name__}")
        keys = self.checked(items[::2])
        self.stack[-1].update(zip(keys, items[1::2], strict=True))

    def add(self, items: list[Any]) -> None:
        """Adds to a set."""
        if type(self.stack[-1]) is not set:
            raise UnpicklingError(f"the pickle adds to a {type(self.stack[-1]).__name__}")
        self.stack[-1].update(self.checked(items))

    def pop_pair(self) -> list[Any]:
        """The last two values."""
        value, key = self.stack.pop(), self.stack.pop()
        return [key, value]


def _push(make: Callable[[Machine], Any]) -> Callable[[Machine], None]:
    def step(m: Machine) -> None:
        m.stack.append(make(m))

    return step


def _put(layout: str) -> Callable[[Machine], None]:
    def step(m: Machine) -> None:
        m.memo[m.number(layout)] = m.stack[-1]

    return step


def _text(layout: str) -> Callable[[Machine], None]:
    return _push(lambda m: str(m.take(m.number(layout)), "utf-8", "surrogatepass"))


def _integer(layout: str) -> Callable[[Machine], None]:
    return _push(lambda m: int.from_bytes(m.take(m.number(layout)), "little", signed=True))


_STOP = ord(".")
_STEPS: dict[int, Callable[[Machine], Any]] = {
    ord(code): step
    for code, step in {
        "\x80": lambda m: m.take(1),
        "\x95": lambda m: m.take(8),
        "N": _push(lambda m: None),
        "\x88": _push(lambda m: True),
        "\x89": _push(lambda m: False),
        "K": _push(lambda m: m.number("<B")),
        "M": _push(lambda m: m.number("<H")),
        "J": _push(lambda m: m.number("<i")),
        "\x8a": _integer("<B"),
        "\x8b": _integer("<I"),
        "G": _push(lambda m: m.number(">d")),
        "X": _text("<I"),
        "\x8c": _text("<B"),
        "\x8d": _text("<Q"),
        "U": _text("<B"),
        "T": _text("<I"),
        "B": _push(lambda m: bytes(m.take(m.number("<I")))),
        "C": _push(lambda m: bytes(m.take(m.number("<B")))),
        "\x8e": _push(lambda m: bytes(m.take(m.number("<Q")))),
        "\x96": _push(lambda m: bytearray(m.take(m.number("<Q")))),
        "(": Machine.mark,
        "0": lambda m: m.stack.pop() if m.stack else m.marked(),
        "1": Machine.marked,
        "2": _push(lambda m: m.stack[-1]),
        ")": _push(lambda m: ()),
        "\x85": lambda m: m.tuple_of(1),
        "\x86": lambda m: m.tuple_of(2),
        "\x87": lambda m: m.tuple_of(3),
        "t": Machine.group,
        "]": _push(lambda m: []),
        "a": lambda m: m.extend([m.stack.pop()]),
        "e": lambda m: m.extend(m.marked()),
        "}": _push(lambda m: {}),
        "s": lambda m: m.update(m.pop_pair()),
        "u": lambda m: m.update(m.marked()),
        "\x8f": _push(lambda m: set()),
        "\x90": lambda m: m.add(m.marked()),
        "\x91": Machine.frozen,
        "h": _push(lambda m: m.memo[m.number("<B")]),
        "j": _push(lambda m: m.memo[m.number("<I")]),
        "q": _put("<B"),
        "r": _put("<I"),
        "\x94": lambda m: m.memo.__setitem__(len(m.memo), m.stack[-1]),
        "c": Machine.global_line,
        "\x93": Machine.stack_global,
        "R": Machine.reduce,
        "\x81": Machine.reduce,
        "\x92": Machine.newobj_ex,
        "b": Machine.build,
        "Q": Machine.persid,
    }.items()
}


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 writes bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise UnpicklingError(f"the pickle encodes text as {shown(encoding)}")
    return text.encode("latin-1")


def _bytes() -> bytes:
    """How protocol 2 writes empty bytes."""
    return b""


def _bytearray(source: Any = b"", encoding: str = "latin-1") -> bytearray:
    return bytearray(source if isinstance(source, bytes) else _encode(source, encoding))


def _complex(real: float, imag: float) -> complex:
    return complex(float(real), float(imag))


def _set(machine: Machine, items: Any = ()) -> set[Any]:
    if type(items) is not list and items != ():
        raise UnpicklingError("the pickle makes a set of something that is no list")
    return set(machine.checked(list(items)))


def _ordered(machine: Machine, items: Any = ()) -> OrderedDict[Any, Any]:
    if type(items) is not list and items != ():
        raise UnpicklingError("the pickle makes an OrderedDict of something that is no list")
    if not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in items):
        raise UnpicklingError("the pickle makes an OrderedDict of something other than pairs")
    machine.checked([key for key, _ in items])
    return OrderedDict(items)


PLAIN: Table = {
    ("collections", "OrderedDict"): Call(_ordered, hashes=True),
    ("_codecs", "encode"): Call(_encode),
    ("__builtin__", "bytes"): Call(_bytes),
    ("builtins", "bytes"): Call(_bytes),
    ("__builtin__", "bytearray"): Call(_bytearray),
    ("builtins", "bytearray"): Call(_bytearray),
    ("__builtin__", "complex"): Call(_complex),
    ("builtins", "complex"): Call(_complex),
    ("__builtin__", "set"): Call(_set, hashes=True),
    ("builtins", "set"): Call(_set, hashes=True),
}
