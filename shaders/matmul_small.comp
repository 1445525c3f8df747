/* Products of small or narrow matrices: one result for each invocation, in tiles of ROWS x COLS = 256.
 *
 * A_DENSE, B_DENSE: whether the rows of a, the columns of b, lie closer to each other than their elements.
 *
 * operands: out a b bias
 * words: uint m; uint n; uint k; int a_row; int a_k; int b_k; int b_col; int out_row; int out_col;
 *   int bias_row; int bias_col; uint batch; uint shape[3]; int step[8]
 * constants: COMPUTE ROWS=16 COLS=16 DEPTH=16 A_DENSE B_DENSE
 * group: 256
 * numbers: float integer long double
 */
#include "matmul_place.glsl"
#if defined(TF_FLOAT) || defined(TF_DOUBLE)
#define precise_T precise T
#define TF_MULTIPLY_ADD(a, b, c) tf_link(a, b, c)
#else
#define precise_T T
#define TF_MULTIPLY_ADD(a, b, c) tf_add(tf_mul(a, b), c)
#endif
shared T tf_as[2u * DEPTH * (ROWS + 1u)];
shared T tf_bs[2u * DEPTH * (COLS + 1u)];

/* Place of element x of this invocation in a tile of WIDTH x DEPTH: neighbours in memory have neighbours. */
#define TF_WIDE(x, WIDTH, DENSE) (DENSE != 0u ? (t + 256u * (x)) % WIDTH : (t + 256u * (x)) / DEPTH)
#define TF_DEEP(x, WIDTH, DENSE) (DENSE != 0u ? (t + 256u * (x)) / WIDTH : (t + 256u * (x)) % DEPTH)
/* Rows past the last are the last one again: what they give is not stored. */
#define TF_FETCH(r, NAME, WIDTH, DENSE, base, first, size, step, k_step)                               \
  UNROLL for (uint x = 0u; x < WIDTH * DEPTH / 256u; x++) {                                            \
    uint k = k0 + TF_DEEP(x, WIDTH, DENSE), w = min(first + TF_WIDE(x, WIDTH, DENSE), size - 1u);      \
    r[x] = T(0);                                                                                       \
    if (k < p_k) r[x] = load_##NAME(COMPUTE, base + int(w) * (step) + int(k) * (k_step));              \
  }
#define TF_FETCH_BOTH                                                                                  \
  TF_FETCH(ra, a, ROWS, A_DENSE, at.a, at.row, p_m, p_a_row, p_a_k)                                    \
  TF_FETCH(rb, b, COLS, B_DENSE, at.b, at.col, p_n, p_b_col, p_b_k)
#define TF_KEEP(r, s, WIDTH, DENSE)                                                                    \
  UNROLL for (uint x = 0u; x < WIDTH * DEPTH / 256u; x++)                                              \
    s[(side * DEPTH + TF_DEEP(x, WIDTH, DENSE)) * (WIDTH + 1u) + TF_WIDE(x, WIDTH, DENSE)] = r[x];
#define TF_KEEP_BOTH TF_KEEP(ra, tf_as, ROWS, A_DENSE) TF_KEEP(rb, tf_bs, COLS, B_DENSE)
#define TF_STEP                                                                                        \
  sum = TF_MULTIPLY_ADD(tf_as[(side * DEPTH + k) * (ROWS + 1u) + row],                                 \
                        tf_bs[(side * DEPTH + k) * (COLS + 1u) + col], sum);

void main() {
  Tile at = tf_tile(ROWS, COLS);
  if (at.none) return;
  uint t = gl_LocalInvocationIndex, row = ROWS > COLS ? t % ROWS : t / COLS, col = ROWS > COLS ? t / ROWS : t % COLS;
  uint side = 0u, k0 = 0u;
  precise_T ra[ROWS * DEPTH / 256u], rb[COLS * DEPTH / 256u], sum = T(0);
  TF_FETCH_BOTH
  TF_KEEP_BOTH
  barrier();
  for (uint left = p_k; left > 0u; left -= min(left, DEPTH)) {
    k0 += DEPTH;
    if (left > DEPTH) { TF_FETCH_BOTH }
    if (left >= DEPTH) {
      for (uint k = 0u; k < DEPTH; k++) { TF_STEP }
    } else {
      for (uint k = 0u; k < left; k++) { TF_STEP }
    }
    side = 1u - side;
    if (left > DEPTH) { TF_KEEP_BOTH }
    barrier();
  }
  row += at.row;
  col += at.col;
  if (row >= p_m || col >= p_n) return;
  if (tf_biased()) sum = tf_add(sum, load_bias(COMPUTE, int(row) * p_bias_row + int(col) * p_bias_col));
  store_out(COMPUTE, at.y + int(row) * p_out_row + int(col) * p_out_col, sum);
}
