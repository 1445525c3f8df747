/* A window of x in a border of one value: the units of the result in order.
 *
 * operands: out x value
 * words: uint count; uint shape[3]; int before[4]; uint window[4]; int stride[4]
 * constants: UNIT
 * group: 256
 */
#include "units.glsl"
TF_UNITS(out)
TF_UNITS(x)
TF_UNITS(value)

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  ivec4 k = tf_unravel(i, p_shape(0), p_shape(1), p_shape(2));
  k -= ivec4(p_before(0), p_before(1), p_before(2), p_before(3));
  uvec4 window = uvec4(p_window(0), p_window(1), p_window(2), p_window(3));
  bool inside = all(lessThan(uvec4(k), window));
  uvec4 v = value_value();
  if (inside) v = pick_x(tf_dot(k, p_stride(0), p_stride(1), p_stride(2), p_stride(3)));
  place_out(int(i), v);
}
