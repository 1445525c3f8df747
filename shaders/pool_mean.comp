/* Means of windows of dense planes, an invocation for each window; with GRAD the gradient, an invocation for each
 * element, which sums the shares of its windows in rising order.
 *
 * COUNTED: what a sum is divided by. 0: the divisor, 1: the elements in the plane, 2: those in the padding too.
 *
 * operands: out x
 * words: uint count; int size[3]; int outs[3]; int kernel[3]; int stride[3]; int pad[3]; number divisor
 * constants: DTYPE ADAPTIVE COUNTED GRAD
 * group: 256
 * numbers: float double
 */
#define TF_DIL(a) 1
#include "quotient.glsl"
#include "pool_window.glsl"

int tf_counted(int a, int o) {
  if (ADAPTIVE != 0u || COUNTED == 1u) {
    ivec2 w = tf_window(a, o);
    return w.y - w.x;
  }
  int start = o * p_stride(a) - p_pad(a);
  return min(start + p_kernel(a), p_size(a) + p_pad(a)) - start;
}

T tf_divided(T sum, ivec3 o) {
  precise T by = p_divisor;
  if (COUNTED != 0u) by = TF_COUNT(tf_counted(0, o.x) * tf_counted(1, o.y) * tf_counted(2, o.z));
  return tf_quotient(sum, by);
}

/* The windows [x, y) that have element e. */
ivec2 tf_windows(int a, int e) {
  if (ADAPTIVE != 0u) {
    uint n = uint(p_size(a)), m = uint(p_outs(a));
    return ivec2(int(uint(e) * m / n), int((uint(e + 1) * m + n - 1u) / n));
  }
  int last = e + p_pad(a), first = last - p_kernel(a) + 1;
  return ivec2(first > 0 ? (first + p_stride(a) - 1) / p_stride(a) : 0, min(last / p_stride(a) + 1, p_outs(a)));
}

T tf_mean(int plane, ivec3 o) {
  ivec2 w0 = tf_window(0, o.x), w1 = tf_window(1, o.y), w2 = tf_window(2, o.z);
  int base = plane * p_size(0) * p_size(1) * p_size(2);
  precise T sum = TF_NOTHING;
  for (int a = w0.x; a < w0.y; a++) {
    for (int b = w1.x; b < w1.y; b++) {
      int line = base + (a * p_size(1) + b) * p_size(2);
      for (int c = w2.x; c < w2.y; c++) sum = tf_add(sum, load_x(DTYPE, line + c));
    }
  }
  return tf_divided(sum, o);
}

T tf_shares(int plane, ivec3 e) {
  ivec2 w0 = tf_windows(0, e.x), w1 = tf_windows(1, e.y), w2 = tf_windows(2, e.z);
  int base = plane * p_outs(0) * p_outs(1) * p_outs(2);
  precise T sum = T(0);
  for (int a = w0.x; a < w0.y; a++) {
    for (int b = w1.x; b < w1.y; b++) {
      int line = base + (a * p_outs(1) + b) * p_outs(2);
      for (int c = w2.x; c < w2.y; c++) sum = tf_add(sum, tf_divided(load_x(DTYPE, line + c), ivec3(a, b, c)));
    }
  }
  return sum;
}

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  if (GRAD != 0u) {
    ivec4 k = tf_unravel(i, uint(p_size(0)), uint(p_size(1)), uint(p_size(2)));
    store_out(DTYPE, int(i), tf_shares(k.x, k.yzw));
  } else {
    ivec4 k = tf_unravel(i, uint(p_outs(0)), uint(p_outs(1)), uint(p_outs(2)));
    store_out(DTYPE, int(i), tf_mean(k.x, k.yzw));
  }
}
