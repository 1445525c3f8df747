/* Running sums and products of integers modulo 2^64, as pairs of words.
 *
 * operands: out x
 * words: int stride[12]; uint shape[3]; uint lines; uint n; int xstep; int ystep; int fstep
 * constants: OUT IN LINES ALONG OUT_ALONG PRODUCT
 * group: 256
 * numbers: float
 */
#include "whole.glsl"
#define LINEAR 0u
#define TF_ACC uvec2
#define TF_CARRY uvec2
TF_WHOLE(out)
TF_WHOLE(x)
uvec2 tf_start() { return uvec2(PRODUCT, 0u); }
uvec2 tf_take(int at) { return whole_x(IN, at); }
uvec2 tf_factor(int at) { return uvec2(0u); }
uvec2 tf_next(inout uvec2 c, uvec2 f, uvec2 v, uint i) {
  c = PRODUCT != 0u ? tf_whole_mul(c, v) : tf_whole_add(c, v);
  return c;
}
void tf_put(int at, uvec2 v, int x) { set_whole_out(OUT, at, v); }
#include "scan.glsl"
