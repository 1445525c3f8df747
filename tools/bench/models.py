"""Small networks and their training steps, written once for tinyfin and PyTorch: `lib` is either module."""

import numpy as np


def mlp(lib):
    """784-256-128-10."""
    nn = lib.nn
    return nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def cnn(lib):
    """Two convolutions and two linear layers for 28 x 28 pictures."""
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def resnet(lib):
    """Three residual blocks of 16, 32 and 64 channels for 32 x 32 pictures (He et al., 2015)."""
    nn, relu = lib.nn, lib.nn.functional.relu

    class Block(nn.Module):
        def __init__(self, before, after, stride):
            super().__init__()
            self.c1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
            self.c2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
            self.n1, self.n2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
            self.short = nn.Sequential()
            if stride != 1 or before != after:
                self.short = nn.Sequential(
                    nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after)
                )

        def forward(self, x):
            y = self.n2(self.c2(relu(self.n1(self.c1(x)))))
            return relu(y + self.short(x))

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def gpt(lib, vocabulary=256, length=128, width=128, heads=4, layers=4):
    """A decoder of the GPT-2 kind."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, d = x.shape
            parts = self.qkv(self.n1(x)).reshape(b, t, 3, heads, d // heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.n2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, x):
            y = self.head(self.norm(self.blocks(self.tokens(x) + self.places.weight)))
            return y.reshape(-1, vocabulary)

    return GPT()


def fill(lib, net, seed=0):
    """Gives a network weights that NumPy draws, the same for both libraries: U(-b, b) with b = 1 / sqrt(inputs)."""
    rng = np.random.default_rng(seed)
    for p in net.parameters():
        shape = tuple(p.shape)
        if (
            len(shape) > 1
        ):  # biases and what scales norms stay as they are made: the same everywhere, or zero here
            bound = np.prod(shape[1:]) ** -0.5
            p.data.copy_(lib.from_numpy(rng.uniform(-bound, bound, shape).astype(np.float32)))
        elif not bool((p == 1).all()):
            p.data.zero_()
    return net


BATCHES = {
    "MLP, batch 128": (mlp, (128, 784), 10),
    "MNIST CNN, batch 64": (cnn, (64, 1, 28, 28), 10),
    "ResNet, batch 32": (resnet, (32, 3, 32, 32), 10),
    "small GPT, 8 x 128": (gpt, (8, 128), 256),
}
"""name -> (network, shape of a batch, classes)."""


def training_step(lib, name, device):
    """A function that runs one step: forward, backward, optimizer."""
    make, shape, classes = BATCHES[name]
    net = fill(lib, make(lib)).to(device)
    rng = np.random.default_rng(0)
    if make is gpt:
        x, targets = rng.integers(0, 256, shape), rng.integers(0, classes, shape[0] * shape[1])
        optimizer = lib.optim.AdamW(net.parameters(), lr=1e-3)
    else:
        x, targets = rng.standard_normal(shape, np.float32), rng.integers(0, classes, shape[0])
        optimizer = lib.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, targets = (lib.from_numpy(a).to(device) for a in (x, targets))

    def step():
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(net(x), targets)
        loss.backward()
        optimizer.step()
        return loss

    return step
