"""Casts, copies and transfers, and the functions that the core calls back."""

from __future__ import annotations

from tinyfin.backends.base import place
from tinyfin.backends.transfer import transfer
from tinyfin.core import exchange, tensor
from tinyfin.core.device import Device
from tinyfin.core.dtype import DType, as_dtype
from tinyfin.core.errors import IndexOutOfRange, out_of_domain
from tinyfin.creation import from_array, make
from tinyfin.ops.row import CHECKED, F
from tinyfin.ops.table import offer
from tinyfin.shaping import needs_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, SupportsFloat

    from numpy.typing import NDArray

    from tinyfin.core.device import DeviceLike
    from tinyfin.core.dtype import DTypeLike

Tensor = tensor.Tensor


# ---- what the core calls back


class DivisionByZero(RuntimeError, ZeroDivisionError):
    """An integer divided by 0: PyTorch's RuntimeError, and Python's own."""


def outside(op, detail):
    """detail: which argument of CHECKED, the bits of the value as a double, which domain."""
    from struct import pack, unpack

    return out_of_domain(op, CHECKED[detail[0]], unpack("d", pack("q", detail[1]))[0], detail[2])


KERNEL_ERRORS = {
    1: lambda op, d: MemoryError(
        f"{op}: {d[0]} bytes of scratch memory were refused; raise TINYFIN_SCRATCH_BYTES"
    ),
    2: lambda op, d: IndexOutOfRange(
        f"{op}: index {d[0]} is out of range for dim {d[2]} of size {d[1]}"
    ),
    3: lambda op, d: DivisionByZero(f"{op}: integer division by zero"),
    4: outside,
    6: lambda op, d: RuntimeError(
        f"{op}: refused in deterministic mode: it cannot keep the promise of equal bits"
    ),
}


def kernel_error(op, code, detail, kinds, dtypes):
    """The exception for a kernel's error code; kinds: what the row takes, dtypes: what came."""
    if code == 5:
        from tinyfin.core.errors import unsupported

        return NotImplementedError(unsupported(op, kinds, dtypes))
    if code == 7:
        from tinyfin.core.errors import device_failed

        return device_failed(op, *detail[:2])
    return KERNEL_ERRORS[code](op, detail)


def sum_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Sums x over the axes along which `shape` was broadcast to x's shape."""
    shape = tuple(shape)
    lead = x.ndim - len(shape)
    dims = tuple(range(lead)) + tuple(
        lead + i for i, s in enumerate(shape) if s == 1 and x.shape[lead + i] != 1
    )
    if dims:
        x = F.sum(x, dims, True)
    return x.reshape(shape) if lead or x.shape != shape else x


def check_expands(op, source, target):
    """An error where `source` does not broadcast to `target`."""
    lead = len(target) - len(source)
    if lead < 0 or not all(n in (1, target[lead + i]) for i, n in enumerate(source)):
        raise RuntimeError(f"{op}: source of shape {source} does not broadcast to {target}")


def same_place(a, b):
    """Whether two tensors are the same window on the same memory."""
    return (
        tensor.shares_storage(a, b)
        and (a.storage_offset(), a.shape, a.stride()) == (b.storage_offset(), b.shape, b.stride())
        and a.dtype is b.dtype
    )


def set_slice(view, value):
    """x[key] = value for a key that is a view."""
    if isinstance(value, Tensor):
        if same_place(view, value):
            return
        while value.ndim > view.ndim and value.shape[0] == 1:
            value = value.squeeze(0)
    elif hasattr(value, "__array_interface__"):
        value = from_array(value)
    elif isinstance(value, (list, tuple)):
        value = exchange.from_sequence(value, None)
    tensor.assign(view, value, "setitem")


def to_device_of(x, other):
    """x on the device of other."""
    return x.to(other.device)


def inplace_formula(op, x, result):
    """An in-place call of a row that only has a formula, with gradients."""
    if result.shape != x.shape:
        raise RuntimeError(
            f"{op.name}: the result has shape {tuple(result.shape)}, the tensor {tuple(x.shape)}"
        )
    if not F.can_cast(result.dtype, x.dtype):
        raise RuntimeError(
            f"{op.name}: the result has dtype {result.dtype}, which cannot be cast to the tensor's "
            f"{x.dtype}"
        )
    return tensor.assign(x, result, op.name)


def into(op, result, out):
    """out=: writes a result into a tensor that is there, or into one without elements yet; None is
    no out."""
    if out is None:
        return result
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{op}: out is {out!r}, expected {len(result)} Tensors")
        return tuple(into(op, r, o) for r, o in zip(result, out))
    if not isinstance(out, Tensor):
        raise TypeError(f"{op}: out is {out!r}, expected a Tensor")
    if not F.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"{op}: the result's {result.dtype} cannot become out's {out.dtype}")
    if out.shape != result.shape:
        if out.numel():
            raise RuntimeError(
                f"{op}: out has shape {tuple(out.shape)}, the result {tuple(result.shape)}"
            )
        out.data = make(op, result.shape, out.dtype, out.device)
    return tensor.assign(out, result, op)


def construct(self, args):
    """Tensor(2, 3) and Tensor([1, 2])."""
    if len(args) == 1 and isinstance(args[0], Tensor):
        source = args[0].detach()
    elif all(isinstance(a, int) for a in args):
        source = make("Tensor", tuple(args) if args else (0,), None, None)
    elif len(args) == 1 and hasattr(args[0], "__len__"):
        source = exchange.from_sequence(args[0], default_dtype())
    else:
        raise TypeError(f"Tensor: cannot be made from {args!r}; use tinyfin.tensor")
    self.data = source


def default_dtype() -> DType:
    """The default floating-point dtype."""
    from tinyfin.core.dtype import get_default_dtype

    return get_default_dtype()


def signature_of(op):
    """inspect.Signature of an operation, for help() and editors."""
    from inspect import Parameter, Signature

    parameters = []
    for name, is_attr, number in op.params:
        default = Parameter.empty
        if is_attr:
            a = op.attrs[number]
            default = Parameter.empty if a.required else a.default
        elif op.optional[number]:
            default = None
        if (
            default is Parameter.empty
            and parameters
            and parameters[-1].default is not Parameter.empty
        ):
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY))
        else:
            kind = parameters[-1].kind if parameters else Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(Parameter(name, kind, default=default))
    return Signature(parameters)


def reduce_tensor(t):
    """Pickling: bytes, dtype, shape, requires_grad, the device but for the CPU; a subclass comes back as itself, with
    its attributes.

    Each tensor's own elements are written, so that a slice does not carry its whole storage; views
    that shared memory come back apart.
    """
    host = t.detach().cpu().contiguous()
    told = (type(t), exchange.to_bytes(host), t.dtype, tuple(t.shape), t.requires_grad)
    made = rebuild, (*told, str(t.device)) if t.device.slot else told
    state = getattr(t, "__dict__", None)
    return (*made, dict(state)) if state else made


def rebuild(cls, data, dtype, shape, requires_grad, device=None):
    """The inverse of reduce_tensor.

    Raises:
        RuntimeError: the tensor was on a device that is not to be had.
    """
    t = exchange.from_bytes(data, dtype, shape)
    if device is not None:
        try:
            t = t.to(device)
        except RuntimeError as error:
            raise RuntimeError(
                f"unpickling: the tensor was on {device}, which is not to be had here ({error}); pickle cpu() of it, "
                "or write it with tinyfin.save and read it with tinyfin.load(file, map_location='cpu')"
            ) from error
    if cls is not Tensor:
        return Tensor._make_subclass(cls, t, requires_grad)
    return t.requires_grad_(requires_grad) if requires_grad else t


def shallow_copy(self):
    """A second tensor over the same memory, for copy.copy; a leaf like the first, without its history."""
    t = Tensor._make_subclass(type(self), self.detach(), self.requires_grad)
    if getattr(self, "__dict__", None):
        t.__dict__.update(self.__dict__)
    return t


# ---- casts and copies


def to(
    self: Tensor,
    *args: DTypeLike | DeviceLike | Tensor | None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor in another dtype or on another device; itself where nothing changes.

    >>> import tinyfin
    >>> tinyfin.ones(2).to(tinyfin.int64).tolist()
    [1, 1]
    """
    flags = []
    for a in args:
        if isinstance(a, bool):
            flags.append(a)
        elif isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, DType) or a in (float, int, bool, complex):
            dtype = a
        elif isinstance(a, (str, Device)):
            device = a
        elif a is not None:
            raise TypeError(f"to: got {a!r}, expected a dtype, a device or a Tensor")
    copy = copy or (len(flags) > 1 and flags[1])  # to(device, dtype, non_blocking, copy)
    t = self
    if device is not None:
        slot, index = place(device)
        if (slot, index) != (self.device.slot, self.device.index or 0):
            t = transfer(t, slot, index)
    if dtype is not None:
        dtype = as_dtype("to", dtype)
        if dtype is not t.dtype:
            return F.cast(t, dtype)
    return t.clone() if copy and t is self else t


def caster(name, dtype_name):
    """x.float() and its kin."""
    from tinyfin.core.dtype import all_dtypes

    dtype = all_dtypes()[dtype_name]

    def method(self):
        return self if self.dtype is dtype else F.cast(self, dtype)

    method.__name__, method.__doc__ = name, f"The tensor as {dtype_name}."
    return method


CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
}


def cpu(self: Tensor) -> Tensor:
    """The tensor on the CPU."""
    return self if self.device.slot == 0 else transfer(self, 0, 0)


def contiguous(self: Tensor) -> Tensor:
    """The tensor itself where its elements lie row by row, else a copy."""
    return self if self.is_contiguous() else F.contiguous_copy(self)


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with its own elements; gradients flow through. A large one takes memory when either side is written."""
    return F.contiguous_copy(input)


def numpy(self: Tensor, *, force: bool = False) -> NDArray[Any]:
    """A NumPy array over the same memory; with `force` detached, copied to the CPU first."""
    return exchange.to_numpy(self.detach().cpu() if force else self)


def as_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
    """What numpy.asarray asks for where the buffer protocol does not do."""
    a = exchange.to_numpy(self)
    if dtype is not None and a.dtype != dtype:
        if copy is False:
            raise ValueError(f"__array__: {self.dtype} cannot become {dtype} without a copy")
        return a.astype(dtype)
    return a.copy() if copy else a


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another."""
    needs_tensor("type_as", self, "self")
    needs_tensor("type_as", other, "other")
    return to(self, other.dtype)


def copy_(self: Tensor, src: Tensor | SupportsFloat, non_blocking: bool = False) -> Tensor:
    """Writes the elements of src, which broadcasts and is cast, into this tensor."""
    return tensor.assign(self, src)


def fill_(self: Tensor, value: Tensor | SupportsFloat) -> Tensor:
    """Writes one value everywhere."""
    if isinstance(value, Tensor) and value.ndim:
        raise RuntimeError(
            f"fill_: value has shape {tuple(value.shape)}, expected a number or a 0-d tensor"
        )
    return tensor.assign(self, value, "fill_")


def fill(input: Tensor, value: Tensor | SupportsFloat) -> Tensor:
    """A tensor of the same shape and dtype with one value everywhere; the gradient flows to the value."""
    return fill_(F.contiguous_copy(needs_tensor("fill", input)), value)


def detach(input: Tensor) -> Tensor:
    """A view of the same elements without history."""
    return needs_tensor("detach", input).detach()


def zero_(self: Tensor) -> Tensor:
    """Writes zeros everywhere."""
    return tensor.assign(self, 0, "zero_")


def copied_window(x: Tensor, memo: dict[int, Any]) -> Tensor:
    """The same window on a copy of the storage, which all windows copied with this memo share."""
    if x.extra_ is not None and ("batch" in x.extra_ or "dual" in x.extra_):
        return F.contiguous_copy(x)  # what a transformation wraps has values beyond its storage
    # under the storage's id, as deepcopy keeps what it copied; the storage beside it keeps the id taken
    storage = tensor.storage_of(x)
    copies = memo.setdefault(id(storage), (storage, {}))[1]
    if x.dtype not in copies:
        whole = F.as_strided_view.run_with(
            (x,), ((x.storage_elements(),), (1,), 0, x.stride(), x.storage_offset())
        )
        copies[x.dtype] = F.contiguous_copy(whole)
    window = (tuple(x.shape), x.stride(), x.storage_offset(), (1,), 0)
    return F.as_strided_view.run_with((copies[x.dtype],), window).detach()


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy for copy.deepcopy: leaves only; shared tensors and shared memory stay shared."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "deepcopy: only leaves can be copied (made by the user, not by operations); detach() first"
        )
    t = copied_window(self.detach(), memo)
    if type(self) is not Tensor:
        t = Tensor._make_subclass(type(self), t, self.requires_grad)
    elif self.requires_grad:
        t.requires_grad_()
    memo[id(self)] = t
    if getattr(self, "__dict__", None):
        from copy import deepcopy as copied

        t.__dict__.update(copied(self.__dict__, memo))
    if self.grad is not None:
        t.grad = deepcopy(self.grad, memo)
    return t


METHODS = {
    "to": to,
    "cpu": cpu,
    "contiguous": contiguous,
    "clone": clone,
    "numpy": numpy,
    "__array__": as_array,
    "type_as": type_as,
    "copy_": copy_,
    "fill_": fill_,
    "zero_": zero_,
    "__deepcopy__": deepcopy,
    "tolist": exchange.to_list,
    "__dlpack__": exchange.to_dlpack,
    "__dlpack_device__": exchange.dlpack_device,
    "__copy__": shallow_copy,
    **{name: caster(name, dtype) for name, dtype in CASTS.items()},
}
HOOKS = {
    "kernel_error": kernel_error,
    "sum_to": sum_to,
    "check_expands": check_expands,
    "setslice": set_slice,
    "to_device_of": to_device_of,
    "inplace_formula": inplace_formula,
    "into": into,
    "construct": construct,
    "signature": signature_of,
    "reduce": reduce_tensor,
}
for _name, _value in METHODS.items():
    tensor.install_method(_name, _value)
for _name, _value in HOOKS.items():
    tensor.install_hook(_name, _value)
offer("sum_to", sum_to)
offer("clone", clone)
offer("detach", detach)
PUBLIC = {
    "clone": clone,
    "detach": detach,
    "fill": fill,
    "is_floating_point": Tensor.is_floating_point,
}
"""Functions of this module that belong into the package's name space."""
