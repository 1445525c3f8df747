"""The instruction set: chosen once, lowered by TINYFIN_ISA, the same bits on each."""

import hashlib
import pathlib
import re

import pytest
from backends.isolated import run

import tinyfin as tf

AVAILABLE = [name for name, there in tf.isa_list() if there]


def test_the_best_is_chosen():
    assert run("import tinyfin as tf; print(tf.isa_name())")[0] == [AVAILABLE[0]]
    assert tf.isa_name() in AVAILABLE and all(isinstance(there, bool) for _, there in tf.isa_list())


def test_what_a_library_is_built_with_is_asked_of_the_processor():
    root = pathlib.Path(__file__).parents[3] / "tinyfin" / "backends" / "cpu"
    built, asked = (root / "meson.build").read_text(), (root / "isa.c").read_text()
    for name in "avx2", "avx512":
        (flags,) = re.findall(rf"'{name}': \[([^\]]*)\]", built)
        for feature in re.findall(r"'-m(\w+)'", flags):
            assert f'supports("{feature}")' in asked or f"has_{feature}()" in asked, feature


@pytest.mark.parametrize("name", AVAILABLE)
def test_the_switch_chooses(name):
    out, err = run("import tinyfin as tf; print(tf.isa_name())", TINYFIN_ISA=name)
    assert out == [name] and not err


@pytest.mark.parametrize(
    "name", ["avx1024", "AVX2", *(n for n, there in tf.isa_list() if not there)]
)
def test_what_is_not_there_is_reported(name):
    out, err = run("import tinyfin as tf; print(tf.isa_name())", TINYFIN_ISA=name)
    assert out == [AVAILABLE[0]]
    assert f"TINYFIN_ISA={name} is not available here (have: {', '.join(AVAILABLE)})" in err


BITS = """
import hashlib, tinyfin as tf
tf.manual_seed(3)
x = tf.randn(70, 130)
parts = [x.exp(), x.tanh(), x.sum(0), x.sum(), x @ x.T, x.softmax(1), x.half(), x.bfloat16().float(), x.to(tf.int8), x.cumsum(1),
         x.double().log1p().nan_to_num(), x.sigmoid(), x.std(1), tf.randn(1001), x.T[::3].contiguous(), x.argsort(1),
         tf.nn.functional.conv2d(x.view(1, 1, 70, 130), tf.randn(4, 1, 3, 3))]
print(hashlib.sha256(b"".join(p.contiguous().numpy().tobytes() for p in parts)).hexdigest())
"""


def test_the_same_bits_on_each():
    seen = {
        run(BITS, TINYFIN_ISA=name, TINYFIN_THREADS=str(1 + k % 2))[0][0]
        for k, name in enumerate(AVAILABLE)
    }
    assert len(seen) == 1 and len(seen.pop()) == hashlib.sha256().digest_size * 2


COPIES = """
import numpy as np, tinyfin as tf
rng = np.random.default_rng(0)
for dtype in ("uint8", "int16", "float32", "float64"):
    for shape, order in (
        ((37, 41), (1, 0)), ((3, 64, 33), (0, 2, 1)), ((2, 20, 5, 7), (0, 2, 3, 1)),
        ((16, 16, 4), (2, 1, 0)), ((7, 40, 9), (1, 2, 0)),
    ):
        a = (rng.standard_normal(shape) * 100).astype(dtype)
        x = tf.from_numpy(a)
        for y, b in ((x, a), (x.flip(0), a[::-1]), (x[:, 1:], a[:, 1:])):
            assert np.array_equal(y.permute(*order).contiguous().numpy(), b.transpose(order)), (dtype, shape)
print("same")
"""


@pytest.mark.parametrize("name", AVAILABLE)
def test_transposed_copies(name):
    """Squares that are turned in registers, and what is left of them at the edges."""
    out, err = run(COPIES, TINYFIN_ISA=name)
    assert out == ["same"], err
