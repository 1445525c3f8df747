"""Modes of the calling thread: recording, inference, anomaly detection, deterministic
arithmetic."""

from __future__ import annotations

from tinyfin import config
from tinyfin.backends.base import DETERMINISTIC, check_deterministic
from tinyfin.core import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, TypeVar, overload

    from typing_extensions import Self

    Fn = TypeVar("Fn", bound=Callable[..., Any])

GRAD, INFERENCE, CHECK, ANOMALY = 1, 2, 256, 1024
DEFAULT = [GRAD]
"""The bits with which threads begin."""


class Mode:
    """Sets mode bits for a `with` block or a decorated function, and restores them."""

    mask = 0

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.old: list[Any] = []

    def __enter__(self) -> Mode:
        self.old.append(tensor.set_mode(self.bits, self.mask))
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        tensor.set_mode(self.old.pop(), self.mask)
        return False

    def __call__(self, function: Fn) -> Fn:
        from functools import wraps

        if isinstance(function, type):
            raise TypeError(
                f"{type(self).__name__}: decorates functions, not the class {function.__name__}"
            )

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.fresh():
                return function(*args, **kwargs)

        return wrapped  # pyright: ignore[reportReturnType] (wraps says that it is like it)

    def fresh(self) -> Mode:
        """A new block of the same mode, for recursive and concurrent calls."""
        other = type(self).__new__(type(self))
        other.bits, other.old = self.bits, []
        return other


class no_grad(Mode):
    """Operations are not recorded.

    >>> import tinyfin
    >>> x = tinyfin.ones(2, requires_grad=True)
    >>> with tinyfin.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    mask = GRAD

    if TYPE_CHECKING:

        @overload
        def __new__(cls, function: None = None) -> Self: ...
        @overload
        def __new__(cls, function: Fn) -> Fn: ...

    def __new__(cls, function: Callable | None = None) -> Any:
        return object.__new__(cls) if function is None else cls()(function)

    def __init__(self, function: Callable | None = None) -> None:
        super().__init__(0)


class enable_grad(Mode):
    """Operations are recorded, inside a no_grad block too.

    >>> import tinyfin
    >>> x = tinyfin.ones(2, requires_grad=True)
    >>> with tinyfin.no_grad(), tinyfin.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    mask = GRAD

    if TYPE_CHECKING:

        @overload
        def __new__(cls, function: None = None) -> Self: ...
        @overload
        def __new__(cls, function: Fn) -> Fn: ...

    def __new__(cls, function: Callable | None = None) -> Any:
        return object.__new__(cls) if function is None else cls()(function)

    def __init__(self, function: Callable | None = None) -> None:
        super().__init__(GRAD)


class set_grad_enabled(Mode):
    """Recording on or off, at once; a `with` block restores what was.

    Raises:
        TypeError: mode is neither True nor False.

    >>> import tinyfin
    >>> with tinyfin.set_grad_enabled(False):
    ...     tinyfin.is_grad_enabled()
    False
    """

    mask = GRAD

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: mode is {mode!r}, expected True or False")
        super().__init__(GRAD if mode else 0)
        self.first = tensor.set_mode(self.bits, self.mask)

    def __enter__(self) -> Mode:
        self.old.append(self.first)
        tensor.set_mode(self.bits, self.mask)
        return self

    def fresh(self) -> Mode:
        """A new block of the same mode."""
        return enable_grad() if self.bits else no_grad()


class inference_mode(Mode):
    """No recording, and results that never take part in recording later; with mode=False the
    contrary.

    >>> import tinyfin
    >>> with tinyfin.inference_mode():
    ...     tinyfin.ones(2).is_inference()
    True
    """

    mask = GRAD | INFERENCE

    if TYPE_CHECKING:

        @overload
        def __new__(cls, mode: bool = True) -> Self: ...
        @overload
        def __new__(cls, mode: Fn) -> Fn: ...

    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(INFERENCE if mode else GRAD)


class detect_anomaly(Mode):
    """Errors in backward name the line that made the node; gradients that become NaN are errors.

    Args:
        check_nan: whether NaN in gradients is an error.

    >>> import tinyfin
    >>> x = tinyfin.tensor(-1.0, requires_grad=True)
    >>> with tinyfin.autograd.detect_anomaly():
    ...     y = x.sqrt()
    ...     try:
    ...         y.backward()
    ...     except RuntimeError as error:
    ...         print(str(error).splitlines()[0])
    backward of sqrt: the gradient of input 0 has NaN.
    """

    mask = ANOMALY

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(ANOMALY)
        self.check_nan = check_nan

    def fresh(self) -> Mode:
        """A new block of the same mode."""
        return detect_anomaly(self.check_nan)

    def __enter__(self) -> Mode:
        self.old.append((tensor.set_mode(ANOMALY, ANOMALY), NAN.get("wanted", True)))
        NAN["wanted"] = self.check_nan
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        bits, NAN["wanted"] = self.old.pop()
        tensor.set_mode(bits, ANOMALY)
        return False


NAN = {}
"""Whether NaN in gradients is an error in anomaly mode."""


class set_detect_anomaly(Mode):
    """Anomaly detection on or off, at once; a `with` block restores what was.

    >>> import tinyfin
    >>> with tinyfin.autograd.set_detect_anomaly(True):
    ...     x = tinyfin.ones(1, requires_grad=True) * 2
    """

    mask = ANOMALY

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(ANOMALY if mode else 0)
        self.former = NAN.get("wanted", True)
        NAN["wanted"] = check_nan
        self.first = tensor.set_mode(self.bits, self.mask)

    def __enter__(self) -> Mode:
        self.old.append(self.first)
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        NAN["wanted"] = self.former
        return super().__exit__(*exc)

    def fresh(self) -> Mode:
        """A new block of the same mode."""
        return set_detect_anomaly(bool(self.bits))


class detect_nonfinite(Mode):
    """The first operation that makes a NaN or infinity from finite numbers raises an error.

    TINYFIN_CHECK=1 does so everywhere.

    >>> import tinyfin
    >>> with tinyfin.autograd.detect_nonfinite():
    ...     try:
    ...         tinyfin.tensor([1.0, 0.0]).log()
    ...     except FloatingPointError as error:
    ...         print(str(error).split(",")[0])
    log: the result of shape (2
    """

    mask = CHECK | ANOMALY

    def __init__(self, mode: bool = True) -> None:
        super().__init__(CHECK | ANOMALY if mode else 0)


class deterministic(Mode):
    """Arithmetic whose bits do not depend on the device; what cannot keep that raises.

    Raises:
        RuntimeError: the default backend rules it out, as `blas` does.
    """

    mask = DETERMINISTIC

    def __init__(self, mode: bool = True) -> None:
        super().__init__(DETERMINISTIC if mode else 0)

    def __enter__(self) -> Mode:
        if self.bits:
            check_deterministic()
        return super().__enter__()


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread.

    >>> import tinyfin
    >>> tinyfin.is_grad_enabled()
    True
    """
    return bool(tensor.mode() & GRAD)


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode.

    >>> import tinyfin
    >>> tinyfin.is_inference_mode_enabled()
    False
    """
    return bool(tensor.mode() & INFERENCE)


def is_deterministic() -> bool:
    """Whether this thread computes in deterministic mode.

    >>> import tinyfin
    >>> with tinyfin.deterministic():
    ...     tinyfin.is_deterministic()
    True
    """
    return bool(tensor.mode() & DETERMINISTIC)


def use_deterministic_algorithms(mode: bool) -> None:
    """Deterministic arithmetic on or off in this thread and in threads that begin later.

    Raises:
        RuntimeError: the default backend rules it out, as `blas` does.
    """
    if mode:
        check_deterministic()
    begin_with(DETERMINISTIC, bool(mode))


def begin_with(bits: int, on: bool) -> None:
    """Sets bits in this thread and in threads that begin later."""
    tensor.set_mode(bits if on else 0, bits)
    DEFAULT[0] = DEFAULT[0] | bits if on else DEFAULT[0] & ~bits
    tensor.set_mode_default(DEFAULT[0])


def trace() -> str:
    """The creating line of a node, for anomaly mode."""
    import traceback

    root = __file__.rsplit("autograd", 1)[0]
    frames = [f for f in traceback.extract_stack()[:-1] if not f.filename.startswith(root)]
    return "".join(traceback.format_list(frames[-4:]))


def held(g: Any) -> Any:
    """The values inside the wrappers of forward mode and vmap."""
    while isinstance(g, tensor.Tensor) and g.extra_:
        entry = g.extra_.get("dual") or g.extra_.get("batch")
        if entry is None:
            break
        g = entry[1]
    return g


def check_anomaly(node: Any, results: list) -> None:
    """Gradients must not be NaN in anomaly mode."""
    if not NAN.get("wanted", True):
        return
    for i, g in enumerate(map(held, results)):
        if (
            g is not None
            and isinstance(g, tensor.Tensor)
            and g.is_floating_point()
            and bool(g.isnan().any())
        ):
            raise RuntimeError(
                f"backward of {node.name()}: the gradient of input {i} has NaN.\n"
                f"It was recorded here:\n{node.trace}"
            )


tensor.install_hook("trace", trace)
tensor.install_hook("check_anomaly", check_anomaly)
if config.CHECK:
    begin_with(CHECK | ANOMALY, True)
