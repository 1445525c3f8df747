/* Attention, one query to a work group and one key of a block to an invocation: for few queries.
 *
 * operands: out lse q k v mask aux
 * words: uint queries; uint keys; uint width; uint columns; number scale; int row[5]; int step[5]
 * constants: DTYPE MASK CAUSAL
 * group: 64
 * numbers: float double
 */
#include "canonical_sum.glsl"
#include "quotient.glsl"
#include "attention.glsl"
#include "scores.glsl"
#define SLICE 1024u /* columns of v that one work group takes */
shared T weight[64];
shared T acc[SLICE]; /* column c belongs to invocation c % 64 */

T largest(T v) {
  uint lane = gl_LocalInvocationIndex;
  weight[lane] = v;
  barrier();
  for (uint w = 32u; w > 0u; w >>= 1) {
    if (lane < w && weight[lane] < weight[lane + w]) weight[lane] = weight[lane + w];
    barrier();
  }
  precise T r = weight[0];
  barrier();
  return r;
}

void main() {
  uint slices = max(1u, (p_columns + SLICE - 1u) / SLICE), id = tf_group(), slice = id % slices, line = id / slices;
  if (line >= heads() * p_queries) return;
  uint head = line / p_queries, query = line % p_queries, place = head / group(), sub = head % group();
  uint lane = gl_LocalInvocationIndex, first = slice * SLICE, width = min(p_columns - first, SLICE);
  uint stop = CAUSAL != 0u ? min(p_keys, (query | 63u) + 1u) : p_keys;
  int q_at = origin(Q, place, sub) + int(query) * p_row(Q), k_at = origin(K, place, 0u), v_at = origin(V, place, 0u);
  int mask_at = MASK != NO_MASK ? origin(MASKS, place, sub) + int(query) * p_row(MASKS) : 0;
  precise T m = NONE, l = T(0);
  for (uint c = lane; c < width; c += 64u) acc[c] = T(0);
  for (uint key = 0u; key < stop; key += 64u) {
    uint n = min(64u, p_keys - key), j = key + lane;
    bool mine = lane < n;
    precise T s = T(0);
    if (mine) {
      for (int d = 0; d < int(p_width); d++)
        s = tf_fma(load_k(DTYPE, k_at + int(j) * p_row(K) + d * p_step(K)), load_q(DTYPE, q_at + d * p_step(Q)), s);
      s = masked(tf_mul(s, p_scale), mask_at + int(j) * p_step(MASKS), CAUSAL == 0u || j <= query);
    }
    precise T high = largest(VALUE(mine && !tf_isnan(s) ? BITS(s) : BITS(NONE)));
    precise T top = VALUE(m < high ? BITS(high) : BITS(m)), shift = VALUE(BITS(top) == BITS(NONE) ? TF_UINT(0) : BITS(top));
    precise T alpha = TF_EXP(tf_sub(m, shift)), p = VALUE(mine ? BITS(TF_EXP(tf_sub(s, shift))) : BITS(TF_NOTHING));
    weight[lane] = p;
    l = tf_add(tf_mul(l, alpha), tf_halved(p));
    m = top;
    for (uint c = lane; c < width; c += 64u) {
      precise T a = tf_mul(acc[c], alpha);
      int at = v_at + int(key) * p_row(V) + int(first + c) * p_step(V);
      for (uint i = 0u; i < n; i++, at += p_row(V)) a = tf_fma(weight[i], load_v(DTYPE, at), a);
      acc[c] = a;
    }
    barrier();
  }
  for (uint c = lane; c < width; c += 64u) {
    precise T r = VALUE(tf_equal(l, T(0)) ? TF_UINT(0) : BITS(tf_quotient(acc[c], l)));
    store_out(DTYPE, int(line * p_columns + first + c), r);
  }
  if (lane == 0u && slice == 0u) store_lse(TF_OWN, int(line), tf_add(m, TF_LOG(l)));
}
