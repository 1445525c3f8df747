/* Attention, one query to a work group and one key of a block to an invocation: for few queries.
 *
 * operands: out lse q k v mask aux
 * words: uint queries; uint keys; uint width; uint columns; uint group; float scale; int row[5]; int step[5]
 * constants: DTYPE MASK CAUSAL
 * group: 64
 * numbers: float
 */
#include "canonical_sum.glsl"
#include "quotient.glsl"
#include "attention.glsl"
#include "scores.glsl"
#define SLICE 1024u /* columns of v that one work group takes */
shared float weight[64];
shared float acc[SLICE]; /* column c belongs to invocation c % 64 */

float largest(float v) {
  uint lane = gl_LocalInvocationIndex;
  weight[lane] = v;
  barrier();
  for (uint w = 32u; w > 0u; w >>= 1) {
    if (lane < w && weight[lane] < weight[lane + w]) weight[lane] = weight[lane + w];
    barrier();
  }
  precise float r = weight[0];
  barrier();
  return r;
}

void main() {
  uint slices = max(1u, (p_columns + SLICE - 1u) / SLICE), id = tf_group(), slice = id % slices, line = id / slices;
  if (line >= heads() * p_queries) return;
  uint head = line / p_queries, query = line % p_queries, place = head / p_group, sub = head % p_group;
  uint lane = gl_LocalInvocationIndex, first = slice * SLICE, width = min(p_columns - first, SLICE);
  uint stop = CAUSAL != 0u ? min(p_keys, (query | 63u) + 1u) : p_keys;
  int q_at = origin(Q, place, sub) + int(query) * p_row(Q), k_at = origin(K, place, 0u), v_at = origin(V, place, 0u);
  int mask_at = MASK != NO_MASK ? origin(MASKS, place, sub) + int(query) * p_row(MASKS) : 0;
  precise float m = NONE, l = FB(0u);
  for (uint c = lane; c < width; c += 64u) acc[c] = FB(0u);
  for (uint key = 0u; key < stop; key += 64u) {
    uint n = min(64u, p_keys - key), j = key + lane;
    bool mine = lane < n;
    precise float s = FB(0u);
    if (mine) {
      for (int d = 0; d < int(p_width); d++)
        s = tf_fma(load_k(DTYPE, k_at + int(j) * p_row(K) + d * p_step(K)), load_q(DTYPE, q_at + d * p_step(Q)), s);
      s = masked(tf_mul(s, p_scale), mask_at + int(j) * p_step(MASKS), CAUSAL == 0u || j <= query);
    }
    precise float high = largest(FB(mine && !tf_isnan(s) ? UB(s) : UB(NONE)));
    precise float top = FB(m < high ? UB(high) : UB(m)), shift = FB(UB(top) == UB(NONE) ? 0u : UB(top));
    precise float alpha = vm_exp(tf_sub(m, shift)), p = FB(mine ? UB(vm_exp(tf_sub(s, shift))) : UB(TF_NOTHING));
    weight[lane] = p;
    l = tf_add(tf_mul(l, alpha), tf_halved(p));
    m = top;
    for (uint c = lane; c < width; c += 64u) {
      precise float a = tf_mul(acc[c], alpha);
      int at = v_at + int(key) * p_row(V) + int(first + c) * p_step(V);
      for (uint i = 0u; i < n; i++, at += p_row(V)) a = tf_fma(weight[i], load_v(DTYPE, at), a);
      acc[c] = a;
    }
    barrier();
  }
  for (uint c = lane; c < width; c += 64u) {
    precise float r = FB(tf_equal(l, 0.0f) ? 0u : UB(tf_quotient(acc[c], l)));
    store_out(DTYPE, int(line * p_columns + first + c), r);
  }
  if (lane == 0u && slice == 0u) store_lse(TF_F32, int(line), tf_add(m, vm_log(l)));
}
