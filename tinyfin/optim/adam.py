"""Adam and AdamW: steps scaled by running means of the gradient and of its square."""

from __future__ import annotations

from tinyfin.autograd.modes import no_grad
from tinyfin.creation import zeros_like
from tinyfin.ops.row import F
from tinyfin.optim.optimizer import Optimizer, check_number, check_supported, evaluated, rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tinyfin.core.tensor import Tensor


class Adam(Optimizer):
    """Adam: p -= lr * m / (sqrt(v) + eps), with m and v the unbiased means of g and g * g.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        betas: parts of the two means that are kept.
        eps: keeps the divisor from zero.
        weight_decay: times p is added to the gradient, or with `decoupled_weight_decay`, times lr,
            taken from p before the step.
        amsgrad: divide by the greatest v so far.
        foreach: accepted for PyTorch's sake, without effect.
        maximize: go uphill.
        capturable: accepted for PyTorch's sake, without effect.
        differentiable: not supported.
        fused: accepted for PyTorch's sake, without effect.
        decoupled_weight_decay: as in `AdamW`.

    Raises:
        ValueError: an option is negative or not finite, or a beta is not below 1.

    >>> p = nn.Parameter(tf.tensor([1.0]))
    >>> opt = tf.optim.Adam([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> opt.step()
    >>> round(p.item(), 3)
    0.5
    """

    _numbers = ("step",)
    _averages = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_supported(type(self).__name__, differentiable=differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _check_group(self, group: dict[str, Any]) -> None:
        for option in ("lr", "eps", "weight_decay"):
            check_number(type(self).__name__, option, group[option])
        if not isinstance(group["betas"], (tuple, list)) or len(group["betas"]) != 2:
            raise TypeError(
                f"{type(self).__name__}: betas is {group['betas']!r}, expected two numbers"
            )
        for i, beta in enumerate(group["betas"]):
            check_number(type(self).__name__, f"betas[{i}]", beta, below=1.0)

    def _needed(self, group: dict[str, Any]) -> tuple[str, ...]:
        return (*self._numbers, *self._averages[: 3 if group["amsgrad"] else 2])

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all parameters that have a gradient; returns what the closure returned."""
        loss = evaluated(closure)
        state, update = self.state, F.adam_step_
        with no_grad():
            for group in self.param_groups:
                amsgrad, (beta1, beta2) = group["amsgrad"], group["betas"]
                options = (
                    rate(type(self).__name__, group),
                    beta1,
                    beta2,
                    group["eps"],
                    group["weight_decay"],
                )
                kind = group["decoupled_weight_decay"], group["maximize"]
                for p in group["params"]:
                    g = p.grad
                    if g is None:
                        continue
                    own = state[p]
                    if not own:
                        _begin(own, p, amsgrad)
                    own["step"] = step = own["step"] + 1
                    update(
                        p,
                        g,
                        own["exp_avg"],
                        own["exp_avg_sq"],
                        own["max_exp_avg_sq"] if amsgrad else None,
                        *options,
                        step,
                        *kind,
                    )
        return loss


def _begin(own: dict[str, Any], p: Tensor, amsgrad: bool) -> None:
    own["step"] = 0
    own["exp_avg"] = zeros_like(p)
    own["exp_avg_sq"] = zeros_like(p)
    if amsgrad:
        own["max_exp_avg_sq"] = zeros_like(p)


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself: p *= 1 - lr * weight_decay.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        betas: parts of the two means that are kept.
        eps: keeps the divisor from zero.
        weight_decay: part of p, times lr, that a step takes away.
        amsgrad: divide by the greatest v so far.
        maximize: go uphill.
        foreach: accepted for PyTorch's sake, without effect.
        capturable: accepted for PyTorch's sake, without effect.
        differentiable: not supported.
        fused: accepted for PyTorch's sake, without effect.

    Raises:
        ValueError: an option is negative or not finite, or a beta is not below 1.

    >>> opt = tf.optim.AdamW(nn.Linear(2, 2).parameters(), lr=1e-3)
    >>> opt.param_groups[0]["weight_decay"]
    0.01
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
