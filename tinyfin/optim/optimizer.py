"""Optimizer: groups of parameters, their state, and reading and writing both."""

from __future__ import annotations

from collections import defaultdict
from math import inf, isfinite

from tinyfin.autograd.modes import enable_grad
from tinyfin.core.dtype import dtype_by_name
from tinyfin.core.handle import RemovableHandle
from tinyfin.core.tensor import Tensor
from tinyfin.creation import full

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FLOAT32 = dtype_by_name("float32")
REQUIRED = object()
"""Stands in `defaults` for an option that each group must give."""


class Optimizer:
    """Base class: subclasses define `step`.

    Args:
        params: tensors, pairs of name and tensor, or dictionaries with "params" and options.
        defaults: options of groups that do not give their own.

    Raises:
        TypeError: `params` is a single tensor, or holds something else than tensors.
        ValueError: there are no parameters, one is given twice, or one is not a leaf.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    >>> opt = tf.optim.SGD([{"params": net[0].parameters()},
    ...                     {"params": net[1].parameters(), "lr": 1.0}], lr=0.1)
    >>> [group["lr"] for group in opt.param_groups]
    [0.1, 1.0]
    """

    param_groups: list[dict[str, Any]]
    state: defaultdict[Tensor, dict[str, Any]]
    _hooks: dict[str, list] | None = None
    _numbers: tuple[str, ...] = ()
    """State entries that are numbers while running, and 0-d tensors in a `state_dict`."""
    _averages: tuple[str, ...] = ()
    """State entries that are tensors of the shape of their parameter."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: params is a single tensor of shape "
                f"{tuple(params.shape)}, expected a list of tensors or of dictionaries"
            )
        if not hasattr(params, "__iter__"):
            raise TypeError(
                f"{type(self).__name__}: params is {params!r}, expected a list of tensors or of "
                "dictionaries"
            )
        if not isinstance(defaults, dict):
            raise TypeError(
                f"{type(self).__name__}: defaults is {defaults!r}, expected a dict of options"
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._check_group(defaults)
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: got an empty list of parameters")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with options of their own, such as layers that are thawed later.

        Raises:
            TypeError: it is not a dictionary, or its "params" are not tensors.
            ValueError: an option is missing, or a parameter is known already or not a leaf.

        >>> opt = tf.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
        >>> opt.add_param_group({"params": nn.Linear(2, 1).parameters(), "lr": 0.01})
        >>> len(opt.param_groups)
        2
        """
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(
                f"{name}: parameter group is a {type(param_group).__name__}, expected a dict"
            )
        param_group = dict(param_group)
        params, names = _listed(name, param_group["params"])
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for i, p in enumerate(params):
            _check_parameter(name, i, p)
        for key, value in self.defaults.items():
            if value is REQUIRED and key not in param_group:
                raise ValueError(
                    f"{name}: parameter group gives no value for '{key}', which has no default"
                )
            param_group.setdefault(key, value)
        self._check_group(param_group)
        self._check_new(param_group, name)
        self.param_groups.append(param_group)

    def _check_group(self, group: dict[str, Any]) -> None:
        """Raises ValueError where an option of a group is out of range; for subclasses."""

    def _check_new(self, group: dict[str, Any], name: str) -> None:
        if len({id(p) for p in group["params"]}) != len(group["params"]):
            import warnings

            warnings.warn(
                f"{name}: a parameter group holds the same parameter more than once; "
                "it is updated as often",
                stacklevel=5,
            )
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for i, p in enumerate(group["params"]):
            if id(p) in known:
                raise ValueError(
                    f"{name}: parameter {i} of shape {tuple(p.shape)} is in more than "
                    "one parameter group"
                )
        if self.param_groups and ("param_names" in group) != (
            "param_names" in self.param_groups[0]
        ):
            raise ValueError(f"{name}: either all parameter groups have names or none has")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or fills them with zeros."""
        for group in self.param_groups:
            if set_to_none:
                for p in group["params"]:
                    p.grad = None
            else:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad = p.grad.detach().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all parameters that have a gradient.

        Args:
            closure: computes the loss and its gradients anew.

        Returns:
            What the closure returned.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__}: the method step is not defined")

    def state_dict(self) -> dict[str, Any]:
        """State and options; parameters are numbered in the order in which they were given.

        >>> opt = tf.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
        >>> opt.state_dict()["param_groups"][0]["params"]
        [0, 1]
        """
        self._run("state_dict_pre", self)
        number: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                number.setdefault(id(p), len(number))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [number[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            number.get(id(p), p) if isinstance(p, Tensor) else p: self._packed(entries)
            for p, entries in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        return self._run("state_dict_post", self, result)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes options and state from what `state_dict()` gave; tensors are copied.

        State of floating parameters takes their dtype and device. If it raises, nothing has
        changed.

        Raises:
            TypeError: it is no such dictionary.
            ValueError: the groups, their numbers of parameters, options or state do not fit.

        >>> net = nn.Linear(2, 2)
        >>> opt = tf.optim.SGD(net.parameters(), lr=0.1)
        >>> tf.optim.SGD(net.parameters(), lr=9.0).load_state_dict(opt.state_dict())
        """
        self._loading(state_dict)()

    def _loading(self, state_dict: dict[str, Any]) -> Callable[[], None]:
        """`load_state_dict` with all checks behind it: a call puts the new state in place."""
        name = f"{type(self).__name__}.load_state_dict"
        _check_mapping(name, "state_dict", state_dict)
        state_dict = self._run("load_state_dict_pre", self, dict(state_dict))
        _check_mapping(name, "state_dict", state_dict, ("state", "param_groups"))
        _check_mapping(name, "state", state_dict["state"])
        loaded = state_dict["param_groups"]
        self._check_loaded(name, loaded)
        owner: dict[Any, tuple[Tensor, dict[str, Any]]] = {}
        groups = []
        for given, group in zip(loaded, self.param_groups):
            options = {**self.defaults, **given, "params": group["params"]}
            if "param_names" in group:
                options["param_names"] = group["param_names"]
            self._check_rates(options)
            groups.append(options)
            owner.update((n, (p, options)) for n, p in zip(given["params"], group["params"]))
        state: defaultdict = defaultdict(dict)
        for key, entries in state_dict["state"].items():
            if key in owner:
                p, options = owner[key]
                state[p] = self._unpacked(f"{name}: state of parameter {key}", p, entries, options)
            else:
                state[key] = entries

        def commit() -> None:
            self.__setstate__({"state": state, "param_groups": groups})
            self._run("load_state_dict_post", self)

        return commit

    def _check_loaded(self, name: str, loaded: list[dict[str, Any]]) -> None:
        if not isinstance(loaded, (list, tuple)):
            raise TypeError(f"{name}: param_groups is a {type(loaded).__name__}, expected a list")
        if len(loaded) != len(self.param_groups):
            raise ValueError(
                f"{name}: {len(loaded)} parameter groups were given, "
                f"the optimizer has {len(self.param_groups)}"
            )
        for i, (given, group) in enumerate(zip(loaded, self.param_groups)):
            _check_mapping(name, f"group {i}", given, ("params",))
            if len(given["params"]) != len(group["params"]):
                raise ValueError(
                    f"{name}: group {i} has {len(given['params'])} "
                    f"parameters, that of the optimizer has {len(group['params'])}"
                )

    def _check_rates(self, group: dict[str, Any]) -> None:
        """As for a new group, but a schedule may have taken the rate below zero by a rounding."""
        if "lr" in group:
            group = {**group, "lr": abs(rate(type(self).__name__, group, "load_state_dict"))}
        self._check_group(group)

    def _needed(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The entries that the state of a parameter of this group must have, once there is any."""
        return ()

    def _packed(self, entries: dict[str, Any]) -> dict[str, Any]:
        numbers = self._numbers
        return {
            k: full((), float(v), dtype=FLOAT32, device="cpu") if k in numbers else v
            for k, v in entries.items()
        }

    def _unpacked(
        self, what: str, p: Tensor, entries: Any, group: dict[str, Any]
    ) -> dict[str, Any]:
        needed = self._needed(group)
        _check_mapping(what, "it", entries, needed if entries else ())
        for key, v in entries.items():
            if key in self._numbers:
                _check_count(what, key, v)
            elif key in self._averages and (v is not None or key in needed):
                if not isinstance(v, Tensor):
                    raise ValueError(f"{what}: '{key}' is a {type(v).__name__}, expected a Tensor")
                if v.shape != p.shape:
                    raise ValueError(
                        f"{what}: '{key}' has shape {tuple(v.shape)}, the parameter has "
                        f"{tuple(p.shape)}"
                    )
            elif key not in self._averages and key in _averages_of_all():
                raise ValueError(
                    f"{what}: it holds '{key}', which {type(self).__name__} does not keep; the "
                    "state is that of another optimizer"
                )
        return {k: int(v) if k in self._numbers else _fitted(p, k, v) for k, v in entries.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each step; a pair it returns replaces both.

        >>> opt = tf.optim.SGD([nn.Parameter(tf.ones(1))], lr=0.1)
        >>> with opt.register_step_pre_hook(lambda opt, args, kwargs: print("before")):
        ...     opt.step()
        before
        """
        return self._add_hook("step_pre", hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each step."""
        return self._add_hook("step_post", hook)

    def register_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` before `state_dict` reads the optimizer."""
        return self._add_hook("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)`; a dictionary it returns replaces the result."""
        return self._add_hook("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before loading; may return another dictionary."""
        return self._add_hook("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` after loading."""
        return self._add_hook("load_state_dict_post", hook, prepend)

    def _add_hook(self, kind: str, hook: Callable, first: bool = False) -> RemovableHandle:
        if self._hooks is None:
            self._hooks = {}
        if kind in ("step_pre", "step_post"):
            self.step = self._step_with_hooks  # shadows the method while there are hooks
        return RemovableHandle(self._hooks.setdefault(kind, []), hook, first)

    def _step_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        hooks = self._hooks or {}
        for hook in tuple(hooks.get("step_pre", ())):
            answer: Any = hook(self, args, kwargs)
            if answer is not None:
                if not (isinstance(answer, tuple) and len(answer) == 2):
                    raise RuntimeError(
                        f"step pre-hook of {type(self).__name__}: returned "
                        f"{answer!r}, expected None or a tuple (args, kwargs)"
                    )
                args, kwargs = answer
        result = type(self).step(self, *args, **kwargs)
        for hook in tuple(hooks.get("step_post", ())):
            hook(self, args, kwargs)
        if not hooks.get("step_pre") and not hooks.get("step_post"):
            self.__dict__.pop("step", None)
        return result

    def _run(self, kind: str, *args: Any) -> Any:
        """Calls the hooks of a kind; what one returns replaces the last argument."""
        values = list(args)
        for hook in tuple(self._hooks.get(kind, ())) if self._hooks else ():
            answer = hook(*values)
            if answer is not None and len(values) > 1:
                values[-1] = answer
        return values[-1]


def _listed(name: str, params: Any) -> tuple[list[Any], list[str]]:
    """The parameters in a list, and their names where they came with them."""
    if isinstance(params, Tensor):
        return [params], []
    if isinstance(params, (set, frozenset)):
        raise TypeError(f"{name}: params is a set, expected an ordered collection such as a list")
    params = list(params)
    if not any(isinstance(p, tuple) for p in params):
        return params, []
    if not all(isinstance(p, tuple) for p in params):
        raise ValueError(f"{name}: either all parameters come with names or none does")
    return [p for _, p in params], [n for n, _ in params]


def _check_parameter(name: str, i: int, p: Any) -> None:
    if not isinstance(p, Tensor):
        raise TypeError(f"{name}: parameter {i} is a {type(p).__name__}, expected a Tensor")
    if not (p.is_leaf or p.retains_grad):
        raise ValueError(
            f"{name}: parameter {i} of shape {tuple(p.shape)} is not a leaf: it was "
            "computed from other tensors"
        )


def _fitted(p: Tensor, key: str, value: Any) -> Any:
    """A copy of a piece of state, in the dtype and on the device of its parameter."""
    if isinstance(value, Tensor):
        if key != "step" and p.is_floating_point():
            return value.to(p.device, p.dtype).detach().clone()
        return value.detach().clone()
    if isinstance(value, dict):
        return {k: _fitted(p, k, v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitted(p, key, v) for v in value)
    return value


def _averages_of_all(cls: type[Optimizer] = Optimizer) -> set[str]:
    """The names of state tensors that any class of optimizers keeps."""
    return set(cls._averages).union(*map(_averages_of_all, cls.__subclasses__()))


def _check_mapping(name: str, what: str, given: Any, keys: tuple[str, ...] = ()) -> None:
    if not hasattr(given, "items") or not hasattr(given, "keys"):
        raise TypeError(f"{name}: {what} is a {type(given).__name__}, expected a dict")
    for key in keys:
        if key not in given:
            raise ValueError(f"{name}: {what} has no '{key}'")


def _check_count(what: str, key: str, v: Any) -> None:
    single = isinstance(v, Tensor) and v.numel() == 1
    if not single and not isinstance(v, (int, float)):
        raise ValueError(f"{what}: '{key}' is a {type(v).__name__}, expected a number")
    if not 0 <= float(v) < inf:
        raise ValueError(f"{what}: '{key}' is {float(v)}, expected a number of steps")


def evaluated(closure: Callable[[], Any] | None) -> Any:
    """The loss that a closure computes, with recording switched on."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def rate(name: str, group: dict[str, Any], method: str = "step") -> float:
    """The learning rate of a group; schedules and users may have set it to anything."""
    lr = _number(f"{name}.{method}", "lr", group["lr"])
    if not isfinite(lr):
        raise ValueError(f"{name}.{method}: lr is {lr}, expected a finite number")
    return lr


def _number(name: str, option: str, value: Any) -> float:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name}: {option} is a {type(value).__name__}, expected a number")
    return float(value)


def check_number(name: str, option: str, value: Any, below: float = inf) -> None:
    """Raises ValueError unless a number is finite, not negative, and less than `below`."""
    if not 0.0 <= _number(name, option, value) < below:
        wanted = (
            "a finite number that is not negative"
            if below == inf
            else f"a number from 0 to below {below:g}"
        )
        raise ValueError(f"{name}: {option} is {value}, expected {wanted}")


def check_supported(name: str, **switches: bool | None) -> None:
    """Raises NotImplementedError where a switch asks for what is not built."""
    for switch, value in switches.items():
        if value:
            raise NotImplementedError(
                f"{name}: {switch}=True is not supported: steps are taken in place and not recorded"
            )
