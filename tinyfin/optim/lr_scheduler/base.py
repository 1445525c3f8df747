"""LRScheduler: moves the learning rates of an optimizer's groups, epoch by epoch."""

from __future__ import annotations

from tinyfin.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LRScheduler:
    """Base class: subclasses define `get_lr`, which gives the rates for epoch `self.last_epoch`.

    Args:
        optimizer: whose learning rates are moved.
        last_epoch: the epoch to go on from; -1 begins anew.

    Raises:
        TypeError: `optimizer` is not an Optimizer.
        KeyError: going on, and a group does not know its "initial_lr".

    >>> class Halving(tf.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base * 0.5 ** self.last_epoch for base in self.base_lrs]
    >>> opt = tf.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.8)
    >>> schedule = Halving(opt)
    >>> opt.step(); schedule.step(); schedule.get_last_lr()
    [0.4]
    """

    _last_lr: list[float]
    _step_count = 0
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = as_optimizer(self, optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: last_epoch is {last_epoch}, but parameter "
                    f"group {i} has no 'initial_lr': load the optimizer's state first"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def step(self, epoch: Any = None) -> None:
        """Moves on by an epoch, or to a given one; to be called after the optimizer's step."""
        if self._step_count == 1 and not getattr(self.optimizer, "_stepped", True):
            import warnings

            warnings.warn(
                f"{type(self).__name__}.step was called before the optimizer's step: "
                "the first learning rate is passed over",
                stacklevel=2,
            )
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            rates = self._get_closed_form_lr()
        self._put(rates)

    def _put(self, rates: list[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates):
            group["lr"] = lr
        self._last_lr = self._current()

    def _current(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """The learning rates that were set last, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[float]:
        """The learning rates for `last_epoch`, from the present ones."""
        rates = zip(self._current(), self.base_lrs)
        return [self._next(lr, base, i) for i, (lr, base) in enumerate(rates)]

    def _get_closed_form_lr(self) -> list[float]:
        return [self._at(base, i) for i, base in enumerate(self.base_lrs)]

    def _next(self, lr: float, base: float, i: int) -> float:
        """Rate of group `i` after `lr`."""
        raise NotImplementedError(f"{type(self).__name__}: the method get_lr is not defined")

    def _at(self, base: float, i: int) -> float:
        """Rate of group `i` at `last_epoch`, whatever came before."""
        return self.get_lr()[i]

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on later, without the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_is_initial")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what `state_dict()` gave."""
        self.__dict__.update(state_dict)


def as_optimizer(schedule: object, optimizer: Any) -> Any:
    """The optimizer, or a TypeError."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"{type(schedule).__name__}: optimizer is a {type(optimizer).__name__}, "
            "expected an Optimizer"
        )
    return optimizer


def _watch_steps(optimizer: Any) -> None:
    """Notes the optimizer's first step; the hook leaves with it, so later steps pay nothing."""
    if hasattr(optimizer, "_stepped"):
        return
    optimizer._stepped = False

    def note(*_: object) -> None:
        optimizer._stepped = True
        handle.remove()

    handle = optimizer.register_step_post_hook(note)


def per_group(name: str, optimizer: Any, what: str, value: Any) -> list[Any]:
    """One value for each parameter group, from a list of them or from one for all."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(
            f"{name}: {what} has {len(value)} values, the optimizer has {groups} parameter groups"
        )
    return list(value)
