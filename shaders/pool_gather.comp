/* Elements at flat places of dense planes.
 *
 * operands: out x places fault
 * words: uint count; uint places; uint area
 * constants: DTYPE
 * group: 256
 * numbers: bits
 */
#include "fault.glsl"

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  uvec2 at = word64_places(int(i));
  if (at.y != 0u || at.x >= p_area) {
    tf_report(14u, at, int(p_area));
    return;
  }
  int from = int(i / p_places * p_area + at.x);
  if (DTYPE == TF_F64) set_word64_out(int(i), word64_x(from));
  else set_word_out(DTYPE, int(i), word_x(DTYPE, from));
}
