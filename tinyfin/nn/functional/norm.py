"""Normalisations: to mean 0 and variance 1 over some part of the input."""

from tinyfin.ops.row import F

batch_norm = F.batch_norm
group_norm = F.group_norm
instance_norm = F.instance_norm
layer_norm = F.layer_norm
rms_norm = F.rms_norm
