"""SGD: gradient descent with momentum."""

from __future__ import annotations

from tinyfin.autograd.modes import no_grad
from tinyfin.creation import zeros_like
from tinyfin.ops.row import F
from tinyfin.optim.optimizer import Optimizer, check_number, check_supported, evaluated, rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class SGD(Optimizer):
    """Stochastic gradient descent: p -= lr * g, with g smoothed by momentum.

    Args:
        params: see `Optimizer`.
        lr: learning rate.
        momentum: part of the running sum of gradients that is kept.
        dampening: part of a gradient that does not enter the sum.
        weight_decay: times p is added to the gradient.
        nesterov: look ahead by one step of momentum.
        maximize: go uphill.
        foreach: accepted for PyTorch's sake, without effect.
        differentiable: not supported.
        fused: accepted for PyTorch's sake, without effect.

    Raises:
        ValueError: an option is negative or not finite, or `nesterov` lacks momentum or has
            dampening.

    >>> p = nn.Parameter(tf.tensor([1.0]))
    >>> opt = tf.optim.SGD([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> opt.step()
    >>> p.tolist()
    [0.0]
    """

    _averages = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_supported("SGD", differentiable=differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def _check_group(self, group: dict[str, Any]) -> None:
        for option in ("lr", "momentum", "weight_decay"):
            check_number("SGD", option, group[option])
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError(
                f"SGD: nesterov with momentum {group['momentum']} and dampening "
                f"{group['dampening']}, expected momentum above 0 and dampening 0"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all parameters that have a gradient; returns what the closure returned."""
        loss = evaluated(closure)
        state, update = self.state, F.sgd_step_
        with no_grad():
            for group in self.param_groups:
                lr, momentum = rate("SGD", group), group["momentum"]
                options = (
                    group["dampening"],
                    group["weight_decay"],
                    group["nesterov"],
                    group["maximize"],
                )
                buffer, first = None, False
                for p in group["params"]:
                    g = p.grad
                    if g is None:
                        continue
                    if momentum:
                        own = state[p]
                        buffer = own.get("momentum_buffer")
                        first = buffer is None
                        if first:
                            buffer = own["momentum_buffer"] = zeros_like(p)
                    update(p, g, buffer, lr, momentum, *options, first)
        return loss
