/* Convolutions and gradients of their inputs, an invocation for each result: where few rows share what is read.
 *
 * STRIDED: whether a stride is more than 1.
 *
 * operands: out a b bias
 * words: uint images; uint groups; uint rows; uint chans; int outs[3]; int size[3]; int kernel[3]; int stride[3];
 *   int pad[3]; int dil[3]; int b_image; int b_channel
 * constants: DTYPE MODE BIASED STRIDED
 * group: 256
 * numbers: float double
 */
#include "conv_place.glsl"

/* Where tap r of axis d reads for a place, less than 0 where it reads nothing; MODE 1: which result it reached. */
int tf_tap(int d, int place, int r) {
  if (MODE == 0u) {
    int at = place * p_stride(d) - p_pad(d) + r * p_dil(d);
    return at < p_size(d) ? at : -1;
  }
  int at = place + p_pad(d) - r * p_dil(d);
  if (STRIDED != 0u) {
    if (at < 0 || at % p_stride(d) != 0) return -1;
    at /= p_stride(d);
  }
  return at < p_outs(d) ? at : -1;
}

void main() {
  uint i = tf_thread(), rows = p_groups * p_rows;
  ivec4 k = tf_places(i, MODE == 1u ? tf_size() : tf_outs());
  uint row = uint(k.x) % rows, image = uint(k.x) / rows, group = row / p_rows;
  if (image >= p_images) return;
  ivec3 limits = tf_limits();
  int a = 0, taps = tf_volume(tf_kernel()), leap = 0;
  if (MODE == 0u) {
    a = int(row * p_chans) * taps;
  } else {
    a = int(group * p_chans * p_rows + row % p_rows) * taps;
    leap = int(p_rows - 1u) * taps; /* from the end of one channel's taps to the next channel's */
  }
  precise T sum = T(0);
  for (uint c = 0u; c < p_chans; c++) {
    int plane = int(image) * p_b_image + int(group * p_chans + c) * p_b_channel;
    for (int r0 = 0; r0 < p_kernel(0); r0++) {
      int at0 = tf_tap(0, k.y, r0);
      for (int r1 = 0; r1 < p_kernel(1); r1++) {
        int at1 = tf_tap(1, k.z, r1), line = plane + (at0 * limits.y + at1) * limits.z;
        for (int r2 = 0; r2 < p_kernel(2); r2++) {
          int at2 = tf_tap(2, k.w, r2);
          precise T v = T(0);
          bool inside = at0 >= 0 && at1 >= 0 && at2 >= 0;
          if (inside) v = load_b(DTYPE, line + at2);
          if (MODE == 0u || inside) sum = tf_link(load_a(DTYPE, a), v, sum);
          a++;
        }
      }
    }
    a += leap;
  }
  if (BIASED != 0u) sum = tf_add(sum, load_bias(DTYPE, int(row)));
  store_out(DTYPE, int(i), sum);
}
