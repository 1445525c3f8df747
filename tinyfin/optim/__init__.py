"""Optimizers and learning-rate schedules."""

from tinyfin.optim import lr_scheduler as lr_scheduler
from tinyfin.optim.adam import Adam as Adam
from tinyfin.optim.adam import AdamW as AdamW
from tinyfin.optim.optimizer import Optimizer as Optimizer
from tinyfin.optim.rmsprop import RMSprop as RMSprop
from tinyfin.optim.sgd import SGD as SGD
