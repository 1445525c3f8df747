"""Texts for OpenGL with their loops written out."""

import pytest
import samples

import tinyfin as tf
from tinyfin.backends.base import REGISTRY
from tinyfin.backends.gpu import modules
from tinyfin.backends.gpu.matmul import only_tiles
from tinyfin.backends.gpu.unroll import Unknown, Value, unrolled

SIZES = {"M": 2, "N": 3, "LAYOUT": 2}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12u", 12),
        ("4u * M + N % 2u", 9),
        ("(M + 1u) * N / 2u", 4),
        ("64u * M * 8u / (LAYOUT < 2u ? 256u : 1024u)", 1),
        ("M >= 2u ? N == 3u ? 7u : 8u : 9u", 7),
        ("N > 3u || M != 2u || LAYOUT == 2u && M < N", 1),
    ],
)
def test_values(text, number):
    assert Value(text, SIZES).number == number


@pytest.mark.parametrize(
    "text", ["K", "int(M)", "M +", "(M", "M 2u", "M & 1u", "", "M - 3u", "M / 0u", "M % (N - 3u)"]
)
def test_no_values(text):
    with pytest.raises(Unknown):
        Value(text, SIZES)


def test_loops_are_written_out():
    text = "UNROLL for (uint i = 0u; i < M; i++) for (uint x = 0u; x < 9u; x++) if (x > 1u) s[i].i += x; else t(i);"
    turn = "{{ for (uint x = 0u; x < 9u; x++) if (x > 1u) s[{0}u].i += x; else t({0}u);}}"
    assert unrolled(text, SIZES) == "{" + turn.format(0) + turn.format(1) + "}"
    text = "a; UNROLL for (int i = 1; i < 3; i++) { UNROLL for (uint j = 0u; j < M; j++) { f(i, j); } } b;"
    found = unrolled(text, SIZES)
    assert found.count("{") == found.count("}")
    calls = "".join(found.translate({ord(c): None for c in "{} "}))
    assert calls == "a;f(1,0u);f(1,1u);f(2,0u);f(2,1u);b;"


def test_conditions_that_are_known():
    text = "if (M < 2u) { a; } else if (N == 3u) b; else c; if (n) d; else if (LAYOUT > 2u) e;"
    assert "".join(unrolled(text, SIZES).split()) == "{{b;}}if(n)d;else{}"
    text = "if (M == 2u) { UNROLL for (uint i = 0u; i < M; i++) if (i < 1u) a[i]; else b[i]; }"
    calls = unrolled(text, SIZES).translate({ord(c): None for c in "{} "})
    assert calls == "a[0u];b[1u];"


def test_nothing_stays_behind_a_return():
    text = (
        "void main() { a; if (M == 2u) { if (x) return; b; return; } barrier(); } void f() { c; }"
    )
    assert (
        "".join(unrolled(text, SIZES).split())
        == "voidmain(){a;{{if(x)return;b;return;}}}voidf(){c;}"
    )
    text = "void main() { if (M == 2u) { b; if (x) return; } barrier(); }"
    assert "barrier" in unrolled(text, SIZES)


def test_other_loops_stay():
    for head in (
        "(uint i = 0u; i < K; i++)",
        "(uint i = 4u; i > 0u; i--)",
        "(int i = 0; i < 4; i += 2)",
    ):
        assert "".join(unrolled(f"UNROLL for {head} {{ f(i); }}", SIZES).split()) == (
            f"for{head}{{f(i);}}".replace(" ", "")
        )
    text = "UNROLL for (uint i = 0u; i < M; i++) { if (i == n) break; }"
    assert unrolled(text, SIZES) == text.removeprefix("UNROLL")


@pytest.fixture
def written_out():
    """Switches the device between loops and loops written out, without emulated fused multiply-add."""
    from tinyfin.backends.opengl.programs import Compiler

    device = REGISTRY["opengl"].opened_device(0)
    made = device.stream.make

    def switch(long):
        device.stream.take(Compiler(device.opened, False, long).make)

    yield switch
    device.stream.take(made)


CALLS = {
    "matmul": lambda a, b: (a @ b, a.t() @ a, b[:, :7] @ b[:, :7].t()),
    "softmax": lambda a, b: (a.softmax(1), a.logsumexp(0)),
    "layer_norm": lambda a, b: tf.nn.functional.layer_norm(a, (68,)),
    "sums": lambda a, b: (a.sum(0), a.sum(1), a.sum(), a.cumsum(1), a.argmax(1)),
    "conv2d": lambda a, b: tf.nn.functional.conv2d(
        a[:64, :64].reshape(2, 8, 16, 16), b[:64, :9].reshape(8, 8, 3, 3), padding=1
    ),
    "attention": lambda a, b: tf.nn.functional.scaled_dot_product_attention(a, a, a),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_stay_the_same(opengl, written_out, name):
    a, b = (x.to("opengl") for x in (tf.rand(130, 68), tf.rand(68, 72)))
    found = []
    try:
        for long in (False, True):
            written_out(long)
            only_tiles(1 if name == "matmul" else -1)
            found.append([samples.bits(r.cpu()) for r in samples.flat(CALLS[name](a, b))])
    finally:
        only_tiles()
    assert found[0] == found[1]
    assert any(modules.flat(i) is not None for i in modules.ASKED)
