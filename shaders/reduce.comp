/* Sums, products, means and variances of floats.
 *
 * NARROW: the dtype that elements are rounded to first. SQUARED: distances from `mean`, squared.
 * FINISH: 0 as it is, 1 divided by `by`, 2 its root too.
 *
 * operands: out x mean
 * words: int stride[8]; uint shape[8]; uint kept; uint axes; uint outs; uint n; uint blocks; uint teams; number by
 * constants: OUT IN LAYOUT PASSES PRODUCT NARROW SQUARED FINISH
 * group: 256
 * numbers: float double
 */
#include "four.glsl"
#define TF_ACC T
TF_FOUR(x)
TF_UINT tf_mean; /* bits: the compiler loses a precise float that is no local */
bool tf_squares = SQUARED != 0u;

T tf_unit() { return PRODUCT != 0u ? T(1) : TF_NOTHING; }
T tf_join(T a, T b) { return PRODUCT != 0u ? tf_mul(a, b) : tf_add(a, b); }
T tf_read(T v) {
#ifdef TF_FLOAT
  if (NARROW != 0u) v = tf_number(NARROW, tf_bits(NARROW, v));
#endif
  if (tf_squares) {
    precise T d = tf_sub(v, VALUE(tf_mean));
    return tf_mul(d, d);
  }
  return v;
}
T tf_item(int at, uint i) { return tf_read(load_x(IN, at)); }
void tf_items(int at, uint i, uint step, out T v[4]) {
  load4_x(IN, at >> 2, v);
  UNROLL for (int k = 0; k < 4; k++) v[k] = tf_read(v[k]);
}
void tf_begin(uint o) {
  if (SQUARED != 0u) tf_mean = BITS(load_mean(TF_OWN, int(o)));
}
void tf_between(T v) {
  tf_mean = BITS(vm_div(v, TF_COUNT(p_n)));
  tf_squares = true;
}
void tf_keep(uint u, T v) { store_out(TF_OWN, int(u), v); }
void tf_finish(uint o, T v) {
  precise T r = tf_flushed(v); /* where a row has one element, nothing was added to it */
  if (p_n == 0u) r = PRODUCT != 0u ? tf_unit() : T(0);
  if (FINISH != 0u) r = vm_div(r, p_by);
  if (FINISH == 2u) r = vm_sqrt(r);
  store_out(OUT, int(o), r);
}
#include "reduce.glsl"
