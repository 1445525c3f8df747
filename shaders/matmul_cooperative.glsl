/* Products of matrices of halves, on hardware that multiplies matrices of 16 x 16: not the chain of the other
   bodies, so not for deterministic mode. HALF is the type of the elements.

   Eight groups of 32 invocations, two down and four across, compute a tile of ROWS x COLS; sums are float32. DEPTH
   elements along k lie in shared memory, and the next ones twice in registers: two steps ahead. */
#include "matmul_place.glsl"
#define DEPTH 32u
#define TM (ROWS / 32u) /* matrices of 16 x 16 of each group of 32, down and across */
#define TN (COLS / 64u)
#define SUM coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
/* In quads of eight halves: lines along k, and lines along the rows of a or columns of b. One more quad keeps lines
   apart. A layout with an odd number has the latter. */
#define K_LINE 5u
#define W_LINE(WIDTH) (WIDTH / 8u + 1u)
#define B_FIRST (K_LINE * ROWS)
shared uvec4 tf_s[K_LINE * (ROWS + COLS)]; /* a, then b; at the end 80 quads for each group of 32 */

/* Place of the eight halves x of this invocation. */
#define TF_WIDE(x, WIDTH, LAYOUT) ((LAYOUT & 1u) == 0u ? (t + 256u * (x)) / 4u : (t + 256u * (x)) % (WIDTH / 8u) * 8u)
#define TF_DEEP(x, WIDTH, LAYOUT) ((LAYOUT & 1u) == 0u ? (t + 256u * (x)) % 4u * 8u : (t + 256u * (x)) / (WIDTH / 8u))
#define TF_LINE(x, WIDTH, LAYOUT)                                                                      \
  ((LAYOUT & 1u) == 0u ? TF_WIDE(x, WIDTH, LAYOUT) * K_LINE + TF_DEEP(x, WIDTH, LAYOUT) / 8u           \
                       : TF_DEEP(x, WIDTH, LAYOUT) * W_LINE(WIDTH) + TF_WIDE(x, WIDTH, LAYOUT) / 8u)
/* From memory: zeros behind the last k. Rows past the last are the last ones again: what they give is not stored. */
#define TF_FETCH(r, NAME, WIDTH, LAYOUT, k0, base, first, size, step, k_step)                          \
  UNROLL for (uint x = 0u; x < WIDTH / 64u; x++) {                                                     \
    uint w = first + TF_WIDE(x, WIDTH, LAYOUT), k = (k0) + TF_DEEP(x, WIDTH, LAYOUT);                  \
    r[x] = uvec4(0u);                                                                                  \
    if (LAYOUT >= 2u) {                                                                                \
      w = min(w, size - (LAYOUT == 3u ? 8u : 1u));                                                     \
      if (k < p_k) r[x] = quad_##NAME((base + int(w) * (step) + int(k) * (k_step)) >> 3);              \
    } else {                                                                                           \
      UNROLL for (uint e = 0u; e < 8u; e++) {                                                          \
        uint i = min(LAYOUT == 0u ? w : w + e, size - 1u), q = LAYOUT == 0u ? k + e : k;               \
        if (q < p_k) r[x][e / 2u] |= word16_##NAME(base + int(i) * (step) + int(q) * (k_step)) << (e % 2u * 16u); \
      }                                                                                                \
    }                                                                                                  \
  }
#define TF_FETCH_BOTH(ra, rb, k0)                                                                      \
  TF_FETCH(ra, a, ROWS, A_LAYOUT, k0, at.a, at.row, p_m, p_a_row, p_a_k)                               \
  TF_FETCH(rb, b, COLS, B_LAYOUT, k0, at.b, at.col, p_n, p_b_col, p_b_k)
/* To shared memory. */
#define TF_KEEP_BOTH(ra, rb)                                                                           \
  UNROLL for (uint x = 0u; x < ROWS / 64u; x++) tf_s[TF_LINE(x, ROWS, A_LAYOUT)] = ra[x];              \
  UNROLL for (uint x = 0u; x < COLS / 64u; x++) tf_s[B_FIRST + TF_LINE(x, COLS, B_LAYOUT)] = rb[x];
/* DEPTH elements of every sum. */
#define TF_STEP                                                                                        \
  UNROLL for (uint k = 0u; k < DEPTH / 16u; k++) {                                                     \
    coopmat<HALF, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a[TM];                                      \
    UNROLL for (uint i = 0u; i < TM; i++) {                                                            \
      uint row = (down * TM + i) * 16u;                                                                \
      if ((A_LAYOUT & 1u) == 0u)                                                                       \
        coopMatLoad(a[i], tf_s, row * K_LINE + k * 2u, K_LINE, gl_CooperativeMatrixLayoutRowMajor);    \
      else                                                                                             \
        coopMatLoad(a[i], tf_s, k * 16u * W_LINE(ROWS) + row / 8u, W_LINE(ROWS),                       \
                    gl_CooperativeMatrixLayoutColumnMajor);                                            \
    }                                                                                                  \
    UNROLL for (uint j = 0u; j < TN; j++) {                                                            \
      coopmat<HALF, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b;                                        \
      uint col = (across * TN + j) * 16u;                                                              \
      if ((B_LAYOUT & 1u) == 0u)                                                                       \
        coopMatLoad(b, tf_s, B_FIRST + col * K_LINE + k * 2u, K_LINE, gl_CooperativeMatrixLayoutColumnMajor); \
      else                                                                                             \
        coopMatLoad(b, tf_s, B_FIRST + k * 16u * W_LINE(COLS) + col / 8u, W_LINE(COLS),                \
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
  uvec4 ra[ROWS / 64u], rb[COLS / 64u], ra2[ROWS / 64u], rb2[COLS / 64u];
  SUM sum[TM * TN];
  UNROLL for (uint i = 0u; i < TM * TN; i++) sum[i] = SUM(0.0f);
  TF_FETCH_BOTH(ra, rb, 0u)
  TF_KEEP_BOTH(ra, rb)
  TF_FETCH_BOTH(ra, rb, DEPTH)
  barrier();
  for (uint k0 = 0u;; k0 += 2u * DEPTH) {
    TF_FETCH_BOTH(ra2, rb2, k0 + 2u * DEPTH)
    TF_STEP
    barrier();
    if (k0 + DEPTH >= p_k) break;
    TF_KEEP_BOTH(ra, rb)
    barrier();
    TF_FETCH_BOTH(ra, rb, k0 + 3u * DEPTH)
    TF_STEP
    barrier();
    if (k0 + 2u * DEPTH >= p_k) break;
    TF_KEEP_BOTH(ra2, rb2)
    barrier();
  }
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
