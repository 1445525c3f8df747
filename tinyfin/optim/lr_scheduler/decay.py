"""Schedules whose rate falls, or rises, by a rule of one line."""

from __future__ import annotations

from bisect import bisect_right

from tinyfin.optim.lr_scheduler.base import LRScheduler, as_optimizer, per_group
from tinyfin.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class _Lambdas(LRScheduler):
    """Schedules with a function for each group; functions do not enter the state."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        name = type(self).__name__
        self.lr_lambdas = per_group(name, as_optimizer(self, optimizer), "lr_lambda", lr_lambda)
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"{name}: lr_lambda is a {type(f).__name__}, expected a function")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """As in the base class; attributes of callable objects are kept, of functions nothing."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(f, type(per_group)) else dict(getattr(f, "__dict__", {}))
            for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what `state_dict()` gave; the functions stay."""
        state = dict(state_dict)
        for f, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas")):
            if attributes:
                f.__dict__.update(attributes)
        super().load_state_dict(state)


class LambdaLR(_Lambdas):
    """Initial rate times a function of the epoch, one function for all groups or one for each.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 1 / (1 + epoch))
    >>> opt.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def _next(self, lr: float, base: float, i: int) -> float:
        return base * self.lr_lambdas[i](self.last_epoch)


class MultiplicativeLR(_Lambdas):
    """Present rate times a function of the epoch, one function for all groups or one for each.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.5)
    >>> opt.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def _next(self, lr: float, base: float, i: int) -> float:
        return lr if self._is_initial else lr * self.lr_lambdas[i](self.last_epoch)


class StepLR(LRScheduler):
    """Rate times `gamma` every `step_size` epochs.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     opt.step(); schedule.step(); print(schedule.get_last_lr())
    [1.0]
    [0.5]
    [0.5]
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if isinstance(step_size, bool) or not hasattr(step_size, "__index__"):
            raise TypeError(f"StepLR: step_size is {step_size!r}, expected an integer")
        if step_size < 1:
            raise ValueError(f"StepLR: step_size is {step_size}, expected at least 1")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base: float, i: int) -> float:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return lr
        return lr * self.gamma

    def _at(self, base: float, i: int) -> float:
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Rate times `gamma` at each of the epochs in `milestones`.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.MultiStepLR(opt, milestones=[1, 2], gamma=0.5)
    >>> opt.step(); schedule.step(); schedule.step(); schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base: float, i: int) -> float:
        times = self.milestones.count(self.last_epoch)
        return lr * self.gamma**times if times else lr

    def _at(self, base: float, i: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, self.last_epoch)


class ConstantLR(LRScheduler):
    """Rate times `factor` until epoch `total_iters`.

    Raises:
        ValueError: `factor` is not between 0 and 1.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.ConstantLR(opt, factor=0.5, total_iters=2)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor is {factor}, expected 0 to 1")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base: float, i: int) -> float:
        if self.last_epoch == 0:
            return lr * self.factor
        return lr if self.last_epoch != self.total_iters else lr * (1.0 / self.factor)

    def _at(self, base: float, i: int) -> float:
        done = self.last_epoch >= self.total_iters
        return base * (self.factor + done * (1 - self.factor))


class LinearLR(LRScheduler):
    """Rate times a factor that moves evenly from `start_factor` to `end_factor`.

    Raises:
        ValueError: `start_factor` is not above 0 and up to 1, or `end_factor` not between 0 and 1.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.LinearLR(opt, start_factor=0.5, total_iters=2)
    >>> opt.step(); schedule.step(); schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"LinearLR: start_factor is {start_factor}, expected above 0 and up to 1"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: end_factor is {end_factor}, expected 0 to 1")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base: float, i: int) -> float:
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        return lr * (
            1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)
        )

    def _at(self, base: float, i: int) -> float:
        rise = self.end_factor - self.start_factor
        epoch = min(self.total_iters, self.last_epoch)
        return base * (self.start_factor + rise * epoch / self.total_iters)


class ExponentialLR(LRScheduler):
    """Rate times `gamma` every epoch.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    >>> opt.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base: float, i: int) -> float:
        return lr if self._is_initial else lr * self.gamma

    def _at(self, base: float, i: int) -> float:
        return base * self.gamma**self.last_epoch


class PolynomialLR(LRScheduler):
    """Rate times (1 - epoch / total_iters) ** power, which ends at zero.

    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    >>> schedule = tf.optim.lr_scheduler.PolynomialLR(opt, total_iters=4)
    >>> opt.step(); schedule.step(); schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _next(self, lr: float, base: float, i: int) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        left, before = self._left(self.last_epoch), self._left(self.last_epoch - 1)
        return lr * (left / before) ** self.power

    def _left(self, epoch: int) -> float:
        return 1.0 - epoch / self.total_iters

    def _at(self, base: float, i: int) -> float:
        return base * self._left(min(self.total_iters, self.last_epoch)) ** self.power
