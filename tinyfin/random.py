"""Seeds, and random tensors over the rows of Philox numbers."""

from __future__ import annotations

from tinyfin.core import tensor
from tinyfin.core.dtype import all_dtypes, as_dtype
from tinyfin.core.generator import Generator, default_generator
from tinyfin.creation import make, sizes_of
from tinyfin.ops.row import F
from tinyfin.ops.table import offer
from tinyfin.shaping import needs_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, SupportsIndex, overload

    from tinyfin.core.device import DeviceLike
    from tinyfin.core.dtype import DType, DTypeLike

Tensor = tensor.Tensor
INT64 = all_dtypes()["int64"]


def draw_from(name: str, generator: Generator | None) -> tuple[int, int]:
    """(seed, draw number) from the given generator or the default one."""
    if generator is None:
        generator = default_generator
    elif not isinstance(generator, Generator):
        raise TypeError(f"{name}: generator is {generator!r}, expected a tinyfin.Generator")
    return generator.next_draw()


def draw_for(name: str, out: Tensor, generator: Generator | None) -> tuple[int, int]:
    """The draw for a tensor that is filled; a tensor that cannot be written uses none up."""
    tensor.check_write(out, name)
    return draw_from(name, generator)


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator and returns it.

    >>> import tinyfin
    >>> a = tinyfin.manual_seed(3) and tinyfin.rand(2)
    >>> tinyfin.manual_seed(3) is tinyfin.default_generator and tinyfin.equal(a, tinyfin.rand(2))
    True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the default generator from the operating system and returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, a tensor of 16 bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the default generator's state."""
    default_generator.set_state(new_state)


def float_only(name: str, t: Tensor) -> None:
    """Random real numbers need a floating-point tensor."""
    if not t.is_floating_point():
        raise RuntimeError(f"{name}: expected a floating-point tensor, got {t.dtype}")


def uniform_(
    self: Tensor,
    from_: float = 0.0,
    to: float = 1.0,
    *,
    generator: Generator | None = None,
    **named: float,
) -> Tensor:
    """Fills with numbers uniform in [from, to)."""
    low = named.pop("from", from_)
    if named:
        raise TypeError(f"uniform_: unexpected keyword arguments {sorted(named)}")
    float_only("uniform_", self)
    if not low <= to or not abs(to - low) < float("inf"):
        raise RuntimeError(
            f"uniform_: from is {low} and to is {to}, expected from <= to, not infinitely far apart"
        )
    return F.uniform_(self, low, to, *draw_for("uniform_", self, generator))


def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with normal numbers (Box-Muller)."""
    float_only("normal_", self)
    if not std >= 0:
        raise RuntimeError(f"normal_: std is {std}, expected at least 0")
    return F.normal_(self, mean, std, *draw_for("normal_", self, generator))


def bernoulli_(
    self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Fills with ones with probability p, else zeros."""
    if isinstance(p, Tensor):
        return tensor.assign(self, bernoulli(p.expand(self.shape), generator=generator))
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_: p is {p}, expected 0 to 1")
    return F.bernoulli_(self, p, *draw_for("bernoulli_", self, generator))


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fills with exponential numbers of rate lambd."""
    float_only("exponential_", self)
    if not lambd > 0:
        raise RuntimeError(f"exponential_: lambd is {lambd}, expected more than 0")
    return F.exponential_(self, lambd, *draw_for("exponential_", self, generator))


WHOLE = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "bool": 1, "uint8": 8}
"""Bits of the whole numbers from 0 on that a dtype holds exactly, where not those of its size less one."""


def end_of(dtype: DType) -> int:
    """The end of the whole numbers that a dtype holds exactly; 2^63 - 1 for int64."""
    return min(1 << WHOLE.get(dtype.name, 8 * dtype.itemsize - 1), (1 << 63) - 1)


def check_whole(name: str, low: int, high: int, dtype: DType) -> None:
    """Bounds of whole numbers must be in order and inside the dtype."""
    if not low < high:
        raise RuntimeError(f"{name}: low is {low} and high is {high}, expected low < high")
    if dtype.is_floating_point:
        return
    end = end_of(dtype)
    first = -(1 << 8 * dtype.itemsize - 1) if dtype.is_signed else 0
    if low < first or high > end + (dtype.name == "int64"):
        raise RuntimeError(f"{name}: low {low} to high {high} goes beyond {dtype}")


def random_(
    self: Tensor,
    from_: int | None = None,
    to: int | None = None,
    *,
    generator: Generator | None = None,
    **named: int,
) -> Tensor:
    """Fills with integers of [from, to), of [0, to), or of all that the dtype holds exactly."""
    low = named.pop("from", from_)
    if named:
        raise TypeError(f"random_: unexpected keyword arguments {sorted(named)}")
    if to is None and low is not None and from_ is not None:
        low, to = 0, low  # random_(to)
    low = 0 if low is None else low
    to = end_of(self.dtype) if to is None else to
    check_whole("random_", low, to, self.dtype)
    return F.randint_(self, low, to, *draw_for("random_", self, generator))


def finish(out: Tensor, requires_grad: bool) -> Tensor:
    """requires_grad as creation functions set it."""
    return out.requires_grad_() if requires_grad else out


def rand(
    *size: SupportsIndex | Sequence[SupportsIndex],
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers uniform in [0, 1).

    >>> import tinyfin
    >>> tinyfin.rand(2, 3).shape
    tinyfin.Size([2, 3])
    """
    out = make("rand", sizes_of("rand", size), dtype, device)
    return finish(uniform_(out, generator=generator), requires_grad)


def randn(
    *size: SupportsIndex | Sequence[SupportsIndex],
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers of mean 0 and variance 1."""
    out = make("randn", sizes_of("randn", size), dtype, device)
    return finish(normal_(out, generator=generator), requires_grad)


def rand_like(
    input: Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Uniform numbers in the shape, dtype and device of `input`."""
    needs_tensor("rand_like", input)
    return rand(
        *input.shape,
        generator=generator,
        dtype=dtype or input.dtype,
        device=device or input.device,
        requires_grad=requires_grad,
    )


def randn_like(
    input: Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers in the shape, dtype and device of `input`."""
    needs_tensor("randn_like", input)
    return randn(
        *input.shape,
        generator=generator,
        dtype=dtype or input.dtype,
        device=device or input.device,
        requires_grad=requires_grad,
    )


if TYPE_CHECKING:

    @overload
    def randint(
        high: int,
        size: Sequence[SupportsIndex],
        /,
        *,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> Tensor: ...
    @overload
    def randint(
        low: int,
        high: int,
        size: Sequence[SupportsIndex],
        *,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> Tensor: ...
    @overload
    def randint(
        low: int,
        *,
        size: Sequence[SupportsIndex],
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> Tensor: ...


def randint(
    low: Any,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers of [low, high), or of [0, low) when called as randint(high, size).

    >>> import tinyfin
    >>> t = tinyfin.randint(5, (100,))
    >>> bool(((t >= 0) & (t < 5)).all())
    True
    """
    if size is None:
        low, high, size = 0, low, high
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint: size is {size!r}, expected a tuple of integers")
    dtype = as_dtype("randint", INT64 if dtype is None else dtype)
    check_whole("randint", low, high, dtype)
    out = make("randint", sizes_of("randint", (size,)), dtype, device)
    return finish(F.randint_(out, low, high, *draw_from("randint", generator)), requires_grad)


def randperm(
    n: SupportsIndex,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """The numbers 0 to n - 1 in random order: random 63-bit keys, sorted.

    >>> import tinyfin
    >>> sorted(tinyfin.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    if isinstance(n, bool) or not hasattr(n, "__index__") or n.__index__() < 0:
        raise RuntimeError(f"randperm: n is {n!r}, expected an integer >= 0")
    n, dtype = n.__index__(), as_dtype("randperm", INT64 if dtype is None else dtype)
    if n > end_of(dtype):
        raise RuntimeError(f"randperm: n is {n}, more than {dtype} holds exactly")
    keys = make("randperm", (n,), INT64, device)
    F.randint_(keys, 0, (1 << 63) - 1, *draw_from("randperm", generator))
    order = F.argsort(keys, stable=True)
    return order.to(dtype)


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Ones with the probabilities given by `input` (or by p), else zeros."""
    needs_tensor("bernoulli", input)
    if p is not None:
        return bernoulli_(F.contiguous_copy(input.detach()), p, generator=generator)
    float_only("bernoulli", input)
    if not bool(F.logical_and(input >= 0, input <= 1).all()):
        raise RuntimeError("bernoulli: input has values outside 0 to 1")
    return (rand_like(input, generator=generator) < input).to(input.dtype)


def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: SupportsIndex | Sequence[SupportsIndex] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Normal numbers of given mean and deviation, numbers or tensors."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        if bool((std < 0).any()) if isinstance(std, Tensor) else not std >= 0:
            raise RuntimeError("normal: std has values below 0")
        like = F.mul(mean, std)
        float_only("normal", like)
        return randn_like(like.detach(), generator=generator) * std + mean
    if size is None:
        raise TypeError("normal: size is missing; it is needed where mean and std are numbers")
    out = make("normal", sizes_of("normal", (size,)), dtype, device)
    return normal_(out, mean, std, generator=generator)


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn with the weights in each row of `input`."""
    needs_tensor("multinomial", input)
    if input.ndim not in (1, 2) or not input.is_floating_point():
        raise RuntimeError(
            f"multinomial: input is {input.dtype} of shape {tuple(input.shape)}, expected floating point "
            "of one or two dimensions"
        )
    if bool(F.logical_or(F.logical_not(F.isfinite(input)), input < 0).any()):
        raise RuntimeError("multinomial: input has negative, infinite or NaN weights")
    if bool((input.sum(-1) <= 0).any()):
        raise RuntimeError("multinomial: a row's weights add up to 0")
    if not num_samples > 0 or (not replacement and num_samples > input.shape[-1]):
        raise RuntimeError(
            f"multinomial: num_samples is {num_samples}, expected 1 to {input.shape[-1]}"
        )
    weights = input.detach().float() if input.dtype.itemsize < 4 else input.detach()
    if not replacement:
        # the largest of w / e with exponential e is number i with probability w[i]
        keys = weights / exponential_(F.empty_like(weights), generator=generator)
        return F.topk(keys, num_samples, -1)[1]
    steps = F.cumsum(weights, -1)
    total = steps[..., -1:]
    marks = (
        rand(
            *input.shape[:-1],
            num_samples,
            generator=generator,
            dtype=weights.dtype,
            device=input.device,
        )
        * total
    )
    found = F.searchsorted(steps, marks, right=True)
    return F.minimum(found, (steps < total).sum(-1, True))  # a mark may be rounded up to the total


def check_probability(what: str, p: Any) -> None:
    """A number from 0 to 1, or an error that names p."""
    if isinstance(p, str) or not hasattr(p, "__float__"):
        raise TypeError(f"{what}: p is {p!r}, expected a probability from 0 to 1")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{what}: p is {p}, expected a probability from 0 to 1")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p and scales the others by 1 / (1 - p); the identity when not training."""
    check_probability("dropout", p)
    if not training or p == 0:
        return input
    out = F.dropout_apply(input, p, *draw_from("dropout", None))
    return tensor.assign(input, out) if inplace else out


METHODS = {
    "uniform_": uniform_,
    "normal_": normal_,
    "bernoulli_": bernoulli_,
    "exponential_": exponential_,
    "random_": random_,
    "bernoulli": bernoulli,
    "multinomial": multinomial,
}
PUBLIC: dict[str, Any] = {
    f.__name__: f
    for f in (
        manual_seed,
        seed,
        initial_seed,
        get_rng_state,
        set_rng_state,
        rand,
        randn,
        rand_like,
        randn_like,
        randint,
        randperm,
        bernoulli,
        normal,
        multinomial,
        dropout,
    )
}
PUBLIC.update(Generator=Generator, default_generator=default_generator)
for _name, _value in METHODS.items():
    tensor.install_method(_name, _value)
offer("dropout", dropout)
offer("rand", rand)
