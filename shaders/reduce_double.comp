/* Sums, products, means and variances in float64, where a device has it.
 *
 * SQUARED: distances from `mean`, squared. FINISH: 0 as it is, 1 divided by `by`, 2 its root too.
 *
 * operands: out x mean
 * words: int stride[8]; uint shape[8]; uint kept; uint axes; uint outs; uint n; uint blocks; uint teams; uint by[2]
 * constants: OUT IN LAYOUT PASSES PRODUCT NARROW SQUARED FINISH
 * group: 256
 * numbers: float
 */
#include "double.glsl"
#define TF_ACC double
TF_LOAD_DOUBLE(x)
uvec2 tf_mean;
bool tf_squares = SQUARED != 0u;

double tf_unit() { return tf_double(uvec2(0u, PRODUCT != 0u ? 0x3ff00000u : 0x80000000u)); }
double tf_join(double a, double b) { return PRODUCT != 0u ? tf_double_mul(a, b) : tf_double_add(a, b); }
double tf_item(int at, uint i) {
  precise double v = double_x(IN, at);
  if (!tf_squares) return v;
  precise double d = tf_double_sub(v, tf_double(tf_mean));
  return tf_double_mul(d, d);
}
void tf_items(int at, uint i, out double v[4]) {
  UNROLL for (int k = 0; k < 4; k++) v[k] = tf_item(at + k, i + uint(k));
}
void tf_begin(uint o) {
  if (SQUARED != 0u) tf_mean = word64_mean(int(o));
}
void tf_between(double v) {
  precise double m = v / double(p_n);
  tf_mean = unpackDouble2x32(m);
  tf_squares = true;
}
void tf_keep(uint u, double v) { set_word64_out(int(u), unpackDouble2x32(v)); }
void tf_finish(uint o, double v) {
  precise double r = v;
  if (p_n == 0u) r = PRODUCT != 0u ? tf_unit() : tf_double(uvec2(0u));
  if (FINISH != 0u) r = r / tf_double(uvec2(p_by(0), p_by(1)));
  if (FINISH == 2u) r = sqrt(r);
  set_word64_out(int(o), unpackDouble2x32(r));
}
#include "reduce.glsl"
