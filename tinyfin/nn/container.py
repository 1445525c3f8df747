"""Containers: modules and parameters in order or by name."""

from __future__ import annotations

from tinyfin.autograd.modes import is_grad_enabled
from tinyfin.core.tensor import Tensor
from tinyfin.nn.activation import ReLU
from tinyfin.nn.linear import Linear
from tinyfin.nn.module import Module
from tinyfin.nn.parameter import Parameter
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any


def fits_linear_relu(linear: Linear, relu: ReLU, input: Any) -> bool:
    """Whether both can be one operation: no hook sees what is between, and nothing is to be refused."""
    weight = linear.weight
    return (
        not (linear._call_hooks or relu._call_hooks)
        and isinstance(input, Tensor)
        and input.dtype is weight.dtype
        and input.dtype.itemsize >= 4
        and input.device == weight.device
        and input.ndim > 0
        and input.shape[-1] == weight.shape[-1]
    )


class _ModuleSequence(Module):
    """What Sequential and ModuleList share: children named "0", "1", ..."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self._modules.values())
        if not isinstance(index, slice):
            index = self._position(index)
        del modules[index]
        self._renumber(modules)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _position(self, index: Any) -> int:
        size = len(self._modules)
        try:
            position = index.__index__()
        except AttributeError:
            raise TypeError(
                f"{type(self).__name__}: index is a {type(index).__name__}, "
                "expected an int or a slice"
            ) from None
        if not -size <= position < size:
            raise IndexError(
                f"{type(self).__name__}: index {position} is out of range for {size} modules"
            )
        return position % size

    def _name(self, index: Any) -> str:
        return list(self._modules)[self._position(index)]

    def _renumber(self, modules: list[Module]) -> None:
        self._modules.clear()
        for i, module in enumerate(modules):
            self._modules[str(i)] = module

    def __getitem__(self, index: int | slice) -> Any:
        return self._modules[self._name(index)]

    def append(self, module: Module) -> Any:
        """Adds a module at the end and returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        """Adds modules at the end and returns the container.

        Raises:
            TypeError: `modules` cannot be iterated over.
        """
        if not hasattr(modules, "__iter__"):
            raise TypeError(
                f"{type(self).__name__}.extend: got a {type(modules).__name__}, "
                "expected modules to iterate over"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Puts a module before the one at `index` and returns the container.

        Raises:
            TypeError: `module` is not a Module.
            IndexError: `index` is out of range.
        """
        if not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}.insert: got a {type(module).__name__}, expected a Module"
            )
        modules = list(self._modules.values())
        if not -len(modules) <= index <= len(modules):
            raise IndexError(
                f"{type(self).__name__}.insert: index {index} is out of range for "
                f"{len(modules)} modules"
            )
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int) -> Module:
        """Takes out the module at `key` and returns it."""
        module = self[key]
        del self[key]
        return module


class Sequential(_ModuleSequence):
    """Modules called one after the other, each with what the one before returned.

    Takes modules, or one dictionary of names and modules. A slice keeps the names.

    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> tuple(net(tf.ones(3, 4)).shape)
    (3, 2)
    >>> net[:2]
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        single = args[0] if len(args) == 1 else None
        for name, module in single.items() if isinstance(single, dict) else enumerate(args):
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """Passes `input` through all modules."""
        if not is_grad_enabled():
            return self._infer(input)
        for module in self._modules.values():
            input = module(input)
        return input

    def _infer(self, input: Any) -> Any:
        """Without gradients a linear layer and the ReLU after it are one operation."""
        waiting = None
        for module in [*self._modules.values(), None]:
            if waiting is not None:
                if type(module) is ReLU and fits_linear_relu(waiting, module, input):
                    input, waiting = F.linear_relu(input, waiting.weight, waiting.bias), None
                    continue
                input = waiting(input)
            waiting = module if type(module) is Linear else None
            if waiting is None and module is not None:
                input = module(input)
        return input

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * _times(other))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Sequential:
        return self.extend(list(self) * (_times(other) - 1))


def _times(count: Any) -> int:
    if not isinstance(count, int):
        raise TypeError(f"Sequential: cannot multiply by a {type(count).__name__}, expected an int")
    if count < 1:
        raise ValueError(f"Sequential: cannot multiply by {count}, expected at least 1")
    return count


class ModuleList(_ModuleSequence):
    """Modules in a list, for `forward` of their owner to use.

    >>> layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return super().__getitem__(index)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        return self.extend(other)

    def _child_lines(self) -> list[str]:
        texts = [repr(module) for module in self._modules.values()]
        lines, start = [], 0
        for i, text in enumerate(texts):
            if i + 1 < len(texts) and texts[i + 1] == text:
                continue
            count = i + 1 - start
            lines.append(f"({i}): {text}" if count == 1 else f"({start}-{i}): {count} x {text}")
            start = i + 1
        return lines


class ModuleDict(Module):
    """Modules by name, for `forward` of their owner to use.

    >>> heads = nn.ModuleDict({"age": nn.Linear(4, 1), "name": nn.Linear(4, 9)})
    >>> tuple(heads["name"](tf.ones(1, 4)).shape)
    (1, 9)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes out all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes out a module and returns it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of name and module."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module] | Iterable) -> None:
        """Adds modules from a mapping or from pairs; known names are replaced.

        Raises:
            TypeError: `modules` is neither.
        """
        for key, module in _pairs("ModuleDict.update", modules):
            self[key] = module


def _pairs(what: str, values: Any) -> list[tuple[str, Any]]:
    if hasattr(values, "items"):
        return list(values.items())
    if not hasattr(values, "__iter__"):
        raise TypeError(f"{what}: got a {type(values).__name__}, expected a mapping or pairs")
    pairs = [tuple(pair) for pair in values]
    for i, pair in enumerate(pairs):
        if len(pair) != 2:
            raise ValueError(
                f"{what}: element {i} has {len(pair)} parts, expected a name and a value"
            )
    return pairs


def _as_parameter(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"object of type {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value.dtype} of size {size}]"


class ParameterList(Module):
    """Parameters in a list; tensors become parameters, other values are kept as they are.

    >>> weights = nn.ParameterList([tf.ones(2), tf.zeros(3)])
    >>> len(weights), [tuple(p.shape) for p in weights.parameters()]
    (2, [(2,), (3,)])
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _position(self, index: Any) -> str:
        position = index.__index__()
        if not -self._size <= position < self._size:
            raise IndexError(
                f"ParameterList: index {position} is out of range for {self._size} values"
            )
        return str(position % self._size)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._position(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._position(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(i)) for i in range(self._size))

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end and returns the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end and returns the list.

        Raises:
            TypeError: `values` cannot be iterated over, or is a single tensor.
        """
        if not hasattr(values, "__iter__") or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend: got a {type(values).__name__}, "
                "expected values to iterate over"
            )
        for value in list(values):
            self.append(value)
        return self

    def _child_lines(self) -> list[str]:
        return [f"({i}): {_describe(value)}" for i, value in enumerate(self)]


class ParameterDict(Module):
    """Parameters by name; tensors become parameters, other values are kept as they are.

    >>> weights = nn.ParameterDict({"left": tf.ones(2), "right": tf.zeros(3)})
    >>> [name for name, _ in weights.named_parameters()]
    ['left', 'right']
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: key is a {type(key).__name__}, expected a str")
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: Mapping[str, Any]) -> ParameterDict:
        return ParameterDict([*self.items(), *other.items()])

    def __ior__(self, other: Mapping[str, Any]) -> ParameterDict:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """A dictionary of its own with the same parameters."""
        return ParameterDict(list(self.items()))

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or `default`."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a name, which is set to `default` where it has none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary that gives all names the same value."""
        return ParameterDict((key, default) for key in keys)

    def clear(self) -> None:
        """Takes out everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes out a value and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes out the pair that came last and returns it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of name and value."""
        return ((key, self[key]) for key in self._keys)

    def update(self, parameters: Mapping[str, Any] | Iterable) -> None:
        """Adds values from a mapping or from pairs; known names are replaced.

        A plain dictionary is taken in the order of its sorted names, as PyTorch does: the order
        decides the numbers of the parameters in an optimizer's state.

        Raises:
            TypeError: `parameters` is neither.
        """
        pairs = _pairs("ParameterDict.update", parameters)
        if type(parameters) is dict:
            pairs.sort(key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def _child_lines(self) -> list[str]:
        return [f"({key}): {_describe(value)}" for key, value in self.items()]
