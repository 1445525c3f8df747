"""Programs: texts of the package's modules, compiled by the driver when first asked for."""

from __future__ import annotations

from tinyfin.backends.gpu import modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tinyfin.backends.opengl.device import Opened

NOWHERE = 0xFFFF
"""Place of a uniform that a program does not use."""


class Compiler:
    """Maker of one device's programs.

    Args:
        soft: emulate fused multiply-add.
        long: write loops out; software compiles short texts faster, and to the same code.
    """

    def __init__(self, opened: Opened, soft: bool = False, long: bool | None = None) -> None:
        self.opened, self.soft = opened, soft
        self.long = opened.physical.kind == "hardware" if long is None else long
        self.programs: list[Any] = []
        self.made: dict[tuple[int, tuple[int, ...]], int] = {}

    def make(self, shader: int, constants: tuple[int, ...]) -> int:
        """The handle of a module's program: its number, and the places of its parameters above."""
        constants = modules.telling(shader, constants, behind=False)
        key = (shader, constants)
        if key not in self.made:
            text = modules.glsl(shader, constants, self.soft, self.long)
            self.made[key] = self.opened.stream.call(lambda: self.compiled(shader, text))
        return self.made[key]

    def compiled(self, shader: int, text: str) -> int:
        """A handle; on the context's thread."""
        try:
            program = self.opened.context.compute_shader(text)
        except Exception as error:  # moderngl's own kind, without a name of its own
            name = modules.shaders()[shader]["name"]
            raise RuntimeError(
                f"opengl: {self.opened.physical.name} does not compile {name}: {error}"
            ) from None
        self.programs.append(program)
        at, words = (
            NOWHERE if (uniform := program.get(name, None)) is None else uniform.location
            for name in ("tf_gl_at", "tf_gl_w")
        )
        return program.glo | at << 32 | words << 48
