"""What users write. It is not run: lint checks that its types are what the stubs say.

Lines of `assert_type` fix the types that matter; a stub that says less fails here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import assert_type

import tinyfin as tf
from tinyfin import Tensor, nn
from tinyfin.data import DataLoader, Dataset, TensorDataset
from tinyfin.func import functional_call, grad, vmap
from tinyfin.nn import functional as F


def creation() -> None:
    assert_type(tf.tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor)
    assert_type(tf.zeros(2, 3), Tensor)
    assert_type(tf.zeros((2, 3), dtype=tf.float32, device="cpu"), Tensor)
    assert_type(tf.ones(2, dtype=float, requires_grad=True), Tensor)
    assert_type(tf.full((2,), 7), Tensor)
    assert_type(tf.arange(0, 10, 2, dtype=tf.int64), Tensor)
    assert_type(tf.linspace(0, 1, 5), Tensor)
    assert_type(tf.from_numpy(np.zeros(3)), Tensor)
    assert_type(tf.zeros_like(tf.eye(3), dtype=tf.bool), Tensor)
    assert_type(tf.manual_seed(0), tf.Generator)
    assert_type(tf.randn(2, 3, generator=tf.Generator().manual_seed(1)), Tensor)
    assert_type(tf.randint(0, 10, (3,)), Tensor)
    assert_type(tf.randint(10, (3,)), Tensor)
    assert_type(tf.is_tensor(3), bool)
    tf.set_default_dtype(tf.float64)
    assert_type(tf.get_default_dtype(), tf.dtype)


def arithmetic(x: Tensor, y: Tensor) -> None:
    assert_type(x + y, Tensor)
    assert_type(1 - x, Tensor)
    assert_type(2.0 * x / y, Tensor)
    assert_type(x**2 @ y.T, Tensor)
    assert_type(-x, Tensor)
    assert_type(x * np.float32(2), Tensor)
    assert_type(tf.add(x, y, alpha=2), Tensor)
    assert_type(tf.exp(x, out=y), Tensor)
    assert_type(x.sum(dim=-1, keepdim=True), Tensor)
    assert_type(x.mean((0, 1)), Tensor)
    assert_type(x.clamp(min=0).sqrt_(), Tensor)
    assert_type(tf.where(x > 0, x, 0.0), Tensor)
    assert_type(tf.cat([x, y], dim=1), Tensor)
    assert_type(tf.concat((x, y)), Tensor)
    x += 1
    x *= y
    assert_type(x, Tensor)


def comparison(x: Tensor, y: Tensor) -> None:
    assert_type(x == y, Tensor)
    assert_type(x != 0, Tensor)
    assert_type(x < y, Tensor)
    assert_type(0 <= x, Tensor)
    assert_type((x > 0) & ~(y > 0), Tensor)
    assert_type((x == y).float().mean().item(), Any)
    assert_type(tf.allclose(x, y), bool)
    assert_type(tf.equal(x, y), bool)
    if (x == y).all():
        print(f"{float(x.sum()):.3f}")


def indexing(x: Tensor, i: int) -> None:
    assert_type(x[0], Tensor)
    assert_type(x[..., i, 1:3], Tensor)
    assert_type(x[x > 0], Tensor)
    assert_type(x[[0, 2], None], Tensor)
    x[x < 0] = 0.0
    x[:, 0] = x[:, 1]
    for row in x:
        assert_type(row, Tensor)
    first, *rest = x.unbind(0)
    assert_type(first, Tensor)
    assert_type(rest, list[Tensor])
    values, indices = x.max(dim=1)
    assert_type(indices, Tensor)
    assert_type(values, Tensor)
    assert_type(tf.max(x, 1).indices, Tensor)
    assert_type(x.max(), Tensor)
    assert_type(tf.topk(x, 3).values, Tensor)
    assert_type(tf.nonzero(x), Tensor)
    assert_type(tf.nonzero(x, as_tuple=True), tuple[Tensor, ...])


def shape(x: Tensor) -> None:
    assert_type(x.shape, tf.Size)
    assert_type(x.shape[0], int)
    assert_type(x.shape[1:], tf.Size)
    assert_type(x.size(), tf.Size)
    assert_type(x.size(-1), int)
    batch, *_ = x.shape
    assert_type(batch, int)
    assert_type(x.reshape(batch, -1), Tensor)
    assert_type(x.reshape((-1, x.shape[-1])), Tensor)
    assert_type(x.view(x.shape), Tensor)
    assert_type(x.permute(1, 0).unsqueeze(0), Tensor)
    assert_type(tf.flip(x, dims=[0]), Tensor)
    assert_type(x.flatten(1).numel(), int)
    assert_type(x.split(2), tuple[Tensor, ...])


def casts(x: Tensor) -> None:
    assert_type(x.float(), Tensor)
    assert_type(x.int().long().bool().half().double(), Tensor)
    assert_type(x.to(tf.float32), Tensor)
    assert_type(x.to("cpu", dtype=tf.bfloat16), Tensor)
    assert_type(x.to(tf.device("cpu")), Tensor)
    assert_type(x.detach().cpu().numpy().tolist(), Any)
    assert_type(x.dtype, tf.dtype)
    assert_type(x.dtype.itemsize, int)
    assert_type(x.device, tf.device)
    assert_type(np.asarray(x.numpy()).ndim, int)


class Squares(Dataset):
    """A dataset of one's own."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        x = tf.tensor([float(index)])
        return x, x * x


class Net(nn.Module):
    """A module of one's own."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(1, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.rest = nn.Sequential(nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 1))
        self.scale = nn.Parameter(tf.ones(1))
        self.register_buffer("steps", tf.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        h = F.gelu(self.norm(self.first(x)))
        return self.rest(h) * self.scale


def training(path: str) -> float:
    net = Net()
    net.train()
    loader = DataLoader(Squares(), batch_size=4, shuffle=True)
    more = DataLoader(TensorDataset(tf.randn(8, 1), tf.randn(8, 1)), batch_size=2)
    optimizer = tf.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = tf.optim.lr_scheduler.StepLR(optimizer, step_size=10)
    loss_of = nn.MSELoss()
    total = 0.0
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_of(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        schedule.step()
    net.eval()
    with tf.no_grad():
        for x, _ in more:
            total += float(F.mse_loss(net(x), x))
    for name, parameter in net.named_parameters():
        if parameter.grad is not None:
            print(name, parameter.grad.norm().item(), tuple(parameter.shape))
    tf.save(net.state_dict(), path)
    net.load_state_dict(tf.load(path))
    return total / len(loader)


@tf.no_grad()
def predict(net: Net, x: Tensor) -> int:
    return net(x).argmax().item()


@tf.inference_mode
def score(net: Net, x: Tensor) -> Tensor:
    with tf.set_grad_enabled(False):
        return net(x)


def prediction(net: Net, x: Tensor) -> Tensor:
    assert_type(predict(net, x), int)
    assert_type(score(net, x), Tensor)
    with tf.no_grad(), tf.deterministic():
        return net(x)


def derivatives(net: Net, x: Tensor) -> None:
    def loss(p: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(net, p, (x,)).square().mean()

    parameters = dict(net.named_parameters())
    for name, g in grad(loss)(parameters, x).items():
        print(name, g.shape)
    slopes = vmap(grad(tf.sin))(x)
    print(slopes.sum())
    (dx,) = tf.autograd.grad(x.square().sum(), x)
    print(dx)


class Double(tf.autograd.Function):
    """A function of one's own."""

    @staticmethod
    def forward(ctx: tf.autograd.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = 2
        return x * ctx.factor

    @staticmethod
    def backward(ctx: tf.autograd.FunctionCtx, g: Tensor) -> Tensor:
        return g * ctx.factor
