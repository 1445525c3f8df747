/* Sums, products, means and variances in float32.
 *
 * NARROW: the dtype that elements are rounded to first. SQUARED: distances from `mean`, squared.
 * FINISH: 0 as it is, 1 divided by `by`, 2 its root too.
 *
 * operands: out x mean
 * words: int stride[8]; uint shape[8]; uint kept; uint axes; uint outs; uint n; uint blocks; uint teams; float by
 * constants: OUT IN LAYOUT PASSES PRODUCT NARROW SQUARED FINISH
 * group: 256
 * numbers: float
 */
#include "four.glsl"
#define TF_ACC float
TF_FOUR(x)
uint tf_mean; /* bits: the compiler loses a precise float that is no local */
bool tf_squares = SQUARED != 0u;

float tf_unit() { return FB(PRODUCT != 0u ? 0x3f800000u : 0x80000000u); }
float tf_join(float a, float b) { return PRODUCT != 0u ? tf_mul(a, b) : tf_add(a, b); }
float tf_read(float v) {
  if (NARROW != 0u) v = tf_number(NARROW, tf_bits(NARROW, v));
  if (tf_squares) {
    precise float d = tf_sub(v, FB(tf_mean));
    return tf_mul(d, d);
  }
  return v;
}
float tf_item(int at, uint i) { return tf_read(load_x(IN, at)); }
void tf_items(int at, uint i, out float v[4]) {
  load4_x(IN, at >> 2, v);
  UNROLL for (int k = 0; k < 4; k++) v[k] = tf_read(v[k]);
}
void tf_begin(uint o) {
  if (SQUARED != 0u) tf_mean = word32_mean(int(o));
}
void tf_between(float v) {
  tf_mean = UB(vm_div(v, tf_from_int(int(p_n))));
  tf_squares = true;
}
void tf_keep(uint u, float v) { set_word32_out(int(u), UB(v)); }
void tf_finish(uint o, float v) {
  precise float r = tf_flushed(v); /* where a row has one element, nothing was added to it */
  if (p_n == 0u) r = PRODUCT != 0u ? tf_unit() : FB(0u);
  if (FINISH != 0u) r = vm_div(r, p_by);
  if (FINISH == 2u) r = vm_sqrt(r);
  store_out(OUT, int(o), r);
}
#include "reduce.glsl"
