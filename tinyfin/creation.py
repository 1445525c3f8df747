"""Tensors made from nothing, from Python numbers and from other libraries' arrays."""

from __future__ import annotations

from tinyfin.backends.base import place
from tinyfin.core import dtype as dt
from tinyfin.core import exchange, tensor
from tinyfin.ops.table import offer
from tinyfin.shaping import needs_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol, SupportsFloat, SupportsIndex

    from tinyfin.core.device import DeviceLike
    from tinyfin.core.dtype import DType, DTypeLike

    class Like(Protocol):
        """A creation function that takes shape, dtype and device from a tensor."""

        def __call__(
            self,
            input: tensor.Tensor,
            *,
            dtype: DTypeLike | None = None,
            device: DeviceLike | None = None,
            requires_grad: bool = False,
        ) -> tensor.Tensor: ...


Tensor = tensor.Tensor


LARGEST = (1 << 63) - 1


def sizes_of(name: str, args: Sequence[Any]) -> tuple[int, ...]:
    """A shape given as separate integers or as one sequence."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = args[0]
    shape = []
    for s in args:
        try:
            shape.append(s.__index__())
        except AttributeError:
            raise TypeError(f"{name}: size is {s!r}, expected integers") from None
        if not -LARGEST <= shape[-1] <= LARGEST:
            raise OverflowError(f"{name}: size {s} does not fit 64 bits")
    return tuple(shape)


def make(
    name: str,
    shape: Sequence[int],
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    requires_grad: bool = False,
) -> Tensor:
    """An uninitialised tensor of a checked shape."""
    dtype = dt.get_default_dtype() if dtype is None else dt.as_dtype(name, dtype)
    out = tensor.empty_tensor(shape, dtype, *place(device), name)
    return out.requires_grad_() if requires_grad else out


INT64, BOOL = dt.all_dtypes()["int64"], dt.all_dtypes()["bool"]


def fill(out: Tensor, value: float, name: str) -> Tensor:
    """Writes one number everywhere, without history."""
    old = tensor.set_mode(0, 1)
    try:
        tensor.assign(out, value, name)
    finally:
        tensor.set_mode(old, 1)
    return out


def filled(
    name: str,
    shape: Sequence[int],
    value: float,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    requires_grad: bool,
) -> Tensor:
    """A tensor of one value."""
    out = fill(make(name, shape, dtype, device), value, name)
    return out.requires_grad_() if requires_grad else out


def empty(
    *size: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor with whatever bytes were there.

    >>> import tinyfin
    >>> tinyfin.empty(2, 3).shape
    tinyfin.Size([2, 3])
    """
    return make("empty", sizes_of("empty", size), dtype, device, requires_grad)


def zeros(
    *size: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros.

    >>> import tinyfin
    >>> tinyfin.zeros(2).tolist()
    [0.0, 0.0]
    """
    return filled("zeros", sizes_of("zeros", size), 0, dtype, device, requires_grad)


def ones(
    *size: SupportsIndex | Sequence[SupportsIndex],
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones.

    >>> import tinyfin
    >>> tinyfin.ones(2).tolist()
    [1.0, 1.0]
    """
    return filled("ones", sizes_of("ones", size), 1, dtype, device, requires_grad)


def dtype_of_number(value: float) -> DType:
    """The dtype that a Python number brings."""
    if isinstance(value, bool):
        return BOOL
    return INT64 if isinstance(value, int) else dt.get_default_dtype()


def full(
    size: SupportsIndex | Sequence[SupportsIndex],
    fill_value: float | Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one value; the dtype follows the value where not given.

    >>> import tinyfin
    >>> tinyfin.full((2,), 7).dtype
    tinyfin.int64
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return filled(
        "full",
        sizes_of("full", (size,)),
        value,
        dtype or dtype_of_number(value),
        device,
        requires_grad,
    )


def like(name: str, value: float | None) -> Like:
    """A creation function that takes shape, dtype and device from a tensor."""

    def function(
        input: Tensor,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        needs_tensor(name, input)
        out = make(name, input.shape, dtype or input.dtype, device or input.device)
        if value is not None:
            fill(out, value, name)
        out = alike(out, input)
        return out.requires_grad_() if requires_grad else out

    function.__name__ = function.__qualname__ = name
    what = "uninitialised" if value is None else f"full of {value}s"
    function.__doc__ = (
        f"A tensor {what}, with the shape, dtype and device of `input` where not given."
    )
    return function


empty_like, zeros_like, ones_like = (
    like("empty_like", None),
    like("zeros_like", 0),
    like("ones_like", 1),
)


def full_like(
    input: Tensor,
    fill_value: float,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one value, with the shape, dtype and device of `input` where not given."""
    needs_tensor("full_like", input)
    out = alike(
        filled(
            "full_like",
            input.shape,
            fill_value,
            dtype or input.dtype,
            device or input.device,
            False,
        ),
        input,
    )
    return out.requires_grad_() if requires_grad else out


def arange(
    start: float | Tensor,
    end: float | Tensor | None = None,
    step: float | Tensor = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """start, start + step, ... below end.

    >>> import tinyfin
    >>> tinyfin.arange(2, 8, 3).tolist()
    [2, 5]
    """
    bounds = (0, start, step) if end is None else (start, end, step)
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in bounds)
    count, whole = steps_between(start, end, step)
    if dtype is None:
        dtype = INT64 if whole else dt.get_default_dtype()
    dtype = dt.as_dtype("arange", dtype)
    if whole and not dtype.is_floating_point:
        # whole: both are integers
        values = exchange.arange_int(count, start, step)  # pyright: ignore[reportArgumentType]
    else:
        values = exchange.arange_float(count, float(start), float(step))
    out = move(values.to(dtype), device)
    return out.requires_grad_() if requires_grad else out


def maker_like(name: str, value: float | None) -> Callable[..., Tensor]:
    """x.new_zeros(size) and its kin: of x's dtype and device where not given."""

    def method(
        self: Tensor,
        *size: Any,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        out = make(name, sizes_of(name, size), dtype or self.dtype, device or self.device)
        if value is not None:
            fill(out, value, name)
        return out.requires_grad_() if requires_grad else out

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "A tensor " + ("uninitialised" if value is None else f"full of {value}s")
    method.__doc__ += ", of this one's dtype and device where not given."
    return method


def new_full(
    self: Tensor,
    size: SupportsIndex | Sequence[SupportsIndex],
    fill_value: float,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one value, of this one's dtype and device where not given."""
    shape = sizes_of("new_full", (size,))
    return filled(
        "new_full", shape, fill_value, dtype or self.dtype, device or self.device, requires_grad
    )


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """tinyfin.tensor(data) of this one's dtype and device where not given."""
    return tensor_(
        data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )


def steps_between(start: Any, end: Any, step: Any) -> tuple[int, bool]:
    """(how many numbers a range has, whether they are whole), or an error that says why it has none."""
    given = f"start {start!r}, end {end!r} and step {step!r}"
    for v in (start, end, step):
        if not hasattr(v, "__float__") or isinstance(v, str):
            raise TypeError(f"arange: {given}: expected numbers")
    if step == 0:
        raise RuntimeError(f"arange: {given}: step must not be 0")
    whole = all(hasattr(v, "__index__") for v in (start, end, step))
    if not whole and not all(abs(float(v)) < float("inf") for v in (start, end)):
        raise RuntimeError(f"arange: {given}: expected a finite range")
    if (end > start and step < 0) or (end < start and step > 0):
        raise RuntimeError(f"arange: {given}: step leads away from end")
    if whole:
        count = -(-(int(end) - int(start)) // int(step))
        if not all(-1 << 63 <= v < 1 << 63 for v in (start, end, step)):
            raise RuntimeError(f"arange: {given}: a number does not fit 64 bits")
        return count, True
    count = (end - start) / step
    if not count < 1 << 60:
        raise RuntimeError(f"arange: {given}: too many numbers")
    return int(-(-count // 1)), False


def linspace(
    start: SupportsFloat,
    end: SupportsFloat,
    steps: SupportsIndex,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers from start to end, both included.

    >>> import tinyfin
    >>> tinyfin.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    if not hasattr(steps, "__index__") or steps.__index__() < 0:
        raise RuntimeError(f"linspace: steps is {steps!r}, expected an integer >= 0")
    values = exchange.linspace(float(start), float(end), steps)
    out = move(values.to(dtype or dt.get_default_dtype()), device)
    return out.requires_grad_() if requires_grad else out


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Ones on the diagonal, zeros elsewhere.

    >>> import tinyfin
    >>> tinyfin.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    shape = sizes_of("eye", (n, n if m is None else m))
    out = filled("eye", shape, 0, dtype, device, False)
    fill(out.diagonal(), 1, "eye")
    return out.requires_grad_() if requires_grad else out


def move(t: Tensor, device: DeviceLike | None) -> Tensor:
    """The tensor on `device`, or on the default one."""
    slot, index = place(device)
    return t if (slot, index) == (0, 0) else t.to(str(exchange.device_of(slot, index)))


def tensor_(
    data: Any,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor that copies numbers, nested sequences, arrays or tensors.

    Args:
        dtype: taken from the data where not given; Python floats become the default float type.

    >>> import tinyfin
    >>> tinyfin.tensor([[1, 2], [3, 4]]).shape
    tinyfin.Size([2, 2])
    """
    wanted = None if dtype is None else dt.as_dtype("tensor", dtype)
    if isinstance(data, Tensor):
        out = data.detach().clone()
    elif hasattr(data, "__array_interface__"):
        out = from_array(data).clone()
    elif isinstance(data, (memoryview, bytearray)):
        out = exchange.from_buffer(data, "tensor").clone()
    else:
        out = exchange.from_sequence(data, wanted)
    if wanted is not None:
        out = out.to(wanted)
    out = move(out, device) if device is not None or not isinstance(data, Tensor) else out
    return out.requires_grad_() if requires_grad else out


def from_array(a: Any) -> Tensor:
    """A tensor over an array's memory, or over a copy where its memory cannot be shared."""
    try:
        return exchange.from_buffer(a, "tensor")
    except ValueError:
        return exchange.from_buffer(a.copy(), "tensor")


def as_tensor(
    data: Any, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """A tensor over the same memory where that is possible, else a copy."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device) if dtype or device else data
    if hasattr(data, "__array_interface__"):
        out = from_numpy(data)
        return out.to(dtype=dtype, device=device) if dtype or device else out
    return tensor_(data, dtype=dtype, device=device)


def from_numpy(array: Any) -> Tensor:
    """A tensor over a NumPy array's memory; on devices other than the CPU a copy.

    >>> import numpy, tinyfin
    >>> a = numpy.zeros(2, dtype="float32")
    >>> tinyfin.from_numpy(a).add_(1).sum().item(), float(a[0])
    (2.0, 1.0)
    """
    if not hasattr(array, "__array_interface__"):
        raise TypeError(f"from_numpy: expected a NumPy array, got {type(array).__name__}")
    return move(exchange.from_buffer(array), None)


def frombuffer(
    buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A one-dimensional tensor over an object's memory."""
    out = exchange.from_raw(buffer, dt.as_dtype("frombuffer", dtype), count, offset)
    return out.requires_grad_() if requires_grad else out


def alike(out: Tensor, g: Tensor) -> Tensor:
    """A new tensor, batched where g is: what is written into it later may differ within the batch."""
    if g.extra_ is None or not ("batch" in g.extra_ or "dual" in g.extra_):
        return out
    from tinyfin.autograd.vmap import spread

    return spread(out, g)


def zeros_of(shape: Sequence[int], g: Tensor) -> Tensor:
    """Zeros of a shape, with the dtype and device of g."""
    return alike(zeros(shape, dtype=g.dtype, device=g.device), g)


def full_of(shape: Sequence[int], value: float, g: Tensor) -> Tensor:
    """One value in a shape, with the dtype and device of g."""
    return alike(filled("full", shape, value, g.dtype, g.device, False), g)


offer("zeros_of", zeros_of)
offer("full_of", full_of)
tensor.install_hook(
    "zeros", lambda shape, dtype, like: alike(zeros(shape, dtype=dtype, device=like.device), like)
)
tensor.install_hook(
    "full",
    lambda shape, value, dtype, like: filled("full", shape, value, dtype, like.device, False),
)
METHODS = {
    "new_empty": maker_like("new_empty", None),
    "new_zeros": maker_like("new_zeros", 0),
    "new_ones": maker_like("new_ones", 1),
    "new_full": new_full,
    "new_tensor": new_tensor,
}
for _name, _value in METHODS.items():
    tensor.install_method(_name, _value)
