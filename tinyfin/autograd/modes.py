"""Modes of the calling thread: recording, inference, anomaly detection, deterministic arithmetic."""

from tinyfin.core import tensor

GRAD, INFERENCE, DETERMINISTIC, ANOMALY = 1, 2, 4, 1024


class Mode:
    """Sets mode bits for a `with` block or a decorated function, and restores them."""

    mask = 0

    def __init__(self, bits):
        self.bits = bits
        self.old = []

    def __enter__(self):
        self.old.append(tensor.set_mode(self.bits, self.mask))
        return self

    def __exit__(self, *exc):
        tensor.set_mode(self.old.pop(), self.mask)
        return False

    def __call__(self, function):
        from functools import wraps

        if isinstance(function, type):
            raise TypeError(f"{type(self).__name__}: decorates functions, not the class {function.__name__}")

        @wraps(function)
        def wrapped(*args, **kwargs):
            with self.fresh():
                return function(*args, **kwargs)

        return wrapped

    def fresh(self):
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

    def __new__(cls, function=None):
        return object.__new__(cls)

    def __init__(self, function=None):
        super().__init__(0)

    def __class_getitem__(cls, item):
        return cls


class enable_grad(Mode):
    """Operations are recorded, inside a no_grad block too."""

    mask = GRAD

    def __init__(self):
        super().__init__(GRAD)


class set_grad_enabled(Mode):
    """Recording on or off, at once; a `with` block restores what was."""

    mask = GRAD

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: mode is {mode!r}, expected True or False")
        super().__init__(GRAD if mode else 0)
        self.first = tensor.set_mode(self.bits, self.mask)

    def __enter__(self):
        self.old.append(self.first)
        tensor.set_mode(self.bits, self.mask)
        return self

    def fresh(self):
        """A new block of the same mode."""
        return enable_grad() if self.bits else no_grad()


class inference_mode(Mode):
    """No recording, and results that never take part in recording later."""

    mask = GRAD | INFERENCE

    def __init__(self, mode=True):
        super().__init__(INFERENCE if mode else tensor.mode() & (GRAD | INFERENCE))


class detect_anomaly(Mode):
    """Errors in backward name the line that made the node; gradients that become NaN are errors."""

    mask = ANOMALY

    def __init__(self, check_nan=True):
        super().__init__(ANOMALY)


class set_detect_anomaly(Mode):
    """Anomaly detection on or off, at once."""

    mask = ANOMALY

    def __init__(self, mode):
        super().__init__(ANOMALY if mode else 0)
        self.old.append(tensor.set_mode(self.bits, self.mask))

    def __enter__(self):
        return self


class deterministic(Mode):
    """Arithmetic whose bits do not depend on the device; what cannot keep that raises."""

    mask = DETERMINISTIC

    def __init__(self, mode=True):
        super().__init__(DETERMINISTIC if mode else 0)


def is_grad_enabled():
    """Whether operations are recorded in this thread."""
    return bool(tensor.mode() & GRAD)


def is_inference_mode_enabled():
    """Whether this thread is in inference mode."""
    return bool(tensor.mode() & INFERENCE)


def is_deterministic():
    """Whether this thread computes in deterministic mode."""
    return bool(tensor.mode() & DETERMINISTIC)


def use_deterministic_algorithms(mode):
    """Deterministic arithmetic on or off in this thread and in threads that begin later."""
    tensor.set_mode(DETERMINISTIC if mode else 0, DETERMINISTIC)
    tensor.set_mode_default(GRAD | (DETERMINISTIC if mode else 0))


def trace():
    """The creating line of a node, for anomaly mode."""
    import traceback

    frames = [f for f in traceback.extract_stack()[:-1] if "/tinyfin/autograd/" not in f.filename]
    return "".join(traceback.format_list(frames[-4:]))


def check_anomaly(node, results):
    """Gradients must not be NaN in anomaly mode."""
    for i, g in enumerate(results):
        if g is not None and isinstance(g, tensor.Tensor) and g.is_floating_point() and bool(g.isnan().any()):
            raise RuntimeError(f"backward of {node.name_()}: the gradient of input {i} has NaN.\n"
                               f"It was recorded here:\n{node.trace}")


tensor.install_hook("trace", trace)
tensor.install_hook("check_anomaly", check_anomaly)
