/* A tensor moved into a part of another, in units.
 *
 * operands: out x
 * words: uint count; uint shape[3]; int out_step[4]; int x_step[4]
 * constants: UNIT
 * group: 256
 */
#include "units.glsl"
TF_UNITS(out)
TF_UNITS(x)

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  ivec4 k = tf_unravel(i, p_shape(0), p_shape(1), p_shape(2));
  uvec4 v = pick_x(tf_dot(k, p_x_step(0), p_x_step(1), p_x_step(2), p_x_step(3)));
  place_out(tf_dot(k, p_out_step(0), p_out_step(1), p_out_step(2), p_out_step(3)), v);
}
