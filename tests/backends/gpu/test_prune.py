"""Texts without the functions that nothing reaches."""

import pytest

from tinyfin.backends.gpu import modules
from tinyfin.backends.gpu.prune import pieces, pruned

TEXT = """
float vm_a(float x) { return x; }
FN float vm_b(float x) {
  if (x > 0.0) { return vm_a(x); }
  return x;
}
#define TF_C(x) vm_c(x)
float vm_c(float x) { return x; }
float vm_d(float x) { return vm_d0(x); }
float vm_d0(float x) { return x; }
float vm_e(float x) { return x; }
void main() { vm_b(1.0); }
"""


def test_what_is_reached_stays():
    text = pruned(TEXT)
    left = [n for n in ("a", "b", "c", "d", "d0", "e") if f"vm_{n}(float" in text]
    assert left == ["a", "b", "c"]
    assert "".join(part for _, part in pieces(TEXT)) == TEXT
    assert text.count("{") == text.count("}") and "void main()" in text


def test_definitions_that_conditions_split_are_kept():
    text = """#ifdef A
float vm_x(float a) {
#else
float vm_x(int a) {
#endif
  return 1.0;
}
float vm_y(float a) { return a; }
void main() { }
"""
    assert pruned(text) == text


@pytest.mark.skipif(not modules.FILE.exists(), reason="this build has no shaders")
def test_modules():
    text = modules.glsl(modules.shader("elementwise_exp_f32"), [0, 8, 8, 8, 8, 8, 1], False)
    assert "vm_exp(" in text and "vm_lgamma(" not in text
