"""checkpoint: what a part of a model would save is computed again in the backward walk.

The call is recorded as usual, but its saved tensors are thrown away; the first one that is asked
for runs the function again and collects them all, in the order in which they were saved.
"""

from __future__ import annotations

from collections.abc import Callable

from tinyfin.autograd import graph, levels, tree
from tinyfin.autograd.graph import saved_tensors_hooks
from tinyfin.core import tensor
from tinyfin.core.generator import default_generator
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor
GRAD, KEPT_BITS, SAVE = 1, 4 | 128, 2048


class CheckpointError(RuntimeError):
    """The function did something else when it ran again."""


class Enough(Exception):
    """Ends a second run when everything that was saved is there."""


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), computed again in backward instead of keeping what it saves.

    Args:
        use_reentrant: accepted; both forms behave alike here.
        context_fn: returns two context managers, for the call and for the second run.
        determinism_check: 'default' compares shapes and dtypes of the second run, 'none' does not.
        debug: accepted.
        early_stop: end the second run as soon as everything is there.
        preserve_rng_state: random numbers are the same in the second run.

    Raises:
        CheckpointError: in backward, where the second run saves other tensors than the first.

    >>> import tinyfin
    >>> x = tinyfin.tensor([1.0, 2.0], requires_grad=True)
    >>> tinyfin.autograd.checkpoint.checkpoint(lambda t: (t.exp() * t).sum(), x).backward()
    >>> tinyfin.allclose(x.grad, (1 + x.detach()) * x.detach().exp())
    True
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint: determinism_check is {determinism_check!r}, expected 'default' or 'none'"
        )
    first, second = (None, None) if context_fn is None else context_fn()
    frame = Frame(
        function,
        args,
        kwargs,
        second,
        determinism_check == "default",
        early_stop,
        preserve_rng_state,
    )
    with saved_tensors_hooks(frame.pack, frame.unpack):
        if first is None:
            return function(*args, **kwargs)
        with first:
            return function(*args, **kwargs)


class Frame:
    """One checkpointed call: its arguments, and the tensors of its second run while they wait."""

    def __init__(
        self,
        function: Callable,
        args: tuple,
        kwargs: dict,
        second: Any,
        strict: bool,
        early_stop: bool,
        keep_random: bool,
    ) -> None:
        self.function, self.second, self.strict, self.early_stop = (
            function,
            second,
            strict,
            early_stop,
        )
        self.random = default_generator.state_dict() if keep_random else None
        self.bits = tensor.mode() & KEPT_BITS
        self.levels = list(levels.stack())
        self.build = (args, kwargs)
        self.inputs = [Input(x) if isinstance(x, Tensor) else x for x in tree.flatten(self.build)]
        self.build = tree.mapped(lambda x: None, self.build)
        self.metas: list = []
        self.values: dict = {}

    def pack(self, t: Tensor) -> int:
        """Throws a saved tensor away; its number stands for it."""
        self.metas.append((tuple(t.shape), t.dtype, t.device))
        return len(self.metas) - 1

    def unpack(self, number: int) -> Tensor:
        """A saved tensor from the second run, which happens now where it has not yet."""
        if number not in self.values:
            self.run_again()
        if number not in self.values:
            raise CheckpointError(
                f"checkpoint: the second run saved fewer tensors than the first, {len(self.metas)}"
            )
        return self.values.pop(number)

    def run_again(self) -> None:
        """Runs the function once more and collects what it saves."""
        count = [0]

        def collect(t: Tensor) -> None:
            number = count[0]
            count[0] += 1
            if number >= len(self.metas):
                raise CheckpointError(
                    "checkpoint: the second run saved more tensors than the first, "
                    f"{len(self.metas)}"
                )
            self.check(number, t)
            self.values[number] = t
            if self.early_stop and number == len(self.metas) - 1:
                raise Enough

        random = default_generator.state_dict()
        old = tensor.set_mode(GRAD | self.bits, GRAD | KEPT_BITS)
        try:
            if self.random is not None:
                default_generator.load_state_dict(self.random)
            args, kwargs = tree.unflatten(
                self.build, [x.again() if isinstance(x, Input) else x for x in self.inputs]
            )
            with levels.reopened(self.levels), saved_tensors_hooks(collect, never):
                self.call(args, kwargs)
        except Enough:
            pass
        finally:
            tensor.set_mode(old, GRAD | KEPT_BITS)
            if self.random is not None:
                default_generator.load_state_dict(random)

    def call(self, args: tuple, kwargs: dict) -> None:
        """The second run, in its context."""
        if self.second is None:
            self.function(*args, **kwargs)
            return
        with self.second:
            self.function(*args, **kwargs)

    def check(self, number: int, t: Tensor) -> None:
        """The second run must save tensors of the same kind."""
        have, want = (tuple(t.shape), t.dtype, t.device), self.metas[number]
        if self.strict and have != want:
            raise CheckpointError(
                f"checkpoint: saved tensor {number} is {have} in the second run, it was {want}"
            )


def never(value: Any) -> Tensor:
    """The graph of a second run is never walked."""
    raise RuntimeError("checkpoint: the graph of a second run was used")


class Input:
    """A tensor argument: packed by hooks outside, so that nested checkpoints keep little."""

    def __init__(self, x: Tensor) -> None:
        self.needs, self.version = x.requires_grad, x._version
        self.leaf = x if x.requires_grad and x.is_leaf else None
        self.held: Any = None
        if self.leaf is None:
            self.held = graph.pack(tensor.twin(x)) if tensor.mode() & SAVE else tensor.twin(x)

    def again(self) -> Tensor:
        """The argument for the second run: the same values, requiring grad as before."""
        if self.leaf is not None:
            return self.leaf
        if isinstance(self.held, tensor.Packed):
            x = self.held.unpack(self.held.value)
        elif self.held._version != self.version:
            raise RuntimeError(
                f"checkpoint: an argument of shape {tuple(self.held.shape)} was modified in "
                "place since the "
                f"call (version {self.held._version}, expected {self.version})"
            )
        else:
            x = self.held
        return F.alias(tensor.twin(x).requires_grad_()) if self.needs else tensor.twin(x)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Tensor,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """The input through a sequence of functions, cut into segments that are checkpointed, but for
    the last.

    Raises:
        ValueError: there are fewer functions than segments, or segments is below 1.

    >>> import tinyfin
    >>> nn = tinyfin.nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> x = tinyfin.ones(4, 2)
    >>> tuple(tinyfin.autograd.checkpoint.checkpoint_sequential(model, 2, x).shape)
    (4, 1)
    """
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= len(parts):
        raise ValueError(
            f"checkpoint_sequential: segments is {segments}, expected 1 to {len(parts)}, the "
            "number of "
            "functions"
        )
    size = len(parts) // segments
    for k in range(segments - 1):
        input = checkpoint(
            through(parts[k * size : (k + 1) * size]), input, use_reentrant=use_reentrant, **kwargs
        )
    return through(parts[(segments - 1) * size :])(input)


def through(parts: list) -> Callable:
    """Functions one after the other."""

    def run(x: Any) -> Any:
        for part in parts:
            x = part(x)
        return x

    return run
