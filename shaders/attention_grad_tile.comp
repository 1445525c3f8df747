/* Gradients of attention by tiles of 64 rows, past which go blocks of 64 others. SIDE 0: rows are queries, others keys,
 * `one` is the gradient of q. SIDE 1: rows are keys, others the queries of all heads that share them, `one` and `two`
 * are the gradients of k and v.
 *
 * A block is steps: depths of the scores, depths of dp, then some others' ds (and p) with their numbers. The operands
 * of a step lie in one side of shared memory, those of the next are on their way to the other. COLUMNS: vec4s of a row
 * of a gradient that an invocation keeps: 1, 2 or 4.
 *
 * operands: one two g q k v mask aux
 * words: uint queries; uint keys; uint width; uint columns; float scale; int row[5]; int step[5]
 * constants: DTYPE MASK CAUSAL SIDE QUADS COLUMNS
 * group: 128
 * numbers: float
 */
#include "four.glsl"
TF_FOUR(one)
TF_FOUR(two)
TF_FOUR(g)
TF_FOUR(q)
TF_FOUR(k)
TF_FOUR(v)
#include "attention.glsl"
#include "scores.glsl"
#define GRADIENT
#include "attention_tile.glsl"
#define PARTS (64u / uint(PART))     /* steps that take ds, or p */
#define ROW_Q (SIDE == 0u ? Q : K)
#define ROW_G (SIDE == 0u ? G : V)
#define OTHER_Q (SIDE == 0u ? K : Q)
#define OTHER_G (SIDE == 0u ? V : G)
shared float shift[64]; /* of each query */
shared float delta[64];

int at[5];           /* where matrices begin */
uint first, column, line;

void to_head(uint place, uint sub) {
  at[Q] = origin(Q, place, sub);
  at[K] = origin(K, place, 0u);
  at[V] = origin(V, place, 0u);
  at[G] = origin(G, place, sub);
  at[MASKS] = MASK != NO_MASK ? origin(MASKS, place, sub) : 0;
  line = (place * group() + sub) * p_queries;
}
/* What each query of a block needs. */
void load_queries(uint query) {
  uint me = gl_LocalInvocationIndex, i = query + (me & 63u), lines = heads() * p_queries;
  uint w = i < p_queries ? word32_aux(TABLE + int(line + i + (me < 64u ? 0u : lines))) : 0u;
  if (me < 64u) shift[me] = FB(w);
  else delta[me - 64u] = FB(w);
}
void fetch_products(uint row_side, uint other_side, uint block, uint d, uint width) {
  fetch_sides(row_side, at[row_side], first, SIDE == 0u ? p_queries : p_keys,
              other_side, at[other_side], block, SIDE == 0u ? p_keys : p_queries, d, width);
}
void fetch_other(uint which, uint other, uint width) {
  fetch_numbers(which, at[which], other, SIDE == 0u ? p_keys : p_queries, column, width);
}

#define STORED(NAME, A, WIDTH)                                                                          \
  EACH(r, 4) EACH(i, COLUMNS) {                                                                         \
    uint row = first + 4u * DOWN + uint(r), c = column + 4u * (8u * uint(i) + ACROSS);                  \
    if (row < rows && c < WIDTH) {                                                                      \
      int to = int((head * rows + row) * WIDTH + c);                                                    \
      precise float x[4];                                                                                       \
      EACH(e, 4) x[e] = ACC(A, r, 4 * i + e);                                                           \
      if (QUADS != 0u) store4_##NAME(DTYPE, to >> 2, x);                                                \
      else EACH(e, 4) if (c + uint(e) < WIDTH) store_##NAME(DTYPE, to + e, x[e]);                       \
    }                                                                                                   \
  }

void main() {
  uint slices = max((max(p_width, SIDE == 0u ? 0u : p_columns) + 32u * COLUMNS - 1u) / (32u * COLUMNS), 1u);
  uint rows = SIDE == 0u ? p_queries : p_keys, tiles = (rows + 63u) / 64u, id = tf_group();
  column = id % slices * 32u * COLUMNS;
  id /= slices;
  if (id >= (SIDE == 0u ? heads() : heads() / group()) * tiles) return;
  uint head = id / tiles, tile_number = SIDE == 0u ? tiles - 1u - id % tiles : id % tiles; /* the longest begin first */
  uint place = SIDE == 0u ? head / group() : head, sub = SIDE == 0u ? head % group() : 0u;
  uint sub_stop = SIDE == 0u ? sub + 1u : group();
  first = tile_number * 64u;
  uint begin = SIDE != 0u && CAUSAL != 0u ? first : 0u, stop = SIDE == 0u ? p_keys : p_queries;
  if (SIDE == 0u && CAUSAL != 0u) stop = min(stop, first + 64u);
  float s[4][8], dp[4][8], one[16 * 4], two[16 * 4]; /* COLUMNS says how much of the last two is used */
  EACH(c, 16u * COLUMNS) one[c] = two[c] = FB(0u);
  uint block = begin;
  int side = 0;
  bool more = begin < stop;
  to_head(place, sub);
  if (SIDE == 0u) load_queries(first);
  if (more) {
    fetch_products(ROW_Q, OTHER_Q, block, 0u, p_width);
    keep_products(side);
  }
  barrier();
  while (more) {
    EACH(r, 4) EACH(j, 8) s[r][j] = dp[r][j] = FB(0u);
    if (SIDE != 0u) load_queries(block);
    for (uint d = DEPTH;; d += DEPTH) {
      bool last = d >= p_width;
      if (last) fetch_products(ROW_G, OTHER_G, block, 0u, p_columns);
      else fetch_products(ROW_Q, OTHER_Q, block, d, p_width);
      PRODUCTS(s)
      side = AREA - side;
      keep_products(side);
      barrier();
      if (last) break;
    }
    for (uint d = DEPTH;; d += DEPTH) {
      bool last = d >= p_columns;
      if (last) fetch_other(OTHER_Q, block, p_width);
      else fetch_products(ROW_G, OTHER_G, block, d, p_columns);
      PRODUCTS(dp)
      side = AREA - side;
      if (last) break;
      keep_products(side);
      barrier();
    }
    EACH(r, 4) EACH(j, 8) {
      uint mine = 4u * DOWN + uint(r), other = ACROSS + uint(8 * j), q = SIDE == 0u ? mine : other;
      uint query = (SIDE == 0u ? first : block) + q, k = SIDE == 0u ? block + other : first + mine;
      bool inside = query < p_queries && k < p_keys;
      precise float x = tf_mul(s[r][j], p_scale);
      if (MASK != NO_MASK || CAUSAL != 0u) {
        if (inside)
          x = masked(x, at[MASKS] + int(query) * p_row(MASKS) + int(k) * p_step(MASKS), CAUSAL == 0u || k <= query);
      }
      precise float p = falling(tf_sub(x, shift[q])), ds = tf_mul(tf_mul(p, tf_sub(dp[r][j], delta[q])), p_scale);
      s[r][j] = FB(inside ? UB(p) : 0u);
      dp[r][j] = FB(inside ? UB(ds) : 0u);
    }
    KEEP_WEIGHTS(dp, 0u)
    keep_numbers(side);
    barrier();
    for (uint part = 1u; part < PARTS; part++) {
      fetch_other(OTHER_Q, block + part * uint(PART), p_width);
      GATHERED(one)
      side = AREA - side;
      KEEP_WEIGHTS(dp, part)
      keep_numbers(side);
      barrier();
    }
    if (SIDE != 0u) {
      fetch_other(OTHER_G, block, p_columns);
      GATHERED(one)
      side = AREA - side;
      KEEP_WEIGHTS(s, 0u)
      keep_numbers(side);
      barrier();
      for (uint part = 1u; part < PARTS; part++) {
        fetch_other(OTHER_G, block + part * uint(PART), p_columns);
        GATHERED(two)
        side = AREA - side;
        KEEP_WEIGHTS(s, part)
        keep_numbers(side);
        barrier();
      }
    }
    block += 64u;
    if (block >= stop && sub + 1u < sub_stop) {
      sub++;
      to_head(place, sub);
      block = begin;
    }
    more = block < stop;
    if (more) fetch_products(ROW_Q, OTHER_Q, block, 0u, p_width);
    if (SIDE == 0u) { GATHERED(one) }
    else { GATHERED(two) }
    side = AREA - side;
    if (more) keep_products(side);
    barrier();
  }
  STORED(one, one, p_width)
  if (SIDE != 0u) { STORED(two, two, p_columns) }
}
