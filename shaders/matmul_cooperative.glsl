/* Products of matrices of halves, on hardware that multiplies matrices of 16 x 16: not the chain of the other
   bodies, so not for deterministic mode. HALF is the type of the elements.

   Eight groups of 32 invocations, two down and four across, compute a tile of ROWS x COLS; sums are float32. A step
   takes DEPTH elements along k from shared memory, while those of the next two are on their way to registers. */
#include "matmul_place.glsl"
#define DEPTH 32u
#define TM (ROWS / 32u) /* matrices of 16 x 16 of each group of 32, down and across */
#define TN (COLS / 64u)
#define SUM coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
/* In quads of eight halves: lines along k, and lines along the rows of a or columns of b, which an odd layout has. One
   more quad keeps lines apart. */
#define ALONG(LAYOUT) ((LAYOUT & 1u) == 0u)
#define WIDE_LINE(WIDTH) (WIDTH / 8u + 1u)
/* Lines along k that hold two steps are read from memory in pieces of 128 bytes, as fast as lines across it. Those of a
   hold one where both would take too much shared memory, and in smaller tiles, which are slower then if b has no such
   lines. */
#define B_STEPS (ALONG(B_LAYOUT) ? 2u : 1u)
#define A_STEPS (ALONG(A_LAYOUT) ? ((ALONG(B_LAYOUT) ? 9u * ROWS + B_QUADS <= 3008u : COLS == 256u) ? 2u : 1u) : 1u)
#define QUADS(WIDTH, LAYOUT, STEPS) (ALONG(LAYOUT) ? (4u * STEPS + 1u) * WIDTH : DEPTH * WIDE_LINE(WIDTH))
#define A_QUADS QUADS(ROWS, A_LAYOUT, A_STEPS)
#define B_QUADS QUADS(COLS, B_LAYOUT, B_STEPS)
shared uvec4 tf_s[A_QUADS + B_QUADS + 64u]; /* a, then b; at the end 80 quads for each group of 32 */

/* Place of the eight halves x of this invocation in a tile. */
#define TF_WIDE(x, WIDTH, LAYOUT, STEPS)                                                               \
  (ALONG(LAYOUT) ? (t + 256u * (x)) / (4u * STEPS) : (t + 256u * (x)) % (WIDTH / 8u) * 8u)
#define TF_DEEP(x, WIDTH, LAYOUT, STEPS)                                                               \
  (ALONG(LAYOUT) ? t % (4u * STEPS) * 8u : (t + 256u * (x)) / (WIDTH / 8u))
#define TF_LINE(x, WIDTH, LAYOUT, STEPS)                                                               \
  (ALONG(LAYOUT) ? TF_WIDE(x, WIDTH, LAYOUT, STEPS) * (4u * STEPS + 1u) + TF_DEEP(x, WIDTH, LAYOUT, STEPS) / 8u \
                 : TF_DEEP(x, WIDTH, LAYOUT, STEPS) * WIDE_LINE(WIDTH) + TF_WIDE(x, WIDTH, LAYOUT, STEPS) / 8u)
/* What an invocation loads of a tile; its registers hold twice that: two steps in turn, or both at once. */
#define LOADS(WIDTH) (WIDTH / 64u)
/* From memory: zeros behind the last k. Rows past the last are the last ones again: what they give is not stored. */
#define TF_FETCH(odd, r, NAME, WIDTH, LAYOUT, STEPS, k0, base, first, size, step, k_step)              \
  if (STEPS == 1u || odd == 0u)                                                                        \
    UNROLL for (uint x = 0u; x < LOADS(WIDTH) * STEPS; x++) {                                          \
      uint w = first + TF_WIDE(x, WIDTH, LAYOUT, STEPS), k = (k0) + TF_DEEP(x, WIDTH, LAYOUT, STEPS);  \
      uvec4 v = uvec4(0u);                                                                             \
      if (LAYOUT >= 2u) {                                                                              \
        w = min(w, size - (LAYOUT == 3u ? 8u : 1u));                                                   \
        if (k < p_k) v = quad_##NAME((base + int(w) * (step) + int(k) * (k_step)) >> 3);               \
      } else {                                                                                         \
        UNROLL for (uint e = 0u; e < 8u; e++) {                                                        \
          uint i = min(LAYOUT == 0u ? w : w + e, size - 1u), q = LAYOUT == 0u ? k + e : k;             \
          if (q < p_k) v[e / 2u] |= word16_##NAME(base + int(i) * (step) + int(q) * (k_step)) << (e % 2u * 16u); \
        }                                                                                              \
      }                                                                                                \
      r[odd * LOADS(WIDTH) + x] = v;                                                                   \
    }
#define TF_FETCH_BOTH(odd, k0)                                                                         \
  TF_FETCH(odd, ra, a, ROWS, A_LAYOUT, A_STEPS, k0, at.a, at.row, p_m, p_a_row, p_a_k)                 \
  TF_FETCH(odd, rb, b, COLS, B_LAYOUT, B_STEPS, k0, at.b, at.col, p_n, p_b_col, p_b_k)
/* To shared memory. */
#define TF_KEEP(odd, r, from, WIDTH, LAYOUT, STEPS)                                                    \
  if (STEPS == 1u || odd == 0u)                                                                        \
    UNROLL for (uint x = 0u; x < LOADS(WIDTH) * STEPS; x++)                                            \
      tf_s[from + TF_LINE(x, WIDTH, LAYOUT, STEPS)] = r[odd * LOADS(WIDTH) + x];
#define TF_KEEP_BOTH(odd)                                                                              \
  TF_KEEP(odd, ra, 0u, ROWS, A_LAYOUT, A_STEPS)                                                        \
  TF_KEEP(odd, rb, A_QUADS, COLS, B_LAYOUT, B_STEPS)
/* 16 elements of every sum, the k-th ones of a step. */
#define TF_STEP(odd, k)                                                                                \
  {                                                                                                    \
    coopmat<HALF, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a[TM];                                      \
    UNROLL for (uint i = 0u; i < TM; i++) {                                                            \
      uint row = (down * TM + i) * 16u;                                                                \
      if (ALONG(A_LAYOUT))                                                                             \
        coopMatLoad(a[i], tf_s, row * (4u * A_STEPS + 1u) + (A_STEPS - 1u) * odd * 4u + k * 2u,        \
                    4u * A_STEPS + 1u, gl_CooperativeMatrixLayoutRowMajor);                            \
      else                                                                                             \
        coopMatLoad(a[i], tf_s, k * 16u * WIDE_LINE(ROWS) + row / 8u, WIDE_LINE(ROWS),                 \
                    gl_CooperativeMatrixLayoutColumnMajor);                                            \
    }                                                                                                  \
    UNROLL for (uint j = 0u; j < TN; j++) {                                                            \
      coopmat<HALF, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b;                                        \
      uint col = (across * TN + j) * 16u;                                                              \
      if (ALONG(B_LAYOUT))                                                                             \
        coopMatLoad(b, tf_s, A_QUADS + col * (4u * B_STEPS + 1u) + (B_STEPS - 1u) * odd * 4u + k * 2u, \
                    4u * B_STEPS + 1u, gl_CooperativeMatrixLayoutColumnMajor);                         \
      else                                                                                             \
        coopMatLoad(b, tf_s, A_QUADS + k * 16u * WIDE_LINE(COLS) + col / 8u, WIDE_LINE(COLS),          \
                    gl_CooperativeMatrixLayoutRowMajor);                                               \
      UNROLL for (uint i = 0u; i < TM; i++) sum[i * TN + j] = coopMatMulAdd(a[i], b, sum[i * TN + j]); \
    }                                                                                                  \
  }

uint tf_pair(float low, float high) { return tf_bits(COMPUTE, low) | tf_bits(COMPUTE, high) << 16; }
/* Eight neighbours of a row, fewer at its end: the bias is added to float32, then they are rounded. */
void tf_put(Tile at, uint row, uint col, uvec4 low, uvec4 high) {
  precise float v[8];
  if (row >= p_m || col >= p_n) return;
  UNROLL for (uint e = 0u; e < 4u; e++) {
    v[e] = FB(low[e]);
    v[4u + e] = FB(high[e]);
  }
  uint last = min(p_n - col, 8u);
  if (tf_biased())
    UNROLL for (uint e = 0u; e < 8u; e++)
      if (e < last) v[e] = tf_add(v[e], load_bias(COMPUTE, int(col + e) * p_bias_col));
  int to = at.y + int(row * p_n + col);
  if (OUT_EIGHT != 0u) {
    set_quad_out(to >> 3, uvec4(tf_pair(v[0], v[1]), tf_pair(v[2], v[3]), tf_pair(v[4], v[5]), tf_pair(v[6], v[7])));
  } else {
    UNROLL for (uint e = 0u; e < 8u; e++) if (e < last) set_word16_out(to + int(e), tf_bits(COMPUTE, v[e]));
  }
}

void main() {
  Tile at = tf_tile(ROWS, COLS);
  if (at.none) return;
  uint t = gl_LocalInvocationIndex, group = gl_SubgroupID, down = group / 4u, across = group % 4u;
  uvec4 ra[2u * LOADS(ROWS)], rb[2u * LOADS(COLS)];
  SUM sum[TM * TN];
  UNROLL for (uint i = 0u; i < TM * TN; i++) sum[i] = SUM(0.0f);
  TF_FETCH_BOTH(0u, 0u)
  TF_FETCH_BOTH(1u, DEPTH)
  TF_KEEP_BOTH(0u)
  barrier();
  for (uint k0 = 0u;; k0 += 2u * DEPTH) {
    TF_STEP(0u, 0u)
    TF_FETCH_BOTH(0u, k0 + 2u * DEPTH)
    TF_STEP(0u, 1u)
    if (A_STEPS * B_STEPS < 4u) barrier(); /* else both have the second step already */
    if (k0 + DEPTH >= p_k) break;
    TF_KEEP_BOTH(1u)
    if (A_STEPS * B_STEPS < 4u) barrier();
    TF_STEP(1u, 0u)
    TF_FETCH_BOTH(1u, k0 + 3u * DEPTH)
    TF_STEP(1u, 1u)
    barrier();
    if (k0 + 2u * DEPTH >= p_k) break;
    TF_KEEP_BOTH(0u)
    barrier();
  }
  barrier();
  uint lane = gl_SubgroupInvocationID, from = group * 80u + lane / 2u * 5u + lane % 2u * 2u;
  UNROLL for (uint i = 0u; i < TM; i++)
    UNROLL for (uint j = 0u; j < TN; j++) {
      coopMatStore(sum[i * TN + j], tf_s, group * 80u, 5u, gl_CooperativeMatrixLayoutRowMajor);
      subgroupMemoryBarrierShared();
      subgroupBarrier();
      tf_put(at, at.row + (down * TM + i) * 16u + lane / 2u, at.col + (across * TN + j) * 16u + lane % 2u * 8u,
             tf_s[from], tf_s[from + 1u]);
      subgroupMemoryBarrierShared();
      subgroupBarrier();
    }
}
