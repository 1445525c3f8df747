/* Attention, 64 queries to a work group, past which go blocks of 64 keys.
 *
 * A block is steps: some depths of the products of keys and queries each, then some keys' weights and values each. The
 * operands of a step lie in one side of shared memory, those of the next are on their way to the other. Keys j,
 * j + 8, ... j + 56 of a block belong to one invocation, so that halving adds its own first. COLUMNS: vec4s of a row
 * of the result that an invocation keeps: 1, 2 or 4.
 *
 * operands: out lse q k v mask aux
 * words: uint queries; uint keys; uint width; uint columns; float scale; int row[5]; int step[5]
 * constants: DTYPE MASK CAUSAL QUADS COLUMNS
 * group: 128
 * numbers: float
 */
#include "quotient.glsl"
#include "four.glsl"
TF_FOUR(out)
TF_FOUR(q)
TF_FOUR(k)
TF_FOUR(v)
#include "attention.glsl"
#include "scores.glsl"
#include "attention_tile.glsl"
shared vec4 edge[8 * LINE]; /* largest scores, then sums, of an invocation's keys */
shared vec4 level[LINE];    /* of each row: what scores are taken from */
shared vec4 factor[LINE];   /* what was accumulated is scaled by */

int q_at, k_at, v_at;
uint first, column;

void fetch_scores(uint key, uint d) {
  fetch_sides(Q, q_at, first, p_queries, K, k_at, key, p_keys, d, p_width);
}
void fetch_values(uint key) { fetch_numbers(V, v_at, key, p_keys, column, p_columns); }

void main() {
  uint slices = max((p_columns + 32u * COLUMNS - 1u) / (32u * COLUMNS), 1u), tiles = (p_queries + 63u) / 64u;
  uint id = tf_group(), slice = id % slices, me = gl_LocalInvocationIndex;
  id /= slices;
  if (id >= heads() * tiles) return;
  uint head = id / tiles, place = head / group(), sub = head % group();
  first = (tiles - 1u - id % tiles) * 64u; /* the longest tiles of causal attention begin first */
  column = slice * 32u * COLUMNS;
  q_at = origin(Q, place, sub);
  k_at = origin(K, place, 0u);
  v_at = origin(V, place, 0u);
  int mask_at = MASK != NO_MASK ? origin(MASKS, place, sub) : 0;
  uint own = first + 4u * DOWN; /* the first of this invocation's four queries */
  uint stop = CAUSAL != 0u ? min(p_keys, first + 64u) : p_keys;
  float s[4][8], acc[16 * 4]; /* COLUMNS says how much of it is used */
  precise float m = NONE, l = FB(0u); /* of row `me` */
  EACH(c, 16u * COLUMNS) acc[c] = FB(0u);
  int side = 0;
  fetch_scores(0u, 0u);
  keep_products(side);
  barrier();
  for (uint key = 0u; key < stop; key += 64u) {
    EACH(r, 4) EACH(j, 8) s[r][j] = FB(0u);
    for (uint d0 = DEPTH;; d0 += DEPTH) {
      bool last = d0 >= p_width;
      if (last) fetch_values(key);
      else fetch_scores(key, d0);
      PRODUCTS(s)
      side = AREA - side;
      if (last) break;
      keep_products(side);
      barrier();
    }
    EACH(r, 4) EACH(j, 8) s[r][j] = tf_mul(s[r][j], p_scale);
    if (MASK != NO_MASK || key + 64u > p_keys || own + 4u > p_queries || (CAUSAL != 0u && key + 63u > own)) {
      EACH(r, 4) {
        uint query = own + uint(r);
        int at = mask_at + int(query) * p_row(MASKS);
        EACH(j, 8) {
          uint k = key + ACROSS + uint(8 * j);
          bool inside = k < p_keys && query < p_queries;
          s[r][j] = FB(inside ? UB(s[r][j]) : UB(NONE));
          if (inside) s[r][j] = masked(s[r][j], at + int(k) * p_step(MASKS), CAUSAL == 0u || k <= query);
        }
      }
    }
    precise vec4 high = vec4(NONE);
    EACH(r, 4) EACH(j, 8) high[r] = FB(high[r] < s[r][j] ? UB(s[r][j]) : UB(high[r])); /* NaN is never larger */
    edge[int(ACROSS) * LINE + SWIZZLED(int(DOWN), int(ACROSS))] = high;
    barrier();
    if (me < 64u) {
      precise float top = m;
      EACH(i, 8) {
        precise float e = edge[i * LINE + SWIZZLED(int(me >> 2), i)][me & 3u];
        top = FB(top < e ? UB(e) : UB(top));
      }
      precise float shift = FB(UB(top) == UB(NONE) ? 0u : UB(top));
      level[me >> 2][me & 3u] = shift;
      factor[me >> 2][me & 3u] = sinking(tf_sub(m, shift));
      m = top;
    }
    barrier();
    precise vec4 shift = level[DOWN], alpha = factor[DOWN], sum;
    EACH(r, 4) {
      EACH(j, 8) s[r][j] = sinking(tf_sub(s[r][j], shift[r]));
      EACH(c, 4u * COLUMNS) ACC(acc, r, c) = tf_mul(ACC(acc, r, c), alpha[r]);
      sum[r] = tf_add(tf_add(tf_add(s[r][0], s[r][4]), tf_add(s[r][2], s[r][6])),
                      tf_add(tf_add(s[r][1], s[r][5]), tf_add(s[r][3], s[r][7])));
    }
    edge[int(ACROSS) * LINE + SWIZZLED(int(DOWN), int(ACROSS))] = sum;
    KEEP_WEIGHTS(s, 0u)
    keep_numbers(side);
    barrier();
    for (uint part = 1u;; part++) {
      bool last = part == 64u / uint(PART);
      if (!last) fetch_values(key + part * uint(PART));
      else if (key + 64u < stop) fetch_scores(key + 64u, 0u);
      if (part == 1u && me < 64u) {
        precise float e[8];
        EACH(i, 8) e[i] = edge[i * LINE + SWIZZLED(int(me >> 2), i)][me & 3u];
        l = tf_add(tf_mul(l, factor[me >> 2][me & 3u]), tf_add(tf_add(tf_add(e[0], e[4]), tf_add(e[2], e[6])),
                                                               tf_add(tf_add(e[1], e[5]), tf_add(e[3], e[7]))));
      }
      GATHERED(acc)
      side = AREA - side;
      if (!last) {
        KEEP_WEIGHTS(s, part)
        keep_numbers(side);
      } else if (key + 64u < stop) {
        keep_products(side);
      }
      barrier();
      if (last) break;
    }
  }
  if (me < 64u) {
    level[me >> 2][me & 3u] = l;
    if (slice == 0u && first + me < p_queries)
      store_lse(TF_F32, int(head * p_queries + first + me), tf_add(m, vm_log(l)));
  }
  for (uint piece = 0u; piece < 4u; piece++) { /* through shared memory, so that rows are written as they lie */
    if (DOWN >> 2 == piece)
      EACH(r, 4) EACH(c, COLUMNS) tile[int((DOWN & 3u) * 4u + uint(r)) * BREADTH + 8 * c + int(ACROSS)] =
        vec4(ACC(acc, r, 4 * c), ACC(acc, r, 4 * c + 1), ACC(acc, r, 4 * c + 2), ACC(acc, r, 4 * c + 3));
    barrier();
    for (uint t = me; t < 16u * uint(BREADTH); t += 128u) {
      uint row = 16u * piece + t / uint(BREADTH), c = column + 4u * (t % uint(BREADTH));
      if (first + row >= p_queries || c >= p_columns) continue;
      precise float sum = level[row >> 2][row & 3u];
      precise float v[4];
      EACH(e, 4) v[e] = FB(tf_equal(sum, 0.0f) ? 0u : UB(tf_quotient(tile[t][e], sum)));
      int at = int((head * p_queries + first + row) * p_columns + c);
      if (QUADS != 0u) store4_out(DTYPE, at >> 2, v);
      else EACH(e, 4) if (c + uint(e) < p_columns) store_out(DTYPE, at + e, v[e]);
    }
    barrier();
  }
}
