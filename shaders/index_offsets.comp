/* Where each tuple of indices points: the sum of its places times strides, over one dispatch for each tensor
 * of indices. TF_NOWHERE where one of them is out of range.
 *
 * operands: offsets index fault
 * words: uint count; uint shape[3]; int stride[4]; int size; int step; uint operation; uint wraps; uint further
 * constants: INDEX
 * group: 256
 */
#include "place.glsl"
#define TF_NOWHERE 0x80000000u

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  ivec4 k = tf_unravel(i, p_shape(0), p_shape(1), p_shape(2));
  int at = tf_place(INDEX, tf_dot(k, p_stride(0), p_stride(1), p_stride(2), p_stride(3)), p_size, p_wraps != 0u,
                    p_operation);
  uint offset = uint(at * p_step), before = 0u;
  if (p_further != 0u) before = word32_offsets(int(i));
  bool bad = at < 0 || before == TF_NOWHERE;
  set_word32_offsets(int(i), bad ? TF_NOWHERE : before + offset);
}
