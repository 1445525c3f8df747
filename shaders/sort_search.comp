/* How many elements of sorted lines are below each value, or on the right not above it. Compared as float64 where
 * one of them is a float, else as 64-bit integers; NaN is greatest.
 *
 * `one` line for all values. NUMBER: the value is a float64 or a 64-bit integer in the address's place.
 *
 * operands: out line value
 * words: uint count; uint n; uint values; uint lines[3]; int line_step[4]; int step; uint shape[3]; int stride[4];
 *   uint right; uint one
 * constants: LINE VALUE FLOATS NUMBER
 * group: 256
 */
#include "conversions.glsl"
/* A 64-bit integer as float64, rounded once. */
uvec2 tf_long_to_f64(uvec2 w) {
  uint sign = w.y & 0x80000000u;
  if (sign != 0u) w = uvec2(0u - w.x, ~w.y + (w.x == 0u ? 1u : 0u));
  if (w.x == 0u && w.y == 0u) return uvec2(0u);
  int top = w.y != 0u ? 32 + findMSB(w.y) : findMSB(w.x), left = 52 - top;
  uint exponent = uint(top + 1022) << 20; /* the leading bit adds one to it */
  if (left >= 32) {
    w = uvec2(0u, w.x << uint(left - 32));
  } else if (left > 0) {
    w = uvec2(w.x << uint(left), (w.y << uint(left)) | (w.x >> uint(32 - left)));
  } else if (left < 0) {
    uint cut = uint(-left), rest = w.x & ((1u << cut) - 1u), half_ = 1u << (cut - 1u);
    w = uvec2((w.x >> cut) | (w.y << (32u - cut)), w.y >> cut);
    if (rest > half_ || (rest == half_ && (w.x & 1u) != 0u)) {
      w.x++;
      w.y += w.x == 0u ? 1u : 0u;
    }
  }
  return uvec2(w.x, sign | (w.y + exponent));
}
/* Half a float's bits as a float's. */
uint tf_widened(uint dtype, uint u) {
  if (dtype == TF_BF16) return u << 16;
  uint sign = (u & 0x8000u) << 16, a = u & 0x7fffu;
  if (a >= 0x7c00u) return sign | 0x7f800000u | ((a & 0x3ffu) << 13);
  if (a >= 0x400u) return sign | ((a << 13) + 0x38000000u);
  if (a == 0u) return sign;
  int top = findMSB(a);
  return sign | (uint(103 + top) << 23) | ((a << uint(23 - top)) & 0x7fffffu);
}
/* An element as an unsigned number in the order of the values: equal values, NaN too, have one. */
uvec2 tf_order(uint dtype, uvec2 w) {
  if (FLOATS == 0u) return uvec2(w.x, w.y ^ 0x80000000u);
  if (dtype < TF_F16) {
    w = tf_long_to_f64(w);
  } else if (dtype < TF_F64) {
    uint u = dtype == TF_F32 ? w.x : tf_widened(dtype, w.x);
    if (FLUSH != 0u && (u & 0x7f800000u) == 0u) u &= 0x80000000u;
    w = tf_f32_to_f64(u);
  }
  uint magnitude = w.y & 0x7fffffffu;
  if (magnitude > 0x7ff00000u || (magnitude == 0x7ff00000u && w.x != 0u)) return uvec2(0xffffffffu);
  if (magnitude == 0u && w.x == 0u) w.y = 0u;
  if (FLUSH != 0u && magnitude < 0x100000u) w = uvec2(0u);
  uint flip = uint(int(w.y) >> 31);
  return uvec2(w.x ^ flip, w.y ^ (flip | 0x80000000u));
}
uvec2 tf_signed(uint u) { return uvec2(u, int(u) < 0 ? 0xffffffffu : 0u); }
uvec2 tf_element(int i) {
  if (LINE == TF_I64 || LINE == TF_F64) return tf_order(LINE, word64_line(i));
  return tf_order(LINE, tf_signed(word_line(LINE, i)));
}
uvec2 tf_value(int i) {
  if (NUMBER != 0u) return tf_order(VALUE, at_value());
  if (VALUE == TF_I64 || VALUE == TF_F64) return tf_order(VALUE, word64_value(i));
  return tf_order(VALUE, tf_signed(word_value(VALUE, i)));
}

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  ivec4 k = tf_unravel(i, p_shape(0), p_shape(1), p_shape(2));
  uvec2 v = tf_value(tf_dot(k, p_stride(0), p_stride(1), p_stride(2), p_stride(3)));
  int base = 0;
  if (p_one == 0u) {
    k = tf_unravel(i / p_values, p_lines(0), p_lines(1), p_lines(2));
    base = tf_dot(k, p_line_step(0), p_line_step(1), p_line_step(2), p_line_step(3));
  }
  uint low = 0u, high = p_n;
  while (low < high) {
    uint middle = (low + high) >> 1;
    uvec2 e = tf_element(base + int(middle) * p_step);
    bool below = e.y != v.y ? e.y < v.y : p_right != 0u ? e.x <= v.x : e.x < v.x;
    if (below) low = middle + 1u;
    else high = middle;
  }
  set_word64_out(int(i), uvec2(low, 0u));
}
