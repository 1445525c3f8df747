"""Bytes across devices, and running on the CPU what a device lacks."""

from tinyfin import config
from tinyfin.backends.base import backend_of, warn
from tinyfin.core import tensor
from tinyfin.core.device import device_object
from tinyfin.ops.row import F

Tensor = tensor.Tensor
CPU, NULL, GRAD = 0, 1, 1


def window(t):
    """(host copy of the part of its storage that a tensor spans, the tensor's window over it, the part's
    offset in bytes)."""
    if t.device.slot == NULL:
        raise RuntimeError(
            "to: a tensor on null has a shape and no values; there is nothing to read or move"
        )
    first, n = tensor.reach_of(t)
    base = tensor.empty_tensor((n,), t.dtype, CPU, 0, "to")
    offset = first * t.dtype.itemsize
    if n:
        block, _ = tensor.block_of(t)
        backend_of(t.device.slot).read(block, offset, tensor.memory_of(base))
    return base, tensor.window_on_host(t, base, first), offset


def download(t):
    """A row-major tensor on the host with a device tensor's elements."""
    if tensor.reach_of(t)[1] > 2 * t.numel() and F.contiguous_copy.has_kernel(t.device.slot):
        t = F.contiguous_copy(t)
    return window(t)[1].contiguous()


def upload(host, device):
    """A row-major tensor on the device with a host tensor's elements."""
    out = tensor.empty_tensor(host.shape, host.dtype, device.slot, device.index or 0, "to")
    if out.numel():
        block, _ = tensor.block_of(out)
        backend_of(device.slot).write(block, 0, tensor.memory_of(host.contiguous()))
    return out


def moved(t, slot, index):
    """The elements on another device, without history."""
    device = device_object(slot, index)
    t = t.detach()
    if slot == NULL:
        return tensor.empty_tensor(t.shape, t.dtype, slot, index, "to")
    host = t if t.device.slot == CPU else download(t)
    return host if slot == CPU else upload(host, device)


def transfer(t, slot, index):
    """A copy on another device; gradients come back the same way."""
    home = t.device

    def backward(grads, node):
        return (transfer(grads[0], home.slot, home.index or 0),)

    old = tensor.set_mode(0, GRAD)
    try:
        out = moved(t, slot, index)
    finally:
        tensor.set_mode(old, GRAD)
    if t.requires_grad and old & GRAD:
        tensor.attach(out, tensor.python_node("to", backward, (t,), (out,)), 0)
    return out


def copy_elsewhere(x, src):
    """x.copy_(src) on a device that has no kernel for copies: by way of the host."""
    base, there, offset = window(x)
    tensor.assign(there, moved(src, CPU, 0))
    if base.numel():
        block, _ = tensor.block_of(x)
        backend_of(x.device.slot).write(block, offset, tensor.memory_of(base))


def on_host(t):
    """The elements on the host, without history and without asking a kernel of the device."""
    t = t.detach()
    return t if t.device.slot == CPU else window(t)[1].contiguous()


def fall_back(op, args, attrs):
    """Runs on the CPU what a device lacks, with one warning for each operation and device."""
    device = next(a.device for a in args if isinstance(a, Tensor))
    if device.slot == CPU:
        raise NotImplementedError(f"{op.name}: there is no kernel for it on the cpu")
    lacks = f"backend {device} has no kernel for it"
    if op.has_kernel(device.slot):  # which refused what came
        lacks += f" with {', '.join(sorted({a.dtype.name for a in args if isinstance(a, Tensor)}))}"
    if not config.FALLBACK:
        raise RuntimeError(
            f"{op.name}: {lacks} and TINYFIN_FALLBACK=0 forbids running it on the cpu"
        )
    warn(f"{op.name} runs on the cpu: {lacks} (TINYFIN_FALLBACK=0 makes this an error)")
    old = tensor.set_mode(0, GRAD)
    try:
        host = tuple(on_host(a) if isinstance(a, Tensor) else a for a in args)
        result = op.run_with(host, attrs)
        if op.mutates:
            for written, a, h in zip(op.mutates, args, host):
                if written and a is not None:
                    copy_elsewhere(a, h)
            return None
        slot, index = device.slot, device.index or 0
        if isinstance(result, tuple):
            return tuple(moved(r, slot, index) for r in result)
        return moved(result, slot, index)
    finally:
        tensor.set_mode(old, GRAD)


tensor.install_hook("fallback", fall_back)
tensor.install_hook("copy_elsewhere", copy_elsewhere)
