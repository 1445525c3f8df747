/* The part of matrices on and below a diagonal, or on and above it, zeros elsewhere.
 *
 * operands: out x
 * words: uint count; uint shape[3]; int stride[4]; int diagonal
 * constants: UNIT UPPER
 * group: 256
 */
#include "units.glsl"
TF_UNITS(out)
TF_UNITS(x)

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  ivec4 k = tf_unravel(i, p_shape(0), p_shape(1), p_shape(2));
  int over = k.w - k.z - p_diagonal;
  uvec4 v = uvec4(0u);
  if (UPPER != 0u ? over >= 0 : over <= 0) v = pick_x(tf_dot(k, p_stride(0), p_stride(1), p_stride(2), p_stride(3)));
  place_out(int(i), v);
}
