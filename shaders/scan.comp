/* Running sums, products and linear recurrences in float32.
 *
 * operands: out x f
 * words: int stride[12]; uint shape[3]; uint lines; uint n; int xstep; int ystep; int fstep
 * constants: OUT IN LINES ALONG OUT_ALONG PRODUCT LINEAR
 * group: 256
 * numbers: float
 */
#define TF_ACC float
#define TF_CARRY float
float tf_start() { return FB(PRODUCT != 0u ? 0x3f800000u : 0x80000000u); }
float tf_take(int at) { return load_x(IN, at); }
float tf_factor(int at) { return load_f(IN, at); }
float tf_next(inout float c, float f, float v, uint i) {
  if (LINEAR != 0u && i != 0u) c = tf_mul(f, c);
  c = PRODUCT != 0u ? tf_mul(c, v) : tf_add(c, v);
  return c;
}
void tf_put(int at, float v, int x) { store_out(OUT, at, tf_flushed(v)); }
#include "scan.glsl"
