/* Looks for a value that must not be: told as the fault of OPERATION, with its bits and the number of the argument.
 *
 * WHICH 0: all have to lie in [0, 1]; 1: none may be NaN. The result is true all the same.
 *
 * operands: result x fault
 * words: uint count; uint argument
 * constants: WHICH IN OPERATION
 * group: 256
 * numbers: float double
 */
#include "fault.glsl"

void main() {
  uint first = tf_group() * 4u * TF_GROUP + gl_LocalInvocationIndex;
  if (first == 0u) set_word8_result(0, 1u);
  for (uint k = 0u; k < 4u; k++) {
    uint i = first + k * TF_GROUP;
    if (i >= p_count) return;
    precise T v = load_x(IN, int(i));
    TF_UINT u = BITS(tf_flushed(v));
    bool good = u <= BITS(T(1)) || u == BITS(TF_NOTHING);
    if (WHICH != 0u) good = !tf_isnan(v);
    if (!good) tf_report(OPERATION, TF_WIDE_BITS(v), int(p_argument));
  }
}
