/* Elements chosen by an index along one axis: the index's places in order; `x_stride` is 0 along that axis.
 *
 * operands: out x index fault
 * words: uint count; uint shape[3]; int index_stride[4]; int x_stride[4]; int size; int step
 * constants: UNIT INDEX
 * group: 256
 */
#include "place.glsl"
#include "units.glsl"
#define TF_GATHER 1u
TF_UNITS(out)
TF_UNITS(x)

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  ivec4 k = tf_unravel(i, p_shape(0), p_shape(1), p_shape(2));
  int from = tf_dot(k, p_index_stride(0), p_index_stride(1), p_index_stride(2), p_index_stride(3));
  int at = tf_dot(k, p_x_stride(0), p_x_stride(1), p_x_stride(2), p_x_stride(3));
  int place = tf_place(INDEX, from, p_size, false, TF_GATHER);
  uvec4 v = uvec4(0u);
  if (place >= 0) v = pick_x(at + place * p_step);
  place_out(int(i), v);
}
