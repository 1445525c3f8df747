/* Dropout: x scale where the element's word of the draw is not below `limit`, else 0; all 0 where `all` is set.
 *
 * Elements are numbered in row-major order; LAYOUT: 0 x has strides, 1 dense, 2 dense with four elements at a time.
 *
 * operands: out x
 * words: uint count; uint seed[2]; uint draw[2]; uint limit; uint all; number scale; uint shape[8]; int stride[8]
 * constants: DTYPE LAYOUT
 * group: 256
 * numbers: float double
 */
#include "philox.glsl"
#include "four.glsl"
TF_FOUR(out)
TF_FOUR(x)

T dropped(uint w, T x) {
  precise T v = tf_mul(x, p_scale);
  return VALUE(p_all == 0u && w >= p_limit ? BITS(v) : TF_UINT(0));
}

int place(uint i) {
  if (LAYOUT != 0u) return int(i);
  int at = 0;
  for (int d = 7; d >= 0; d--) {
    at += int(i % p_shape(d)) * p_stride(d);
    i /= p_shape(d);
  }
  return at;
}

void main() {
  uint block = tf_thread(), first = 4u * block;
  if (first >= p_count) return;
  uvec4 w = tf_philox(uvec2(block, 0u), uvec2(p_draw(0), p_draw(1)), uvec2(p_seed(0), p_seed(1)));
  if (LAYOUT == 2u && first + 4u <= p_count) {
    precise T v[4];
    load4_x(DTYPE, int(block), v);
    UNROLL for (int k = 0; k < 4; k++) v[k] = dropped(w[k], v[k]);
    store4_out(DTYPE, int(block), v);
    return;
  }
  for (uint k = 0u; k < 4u && first + k < p_count; k++)
    store_out(DTYPE, int(first + k), dropped(w[k], load_x(DTYPE, place(first + k))));
}
