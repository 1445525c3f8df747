"""Learning-rate schedules: each `step` of one moves the learning rates of an optimizer's groups.

Most compute the new rate from the present one, so that several can act on one optimizer.
"""

from tinyfin.optim.lr_scheduler.base import LRScheduler as LRScheduler
from tinyfin.optim.lr_scheduler.chain import ChainedScheduler as ChainedScheduler
from tinyfin.optim.lr_scheduler.chain import SequentialLR as SequentialLR
from tinyfin.optim.lr_scheduler.cycle import CosineAnnealingLR as CosineAnnealingLR
from tinyfin.optim.lr_scheduler.cycle import (
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
)
from tinyfin.optim.lr_scheduler.cycle import OneCycleLR as OneCycleLR
from tinyfin.optim.lr_scheduler.decay import ConstantLR as ConstantLR
from tinyfin.optim.lr_scheduler.decay import ExponentialLR as ExponentialLR
from tinyfin.optim.lr_scheduler.decay import LambdaLR as LambdaLR
from tinyfin.optim.lr_scheduler.decay import LinearLR as LinearLR
from tinyfin.optim.lr_scheduler.decay import MultiplicativeLR as MultiplicativeLR
from tinyfin.optim.lr_scheduler.decay import MultiStepLR as MultiStepLR
from tinyfin.optim.lr_scheduler.decay import PolynomialLR as PolynomialLR
from tinyfin.optim.lr_scheduler.decay import StepLR as StepLR
from tinyfin.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau
