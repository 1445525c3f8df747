/* Products of matrices of floats in tiles of 64 STRIPS_M rows and 64 STRIPS_N columns.
 *
 * 16 x 16 invocations; in each strip of 64 an invocation has four neighbours, so it has 4 STRIPS_M x 4 STRIPS_N
 * results. DEPTH elements of the chains at a time lie in shared memory, while the next ones are on their way.
 * A_LAYOUT, B_LAYOUT: 0 one element at a time, neighbours along k; 1 one at a time, neighbours along the rows of a,
 * the columns of b; 2 four at a time along k; 3 four at a time along rows, columns. OUT_FOUR: four results are
 * stored at once. SHORT: steps are not written out, for compilers that are slow.
 *
 * operands: out a b bias
 * words: uint m; uint n; uint k; int a_row; int a_k; int b_k; int b_col; int out_row; int out_col;
 *   int bias_row; int bias_col; uint batch; uint shape[3]; int step[8]
 * constants: COMPUTE STRIPS_M=1 STRIPS_N=1 A_LAYOUT B_LAYOUT OUT_FOUR DEPTH=16 SHORT
 * group: 256
 * numbers: float
 */
#include "matmul_place.glsl"
#define ROWS (64u * STRIPS_M)
#define COLS (64u * STRIPS_N)
/* In shared memory: two sides, of DEPTH rows of quads. What keeps transposing stores apart is one more quad, or,
   where rows are many, that each takes its quads in another order. */
#define SHIFTED (DEPTH == 8u ? 1u : 0u)
#define A_LINE (16u * STRIPS_M + SHIFTED)
#define B_LINE (16u * STRIPS_N + SHIFTED)
#define TF_QUAD(q, k, LAYOUT)                                                                          \
  (SHIFTED != 0u ? (q) : (q) ^ (LAYOUT < 2u ? ((k) & 7u) ^ (k) / 8u * 2u : (k) / 4u * 2u))
shared vec4 tf_as[2u * DEPTH * A_LINE];
shared vec4 tf_bs[2u * DEPTH * B_LINE];

#define TF_FOUR(NAME)                                                                                  \
  vec4 four_##NAME(int i) {                                                                            \
    precise vec4 v;                                                                                    \
    if (COMPUTE == TF_F32) {                                                                           \
      v = uintBitsToFloat(quad_##NAME(i >> 2));                                                        \
    } else {                                                                                           \
      uvec2 w = word64_##NAME(i >> 2);                                                                 \
      v = vec4(tf_number(COMPUTE, w.x & 0xffffu), tf_number(COMPUTE, w.x >> 16),                       \
               tf_number(COMPUTE, w.y & 0xffffu), tf_number(COMPUTE, w.y >> 16));                      \
    }                                                                                                  \
    return v;                                                                                          \
  }
TF_FOUR(a)
TF_FOUR(b)

/* Place of what x of this invocation loads in a tile of WIDTH x DEPTH, counted in elements. */
#define TF_WIDE(x, WIDTH, LAYOUT)                                                                      \
  (LAYOUT == 0u ? (t + 256u * (x)) / DEPTH : LAYOUT == 1u ? (t + 256u * (x)) % WIDTH                   \
   : LAYOUT == 2u ? (t + 256u * (x)) / (DEPTH / 4u) : (t + 256u * (x)) % (WIDTH / 4u) * 4u)
#define TF_DEEP(x, WIDTH, LAYOUT)                                                                      \
  (LAYOUT == 0u ? (t + 256u * (x)) % DEPTH : LAYOUT == 1u ? (t + 256u * (x)) / WIDTH                   \
   : LAYOUT == 2u ? (t + 256u * (x)) % (DEPTH / 4u) * 4u : (t + 256u * (x)) / (WIDTH / 4u))
#define TF_AT(x, WIDTH, LAYOUT, base, first, size, step, k_step)                                       \
  base + int(min(first + TF_WIDE(x, WIDTH, LAYOUT), size - (LAYOUT == 3u ? 4u : 1u))) * (step) +       \
    (k0 + int(TF_DEEP(x, WIDTH, LAYOUT))) * (k_step)
/* From memory. Rows past the last are the last one again: what they give is not stored. Before the first k stands
   PAD; -0 in a with 0 in b leaves a chain as it is. FIRST: whether such k are in the block. */
#define TF_FETCH(r, NAME, FIRST, WIDTH, LAYOUT, PAD, base, first, size, step, k_step)                  \
  if (LAYOUT < 2u) {                                                                                   \
    UNROLL for (uint x = 0u; x < WIDTH * DEPTH / 256u; x++) {                                          \
      r[x / 4u][x % 4u] = PAD;                                                                         \
      if (!FIRST || uint(k0 + int(TF_DEEP(x, WIDTH, LAYOUT))) < p_k)                                   \
        r[x / 4u][x % 4u] = load_##NAME(COMPUTE, TF_AT(x, WIDTH, LAYOUT, base, first, size, step, k_step)); \
    }                                                                                                  \
  } else {                                                                                             \
    UNROLL for (uint x = 0u; x < WIDTH * DEPTH / 1024u; x++) {                                         \
      r[x] = vec4(PAD);                                                                                \
      if (!FIRST || uint(k0 + int(TF_DEEP(x, WIDTH, LAYOUT))) < p_k)                                   \
        r[x] = four_##NAME(TF_AT(x, WIDTH, LAYOUT, base, first, size, step, k_step));                  \
    }                                                                                                  \
  }
#define TF_FETCH_BOTH(FIRST)                                                                           \
  TF_FETCH(ra, a, FIRST, ROWS, A_LAYOUT, FB(0x80000000u), at.a, at.row, p_m, p_a_row, p_a_k)           \
  TF_FETCH(rb, b, FIRST, COLS, B_LAYOUT, FB(0u), at.b, at.col, p_n, p_b_col, p_b_k)
/* To shared memory. */
#define TF_KEEP(r, s, WIDTH, LAYOUT, LINE)                                                             \
  UNROLL for (uint x = 0u; x < WIDTH * DEPTH / (LAYOUT < 2u ? 256u : 1024u); x++) {                    \
    uint w = TF_WIDE(x, WIDTH, LAYOUT), deep = TF_DEEP(x, WIDTH, LAYOUT),                              \
         to = (side * DEPTH + deep) * LINE + TF_QUAD(w / 4u, deep, LAYOUT);                            \
    if (LAYOUT < 2u) s[to][w % 4u] = r[x / 4u][x % 4u];                                                \
    else if (LAYOUT == 2u) {                                                                           \
      s[to][w % 4u] = r[x].x; s[to + LINE][w % 4u] = r[x].y;                                           \
      s[to + 2u * LINE][w % 4u] = r[x].z; s[to + 3u * LINE][w % 4u] = r[x].w;                          \
    }                                                                                                  \
    else s[to] = r[x];                                                                                 \
  }
#define TF_KEEP_BOTH TF_KEEP(ra, tf_as, ROWS, A_LAYOUT, A_LINE) TF_KEEP(rb, tf_bs, COLS, B_LAYOUT, B_LINE)
/* The other side is taken, and filled where there is more. */
#define TF_TURN                                                                                        \
  side = 1u - side;                                                                                    \
  if (more) { TF_KEEP_BOTH }                                                                           \
  barrier();

/* What step k of the chains takes: from shared memory into one of two sets of registers, */
#define TF_FRAGMENT(set, k)                                                                            \
  UNROLL for (uint i = 0u; i < STRIPS_M; i++)                                                          \
    TF_SPREAD(fa[set], i, tf_as[(side * DEPTH + k) * A_LINE + 16u * i + TF_QUAD(down, k, A_LAYOUT)])   \
  UNROLL for (uint j = 0u; j < STRIPS_N; j++)                                                          \
    TF_SPREAD(fb[set], j, tf_bs[(side * DEPTH + k) * B_LINE + 16u * j + TF_QUAD(across, k, B_LAYOUT)])
#define TF_SPREAD(to, i, QUAD)                                                                         \
  {                                                                                                    \
    precise vec4 v = QUAD;                                                                             \
    to[4u * i] = v.x; to[4u * i + 1u] = v.y; to[4u * i + 2u] = v.z; to[4u * i + 3u] = v.w;             \
  }
/* and the step itself. */
#define TF_STEP(set)                                                                                   \
  UNROLL for (uint i = 0u; i < 4u * STRIPS_M; i++)                                                     \
    UNROLL for (uint j = 0u; j < 4u * STRIPS_N; j++)                                                   \
      sum[i * 4u * STRIPS_N + j] = tf_link(fa[set][i], fb[set][j], sum[i * 4u * STRIPS_N + j]);

/* Four neighbours of a row; fewer at its end. */
void tf_put(Tile at, uint row, uint col, vec4 four) {
  precise float v[4] = {four.x, four.y, four.z, four.w};
  if (row >= p_m || col >= p_n) return;
  uint last = min(p_n - col, 4u);
  if (tf_biased())
    UNROLL for (uint e = 0u; e < 4u; e++)
      if (e < last) v[e] = tf_add(v[e], load_bias(COMPUTE, int(col + e) * p_bias_col));
  int to = at.y + int(row * p_n + col);
  if (OUT_FOUR == 0u) {
    UNROLL for (uint e = 0u; e < 4u; e++) if (e < last) store_out(COMPUTE, to + int(e), v[e]);
  } else if (COMPUTE == TF_F32) {
    set_quad_out(to >> 2, uvec4(UB(v[0]), UB(v[1]), UB(v[2]), UB(v[3])));
  } else {
    set_word64_out(to >> 2, uvec2(tf_bits(COMPUTE, v[0]) | tf_bits(COMPUTE, v[1]) << 16,
                                  tf_bits(COMPUTE, v[2]) | tf_bits(COMPUTE, v[3]) << 16));
  }
}

void main() {
  Tile at = tf_tile(ROWS, COLS);
  if (at.none) return;
  /* 32 neighbours are 4 rows of 8, so that they read few different quads */
  uint t = gl_LocalInvocationIndex, across = t / 32u % 2u * 8u + t % 8u, down = t / 64u * 4u + t / 8u % 4u;
  uint side = 0u;
  int k0 = -int((DEPTH - p_k % DEPTH) % DEPTH); /* the first block may begin before the first k, the others are full */
  precise vec4 ra[ROWS * DEPTH / 1024u], rb[COLS * DEPTH / 1024u];
  precise float fa[2][ROWS / 16u], fb[2][COLS / 16u], sum[16u * STRIPS_M * STRIPS_N];
  UNROLL for (uint i = 0u; i < 16u * STRIPS_M * STRIPS_N; i++) sum[i] = FB(0u);
  TF_FETCH_BOTH(true)
  TF_KEEP_BOTH
  barrier();
  TF_FRAGMENT(0u, 0u)
  for (bool more = true; more;) {
    k0 += int(DEPTH);
    more = k0 < int(p_k);
    if (more) { TF_FETCH_BOTH(false) }
    if (FLUSH > 1u || SHORT != 0u) {
      for (uint k = 0u; k < DEPTH; k++) {
        TF_FRAGMENT(0u, k)
        TF_STEP(0u)
      }
      TF_TURN
    } else {
      UNROLL for (uint k = 0u; k < DEPTH; k++) {
        if (k == DEPTH - 1u) { TF_TURN }
        TF_FRAGMENT((k + 1u) % 2u, (k + 1u) % DEPTH)
        TF_STEP(k % 2u)
      }
    }
  }
  UNROLL for (uint i = 0u; i < 4u * STRIPS_M; i++)
    UNROLL for (uint j = 0u; j < STRIPS_N; j++) {
      uint s = (i * STRIPS_N + j) * 4u;
      tf_put(at, at.row + i / 4u * 64u + down * 4u + i % 4u, at.col + 64u * j + across * 4u,
             vec4(sum[s], sum[s + 1u], sum[s + 2u], sum[s + 3u]));
    }
}
