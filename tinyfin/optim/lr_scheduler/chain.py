"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right

from tinyfin.optim.lr_scheduler.base import LRScheduler
from tinyfin.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tinyfin.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class _Several(LRScheduler):
    """What the two share: a list of schedules of one optimizer."""

    _schedulers: list[Any]

    def _take(self, schedulers: Iterable[Any], optimizer: Any) -> None:
        self._schedulers = list(schedulers)
        name = type(self).__name__
        if not self._schedulers:
            raise ValueError(f"{name}: got no schedulers, expected at least one")
        for i, schedule in enumerate(self._schedulers):
            if not hasattr(schedule, "optimizer"):
                raise TypeError(
                    f"{name}: scheduler {i} is a {type(schedule).__name__}, expected "
                    "one with an optimizer"
                )
            if isinstance(schedule, ReduceLROnPlateau):
                raise ValueError(
                    f"{name}: scheduler {i} is a ReduceLROnPlateau, which needs a "
                    "metric at each step"
                )
            if optimizer is None:
                optimizer = schedule.optimizer
            if schedule.optimizer is not optimizer:
                raise ValueError(f"{name}: scheduler {i} moves another optimizer than the first")
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on later, of this and of the schedules in it."""
        state = super().state_dict()
        state["_schedulers"] = [schedule.state_dict() for schedule in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what `state_dict()` gave."""
        state = dict(state_dict)
        parts = state.pop("_schedulers", ())
        if len(parts) != len(self._schedulers):
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: state of {len(parts)} schedules was given, "
                f"expected {len(self._schedulers)}"
            )
        for schedule, part in zip(self._schedulers, parts):
            schedule.load_state_dict(part)
        super().load_state_dict(state)


class ChainedScheduler(_Several):
    """Several schedules of one optimizer, stepped together.

    Raises:
        ValueError: there is none, they move different optimizers, or one needs a metric.
        TypeError: one is not a scheduler.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> rates = tf.optim.lr_scheduler
    >>> parts = [rates.ConstantLR(opt, 0.5), rates.ExponentialLR(opt, 0.5)]
    >>> schedule = rates.ChainedScheduler(parts)
    >>> opt.step(); schedule.step(); schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Iterable[Any], optimizer: Optimizer | None = None) -> None:
        self._take(schedulers, optimizer)
        self._last_lr = self._current()

    def step(self, epoch: Any = None) -> None:
        """Moves all schedules on, in order."""
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = self._current()


class SequentialLR(_Several):
    """Schedules one after the other: the next takes over at each of the epochs in `milestones`.

    Raises:
        ValueError: there is none, they move different optimizers, one needs a metric, or the
            number of milestones is not one less.
        TypeError: one is not a scheduler.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> rates = tf.optim.lr_scheduler
    >>> warm, fall = rates.ConstantLR(opt, 0.1, total_iters=2), rates.ExponentialLR(opt, 0.5)
    >>> schedule = rates.SequentialLR(opt, [warm, fall], milestones=[2])
    >>> for _ in range(4):
    ...     print(schedule.get_last_lr()); opt.step(); schedule.step()
    [0.1]
    [0.1]
    [1.0]
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Iterable[Any],
        milestones: Iterable[int],
        last_epoch: int = -1,
    ) -> None:
        self._take(schedulers, optimizer)
        self._milestones = list(milestones)
        if len(self._milestones) != len(self._schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(self._schedulers)} schedulers and "
                f"{len(self._milestones)} milestones, expected one milestone less "
                "than schedulers"
            )
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        _undo(self)
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: Any = None) -> None:
        """Moves the schedule whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[turn]
        if turn and self._milestones[turn - 1] == self.last_epoch:
            schedule._update_lr(0)
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()


def _undo(schedule: Any) -> None:
    """Takes back the first step, which each schedule made when it was created."""
    if hasattr(schedule, "_schedulers"):
        for part in schedule._schedulers:
            _undo(part)
    else:
        schedule.last_epoch -= 1
