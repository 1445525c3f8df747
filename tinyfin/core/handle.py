"""Handle: how a registered hook is taken back."""

from __future__ import annotations


class RemovableHandle:
    """Takes a hook back: call `remove()`, or use the handle in a `with` statement.

    Hooks stand in a plain list, which a handle leaves by identity: handles copied together with
    their module (deepcopy, pickle) go on to work for the copy.
    """

    __slots__ = ("_hooks", "_entry")

    def __init__(self, hooks: list, entry: object, first: bool = False) -> None:
        self._hooks: list | None = hooks
        self._entry = entry
        hooks.insert(0 if first else len(hooks), entry)

    def remove(self) -> None:
        """Takes the hook out; a second call does nothing."""
        hooks, self._hooks = self._hooks, None
        if hooks is not None:
            hooks[:] = [h for h in hooks if h is not self._entry]

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
