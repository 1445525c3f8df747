/* Sums and products of integers modulo 2^64, as pairs of words; what is not zero counted.
 *
 * TRUTH: elements count as 0 or 1.
 *
 * operands: out x
 * words: int stride[8]; uint shape[8]; uint kept; uint axes; uint outs; uint n; uint blocks; uint teams
 * constants: OUT IN LAYOUT PASSES PRODUCT TRUTH
 * group: 256
 * numbers: float
 */
#include "four_words.glsl"
#include "whole.glsl"
#define TF_ACC uvec2
TF_FOUR_WORDS(x)
TF_WHOLE(x)
TF_WHOLE(out)

uvec2 tf_unit() { return uvec2(PRODUCT, 0u); }
uvec2 tf_join(uvec2 a, uvec2 b) { return PRODUCT != 0u ? tf_whole_mul(a, b) : tf_whole_add(a, b); }
/* Whether an element of up to 32 bits is not zero. */
uvec2 tf_truth(uint w) {
  if (IN == TF_F16 || IN == TF_BF16) w &= 0x7fffu;
  if (IN == TF_F32) w &= 0x7fffffffu;
  return uvec2(w != 0u ? 1u : 0u, 0u);
}
uvec2 tf_item(int at, uint i) {
  if (TRUTH == 0u) return whole_x(IN, at);
  if (IN != TF_I64 && IN != TF_F64) return tf_truth(word_x(IN, at));
  uvec2 w = word64_x(at);
  return uvec2((w.x | (IN == TF_F64 ? w.y & 0x7fffffffu : w.y)) != 0u ? 1u : 0u, 0u);
}
void tf_items(int at, uint i, uint step, out uvec2 v[4]) {
  if (IN == TF_I64 || IN == TF_F64) {
    UNROLL for (int k = 0; k < 4; k++) v[k] = tf_item(at + k, i + step * uint(k));
    return;
  }
  uvec4 w = words4_x(IN, at >> 2);
  UNROLL for (int k = 0; k < 4; k++) v[k] = TRUTH != 0u ? tf_truth(w[k]) : tf_whole(IN, w[k]);
}
void tf_begin(uint o) {}
void tf_between(uvec2 v) {}
void tf_keep(uint u, uvec2 v) { set_word64_out(int(u), v); }
void tf_finish(uint o, uvec2 v) { set_whole_out(OUT, int(o), v); }
#include "reduce.glsl"
