"""Every source file of the package has its tests in the mirrored place, and no test stands alone."""

import pathlib

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "tinyfin"
BY_TABLE = "ops"
"""Its rows are tested as a table by all of tests/ops."""
TOGETHER = {
    "nn/functional/recurrent.py": "nn/test_recurrent.py",
    "core/abi.pxd": "core/test_infer.py",
    "core/signature.pyx": "ops/test_errors.py",
    "core/infer_reduce.pyx": "ops/test_values.py",
    "core/infer_index.pyx": "ops/test_values.py",
    "core/infer_window.pyx": "ops/test_hard.py",
    "core/generator.py": "test_random.py",
    "backends/cpu/conv_weight.pyx": "backends/cpu/test_conv.py",
    "backends/cpu/kernels.py": "ops/test_null.py",
    "backends/null.py": "ops/test_null.py",
    "backends/vulkan/device.py": "backends/vulkan/test_backend.py",
    "backends/vulkan/pipelines.py": "backends/vulkan/test_record.py",
    "backends/opengl/device.py": "backends/opengl/test_backend.py",
    "backends/opengl/memory.py": "backends/opengl/test_backend.py",
    "backends/vulkan/memory.py": "backends/vulkan/test_backend.py",
    "backends/opengl/programs.py": "backends/opengl/test_backend.py",
    "backends/gpu/programs.pyx": "backends/vulkan/test_record.py",
    "backends/vulkan/cooperative.py": "backends/gpu/test_matmul.py",
    "backends/gpu/compile.py": "cli/test_shaders.py",
    "backends/gpu/text.py": "cli/test_shaders.py",
    "backends/gpu/probe.pyx": "cli/test_shaders.py",
    "cli/driver.py": "cli/test_shaders.py",
    "cli/exhaustive.py": "cli/test_shaders.py",
    "cli/shader_calls.py": "cli/test_shaders.py",
    "cli/shader_calls_nn.py": "cli/test_shaders.py",
    "cli/shader_cases.py": "cli/test_shaders.py",
    "cli/shader_functions.py": "cli/test_shaders.py",
    "cli/shader_modules.py": "cli/test_shaders.py",
    "backends/gpu/launch.pyx": "ops/test_devices.py",
    "utils/checkpoint.py": "autograd/test_checkpoint.py",
    "autograd/graph.py": "autograd/test_checkpoint.py",
    "autograd/reverse.py": "autograd/test_engine.py",
    "autograd/leaves.py": "autograd/test_engine.py",
    "autograd/slow.py": "ops/test_inplace.py",
    "autograd/check.py": "autograd/test_modes.py",
    "autograd/forward_ad.py": "autograd/test_forward.py",
    "autograd/custom.py": "autograd/test_function.py",
    "autograd/function_levels.py": "autograd/test_function.py",
    "autograd/jacobians.py": "autograd/test_transforms.py",
    "autograd/levels.py": "autograd/test_transforms.py",
    "autograd/tree.py": "autograd/test_transforms.py",
    "autograd/functional.py": "autograd/test_transforms.py",
    "func.py": "autograd/test_transforms.py",
    "autograd/batching.py": "ops/test_vmaps.py",
    "autograd/batching_index.py": "ops/test_vmaps.py",
}
"""Sources whose tests stand elsewhere."""
OWN = {
    "test_stubs.py",
    "test_mirror.py",
    "test_floors.py",
    "test_generated.py",
    "test_import.py",
    "test_surface.py",
    "test_docs.py",
    "backends/cpu/test_deterministic.py",
    "backends/cpu/test_neon.py",
    "backends/gpu/test_training.py",
    "backends/vulkan/test_validation.py",
}
"""Tests of the tree itself, and of what all kernels promise together."""


def sources():
    """Files that need tests: modules with code, without headers and parts that others include."""
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE).as_posix()
        if path.suffix not in (".py", ".pyx") or path.stem.startswith("__"):
            continue
        if not name.startswith(BY_TABLE + "/"):
            yield name


def mirrored(name):
    """Where a source's tests are expected."""
    if name in TOGETHER:
        return TESTS / TOGETHER[name]
    path = TESTS / name
    return path.with_name(f"test_{path.stem}.py")


@pytest.mark.parametrize("name", list(sources()))
def test_source_has_tests(name):
    place = mirrored(name)
    assert place.exists(), f"tinyfin/{name} has no {place.relative_to(TESTS.parent)}"
    assert "def test_" in place.read_text()


def test_no_test_stands_alone():
    """Each test file belongs to a source file or folder."""
    places = {mirrored(n) for n in sources()}
    alone = []
    for path in TESTS.rglob("test_*.py"):
        name = path.relative_to(TESTS)
        source = PACKAGE / name.parent / name.stem.removeprefix("test_")
        known = path in places or name.parts[0] == BY_TABLE or name.as_posix() in OWN
        known = known or (PACKAGE.parent / name.parent / f"{source.name}.py").exists()
        if not known and not source.is_dir() and not list(source.parent.glob(source.name + ".*")):
            alone.append(str(name))
    assert not alone, f"no source belongs to {', '.join(sorted(alone))}"
