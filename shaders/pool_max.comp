/* The largest element of each window of dense planes, and its place in the plane: an invocation for each window.
 *
 * Numbers are compared as integers of their order; a NaN is above all, and the last one of a window is taken.
 *
 * operands: out places x
 * words: uint count; int size[3]; int outs[3]; int kernel[3]; int stride[3]; int pad[3]; int dil[3]
 * constants: DTYPE ADAPTIVE
 * group: 256
 * numbers: bits
 */
#define TF_DIL(a) p_dil(a)
#include "pool_window.glsl"
#define TF_SHIFT (DTYPE >= TF_F32 ? 0u : 16u)
#define TF_INFINITY (DTYPE == TF_F64 ? 0x7ff00000 : DTYPE == TF_F16 ? 0x7c000000 : 0x7f800000)
#define TF_LOWEST int(0x80000000u)
#define TF_HIGHEST 0x7fffffff

/* Between an element's bits, low word and what stands at the top of the high one, and its place in the order. */
uvec2 tf_turn(uvec2 b) {
  uint sign = uint(int(b.y) >> 31);
  return uvec2(b.x ^ sign, b.y ^ (sign & 0x7fffffffu));
}

uvec2 tf_key(uvec2 b) {
  b.y <<= TF_SHIFT;
  int size = int(b.y) & TF_HIGHEST;
  return size > TF_INFINITY || (size == TF_INFINITY && b.x != 0u) ? uvec2(0u, uint(TF_HIGHEST)) : tf_turn(b);
}

uvec2 tf_element(uvec2 key) {
  if (int(key.y) == TF_LOWEST) key = uvec2(0u, uint(TF_INFINITY) | 0x80000000u);
  else if (key.y == uint(TF_HIGHEST)) key = uvec2(0u, DTYPE == TF_F64 ? 0x7ff80000u : DTYPE == TF_F16 ? 0x7e000000u : 0x7fc00000u);
  else key = tf_turn(key);
  return uvec2(key.x, key.y >> TF_SHIFT);
}

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  ivec4 k = tf_unravel(i, uint(p_outs(0)), uint(p_outs(1)), uint(p_outs(2)));
  ivec2 w0 = tf_window(0, k.y), w1 = tf_window(1, k.z), w2 = tf_window(2, k.w);
  int plane = k.x * p_size(0) * p_size(1) * p_size(2), place = 0;
  uvec2 most = uvec2(0u, 0x80000000u);
  for (int a = w0.x; a < w0.y; a += p_dil(0)) {
    for (int b = w1.x; b < w1.y; b += p_dil(1)) {
      int line = (a * p_size(1) + b) * p_size(2);
      for (int c = w2.x; c < w2.y; c += p_dil(2)) {
        int at = plane + line + c;
        uvec2 key = tf_key(DTYPE == TF_F64 ? word64_x(at) : uvec2(0u, word_x(DTYPE, at)));
        bool take = int(key.y) > int(most.y) || (key.y == most.y && key.x > most.x) || key.y == uint(TF_HIGHEST);
        most = uvec2(take ? key.x : most.x, take ? key.y : most.y);
        place = take ? line + c : place;
      }
    }
  }
  most = tf_element(most);
  if (DTYPE == TF_F64) set_word64_out(int(i), most);
  else set_word_out(DTYPE, int(i), most.y);
  set_word64_places(int(i), uvec2(uint(place), 0u));
}
