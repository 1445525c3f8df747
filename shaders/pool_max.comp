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
#define TF_SHIFT (DTYPE == TF_F32 ? 0u : 16u)
#define TF_INFINITY (DTYPE == TF_F16 ? 0x7c000000 : 0x7f800000)
#define TF_LOWEST int(0x80000000u)
#define TF_HIGHEST 0x7fffffff

/* Between an element's bits, at the top of a word, and its place in the order. */
int tf_turn(int b) { return b ^ ((b >> 31) & TF_HIGHEST); }

int tf_key(uint bits) {
  int b = int(bits << TF_SHIFT);
  return (b & TF_HIGHEST) > TF_INFINITY ? TF_HIGHEST : tf_turn(b);
}

uint tf_element(int key) {
  if (key == TF_LOWEST) return (uint(TF_INFINITY) | 0x80000000u) >> TF_SHIFT;
  if (key == TF_HIGHEST) return (DTYPE == TF_F16 ? 0x7e000000u : 0x7fc00000u) >> TF_SHIFT;
  return uint(tf_turn(key)) >> TF_SHIFT;
}

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  ivec4 k = tf_unravel(i, uint(p_outs(0)), uint(p_outs(1)), uint(p_outs(2)));
  ivec2 w0 = tf_window(0, k.y), w1 = tf_window(1, k.z), w2 = tf_window(2, k.w);
  int plane = k.x * p_size(0) * p_size(1) * p_size(2), most = TF_LOWEST, place = 0;
  for (int a = w0.x; a < w0.y; a += p_dil(0)) {
    for (int b = w1.x; b < w1.y; b += p_dil(1)) {
      int line = (a * p_size(1) + b) * p_size(2);
      for (int c = w2.x; c < w2.y; c += p_dil(2)) {
        int key = tf_key(word_x(DTYPE, plane + line + c));
        bool take = key > most || key == TF_HIGHEST;
        most = take ? key : most;
        place = take ? line + c : place;
      }
    }
  }
  set_word_out(DTYPE, int(i), tf_element(most));
  set_word64_places(int(i), uvec2(uint(place), 0u));
}
