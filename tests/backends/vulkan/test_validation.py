"""The Khronos validation layer over a training run: it has nothing to say."""

import os
import pathlib

import pytest
from backends.isolated import run

LAYER = "explicit_layer.d/VkLayer_khronos_validation.json"
CODE = """
import tinyfin as tf
tf.backend_set("vulkan")
nn = tf.nn
net = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(64, 16), nn.GELU(), nn.Dropout(0.1), nn.LayerNorm(16), nn.Linear(16, 5),
)
opt = tf.optim.AdamW(net.parameters())
for _ in range(5):
    x, targets = tf.rand(6, 1, 8, 8), tf.randint(0, 5, (6,))
    opt.zero_grad()
    tf.nn.functional.cross_entropy(net(x), targets).backward()
    opt.step()
scores = net(x).sort(dim=1).values.half().cumsum(1)
assert scores.shape == (6, 5)
print("done")
"""


@pytest.mark.usefixtures("vulkan")
def test_a_training_run():
    if not any(pathlib.Path(d, LAYER).exists() for d in ("/usr/share/vulkan", "/etc/vulkan")):
        promised = "vulkan" in os.environ.get("TINYFIN_TEST_DEVICES", "")
        (pytest.fail if promised else pytest.skip)("apt install vulkan-validationlayers")
    lines, errors = run(
        CODE,
        VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation",
        TINYFIN_FALLBACK="0",
        TINYFIN_CACHE="",
    )
    assert lines == ["done"], "\n".join(lines[:20])
    assert "Validation" not in errors, errors[:2000]
