"""Function: forward and backward given by the user."""

from tinyfin.core import tensor

Tensor = tensor.Tensor


class FunctionCtx:
    """What forward hands to backward."""

    def __init__(self):
        self.saved = ()
        self.versions = ()
        self.needs_input_grad = ()
        self.non_differentiable = ()
        self.materialize = True

    def save_for_backward(self, *tensors):
        """Keeps tensors for backward; later in-place writes to them are noticed."""
        self.saved = tensors
        self.versions = tuple(None if t is None else t._version for t in tensors)

    @property
    def saved_tensors(self):
        """The tensors kept by save_for_backward."""
        for t, version in zip(self.saved, self.versions):
            if t is not None and t._version != version:
                raise RuntimeError(f"backward: a saved tensor of shape {tuple(t.shape)} was modified in place (version "
                                   f"{t._version}, expected {version}); save a clone() instead")
        return self.saved

    def mark_non_differentiable(self, *tensors):
        """These results get no history."""
        self.non_differentiable = tensors

    def mark_dirty(self, *tensors):
        """Accepted for PyTorch's sake: versions are counted anyway."""

    def set_materialize_grads(self, value):
        """Whether missing gradients arrive as zeros (the default) or as None."""
        self.materialize = value


class Function:
    """A differentiable operation of your own: static methods forward(ctx, ...) and backward(ctx, *grads).

    >>> import tinyfin
    >>> class Square(tinyfin.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = tinyfin.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad.item()
    6.0
    """

    @classmethod
    def apply(cls, *args):
        """Runs forward and records backward."""
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        old = tensor.set_mode(0, 1)
        try:
            if "setup_context" in cls.__dict__:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        finally:
            tensor.set_mode(old, 1)
        if not (old & 1 and any(ctx.needs_input_grad)):
            return result
        return record(cls, ctx, args, result)


def record(cls, ctx, args, result):
    """Gives the results a node that calls backward."""
    single = not isinstance(result, tuple)
    outs = [r.detach() if isinstance(r, Tensor) and any(r is a for a in args) else r
            for r in ((result,) if single else result)]
    live = [r for r in outs if isinstance(r, Tensor) and r.is_floating_point()
            and not any(r is n for n in ctx.non_differentiable)]

    def backward(grads, node=None):
        grads = iter(grads)
        given = [next(grads) if any(r is x for x in live) else None for r in outs]
        if ctx.materialize:
            from tinyfin.creation import zeros_like

            given = [zeros_like(r) if g is None and isinstance(r, Tensor) else g for g, r in zip(given, outs)]
        found = cls.backward(ctx, *given)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(args):
            raise RuntimeError(f"{cls.__name__}.backward returned {len(found)} gradients, expected {len(args)}")
        return found

    node = tensor.python_node(cls.__name__, backward, tuple(args), tuple(live))
    for i, r in enumerate(live):
        tensor.attach(r, node, i)
    return outs[0] if single else tuple(outs)


def once_differentiable(fn):
    """A backward that cannot be differentiated again."""
    return fn
