"""Module: a tree of parts that own parameters and buffers."""

from __future__ import annotations

from tinyfin.autograd.modes import no_grad
from tinyfin.core.tensor import Tensor
from tinyfin.nn import convert, hooks
from tinyfin.nn.parameter import Buffer, Parameter
from tinyfin.nn.state import Stateful

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tinyfin.core.handle import RemovableHandle

_NOTHING = object()
_TABLES = ("_parameters", "_buffers", "_modules")


class Module(Stateful):
    """Base class of layers and models.

    Assigning a Parameter, a Buffer or a Module to an attribute registers it; `forward` says what
    a call computes.

    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden, self.out = nn.Linear(4, 8), nn.Linear(8, 2)
    ...     def forward(self, input):
    ...         return self.out(F.relu(self.hidden(input)))
    >>> net = Net()
    >>> [name for name, _ in net.named_parameters()]
    ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    >>> tuple(net(tf.ones(3, 4)).shape)
    (3, 2)
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _call_hooks: Any = ()

    def __init__(self) -> None:
        put = super().__setattr__
        put("training", True)
        put("_parameters", {})
        put("_buffers", {})
        put("_modules", {})
        put("_non_persistent_buffers_set", set())

    def __call__(self, input: Any = _NOTHING, /, *args: Any, **kwargs: Any) -> Any:
        """Runs the hooks and `forward`; one positional argument takes the short road."""
        if self._call_hooks:
            args = args if input is _NOTHING else (input, *args)
            return hooks.call_with_hooks(self, args, kwargs)
        if args or kwargs or input is _NOTHING:
            args = args if input is _NOTHING else (input, *args)
            return self.forward(*args, **kwargs)
        return self.forward(input)

    if TYPE_CHECKING:
        forward: Callable[..., Any]  # subclasses may take what they like
    else:

        def forward(self, *input):
            """What a call computes; every subclass defines it.

            Raises:
                NotImplementedError: the subclass does not.
            """
            raise NotImplementedError(f"{type(self).__name__}: the method forward is not defined")

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before `forward`; what it returns replaces the arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)`, and answers None or both.

        >>> layer = nn.Identity()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] + 1)
        >>> layer(1)
        2
        """
        return hooks.add_hook(self, hooks.BEFORE, hook, with_kwargs=with_kwargs, first=prepend)

    def register_forward_hook(
        self,
        hook: Callable,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after `forward`; what it returns replaces the output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`; with `always_call` it runs
        even where `forward` fails.

        >>> layer = nn.Identity()
        >>> with layer.register_forward_hook(lambda module, args, output: output * 10):
        ...     layer(2)
        20
        >>> layer(2)
        2
        """
        return hooks.add_hook(
            self, hooks.AFTER, hook, with_kwargs=with_kwargs, always=always_call, first=prepend
        )

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the gradients of the inputs are there.

        Both are tuples, with None where there is no gradient; a tuple that it returns replaces
        `grad_input`.
        """
        return hooks.add_hook(self, hooks.BACKWARD_AFTER, hook, first=prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before the module's backward; may replace it."""
        return hooks.add_hook(self, hooks.BACKWARD_BEFORE, hook, first=prepend)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, reachable as an attribute; None keeps the name without a value.

        Raises:
            AttributeError: `Module.__init__` has not been called.
            KeyError: the name is empty, holds a dot or is taken.
            TypeError: `param` is not a Parameter.
            ValueError: `param` was computed from other tensors.
        """
        self._check_name("register_parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"register_parameter: '{name}' is a {type(param).__name__}, "
                "expected a tinyfin.nn.Parameter or None"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"register_parameter: '{name}' was computed from other tensors; "
                "compute it in forward instead"
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is not learned; with `persistent` it is part of the `state_dict`.

        Raises:
            AttributeError: `Module.__init__` has not been called.
            KeyError: the name is empty, holds a dot or is taken.
            TypeError: `tensor` is not a tensor.

        >>> net = nn.Module()
        >>> net.register_buffer("steps", tf.zeros(3), persistent=False)
        >>> list(net.state_dict())
        []
        """
        self._check_name("register_buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"register_buffer: '{name}' is a {type(tensor).__name__}, expected a Tensor or None"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child, reachable as an attribute; None keeps the name without a value.

        Raises:
            AttributeError: `Module.__init__` has not been called.
            KeyError: the name is empty, holds a dot or is taken.
            TypeError: `module` is not a Module.
        """
        self._check_name("add_module", name, "_modules")
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"add_module: '{name}' is a {type(module).__name__}, expected a Module or None"
            )
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def _check_name(self, what: str, name: str, table: str) -> None:
        if table not in self.__dict__:
            raise AttributeError(
                f"{what}: {type(self).__name__} did not call Module.__init__ first"
            )
        if not isinstance(name, str):
            raise TypeError(f"{what}: name is a {type(name).__name__}, expected a str")
        if not name or "." in name:
            raise KeyError(
                f"{what}: name is {name!r}, expected one that is not empty and has no dot"
            )
        if name not in self.__dict__[table] and hasattr(self, name):
            raise KeyError(f"{what}: attribute '{name}' already exists")

    def __getattr__(self, name: str) -> Any:
        if name not in _TABLES:
            parameters = self._parameters
            if name in parameters:
                return parameters[name]
            buffers = self._buffers
            if name in buffers:
                return buffers[name]
            modules = self._modules
            if name in modules:
                return modules[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, (Parameter, Module, Buffer)):
            if isinstance(value, Parameter):
                self._forget(name, "_parameters")
                self.register_parameter(name, value)
            elif isinstance(value, Module):
                self._forget(name, "_modules")
                self._modules[name] = value
            else:
                self._forget(name, "_buffers")
                self.register_buffer(name, value, value.persistent)
            return
        for table in _TABLES:
            if name in own.get(table, ()):
                self._replace(table, name, value)
                return
        super().__setattr__(name, value)

    def _forget(self, name: str, keep: str) -> None:
        own = self.__dict__
        if keep not in own:
            raise AttributeError(
                f"cannot assign '{name}': {type(self).__name__} did not call Module.__init__ first"
            )
        own.pop(name, None)
        for table in _TABLES:
            if table != keep:
                own[table].pop(name, None)
        if keep != "_buffers":
            self._non_persistent_buffers_set.discard(name)

    def _replace(self, table: str, name: str, value: Any) -> None:
        if value is not None and not (table == "_buffers" and isinstance(value, Tensor)):
            wanted = {
                "_parameters": "tinyfin.nn.Parameter",
                "_buffers": "Tensor",
                "_modules": "Module",
            }[table]
            raise TypeError(
                f"cannot assign a {type(value).__name__} to '{name}' of "
                f"{type(self).__name__}, expected a {wanted} or None"
            )
        self.__dict__[table][name] = value

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(n for n in names if not n[:1].isdigit())

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yields (path, module) of this module and all below it, each module once.

        >>> [path for path, _ in nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh())).named_modules()]
        ['', '0', '1', '1.0']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        dot = prefix + "." if prefix else ""
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, dot + name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Yields this module and all below it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yields (name, child), each child once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Yields the modules directly below, each once."""
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields (path, parameter) of this module and, with `recurse`, of all below it.

        >>> [(path, tuple(p.shape)) for path, p in nn.Linear(3, 2).named_parameters(prefix="fc")]
        [('fc.weight', (2, 3)), ('fc.bias', (2,))]
        """
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters, each once: what an optimizer is given."""
        for _, parameter in self._named("_parameters", "", recurse, True):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yields (path, buffer) of this module and, with `recurse`, of all below it."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields the buffers, each once."""
        for _, buffer in self._named("_buffers", "", recurse, True):
            yield buffer

    def _named(
        self, table: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        owners = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else ((prefix, self),)
        )
        seen = set()
        for path, module in owners:
            dot = path + "." if path else ""
            for name, value in module.__dict__[table].items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield dot + name, value

    def get_submodule(self, target: str) -> Module:
        """The module at a path with dots; "" is this one.

        Raises:
            AttributeError: there is nothing there, or it is not a module.

        >>> nn.Sequential(nn.Sequential(nn.Tanh())).get_submodule("0.0")
        Tanh()
        """
        module: Any = self
        for name in target.split(".") if target else ():
            found = getattr(module, name, None)
            if not isinstance(found, Module):
                what = "no attribute" if not hasattr(module, name) else "no module"
                raise AttributeError(
                    f"get_submodule: '{target}': {type(module).__name__} has {what} '{name}'"
                )
            module = found
        return module

    def set_submodule(self, target: str, module: Module) -> None:
        """Puts a module at a path with dots, in place of what is there.

        Raises:
            ValueError: the path is empty.
            AttributeError: there is no module to hold it.
        """
        if not target:
            raise ValueError("set_submodule: target is empty, expected a path")
        parent, _, name = target.rpartition(".")
        setattr(self.get_submodule(parent), name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path with dots.

        Raises:
            AttributeError: there is nothing there, or it is not a parameter.
        """
        return self._get("get_parameter", target, "_parameters")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path with dots.

        Raises:
            AttributeError: there is nothing there, or it is not a buffer.
        """
        return self._get("get_buffer", target, "_buffers")

    def _get(self, what: str, target: str, table: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        value = module.__dict__[table].get(name)
        if value is None:
            raise AttributeError(
                f"{what}: '{target}': {type(module).__name__} has no {what[4:]} '{name}'"
            )
        return value

    def apply(self, fn: Callable[[Module], object]) -> Module:
        """Calls `fn` on every module below, then on this one; returns this one.

        >>> net = nn.Linear(2, 2).apply(lambda module: nn.init.zeros_(module.weight))
        >>> net.weight.tolist()
        [[0.0, 0.0], [0.0, 0.0]]
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Module:
        """Sets training mode here and below: dropout drops, batch norm uses the batch.

        Raises:
            ValueError: `mode` is not a bool.
        """
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode is {mode!r}, expected a bool")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Module:
        """Leaves training mode, here and below."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Sets whether the parameters want gradients; False freezes the module.

        >>> [p.requires_grad for p in nn.Linear(2, 1).requires_grad_(False).parameters()]
        [False, False]
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of the parameters, or fills them with zeros."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach().zero_()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Module:
        if recurse:
            for module in self.children():
                module._apply(fn, recurse)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is None:
                    continue
                before, grad = parameter.data, parameter.grad
                after = fn(before)
                if after is not before:
                    parameter.grad = None
                    parameter.data = after
                    parameter.grad = None if grad is None else fn(grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Moves and casts parameters and buffers in place: `to(device)`, `to(dtype)`, `to(tensor)`.

        A dtype is given to tensors of floating types only.

        Raises:
            TypeError: the dtype is not a floating one.

        >>> nn.Linear(2, 2).to(tf.float64).weight.dtype == tf.float64
        True
        """
        return self._apply(convert.mover(args, kwargs))

    def cpu(self) -> Module:
        """Moves parameters and buffers to the CPU."""
        return self._apply(lambda x: x.to("cpu"))

    def type(self, dst_type: Any) -> Module:
        """Casts all parameters and buffers, integers too."""
        return self._apply(lambda x: x.to(dst_type))

    def float(self) -> Module:
        """Casts floating parameters and buffers to float32."""
        return self._apply(convert.floating("float32"))

    def double(self) -> Module:
        """Casts floating parameters and buffers to float64."""
        return self._apply(convert.floating("float64"))

    def half(self) -> Module:
        """Casts floating parameters and buffers to float16."""
        return self._apply(convert.floating("float16"))

    def bfloat16(self) -> Module:
        """Casts floating parameters and buffers to bfloat16."""
        return self._apply(convert.floating("bfloat16"))

    def extra_repr(self) -> str:
        """What stands between the parentheses of the repr, for subclasses to define."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def _child_lines(self) -> list[str]:
        return [f"({name}): {module!r}" for name, module in self._modules.items()]

    def __repr__(self) -> str:
        extra, children = self.extra_repr(), self._child_lines()
        lines = extra.split("\n") if extra else []
        name = self._get_name()
        if not children and len(lines) <= 1:
            return f"{name}({extra})"
        body = "\n".join(lines + children).replace("\n", "\n  ")
        return f"{name}(\n  {body}\n)"
