/* Coordinates of the elements that are not zero, in row-major order: parts of 8,192 elements are counted first,
 * then each part knows where its rows begin. Rows past `room` are not written.
 *
 * COUNTING: the first of the two dispatches. NUMBER of axes: `axes`, all of them walked.
 *
 * operands: out counts x
 * words: uint count; uint room; uint axes; uint shape[8]; int stride[8]
 * constants: DTYPE COUNTING
 * group: 256
 */
#define TF_PART 8192u
shared uint tf_some[TF_GROUP];  /* a bit for each element, 32 to an invocation */
shared uint tf_total[TF_GROUP];

int tf_at(uint i) {
  int at = 0;
  for (uint d = p_axes; d > 0u; d--) {
    uint rest = i / p_shape(d - 1u);
    at += int(i - rest * p_shape(d - 1u)) * p_stride(d - 1u);
    i = rest;
  }
  return at;
}
bool tf_is_some(int i) {
  if (DTYPE == TF_F64 || DTYPE == TF_I64) {
    uvec2 w = word64_x(i);
    return (w.x | (DTYPE == TF_F64 ? w.y & 0x7fffffffu : w.y)) != 0u;
  }
  uint u = word_x(DTYPE, i);
  if (DTYPE == TF_F32) u &= 0x7fffffffu;
  if (DTYPE == TF_F16 || DTYPE == TF_BF16) u &= 0x7fffu;
  return u != 0u;
}
/* The sum of one number of each invocation, and of those before this one. */
uint tf_add_up(uint v, out uint before) {
  uint me = gl_LocalInvocationIndex;
  tf_total[me] = v;
  barrier();
  for (uint w = 1u; w < TF_GROUP; w <<= 1) {
    uint left = me >= w ? tf_total[me - w] : 0u;
    barrier();
    tf_total[me] += left;
    barrier();
  }
  before = tf_total[me] - v;
  uint all = tf_total[TF_GROUP - 1u];
  barrier();
  return all;
}

void main() {
  uint me = gl_LocalInvocationIndex, part = tf_group(), first = part * TF_PART, before;
  if (first >= p_count) return;
  tf_some[me] = 0u;
  barrier();
  uint end = min(p_count - first, TF_PART);
  for (uint e = me; e < end; e += TF_GROUP)
    if (tf_is_some(tf_at(first + e))) atomicOr(tf_some[e >> 5], 1u << (e & 31u));
  barrier();
  uint mine = tf_some[me], all = tf_add_up(uint(bitCount(mine)), before);
  if (COUNTING != 0u) {
    if (me == 0u) set_word32_counts(int(part), all);
    return;
  }
  uint earlier = 0u, unused;
  for (uint p = me; p < part; p += TF_GROUP) earlier += word32_counts(int(p));
  uint row = tf_add_up(earlier, unused) + before;
  for (; mine != 0u && row < p_room; row++) {
    uint bit = uint(findLSB(mine)), i = first + (me << 5) + bit;
    mine &= mine - 1u;
    for (uint d = p_axes; d > 0u; d--) {
      uint rest = i / p_shape(d - 1u);
      set_word64_out(int(row * p_axes + d - 1u), uvec2(i - rest * p_shape(d - 1u), 0u));
      i = rest;
    }
  }
}
