/* The first k items of each line as the elements themselves and their places. Results are dense; `inner` is how
 * far elements of a line lie apart in them, and lines are in row-major order of the other axes.
 *
 * operands: values places items x
 * words: uint count; uint k; uint inner; uint kept; uint shape[3]; int stride[4]; int step
 * constants: UNIT WIDE
 * group: 256
 */
#include "units.glsl"
#include "sort.glsl"
TF_UNITS(values)
TF_UNITS(x)
TF_ITEMS(items)

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  uint rest = i / p_inner, outer = rest / p_k;
  uint line = outer * p_inner + (i - rest * p_inner);
  uint place = item_items(int(line * p_kept + (rest - outer * p_k))).place;
  ivec4 k = tf_unravel(line, p_shape(0), p_shape(1), p_shape(2));
  int at = tf_dot(k, p_stride(0), p_stride(1), p_stride(2), p_stride(3)) + int(place) * p_step;
  place_values(int(i), pick_x(at));
  set_word64_places(int(i), uvec2(place, 0u));
}
