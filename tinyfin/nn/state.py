"""Stateful: reading and writing the values of a module by name."""

from __future__ import annotations

from collections import OrderedDict

from tinyfin.autograd.modes import no_grad
from tinyfin.core.handle import RemovableHandle
from tinyfin.core.tensor import Tensor
from tinyfin.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

EXTRA = "_extra_state"
_WAITING = "_waiting"


class IncompatibleKeys(tuple):
    """Names that a loaded dictionary lacked, and names in it that the module does not know."""

    __slots__ = ()

    def __new__(cls, missing_keys: list[str], unexpected_keys: list[str]) -> IncompatibleKeys:
        """Makes the pair."""
        return tuple.__new__(cls, (missing_keys, unexpected_keys))

    @property
    def missing_keys(self) -> list[str]:
        """Names that the module has and the dictionary lacked."""
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        """Names that the dictionary had and the module does not know."""
        return self[1]

    def __repr__(self) -> str:
        if not self[0] and not self[1]:
            return "<all keys matched>"
        return f"IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


class Stateful:
    """The part of Module that knows about `state_dict`."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_hooks: dict[str, list] | None = None

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """The parameters and persistent buffers by path; they share memory with the module.

        Args:
            destination: a dictionary to fill.
            prefix: what every path begins with.
            keep_vars: give the parameters themselves, not detached views of them.

        >>> list(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, affine=False)).state_dict())
        ['0.weight', '0.bias', '1.running_mean', '1.running_var', '1.num_batches_tracked']
        """
        if destination is None:
            destination = OrderedDict()
        for hook in self._hooks_of("save_before"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._hooks_of("save_after"):
            answer = hook(self, destination, prefix, {})
            destination = destination if answer is None else answer
        return destination

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        for name, value in self._own_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if _defines(self, "get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    def _own_state(self) -> list[tuple[str, Tensor]]:
        transient = self._non_persistent_buffers_set
        pairs = [
            *self._parameters.items(),
            *((n, b) for n, b in self._buffers.items() if n not in transient),
        ]
        return [(name, value) for name, value in pairs if value is not None]

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies values by path into the parameters and buffers; if it raises, nothing has changed.

        Args:
            state_dict: what `state_dict()` gave.
            strict: refuse missing and unexpected names.
            assign: put the given tensors in place of the present ones.

        Returns:
            The names that were missing, and those that were not expected.

        Raises:
            TypeError: `state_dict` is not a mapping.
            RuntimeError: names or shapes do not fit; lists all that do not.

        >>> net, other = nn.Linear(2, 1), nn.Linear(2, 1)
        >>> net.load_state_dict(other.state_dict())
        <all keys matched>
        >>> net.load_state_dict({"weight": tf.ones(1, 2)}, strict=False).missing_keys
        ['bias']
        """
        return self._loading(state_dict, strict, assign)()

    def _loading(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _Loading:
        """`load_state_dict` with all checks behind it: a call copies the values."""
        if not hasattr(state_dict, "items") or not hasattr(state_dict, "keys"):
            raise TypeError(
                f"load_state_dict: state_dict is a {type(state_dict).__name__}, "
                "expected a mapping of names to tensors"
            )
        load = _Loading(type(self).__name__, state_dict, strict, assign)
        load.module(self, load.state_dict, "")
        load.check()
        return load

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        assign = local_metadata.get("assign_to_params_buffers", False)
        puts: list[Any] = []
        for name, value in self._own_state():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            error = _misfit(key, state_dict[key], value)
            if error is None:
                try:
                    puts.append(self._put(name, value, state_dict[key], assign))
                except Exception as e:
                    error = f"'{key}' cannot be assigned: {e}"
            if error is not None:
                error_msgs.append(error)
        if _defines(self, "set_extra_state"):
            if prefix + EXTRA in state_dict:
                puts.append(_Extra(self, state_dict[prefix + EXTRA]))
            else:
                missing_keys.append(prefix + EXTRA)
        unexpected_keys.extend(self._unknown(state_dict, prefix))
        waiting = local_metadata.get(_WAITING)
        if waiting is not None:
            waiting.extend(puts)
        else:  # called by itself, not by load_state_dict
            for put in puts:
                put.do(False)

    def _put(self, name: str, value: Tensor, given: Tensor, assign: bool) -> Any:
        if not assign:
            return _Copy(value, given)
        if not isinstance(value, Parameter):
            return _Replace(self._buffers, name, given)
        if not isinstance(given, Parameter):
            given = Parameter(given, value.requires_grad)
        return _Replace(self._parameters, name, given, value.requires_grad)

    def _unknown(self, state_dict: dict[str, Any], prefix: str) -> list[str]:
        known = {name for name, _ in self._own_state()}
        if _defines(self, "set_extra_state"):
            known.add(EXTRA)
        unknown = []
        for key in state_dict:
            if key.startswith(prefix):
                name, dot, _ = key[len(prefix) :].partition(".")
                if not (name in self._modules if dot else name in known):
                    unknown.append(key)
        return unknown

    def get_extra_state(self) -> Any:
        """What else `state_dict` should hold for this module; subclasses define it.

        Raises:
            RuntimeError: the subclass does not.
        """
        raise RuntimeError(f"{type(self).__name__}: the method get_extra_state is not defined")

    def set_extra_state(self, state: Any) -> None:
        """Takes what `get_extra_state` gave; subclasses define it.

        Raises:
            RuntimeError: the subclass does not.
        """
        raise RuntimeError(f"{type(self).__name__}: the method set_extra_state is not defined")

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before `state_dict` reads the module."""
        return self._add_state_hook("save_before", hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after `state_dict` has read it.

        >>> net = nn.Linear(1, 1)
        >>> def drop(module, state_dict, prefix, local_metadata):
        ...     del state_dict[prefix + "bias"]
        >>> handle = net.register_state_dict_post_hook(drop)
        >>> list(net.state_dict())
        ['weight']
        """

        def in_place(module: Any, state_dict: dict, prefix: str, local_metadata: dict) -> None:
            hook(module, state_dict, prefix, local_metadata)

        return self._add_state_hook("save_after", in_place)

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """As the public one, but what the hook returns replaces the dictionary."""
        return self._add_state_hook("save_after", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` before a module takes its values; it may change them.
        """
        return self._add_state_hook("load_before", hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` when all values are in; it may change both."""
        return self._add_state_hook("load_after", hook)

    def _add_state_hook(self, kind: str, hook: Callable) -> RemovableHandle:
        if self._state_hooks is None:
            self._state_hooks = {}
        return RemovableHandle(self._state_hooks.setdefault(kind, []), hook)

    def _hooks_of(self, kind: str) -> tuple:
        return tuple(self._state_hooks.get(kind, ())) if self._state_hooks else ()


class _Copy:
    """A tensor whose values are to be overwritten."""

    def __init__(self, value: Tensor, given: Tensor) -> None:
        self.value, self.given = value, given

    def do(self, keep: bool) -> None:
        with no_grad():
            self.old: Any = self.value.detach().clone() if keep else None
            self.value.copy_(self.given)

    def undo(self) -> None:
        with no_grad():
            self.value.copy_(self.old)


class _Replace:
    """A tensor that another is to take the place of."""

    def __init__(
        self, table: dict[str, Any], name: str, given: Tensor, requires_grad: bool | None = None
    ) -> None:
        self.table, self.name, self.given, self.old = table, name, given, table[name]
        self.requires_grad = requires_grad

    def do(self, keep: bool) -> None:
        if self.requires_grad is not None:
            self.given.requires_grad_(self.requires_grad)
        self.table[self.name] = self.given

    def undo(self) -> None:
        self.table[self.name] = self.old


class _Extra:
    """A module whose extra state is to be set."""

    def __init__(self, module: Any, state: Any) -> None:
        self.module, self.state, self.old = module, state, None

    def do(self, keep: bool) -> None:
        if _defines(self.module, "get_extra_state"):
            self.old = (self.module.get_extra_state(),)
        self.module.set_extra_state(self.state)

    def undo(self) -> None:
        if self.old is not None:
            self.module.set_extra_state(*self.old)


class _Loading:
    """One `load_state_dict` on its way through the tree, and what did not fit: first everything is
    looked at, then a call writes.
    """

    def __init__(
        self, name: str, state_dict: Mapping[str, Any], strict: bool, assign: bool
    ) -> None:
        self.name = name
        self.state_dict = OrderedDict(state_dict)
        self.strict = strict
        self.puts: list[Any] = []
        self.metadata = {"assign_to_params_buffers": assign, _WAITING: self.puts}
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []
        self.after: list[tuple[Any, Callable]] = []

    def module(self, module: Any, state_dict: dict[str, Any], prefix: str) -> None:
        """Looks at a module, then at those below it, each with the part that is its own."""
        args = (
            state_dict,
            prefix,
            dict(self.metadata),
            True,
            self.missing,
            self.unexpected,
            self.errors,
        )
        for hook in module._hooks_of("load_before"):
            hook(module, *args)
        module._load_from_state_dict(*args)
        for name, child in module._modules.items():
            if child is not None:
                path = f"{prefix}{name}."
                part = OrderedDict((k, v) for k, v in state_dict.items() if k.startswith(path))
                self.module(child, part, path)
        self.after.extend((module, hook) for hook in module._hooks_of("load_after"))

    def check(self) -> None:
        """Raises if something did not fit; post-hooks may forgive names, but no misfits."""
        if self.errors or not self.after:
            self.report()

    def report(self) -> None:
        """Raises if something did not fit."""
        lines = list(self.errors)
        if self.strict:
            for what, keys in (("Unexpected", self.unexpected), ("Missing", self.missing)):
                if keys:
                    quoted = ", ".join(repr(k) for k in keys)
                    lines.insert(0, f"{what} key(s) in state_dict: {quoted}")
        if lines:
            raise RuntimeError(f"load_state_dict of {self.name}:\n\t" + "\n\t".join(lines))

    def __call__(self) -> IncompatibleKeys:
        """Writes. Copies of the old values are kept only where code of others runs along."""
        keep = bool(self.after) or any(isinstance(put, _Extra) for put in self.puts)
        done: list[Any] = []
        try:
            for put in self.puts:
                done.append(put)
                put.do(keep)
            keys = IncompatibleKeys(self.missing, self.unexpected)
            for module, hook in self.after:
                if hook(module, keys) is not None:
                    raise RuntimeError(
                        "load_state_dict: a post-hook returned a value, expected None; "
                        "it may change the lists that it is given"
                    )
            self.report()
        except BaseException:
            if keep:
                for put in reversed(done):
                    put.undo()
            raise
        return keys


def _defines(module: Any, method: str) -> bool:
    return getattr(type(module), method) is not getattr(Stateful, method)


def _misfit(key: str, given: Any, value: Tensor) -> str | None:
    if not isinstance(given, Tensor):
        return f"'{key}' is a {type(given).__name__}, expected a Tensor"
    if given.shape != value.shape:
        return (
            f"size mismatch for {key}: shape {tuple(given.shape)} was given, "
            f"the module has {tuple(value.shape)}"
        )
    if any(n > 1 and step == 0 for n, step in zip(value.shape, value.stride(), strict=True)):
        return f"'{key}' is an expanded tensor in the module: several elements share memory"
    return None
