/* Slices written or added where indices say, lines of them apart from one another.
 *
 * `pairs` has for each index of a line where it points and its own place, sorted: an invocation for each element of
 * the slice and each place among the sorted ones. What points to the same place is a run of neighbours; its first
 * adds all of it in rising order of the indices, or its last writes. DIRECT: where indices point in their own
 * order, none twice (or all write the same).
 *
 * SHARED: all lines have the same indices. LINES, AFTER: number of axes, 2 for
 * more too. NUMBER: the source is a number.
 *
 * operands: out pairs source
 * words: uint count; uint n; uint inner; uint lines[3]; int lines_out[4]; int lines_source[4]; int source_step;
 *   int source_inner; uint after[3]; int after_out[4]; uint alpha[2]
 * constants: COMPUTE UNIT ADDING DIRECT SHARED LINES AFTER SCALED NUMBER
 * group: 256
 * numbers: float integer double
 */
#include "units.glsl"
#define TF_NOWHERE 0x80000000u
#define TF_AHEAD 8u /* terms of a run whose loads are under way together */
TF_UNITS(out)
TF_UNITS(source)

#ifndef TF_INTEGER
#define A T
#define EXACT precise
A tf_term(int i) {
#ifdef TF_DOUBLE
  precise T v = load_source(NUMBER != 0u ? TF_SCALAR : COMPUTE, i), scale = packDouble2x32(uvec2(p_alpha(0), p_alpha(1)));
#else
  precise T v = NUMBER != 0u ? tf_number(COMPUTE, at_source().x & (COMPUTE == TF_F32 ? 0xffffffffu : 0xffffu))
                             : load_source(COMPUTE, i), scale = FB(p_alpha(0));
#endif
  return VALUE(SCALED != 0u ? BITS(tf_mul(v, scale)) : BITS(v));
}
A tf_sum(A a, A b) { return tf_add(a, b); }
A tf_get(int i) { return load_out(COMPUTE, i); }
void tf_put(int i, A v) { store_out(COMPUTE, i, v); }
#else
#define A uvec2
#define EXACT
/* Modulo 2^64; of what is narrower the low part counts. */
A tf_term(int i) {
  uvec2 v = uvec2(0u), m = uvec2(p_alpha(0), p_alpha(1));
  if (NUMBER != 0u) v = at_source();
  else if (COMPUTE == TF_I64) v = word64_source(i);
  else v.x = word_source(COMPUTE, i);
  if (SCALED == 0u) return v;
  uint high, low;
  umulExtended(v.x, m.x, high, low);
  return uvec2(low, high + v.x * m.y + v.y * m.x);
}
A tf_sum(A a, A b) {
  if (COMPUTE == TF_BOOL) return uvec2((a.x | a.y | b.x | b.y) != 0u ? 1u : 0u, 0u);
  uint carry, low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}
A tf_get(int i) {
  if (COMPUTE == TF_I64) return word64_out(i);
  return uvec2(word_out(COMPUTE, i), 0u);
}
void tf_put(int i, A v) {
  if (COMPUTE == TF_I64) set_word64_out(i, v);
  else set_word_out(COMPUTE, i, v.x);
}
#endif

/* All of the run that begins at pair j, of pairs before `end`. */
void tf_add_run(uint j, uint end, uint key, int to, int from) {
  EXACT A sum = tf_get(to);
  uint here = TF_AHEAD;
  for (; here == TF_AHEAD && j < end; j += TF_AHEAD) {
    EXACT A v[TF_AHEAD];
    here = 0u;
    UNROLL for (uint u = 0u; u < TF_AHEAD; u++) {
      uvec2 q = uvec2(TF_NOWHERE, 0u);
      if (j + u < end) q = word64_pairs(int(j + u));
      bool mine = q.x == key;
      if (mine) v[u] = tf_term(from + int(q.y) * p_source_step);
      here += mine ? 1u : 0u;
    }
    UNROLL for (uint u = 0u; u < TF_AHEAD; u++)
      if (u < here) sum = tf_sum(sum, v[u]);
  }
  tf_put(to, sum);
}

void main() {
  uint i = tf_thread(), k = i, a = 0u, base = 0u;
  if (i >= p_count) return;
  int to = 0, from = 0;
  if (AFTER > 0u) {
    k = i / p_inner;
    a = i - k * p_inner;
    from = int(a) * p_source_inner;
  }
  if (AFTER == 1u) {
    to = int(a) * p_after_out(3);
  } else if (AFTER > 1u) {
    ivec4 p = tf_unravel(a, p_after(0), p_after(1), p_after(2));
    to = tf_dot(p, p_after_out(0), p_after_out(1), p_after_out(2), p_after_out(3));
  }
  if (LINES > 0u) {
    uint b = k / p_n;
    k -= b * p_n;
    if (SHARED == 0u) base = b * p_n;
    ivec4 p = ivec4(0, 0, 0, int(b));
    if (LINES > 1u) p = tf_unravel(b, p_lines(0), p_lines(1), p_lines(2));
    to += tf_dot(p, p_lines_out(0), p_lines_out(1), p_lines_out(2), p_lines_out(3));
    from += tf_dot(p, p_lines_source(0), p_lines_source(1), p_lines_source(2), p_lines_source(3));
  }
  uvec2 q = DIRECT != 0u ? uvec2(word32_pairs(int(base + k)), k) : word64_pairs(int(base + k));
  if (q.x == TF_NOWHERE) return;
  to += int(q.x);
  if (ADDING != 0u) {
    if (DIRECT != 0u) {
      tf_put(to, tf_sum(tf_get(to), tf_term(from + int(k) * p_source_step)));
      return;
    }
    if (k > 0u && word64_pairs(int(base + k) - 1).x == q.x) return;
    tf_add_run(base + k, base + p_n, q.x, to, from);
    return;
  }
  if (DIRECT == 0u && k + 1u < p_n && word64_pairs(int(base + k) + 1).x == q.x) return;
  uvec4 v = value_source();
  if (NUMBER == 0u) v = pick_source(from + int(q.y) * p_source_step);
  place_out(to, v);
}
