/* Running sums, products and linear recurrences in float64, where a device has it.
 *
 * operands: out x f
 * words: int stride[12]; uint shape[3]; uint lines; uint n; int xstep; int ystep; int fstep
 * constants: OUT IN LINES ALONG OUT_ALONG PRODUCT LINEAR
 * group: 256
 * numbers: float
 */
#include "double.glsl"
#define TF_ACC double
#define TF_CARRY double
TF_LOAD_DOUBLE(x)
TF_LOAD_DOUBLE(f)
double tf_start() { return tf_double(uvec2(0u, PRODUCT != 0u ? 0x3ff00000u : 0x80000000u)); }
double tf_take(int at) { return double_x(IN, at); }
double tf_factor(int at) { return double_f(IN, at); }
double tf_next(inout double c, double f, double v, uint i) {
  if (LINEAR != 0u && i != 0u) c = tf_double_mul(f, c);
  c = PRODUCT != 0u ? tf_double_mul(c, v) : tf_double_add(c, v);
  return c;
}
void tf_put(int at, double v, int x) { set_word64_out(at, unpackDouble2x32(v)); }
#include "scan.glsl"
