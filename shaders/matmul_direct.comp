/* Products of matrices without shared memory, for devices that are processors: barriers cost them more than reading
 * an element twice. ROWS x COLS results for each invocation, 64 of which are a tile.
 *
 * operands: out a b bias
 * words: uint m; uint n; uint k; int a_row; int a_k; int b_k; int b_col; int out_row; int out_col;
 *   int bias_row; int bias_col; uint batch; uint shape[3]; int step[8]
 * constants: COMPUTE
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

void main() {
  Tile at = tf_tile(8u * ROWS, 8u * COLS);
  if (at.none) return;
  uint t = gl_LocalInvocationIndex, row = at.row + t / 8u, col = at.col + t % 8u;
  if (row >= p_m || col >= p_n) return;
  precise_T sum[ROWS * COLS];
  int a_at[ROWS], b_at[COLS];
  /* Rows past the last are the last one again: what they give is not stored. */
  UNROLL for (uint i = 0u; i < ROWS; i++) a_at[i] = at.a + int(min(row + 8u * i, p_m - 1u)) * p_a_row;
  UNROLL for (uint j = 0u; j < COLS; j++) b_at[j] = at.b + int(min(col + 8u * j, p_n - 1u)) * p_b_col;
  UNROLL for (uint i = 0u; i < ROWS * COLS; i++) sum[i] = T(0);
  for (int k = 0; k < int(p_k); k++) {
    T a[ROWS], b[COLS];
    UNROLL for (uint i = 0u; i < ROWS; i++) a[i] = load_a(COMPUTE, a_at[i] + k * p_a_k);
    UNROLL for (uint j = 0u; j < COLS; j++) b[j] = load_b(COMPUTE, b_at[j] + k * p_b_k);
    UNROLL for (uint i = 0u; i < ROWS; i++)
      UNROLL for (uint j = 0u; j < COLS; j++) sum[i * COLS + j] = TF_MULTIPLY_ADD(a[i], b[j], sum[i * COLS + j]);
  }
  UNROLL for (uint i = 0u; i < ROWS; i++)
    UNROLL for (uint j = 0u; j < COLS; j++) {
      uint r = row + 8u * i, c = col + 8u * j;
      if (r < p_m && c < p_n) {
        precise_T s = sum[i * COLS + j];
        if (tf_biased()) s = tf_add(s, load_bias(COMPUTE, int(r) * p_bias_row + int(c) * p_bias_col));
        store_out(COMPUTE, at.y + int(r) * p_out_row + int(c) * p_out_col, s);
      }
    }
}
