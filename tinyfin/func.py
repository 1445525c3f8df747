"""Transformations of functions under PyTorch's names: grad, vjp, jvp, jacrev, hessian, vmap ...

They take functions of tensors, or of nested tuples, lists and dicts of tensors, and nest freely.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyfin.autograd.jacobians import hessian, jacfwd, jacrev
from tinyfin.autograd.transforms import (
    grad,
    grad_and_value,
    hvp,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from tinyfin.autograd.vmap import vmap
from tinyfin.core import tensor
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "value_and_grad",
    "vjp",
    "vmap",
]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers in place of its own.

    Args:
        parameter_and_buffer_dicts: tensors by their names in the module, or several such dicts.
        args: the arguments, a tuple where there are several.
        tie_weights: a tensor that the module holds under several names is replaced under all of
            them.
        strict: every parameter and buffer must be given.

    Raises:
        TypeError: a dict holds something else than tensors.
        RuntimeError: a name is unknown to the module, given twice, or missing where strict is True.

    >>> import tinyfin
    >>> layer = tinyfin.nn.Linear(1, 1)
    >>> new = {"weight": tinyfin.tensor([[2.0]]), "bias": tinyfin.tensor([1.0])}
    >>> tinyfin.func.functional_call(layer, new, (tinyfin.tensor([3.0]),)).tolist()
    [7.0]
    """
    if not hasattr(module, "named_modules"):
        raise TypeError(
            f"functional_call: module is {module!r} of type {type(module).__name__}, expected a Module"
        )
    given = merged(parameter_and_buffer_dicts)
    places = places_of(module)
    unknown = [name for name in given if name not in places]
    if unknown:
        raise RuntimeError(
            f"functional_call: {type(module).__name__} has no parameter or buffer named "
            f"'{unknown[0]}'"
        )
    wanted = tied(places, given) if tie_weights else dict(given)
    missing = [name for name in places if name not in wanted]
    if strict and missing:
        raise RuntimeError(f"functional_call: '{missing[0]}' is missing, and strict is True")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    former = {name: table[key] for name, (table, key) in places.items() if name in wanted}
    try:
        for name, value in wanted.items():
            table, key = places[name]
            table[key] = value
        return module(*args, **(kwargs or {}))
    finally:
        for name, value in former.items():
            table, key = places[name]
            table[key] = value


def merged(dicts: dict | Sequence[dict]) -> dict:
    """One dict of tensors from one or several."""
    out: dict = {}
    for d in [dicts] if isinstance(dicts, dict) else dicts:
        if not isinstance(d, dict):
            raise TypeError(
                f"functional_call: got {d!r} of type {type(d).__name__}, expected a dict"
            )
        for name, value in d.items():
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"functional_call: '{name}' is {value!r} of type {type(value).__name__}, "
                    "expected a Tensor"
                )
            if name in out:
                raise RuntimeError(f"functional_call: '{name}' is given twice")
            out[name] = value
    return out


def places_of(module: Any) -> dict:
    """name -> (table, key) of every parameter and buffer, shared ones under each of their names."""
    found = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for key, value in table.items():
                if value is not None:
                    found[f"{path}.{key}" if path else key] = (table, key)
    return found


def tied(places: dict, given: dict) -> dict:
    """The replacements, also for other names of the same tensors."""
    by_tensor: dict = {}
    for name, value in given.items():
        table, key = places[name]
        other = by_tensor.setdefault(id(table[key]), value)
        if other is not value:
            raise RuntimeError(
                f"functional_call: '{name}' is tied to another name that is given another value"
            )
    return {
        name: by_tensor[id(table[key])]
        for name, (table, key) in places.items()
        if id(table[key]) in by_tensor
    }


def stack_module_state(
    models: Sequence[Any],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of several models of one build, stacked along a new first axis, for
    vmap.

    Raises:
        RuntimeError: there is no model, or they differ in type or mode.

    >>> import tinyfin
    >>> models = [tinyfin.nn.Linear(2, 3) for _ in range(4)]
    >>> params, buffers = tinyfin.func.stack_module_state(models)
    >>> tuple(params["weight"].shape)
    (4, 3, 2)
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: no model is given, expected at least one")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: the models are of different types")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state: some models are in training mode and some are not")
    params = {
        name: F.stack(
            [dict(m.named_parameters())[name].detach() for m in models], 0
        ).requires_grad_(p.requires_grad)
        for name, p in models[0].named_parameters()
    }
    buffers = {
        name: F.stack([dict(m.named_buffers())[name] for m in models], 0)
        for name, _ in models[0].named_buffers()
    }
    return params, buffers
