"""Layers that change the size of pictures."""

from __future__ import annotations

from tinyfin.core.tensor import Tensor
from tinyfin.nn import functional
from tinyfin.nn.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Upsample(Module):
    """Changes the size of signals, pictures or volumes: (N, C, ...) with one to three sizes.

    Args:
        size: the new sizes.
        scale_factor: or what the sizes are multiplied by.
        mode: "nearest", "linear", "bilinear", "bicubic" or "trilinear".
        align_corners: let the corners of input and output fall together.
        recompute_scale_factor: work with the factor of the rounded sizes.

    Raises:
        ValueError: in a call, the arguments do not fit the mode or the input.

    >>> nn.Upsample(scale_factor=2)(tf.tensor([[[1.0, 2.0]]])).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(float(f) for f in scale_factor)
        else:
            self.scale_factor = None if scale_factor is None else float(scale_factor)

    def forward(self, input: Tensor) -> Tensor:
        """Changes the size."""
        return functional.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """The options."""
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` by the nearest pixel, for (N, C, H, W).

    >>> tuple(nn.UpsamplingNearest2d(scale_factor=2)(tf.ones(1, 1, 2, 2)).shape)
    (1, 1, 4, 4)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` between pixels, corners together, for (N, C, H, W).

    >>> tuple(nn.UpsamplingBilinear2d(scale_factor=2)(tf.ones(1, 1, 2, 2)).shape)
    (1, 1, 4, 4)
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Rearranges (..., C r r, H, W) to (..., C, H r, W r).

    Raises:
        RuntimeError: in a call, the channels do not divide by the square of the factor.

    >>> tuple(nn.PixelShuffle(2)(tf.ones(1, 4, 3, 3)).shape)
    (1, 1, 6, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Rearranges."""
        return functional.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Rearranges (..., C, H r, W r) to (..., C r r, H, W).

    Raises:
        RuntimeError: in a call, height or width does not divide by the factor.

    >>> tuple(nn.PixelUnshuffle(2)(tf.ones(1, 1, 6, 6)).shape)
    (1, 4, 3, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Rearranges."""
        return functional.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"
