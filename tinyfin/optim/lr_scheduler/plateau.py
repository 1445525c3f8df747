"""ReduceLROnPlateau: lowers the rate when a metric no longer improves."""

from __future__ import annotations

from math import inf

from tinyfin.optim.lr_scheduler.base import LRScheduler, as_optimizer, per_group
from tinyfin.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ReduceLROnPlateau(LRScheduler):
    """Rate times `factor` when a metric has not improved for more than `patience` epochs.

    Args:
        optimizer: whose learning rates are moved.
        mode: "min" where less is better, "max" where more is.
        factor: what the rate is multiplied by, below 1.
        patience: epochs without improvement that are let pass.
        threshold: what counts as an improvement.
        threshold_mode: "rel" measures it as a part of the best value, "abs" as a difference.
        cooldown: epochs after a reduction in which none is counted.
        min_lr: the lowest rate, for all groups or for each.
        eps: smaller reductions are not made.

    Raises:
        TypeError: `optimizer` is not an Optimizer.
        ValueError: `factor` is 1 or more, a mode is unknown, or `min_lr` has the wrong length.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
    >>> for loss in (3.0, 3.0, 3.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor is {factor}, expected less than 1")
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau: mode is {mode!r}, expected 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: threshold_mode is {threshold_mode!r}, expected 'rel' or 'abs'"
            )
        self.optimizer = as_optimizer(self, optimizer)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = per_group("ReduceLROnPlateau", optimizer, "min_lr", min_lr)
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps, self.last_epoch = cooldown, eps, 0
        self.best = inf if mode == "min" else -inf
        self.cooldown_counter = self.num_bad_epochs = 0
        self._last_lr = self._current()

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was made so lately that none is counted."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Takes the metric of an epoch: a number, or a tensor with one element."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._current()

    def _is_better(self, value: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            bar = self.best * (1.0 + sign * self.threshold)
        else:
            bar = self.best + sign * self.threshold
        return value > bar if self.mode == "max" else value < bar

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau: min_lr has {len(self.min_lrs)} values, the "
                    f"optimizer now has {len(groups)} parameter groups"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs):
            lr = float(group["lr"])
            lower = max(lr * self.factor, low)
            if lr - lower > self.eps:
                group["lr"] = lower
