"""RMSprop: steps scaled by a running mean of the squared gradient."""

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


class RMSprop(Optimizer):
    """RMSprop: p -= lr * g / (sqrt(v) + eps), with v the running mean of g * g.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        alpha: part of the mean that is kept.
        eps: keeps the divisor from zero.
        weight_decay: times p is added to the gradient.
        momentum: part of the running sum of steps that is kept.
        centered: divide by the deviation: v less the square of the mean gradient.
        capturable: accepted for PyTorch's sake, without effect.
        foreach: accepted for PyTorch's sake, without effect.
        maximize: go uphill.
        differentiable: not supported.

    Raises:
        ValueError: an option is negative or not finite.

    >>> p = nn.Parameter(tf.tensor([1.0]))
    >>> opt = tf.optim.RMSprop([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> opt.step()
    >>> round(p.item(), 3)
    0.0
    """

    _numbers = ("step",)
    _averages = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_supported("RMSprop", differentiable=differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _check_group(self, group: dict[str, Any]) -> None:
        for option in ("lr", "momentum", "alpha", "eps", "weight_decay"):
            check_number("RMSprop", option, group[option])

    def _needed(self, group: dict[str, Any]) -> tuple[str, ...]:
        wanted = (True, group["momentum"] > 0, group["centered"])
        return (*self._numbers, *(k for k, w in zip(self._averages, wanted) if w))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all parameters that have a gradient; returns what the closure returned."""
        loss = evaluated(closure)
        state, update = self.state, F.rmsprop_step_
        with no_grad():
            for group in self.param_groups:
                centered, momentum = group["centered"], group["momentum"]
                options = (
                    rate("RMSprop", group),
                    group["alpha"],
                    group["eps"],
                    group["weight_decay"],
                    momentum,
                    group["maximize"],
                )
                for p in group["params"]:
                    g = p.grad
                    if g is None:
                        continue
                    own = state[p]
                    if not own:
                        _begin(own, p, centered, momentum > 0)
                    own["step"] += 1
                    update(
                        p,
                        g,
                        own["square_avg"],
                        own["grad_avg"] if centered else None,
                        own["momentum_buffer"] if momentum else None,
                        *options,
                    )
        return loss


def _begin(own: dict[str, Any], p: Tensor, centered: bool, momentum: bool) -> None:
    own["step"] = 0
    own["square_avg"] = zeros_like(p)
    if momentum:
        own["momentum_buffer"] = zeros_like(p)
    if centered:
        own["grad_avg"] = zeros_like(p)
