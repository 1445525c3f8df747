/* Running sums, products and linear recurrences of floats.
 *
 * operands: out x f
 * words: int stride[12]; uint shape[3]; uint lines; uint n; int xstep; int ystep; int fstep
 * constants: OUT IN LINES ALONG OUT_ALONG PRODUCT LINEAR
 * group: 256
 * numbers: float double
 */
#define TF_ACC T
#define TF_CARRY T
T tf_start() { return PRODUCT != 0u ? T(1) : TF_NOTHING; }
T tf_take(int at) { return load_x(IN, at); }
T tf_factor(int at) { return load_f(IN, at); }
T tf_next(inout T c, T f, T v, uint i) {
  if (LINEAR != 0u && i != 0u) c = tf_mul(f, c);
  c = PRODUCT != 0u ? tf_mul(c, v) : tf_add(c, v);
  return c;
}
void tf_put(int at, T v, int x) { store_out(OUT, at, tf_flushed(v)); }
#include "scan.glsl"
