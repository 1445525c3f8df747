/* Products of matrices without shared memory, for devices that are processors: barriers cost them more than reading
 * an element twice. ROWS x COLS results for each invocation, 64 of which are a tile.
 * A_PAIRS, B_PAIRS: float32 is loaded one at a time (0), two at a time along k (2), or along rows of a, columns
 * of b (3): each access is made for one invocation after another, and takes longer than all else.
 *
 * operands: out a b bias
 * words: uint m; uint n; uint k; int a_row; int a_k; int b_k; int b_col; int out_row; int out_col;
 *   int bias_row; int bias_col; uint batch; uint shape[3]; int step[8]
 * constants: COMPUTE A_PAIRS B_PAIRS
 * group: 64
 * numbers: float integer double
 */
#include "matmul_place.glsl"
#if defined(TF_FLOAT) || defined(TF_DOUBLE)
#define precise_T precise T
#define TF_MULTIPLY_ADD(a, b, c) tf_link(a, b, c)
#else
#define precise_T T
#define TF_MULTIPLY_ADD(a, b, c) tf_add(tf_mul(a, b), c)
#endif
#define ROWS 4u
#define COLS 8u
#define DEPTH (A_PAIRS == 2u || B_PAIRS == 2u ? 2u : 1u) /* steps at once; they divide k */
/* Pairs of neighbours, with those of the other invocations of the tile between them. */
#define TF_WIDE(first, i) ((first) + (i) / 2u * 16u + (i) % 2u)
/* Rows past the last are the last ones again: what they give is not stored. */
#define TF_LAST(size, i, PAIRS) ((size) - (PAIRS == 3u ? 2u - (i) % 2u : 1u))
#ifdef TF_FLOAT
#define TF_FETCH(r, NAME, N, PAIRS, at, step)                                                          \
  UNROLL for (uint i = 0u; i < N; i++) {                                                               \
    if (PAIRS == 2u) {                                                                                 \
      uvec2 w = pair_##NAME((at[i] + k) >> 1);                                                         \
      r[i] = FB(w.x);                                                                                  \
      r[N + i] = FB(w.y);                                                                              \
    } else if (PAIRS == 3u && i % 2u == 0u) {                                                          \
      UNROLL for (uint d = 0u; d < DEPTH; d++) {                                                         \
        uvec2 w = pair_##NAME((at[i] + (k + int(d)) * (step)) >> 1);                                        \
        r[d * N + i] = FB(w.x);                                                                  \
        r[d * N + i + 1u] = FB(w.y);                                                             \
      }                                                                                                \
    } else if (PAIRS == 0u) {                                                                          \
      UNROLL for (uint d = 0u; d < DEPTH; d++) r[d * N + i] = load_##NAME(COMPUTE, at[i] + (k + int(d)) * (step)); \
    }                                                                                                  \
  }
#else
#define TF_FETCH(r, NAME, N, PAIRS, at, step)                                                          \
  UNROLL for (uint i = 0u; i < N; i++) r[i] = load_##NAME(COMPUTE, at[i] + k * (step));
#endif

void main() {
  Tile at = tf_tile(8u * ROWS, 8u * COLS);
  if (at.none) return;
  uint t = gl_LocalInvocationIndex, row = at.row + t / 8u * 2u, col = at.col + t % 8u * 2u;
  if (row >= p_m || col >= p_n) return;
  precise_T sum[ROWS * COLS];
  int a_at[ROWS], b_at[COLS];
  UNROLL for (uint i = 0u; i < ROWS; i++)
    a_at[i] = at.a + int(min(TF_WIDE(row, i), TF_LAST(p_m, i, A_PAIRS))) * p_a_row;
  UNROLL for (uint j = 0u; j < COLS; j++)
    b_at[j] = at.b + int(min(TF_WIDE(col, j), TF_LAST(p_n, j, B_PAIRS))) * p_b_col;
  UNROLL for (uint i = 0u; i < ROWS * COLS; i++) sum[i] = T(0);
  for (int k = 0; k < int(p_k); k += int(DEPTH)) {
    T a[ROWS * DEPTH], b[COLS * DEPTH];
    TF_FETCH(a, a, ROWS, A_PAIRS, a_at, p_a_k)
    TF_FETCH(b, b, COLS, B_PAIRS, b_at, p_b_k)
    UNROLL for (uint d = 0u; d < DEPTH; d++)
      UNROLL for (uint i = 0u; i < ROWS; i++)
        UNROLL for (uint j = 0u; j < COLS; j++)
          sum[i * COLS + j] = TF_MULTIPLY_ADD(a[d * ROWS + i], b[d * COLS + j], sum[i * COLS + j]);
  }
  UNROLL for (uint i = 0u; i < ROWS; i++)
    UNROLL for (uint j = 0u; j < COLS; j++) {
      uint r = TF_WIDE(row, i), c = TF_WIDE(col, j);
      if (r < p_m && c < p_n) {
        precise_T s = sum[i * COLS + j];
        if (tf_biased()) s = tf_add(s, load_bias(COMPUTE, int(r) * p_bias_row + int(c) * p_bias_col));
        store_out(COMPUTE, at.y + int(r) * p_out_row + int(c) * p_out_col, s);
      }
    }
}
