"""Schedules that follow a cosine or a cycle."""

from __future__ import annotations

import math

from tinyfin.optim.lr_scheduler.base import LRScheduler, as_optimizer, per_group
from tinyfin.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CosineAnnealingLR(LRScheduler):
    """Rate along half a cosine from the initial one down to `eta_min` in `T_max` epochs, and back.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2)
    >>> opt.step(); schedule.step(); round(schedule.get_last_lr()[0], 6)
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base: float, i: int) -> float:
        if self._is_initial:
            return lr
        if self._step_count == 1 and self.last_epoch > 0:
            return self._at(base, i)
        epoch, length = self.last_epoch, self.T_max
        if (epoch - 1 - length) % (2 * length) == 0:
            return lr + (base - self.eta_min) * (1 - _cos(1, length)) / 2
        ratio = (1 + _cos(epoch, length)) / (1 + _cos(epoch - 1, length))
        return ratio * (lr - self.eta_min) + self.eta_min

    def _at(self, base: float, i: int) -> float:
        return _fall(self.eta_min, base, self.last_epoch, self.T_max)


def _cos(epoch: float, length: float) -> float:
    return math.cos(math.pi * epoch / length)


def _fall(low: float, high: float, epoch: float, length: float) -> float:
    """From `high` at epoch 0 to `low` at epoch `length`."""
    return low + (high - low) * (1 + _cos(epoch, length)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Rate along half a cosine down to `eta_min` in `T_0` epochs, then anew from the initial one.

    Each run is `T_mult` times as long as the one before.

    Raises:
        ValueError: `T_0` or `T_mult` is not a positive integer.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2)
    >>> for _ in range(4):
    ...     opt.step(); schedule.step(); print(round(schedule.get_last_lr()[0], 6))
    0.5
    1.0
    0.5
    1.0
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value <= 0:
                raise ValueError(
                    f"CosineAnnealingWarmRestarts: {name} is {value!r}, expected a positive integer"
                )
        if not isinstance(eta_min, (int, float)):
            raise ValueError(
                f"CosineAnnealingWarmRestarts: eta_min is {eta_min!r}, expected a number"
            )
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min = T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The learning rates for the present place in the run."""
        return [_fall(self.eta_min, base, self.T_cur, self.T_i) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Moves on by an epoch, or to a given one, which may be a fraction.

        Raises:
            ValueError: `epoch` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch)
        self._put(self.get_lr())

    def _update_lr(self, epoch: float | None = None) -> None:
        self.step(epoch)

    def _jump(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(
                f"CosineAnnealingWarmRestarts.step: epoch is {epoch}, expected one "
                "that is not negative"
            )
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            runs = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            start = self.T_0 * (self.T_mult**runs - 1) / (self.T_mult - 1)
            self.T_cur, self.T_i = epoch - start, self.T_0 * self.T_mult**runs


class OneCycleLR(LRScheduler):
    """Rate up from `max_lr / div_factor` to `max_lr`, then far down; momentum the other way.

    Step it after each batch. The length is `total_steps`, or `epochs * steps_per_epoch`.

    Args:
        optimizer: whose learning rates are moved.
        max_lr: the peak, for all groups or for each.
        total_steps: number of batches in all.
        epochs: number of epochs.
        steps_per_epoch: number of batches in an epoch.
        pct_start: part of the cycle in which the rate rises, a float.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: move the momentum, or the first beta, between the next two.
        base_momentum: the lowest, at the peak of the rate, for all groups or for each.
        max_momentum: the highest, for all groups or for each.
        div_factor: peak over first rate.
        final_div_factor: first rate over last.
        three_phase: come back down to the first rate before going below it.
        last_epoch: the batch to go on from; -1 begins anew.

    Raises:
        ValueError: an argument is out of range, the length is not given, or the optimizer has
            neither momentum nor betas to move; in `step`, the cycle is over.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0, momentum=0.9)
    >>> schedule = tf.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=10)
    >>> for _ in range(2):
    ...     opt.step(); schedule.step()
    >>> schedule.get_last_lr(), opt.param_groups[0]["momentum"]
    ([1.0], 0.85)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        as_optimizer(self, optimizer)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(
                f"OneCycleLR: pct_start is {pct_start!r}, expected a float from 0 to 1"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: anneal_strategy is {anneal_strategy!r}, expected 'cos' or 'linear'"
            )
        self.total_steps = _length(total_steps, epochs, steps_per_epoch)
        self.pct_start, self.three_phase = pct_start, three_phase
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        peaks = per_group("OneCycleLR", optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks):
                group["initial_lr"], group["max_lr"] = peak / div_factor, peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self._begin_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _begin_momentum(self, optimizer: Any, base: Any, top: Any, fresh: bool) -> None:
        self.use_beta1 = "betas" in optimizer.defaults
        if not self.use_beta1 and "momentum" not in optimizer.defaults:
            raise ValueError(
                f"OneCycleLR: cycle_momentum is true, but {type(optimizer).__name__} "
                "has neither momentum nor betas"
            )
        tops = per_group("OneCycleLR", optimizer, "max_momentum", top)
        bases = per_group("OneCycleLR", optimizer, "base_momentum", base)
        for group, low, high in zip(optimizer.param_groups, bases, tops):
            if fresh:
                self._put_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _put_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _phases(self) -> list[tuple[float, str, str, str, str]]:
        """Last step of each phase, and the rates and momenta that it goes between."""
        rise, last = float(self.pct_start * self.total_steps), self.total_steps - 1
        up = (rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if not self.three_phase:
            return [up, (last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        return [
            up,
            (2 * rise - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
            (last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
        ]

    def get_lr(self) -> list[float]:
        """The learning rates for this step; moves the momenta too."""
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(f"OneCycleLR.step: step {at} of a cycle of {self.total_steps}")
        phases = self._phases()
        turn = next((i for i, phase in enumerate(phases) if at <= phase[0]), len(phases) - 1)
        start = phases[turn - 1][0] if turn else 0.0
        end, from_lr, to_lr, from_momentum, to_momentum = phases[turn]
        part = (at - start) / (end - start) if end != start else 1.0
        groups = self.optimizer.param_groups
        for group in groups if self.cycle_momentum else ():
            momentum = self._between(group[from_momentum], group[to_momentum], part)
            self._put_momentum(group, momentum)
        return [self._between(group[from_lr], group[to_lr], part) for group in groups]

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _length(total: int | None, epochs: int | None, steps: int | None) -> int:
    given = (
        {"total_steps": total}
        if total is not None
        else {"epochs": epochs, "steps_per_epoch": steps}
    )
    if None in given.values():
        raise ValueError(
            "OneCycleLR: the length is missing, give total_steps, or epochs and steps_per_epoch"
        )
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"OneCycleLR: {name} is {value!r}, expected a positive integer")
    return math.prod(value for value in given.values() if value is not None)
