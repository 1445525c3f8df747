/* Attention by tiles of 128 or 64 queries; blocks of 64 keys pass by.
 *
 * A block is steps: some depths of the products of keys and queries each, then some keys' weights and values each. The
 * operands of a step lie in one side of shared memory, those of the next are on their way to the other. Keys j,
 * j + 8, ... j + 56 of a block belong to one invocation, so that halving adds its own first. COLUMNS: vec4s of a row
 * of the result that an invocation keeps, 4 at most. */
#include "quotient.glsl"
#include "four.glsl"
TF_FOUR(out)
TF_FOUR(q)
TF_FOUR(k)
TF_FOUR(v)
#include "attention.glsl"
#include "scores.glsl"
#include "attention_tile.glsl"
#define PART (COLUMNS > 2u ? 8 : 16)    /* keys of a step */
#define BREADTH (8 * int(COLUMNS))      /* vec4s of a row of v */
#define ACC(r, c) acc[(r) * 4 * int(COLUMNS) + (c)]
shared vec4 edge[8 * LINE]; /* largest scores, then sums, of an invocation's keys */
shared vec4 level[LINE];    /* of each row: what scores are taken from */
shared vec4 factor[LINE];   /* what was accumulated is scaled by */

int q_at, k_at, v_at;
uint first, column;

void fetch_scores(uint key, uint d) {
  uint t = gl_LocalInvocationIndex;
  d += 4u * (t % DEEP);
  if (t < FOURS) {
    fetched(Q, q_at, first + t / DEEP * 4u, 1u, p_queries, d, p_width, 0x80000000u);
  } else if (t < FOURS + K_FOURS) {
    t = (t - FOURS) / DEEP;
    fetched(K, k_at, key + (t & 7u) + (t >> 3) * 32u, 8u, p_keys, d, p_width, 0u);
  }
}
void fetch_values(uint key) {
  EACH(n, SHARE(uint(PART * BREADTH))) {
    uint t = gl_LocalInvocationIndex + uint(n) * TF_GROUP, j = key + t / uint(BREADTH);
    coming[n] = j < p_keys ? four_of(V, v_at + int(j) * p_row(V), column + 4u * (t % uint(BREADTH)), p_columns, 0x80000000u)
                           : vec4(FB(0x80000000u)); /* a weight of 0 times -0 adds nothing */
  }
}
void keep_values(int to) {
  EACH(n, SHARE(uint(PART * BREADTH))) {
    int t = int(gl_LocalInvocationIndex + uint(n) * TF_GROUP);
    if (t < PART * BREADTH) tile[to + t] = coming[n];
  }
}
#define KEEP_WEIGHTS(TO, WHICH)                                                                         \
  EACH(j, 8) {                                                                                          \
    if (uint(8 * j) / uint(PART) == (WHICH))                                                            \
      tile[(TO) + (8 * j % PART + int(ACROSS)) * LINE + SWIZZLED(int(DOWN), int(ACROSS))] =             \
        vec4(s[0][j], s[1][j], s[2][j], s[3][j]);                                                       \
  }

void main() {
  uint slices = max((p_columns + 32u * COLUMNS - 1u) / (32u * COLUMNS), 1u), tiles = (p_queries + HEIGHT - 1u) / HEIGHT;
  uint id = tf_group(), slice = id % slices, me = gl_LocalInvocationIndex;
  id /= slices;
  if (id >= heads() * tiles) return;
  uint head = id / tiles, place = head / p_group, sub = head % p_group;
  first = (tiles - 1u - id % tiles) * HEIGHT; /* the longest tiles of causal attention begin first */
  column = slice * 32u * COLUMNS;
  q_at = origin(Q, place, sub);
  k_at = origin(K, place, 0u);
  v_at = origin(V, place, 0u);
  int mask_at = MASK != NO_MASK ? origin(MASKS, place, sub) : 0;
  uint own = first + 4u * DOWN; /* the first of this invocation's four queries */
  uint stop = CAUSAL != 0u ? min(p_keys, (min(first + HEIGHT, p_queries) - 1u | 63u) + 1u) : p_keys;
  float s[4][8], acc[16 * 4]; /* COLUMNS says how much of it is used */
  precise float m = NONE, l = FB(0u); /* of row `me` */
  EACH(c, 16u * COLUMNS) acc[c] = FB(0u);
  int side = 0;
  fetch_scores(0u, 0u);
  keep_products(side);
  barrier();
  for (uint key = 0u; key < stop; key += 64u) {
    bool mine = HEIGHT == 64u || CAUSAL == 0u || key <= own; /* the CPU's blocks of queries have 64 */
    EACH(r, 4) EACH(j, 8) s[r][j] = FB(0u);
    for (uint d0 = DEPTH;; d0 += DEPTH) {
      bool last = d0 >= p_width;
      if (last) fetch_values(key);
      else fetch_scores(key, d0);
      if (mine) {
        EACH(d, DEPTH) {
          vec4 a = tile[side + d * LINE + SWIZZLED(int(DOWN), d >> 2)], b[2];
          EACH(i, 2) b[i] = tile[side + int(DEPTH) * LINE + d * SPAN + SWIZZLED(8 * i + int(ACROSS), d >> 2)];
          EACH(r, 4) EACH(j, 8) s[r][j] = tf_fma(b[j >> 2][j & 3], a[r], s[r][j]);
        }
      }
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
    vec4 high = vec4(NONE);
    EACH(r, 4) EACH(j, 8) high[r] = FB(high[r] < s[r][j] ? UB(s[r][j]) : UB(high[r])); /* NaN is never larger */
    edge[int(ACROSS) * LINE + SWIZZLED(int(DOWN), int(ACROSS))] = high;
    barrier();
    if (me < HEIGHT) {
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
    vec4 shift = level[DOWN], alpha = factor[DOWN], sum;
    EACH(r, 4) {
      EACH(j, 8) s[r][j] = sinking(tf_sub(s[r][j], shift[r]));
      if (mine) EACH(c, 4u * COLUMNS) ACC(r, c) = tf_mul(ACC(r, c), alpha[r]);
      sum[r] = tf_add(tf_add(tf_add(s[r][0], s[r][4]), tf_add(s[r][2], s[r][6])),
                      tf_add(tf_add(s[r][1], s[r][5]), tf_add(s[r][3], s[r][7])));
    }
    edge[int(ACROSS) * LINE + SWIZZLED(int(DOWN), int(ACROSS))] = sum;
    KEEP_WEIGHTS(side, 0u)
    keep_values(side + PART * LINE);
    barrier();
    for (uint part = 1u;; part++) {
      bool last = part == 64u / uint(PART);
      if (!last) fetch_values(key + part * uint(PART));
      else if (key + 64u < stop) fetch_scores(key + 64u, 0u);
      if (part == 1u && me < HEIGHT) {
        float e[8];
        EACH(i, 8) e[i] = edge[i * LINE + SWIZZLED(int(me >> 2), i)][me & 3u];
        l = tf_add(tf_mul(l, factor[me >> 2][me & 3u]), tf_add(tf_add(tf_add(e[0], e[4]), tf_add(e[2], e[6])),
                                                               tf_add(tf_add(e[1], e[5]), tf_add(e[3], e[7]))));
      }
      if (mine) {
        EACH(j, PART) {
          vec4 a = tile[side + j * LINE + SWIZZLED(int(DOWN), j)], b[4];
          EACH(i, COLUMNS) b[i] = tile[side + PART * LINE + j * BREADTH + 8 * i + int(ACROSS)];
          EACH(r, 4) EACH(c, 4u * COLUMNS) ACC(r, c) = tf_fma(a[r], b[c >> 2][c & 3], ACC(r, c));
        }
      }
      side = AREA - side;
      if (!last) {
        KEEP_WEIGHTS(side, part)
        keep_values(side + PART * LINE);
      } else if (key + 64u < stop) {
        keep_products(side);
      }
      barrier();
      if (last) break;
    }
  }
  if (me < HEIGHT) {
    level[me >> 2][me & 3u] = l;
    if (slice == 0u && first + me < p_queries) store_lse(TF_F32, int(head * p_queries + first + me), tf_add(m, vm_log(l)));
  }
  for (uint piece = 0u; piece < TF_GROUP / 32u; piece++) { /* through shared memory, so that rows are written as they lie */
    if (DOWN >> 2 == piece)
      EACH(r, 4) EACH(c, COLUMNS) tile[int((DOWN & 3u) * 4u + uint(r)) * BREADTH + 8 * c + int(ACROSS)] =
        vec4(ACC(r, 4 * c), ACC(r, 4 * c + 1), ACC(r, 4 * c + 2), ACC(r, 4 * c + 3));
    barrier();
    for (uint t = me; t < 16u * uint(BREADTH); t += TF_GROUP) {
      uint row = 16u * piece + t / uint(BREADTH), c = column + 4u * (t % uint(BREADTH));
      if (first + row >= p_queries || c >= p_columns) continue;
      precise float sum = level[row >> 2][row & 3u];
      float v[4];
      EACH(e, 4) v[e] = FB(tf_equal(sum, 0.0f) ? 0u : UB(tf_quotient(tile[t][e], sum)));
      int at = int((head * p_queries + first + row) * p_columns + c);
      if (QUADS != 0u) store4_out(DTYPE, at >> 2, v);
      else EACH(e, 4) if (c + uint(e) < p_columns) store_out(DTYPE, at + e, v[e]);
    }
    barrier();
  }
}
