/* Words into memory: what a dispatch needs to know beyond the parameters that it can be given.
 *
 * operands: out
 * words: uint first; uint count; uint value[24]
 * group: 32
 * numbers: bits
 */
void main() {
  uint i = gl_LocalInvocationIndex;
  if (tf_group() == 0u && i < p_count) set_word32_out(int(p_first + i), p_value(i));
}
