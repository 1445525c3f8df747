/* Gradients of attention, for few queries or keys. SIDE 0: one query to a work group, one key of a block to an
 * invocation, `one` is the gradient of q. SIDE 1: one key to a work group, one query of a block to an invocation,
 * `one` and `two` are the gradients of k and v.
 *
 * operands: one two g q k v mask aux
 * words: uint queries; uint keys; uint width; uint columns; number scale; int row[5]; int step[5]
 * constants: DTYPE MASK CAUSAL SIDE
 * group: 64
 * numbers: float double
 */
#include "attention.glsl"
#include "scores.glsl"
#define SLICE 1024u /* columns that one work group takes */
shared T weight[64]; /* dp became ds */
shared T chance[64]; /* p */
shared T acc[SLICE];
shared T more[SLICE];

struct Head { int q, k, v, g, mask; uint line; };
Head head_of(uint place, uint sub) {
  Head h;
  h.q = origin(Q, place, sub);
  h.k = origin(K, place, 0u);
  h.v = origin(V, place, 0u);
  h.g = origin(G, place, sub);
  h.mask = MASK != NO_MASK ? origin(MASKS, place, sub) : 0;
  h.line = (place * group() + sub) * p_queries;
  return h;
}

/* p and ds of one query and one key. */
T2 pair(Head h, uint query, uint key) {
  precise T s = T(0), dp = T(0);
  int q = h.q + int(query) * p_row(Q), k = h.k + int(key) * p_row(K), v = h.v + int(key) * p_row(V),
      g = h.g + int(query) * p_row(G);
  for (int d = 0; d < int(p_width); d++)
    s = tf_fma(load_k(DTYPE, k + d * p_step(K)), load_q(DTYPE, q + d * p_step(Q)), s);
  for (int d = 0; d < int(p_columns); d++)
    dp = tf_fma(load_v(DTYPE, v + d * p_step(V)), load_g(DTYPE, g + d * p_step(G)), dp);
  s = masked(tf_mul(s, p_scale), h.mask + int(query) * p_row(MASKS) + int(key) * p_step(MASKS),
             CAUSAL == 0u || key <= query);
  uint line = h.line + query;
  precise T shift = KEPT(line), delta = KEPT(line + heads() * p_queries), p = TF_EXP(tf_sub(s, shift));
  return T2(p, tf_mul(tf_mul(p, tf_sub(dp, delta)), p_scale));
}

void main() {
  uint lane = gl_LocalInvocationIndex, widest = SIDE == 0u ? p_width : max(p_width, p_columns);
  uint slices = max(1u, (widest + SLICE - 1u) / SLICE), id = tf_group();
  uint line = id / slices, first = id % slices * SLICE;
  uint lines = SIDE == 0u ? p_queries : p_keys, all = SIDE == 0u ? heads() * lines : heads() / group() * lines;
  if (line >= all) return;
  uint head = line / lines, mine = line % lines, place = SIDE == 0u ? head / group() : head;
  uint width = p_width - min(first, p_width), columns = p_columns - min(first, p_columns);
  width = min(width, SLICE);
  columns = SIDE == 0u ? 0u : min(columns, SLICE);
  for (uint c = lane; c < SLICE; c += 64u) acc[c] = more[c] = T(0);
  uint others = SIDE == 0u ? p_keys : p_queries;
  uint begin = SIDE != 0u && CAUSAL != 0u ? mine & ~63u : 0u;
  uint stop = SIDE == 0u && CAUSAL != 0u ? min(p_keys, (mine | 63u) + 1u) : others;
  for (uint sub = SIDE == 0u ? head % group() : 0u, last = SIDE == 0u ? sub + 1u : group(); sub < last; sub++) {
    Head h = head_of(place, sub);
    for (uint block = begin; block < stop; block += 64u) {
      uint n = min(64u, others - block);
      if (lane < n) {
        precise T2 r = SIDE == 0u ? pair(h, mine, block + lane) : pair(h, block + lane, mine);
        chance[lane] = r.x;
        weight[lane] = r.y;
      }
      barrier();
      for (uint c = lane; c < width; c += 64u) {
        precise T a = acc[c];
        int at = SIDE == 0u ? h.k + int(block) * p_row(K) + int(first + c) * p_step(K)
                            : h.q + int(block) * p_row(Q) + int(first + c) * p_step(Q);
        for (uint i = 0u; i < n; i++) {
          precise T x;
          if (SIDE == 0u) x = load_k(DTYPE, at + int(i) * p_row(K));
          else x = load_q(DTYPE, at + int(i) * p_row(Q));
          a = tf_fma(weight[i], x, a);
        }
        acc[c] = a;
      }
      for (uint c = lane; c < columns; c += 64u) {
        precise T a = more[c];
        int at = h.g + int(block) * p_row(G) + int(first + c) * p_step(G);
        for (uint i = 0u; i < n; i++) a = tf_fma(chance[i], load_g(DTYPE, at + int(i) * p_row(G)), a);
        more[c] = a;
      }
      barrier();
    }
  }
  for (uint c = lane; c < width; c += 64u) store_one(DTYPE, int(line * p_width + first + c), acc[c]);
  for (uint c = lane; c < columns; c += 64u) store_two(DTYPE, int(line * p_columns + first + c), more[c]);
}
