"""gradcheck: derivatives against finite differences in float64, forward against reverse mode."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from tinyfin.autograd import forward_ad
from tinyfin.autograd.reverse import grad
from tinyfin.core import tensor
from tinyfin.core.generator import Generator
from tinyfin.ops.row import F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Tensor = tensor.Tensor


class GradcheckError(RuntimeError):
    """A derivative is not what finite differences say."""


def gradcheck(
    func: Callable,
    inputs: Tensor | Sequence,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether func's derivatives agree with central differences.

    Args:
        inputs: arguments of func; those that require grad are checked, and should be float64.
        eps: step of the differences.
        nondet_tol: how much two gradients of one point may differ.
        check_undefined_grad: gradients of unused outputs may be missing.
        check_grad_dtypes: gradients have their input's dtype.
        check_batched_grad: vmap over cotangents gives the same as one after the other.
        check_forward_ad: check forward mode too, and that the two modes are adjoint.
        fast_mode: compare random products instead of whole Jacobians.

    Raises:
        GradcheckError: they do not agree, and raise_exception is True.
        ValueError: no input requires grad.

    >>> import tinyfin
    >>> x = tinyfin.tensor([0.5, 2.0], dtype=tinyfin.float64, requires_grad=True)
    >>> tinyfin.autograd.gradcheck(lambda x: x.log() * x, x, check_forward_ad=True)
    True
    """
    case = Case("gradcheck", func, inputs, eps, atol, rtol)
    try:
        case.outputs()
        numbers = case.products() if fast_mode else case.jacobian()
        if check_backward_ad:
            case.check_reverse(numbers, fast_mode, nondet_tol, check_grad_dtypes)
            if check_undefined_grad:
                case.check_undefined()
        if check_batched_grad:
            case.check_batched()
        if check_forward_ad:
            case.check_forward(numbers, fast_mode)
            case.check_adjoint()
        if check_batched_forward_grad:
            case.check_batched_forward()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable,
    inputs: Tensor | Sequence,
    grad_outputs: Tensor | Sequence | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether second derivatives agree with central differences of the first.

    Args:
        grad_outputs: cotangents of func's outputs; random where not given.
        check_fwd_over_rev: also forward mode over the gradient.

    Raises:
        GradcheckError: they do not agree, and raise_exception is True.

    >>> import tinyfin
    >>> x = tinyfin.tensor([0.5, 2.0], dtype=tinyfin.float64, requires_grad=True)
    >>> tinyfin.autograd.gradgradcheck(lambda x: x ** 3, x, check_fwd_over_rev=True)
    True
    """
    case = Case("gradgradcheck", func, inputs, eps, atol, rtol)
    given = as_tuple(grad_outputs)
    draws = Draws()
    cots = (
        [g for g in given]
        if given
        else [
            strewn(draws.like(y), gen_non_contig_grad_outputs).requires_grad_()
            for y in case.outputs()
        ]
    )
    return gradcheck(
        first_derivative(func, len(case.inputs)),
        (*case.inputs, *cots),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def first_derivative(func: Callable, n: int) -> Callable:
    """The gradient of func as a function of its n inputs and of the cotangents."""

    def first(*values: Any) -> tuple:
        args, gs = values[:n], values[n:]
        outs = as_tuple(func(*args))
        outs = [y for y in outs if isinstance(y, Tensor) and y.is_floating_point()]
        xs = [a for a in args if isinstance(a, Tensor) and a.requires_grad]
        live = [(y, g) for y, g in zip(outs, gs) if y.requires_grad]
        ys, cots = [y for y, _ in live], [g for _, g in live]
        found = grad(ys, xs, cots, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return first


def as_tuple(value: Any) -> tuple:
    """A tuple of one, of several, or of none."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def strewn(x: Tensor, wanted: bool) -> Tensor:
    """The same values, not contiguous where wanted."""
    if not wanted or x.numel() < 2:
        return x
    return F.stack([x, x], x.ndim)[..., 0]


class Draws:
    """Random directions that are the same in each run, and leave the default generator alone."""

    def __init__(self) -> None:
        self.generator = Generator().manual_seed(20)

    def like(self, x: Tensor) -> Tensor:
        """Normal numbers in the shape, dtype and place of x."""
        return F.randn(*x.shape, generator=self.generator, dtype=x.dtype, device=x.device)


class Case:
    """One function at one point."""

    def __init__(
        self,
        name: str,
        func: Callable,
        inputs: Tensor | Sequence,
        eps: float,
        atol: float,
        rtol: float,
    ) -> None:
        self.name, self.func, self.eps, self.atol, self.rtol = name, func, eps, atol, rtol
        self.inputs = as_tuple(inputs)
        self.moving = [
            i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad
        ]
        if not self.moving:
            raise ValueError(f"{name}: no input requires grad, expected at least one")
        for i in self.moving:
            if self.inputs[i].dtype.name != "float64":
                from tinyfin.backends.base import warn

                warn(
                    f"{name}: input {i} has dtype {self.inputs[i].dtype}; differences need "
                    "float64 to be exact enough"
                )

    def outputs(self, *values: Any) -> list:
        """The floating-point results of func."""
        outs = [y for y in as_tuple(self.func(*(values or self.inputs))) if isinstance(y, Tensor)]
        outs = [y for y in outs if y.is_floating_point()]
        if not outs:
            raise ValueError(f"{self.name}: func returned no floating-point Tensor")
        return outs

    def plain(self, i: int | None = None, value: Any = None) -> list:
        """Results without history, with input i replaced."""
        args = [
            x.detach().requires_grad_() if k in self.moving else x
            for k, x in enumerate(self.inputs)
        ]
        if i is not None:
            args[i] = value.detach().requires_grad_()
        return [y.detach() for y in self.outputs(*args)]

    def difference(self, i: int, step: Tensor) -> list:
        """(f(x + step) - f(x - step)) / 2 eps for a step of length eps along one input."""
        x = self.inputs[i].detach()
        up, down = self.plain(i, x + step * self.eps), self.plain(i, x - step * self.eps)
        return [(a - b) / (2 * self.eps) for a, b in zip(up, down)]

    # ---- finite differences

    def jacobian(self) -> dict:
        """(input, output) -> matrix (numbers of the input, numbers of the output)."""
        table: dict = {}
        for i in self.moving:
            x = self.inputs[i]
            columns = []
            for k in range(x.numel()):
                step = F.zeros(x.numel(), dtype=x.dtype, device=x.device)
                step[k] = 1.0
                columns.append([d.reshape(-1) for d in self.difference(i, step.reshape(x.shape))])
            for j in range(len(columns[0]) if columns else 0):
                table[i, j] = F.stack([c[j] for c in columns], 0)
        return table

    def products(self) -> dict:
        """(input, output) -> (direction, cotangent, v'Ju) by differences."""
        draws, table = Draws(), {}
        for i in self.moving:
            u = draws.like(self.inputs[i])
            for j, d in enumerate(self.difference(i, u)):
                v = draws.like(d)
                table[i, j] = (u, v, (d * v).sum())
        return table

    # ---- checks

    def check_reverse(self, numbers: dict, fast: bool, nondet_tol: float, dtypes: bool) -> None:
        """Reverse mode against differences."""
        for j, y in enumerate(self.outputs()):
            if fast:
                for i in self.moving:
                    if (i, j) in numbers:
                        u, v, wanted = numbers[i, j]
                        found = self.pull(self.outputs()[j], v)[self.moving.index(i)]
                        self.compare("reverse", i, j, (found * u).sum(), wanted)
                continue
            rows = []
            for k in range(y.numel()):
                v = unit(y, k)
                gs = self.pull(y, v, True)
                self.check_same(gs, self.pull(y, v, True), nondet_tol, j)
                self.check_kind(gs, dtypes)
                rows.append([g.reshape(-1) for g in gs])
            for n, i in enumerate(self.moving):
                if (i, j) in numbers and rows:
                    self.compare("reverse", i, j, F.stack([r[n] for r in rows], 1), numbers[i, j])

    def pull(self, y: Tensor, v: Tensor, retain: bool = False) -> list:
        """Gradients of all inputs; zeros where there is none."""
        xs = [self.inputs[i] for i in self.moving]
        if not y.requires_grad:
            return [F.zeros_of(x.shape, x) for x in xs]
        found = grad(y, xs, v, retain_graph=retain, allow_unused=True)
        return [F.zeros_of(x.shape, x) if g is None else g.detach() for g, x in zip(found, xs)]

    def check_same(self, a: list, b: list, tol: float, j: int) -> None:
        """Two walks give the same."""
        for g, h in zip(a, b):
            if g.numel() and float((g - h).abs().max()) > tol:
                raise GradcheckError(
                    f"{self.name}: two backward walks from output {j} gave different gradients, by "
                    f"{float((g - h).abs().max()):.3g}; nondet_tol is {tol}"
                )

    def check_kind(self, gs: list, dtypes: bool) -> None:
        """Gradients have their inputs' shapes, and dtypes where asked."""
        for i, g in zip(self.moving, gs):
            x = self.inputs[i]
            if g.shape != x.shape or (dtypes and g.dtype is not x.dtype):
                raise GradcheckError(
                    f"{self.name}: the gradient of input {i} is {tuple(g.shape)} of {g.dtype}, "
                    "the input "
                    f"{tuple(x.shape)} of {x.dtype}"
                )

    def check_forward(self, numbers: dict, fast: bool) -> None:
        """Forward mode against differences."""
        for i in self.moving:
            x = self.inputs[i]
            if fast:
                for j in [j for k, j in numbers if k == i]:
                    u, v, wanted = numbers[i, j]
                    self.compare("forward", i, j, (self.push(i, u)[j] * v).sum(), wanted)
                continue
            columns = [[t.reshape(-1) for t in self.push(i, unit(x, k))] for k in range(x.numel())]
            for j in range(len(columns[0]) if columns else 0):
                self.compare("forward", i, j, F.stack([c[j] for c in columns], 0), numbers[i, j])

    def push(self, i: int, u: Tensor) -> list:
        """Tangents of all outputs for a tangent of one input; zeros where there is none."""
        args = [
            x.detach().requires_grad_() if k in self.moving else x
            for k, x in enumerate(self.inputs)
        ]
        with forward_ad.dual_level() as level:
            args[i] = forward_ad.make_dual(args[i], u)
            pairs = [forward_ad.unpack_dual(y, level=level) for y in self.outputs(*args)]
            return [F.zeros_of(p.shape, p) if t is None else t.detach() for p, t in pairs]

    def check_adjoint(self) -> None:
        """v'(Ju) by forward mode equals (J'v)'u by reverse mode: the two agree, whatever the
        differences say."""
        draws = Draws()
        for n, i in enumerate(self.moving):
            u = draws.like(self.inputs[i])
            for j, (t, y) in enumerate(zip(self.push(i, u), self.outputs())):
                v = draws.like(y)
                a, b = float((t * v).sum()), float((self.pull(y, v)[n] * u).sum())
                if not abs(a - b) <= 1e-9 + 1e-7 * max(abs(a), abs(b)):
                    raise GradcheckError(
                        f"{self.name}: forward and reverse mode are not adjoint for input {i} "
                        "and output "
                        f"{j}: v'(Ju) is {a:.12g}, (J'v)'u is {b:.12g}"
                    )

    def check_undefined(self) -> None:
        """backward works when only one of several outputs is used."""
        outs = [y for y in self.outputs() if y.requires_grad]
        if len(outs) > 1:
            for y in outs:
                self.pull(y, F.full_of(y.shape, 1.0, y), True)

    def check_batched(self) -> None:
        """vmap over cotangents against one after the other."""
        from tinyfin.autograd.vmap import vmap

        draws = Draws()
        for j, y in enumerate(self.outputs()):
            vs = F.stack([draws.like(y), draws.like(y)], 0)
            together = vmap(lambda v: tuple(self.pull(y, v, True)))(vs)
            for n, i in enumerate(self.moving):
                apart = F.stack([self.pull(y, v, True)[n] for v in (vs[0], vs[1])], 0)
                self.compare("batched reverse", i, j, together[n], apart)

    def check_batched_forward(self) -> None:
        """vmap over tangents against one after the other."""
        from tinyfin.autograd.vmap import vmap

        draws = Draws()
        for i in self.moving:
            us = F.stack([draws.like(self.inputs[i]), draws.like(self.inputs[i])], 0)
            together = vmap(lambda u: tuple(self.push(i, u)))(us)
            for j, t in enumerate(together):
                self.compare(
                    "batched forward",
                    i,
                    j,
                    t,
                    F.stack([self.push(i, us[0])[j], self.push(i, us[1])[j]], 0),
                )

    def compare(self, mode: str, i: int, j: int, found: Tensor, wanted: Tensor) -> None:
        """Raises where two tables of numbers differ by more than the tolerances."""
        found, wanted = found.detach(), wanted.detach().to(found.dtype)
        far = (found - wanted).abs() > self.atol + self.rtol * wanted.abs()
        bad = F.logical_or(far, F.isnan(found) != F.isnan(wanted))
        if not bool(bad.any()):
            return
        worst = float(F.where(bad, (found - wanted).abs(), 0.0).max())
        raise GradcheckError(
            f"{self.name}: {mode} mode disagrees for input {i} and output {j} at "
            f"{int(bad.sum())} of {bad.numel()} "
            f"places, by up to {worst:.3g} (atol {self.atol:.3g}, rtol {self.rtol:.3g}).\n"
            f"by {mode} mode:\n{found}\nby "
            f"{'one at a time' if 'batched' in mode else 'finite differences'}:\n{wanted}"
        )


def unit(x: Tensor, k: int) -> Tensor:
    """A tensor like x with a one at place k, zeros elsewhere."""
    flat = F.zeros(x.numel(), dtype=x.dtype, device=x.device)
    flat[k] = 1.0
    return flat.reshape(x.shape)


class CallableModule(type(sys)):
    """This module, callable as the function of its name: an import of either puts it into
    tinyfin.autograd."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = CallableModule
