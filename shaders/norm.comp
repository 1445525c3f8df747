/* Layer norm and RMS norm: rows of n elements of x, `step` apart, to dense rows of y; a mean and a factor for each.
 *
 * RMS: not centred. WTYPE, BTYPE: dtypes of the weights, 255 where there are none.
 * STAGE 1: mean and factor are there (norm_sums.comp, norm_finish.comp found them), and teams of 64 share the blocks of
 * few long rows, with layout 0, TEAMS 1 and KEEP 0.
 *
 * operands: x y w b mean rstd
 * words: uint rows; uint n; uint inner; int outer_step; int inner_step; int step; number count; number eps
 * constants: RMS OUT IN WTYPE BTYPE LAYOUT TEAMS SPLIT KEEP FULL STAGE
 * group: 256
 * numbers: float double
 */
#include "rows.glsl"
#include "quotient.glsl"

int tf_x, tf_y; /* where the row begins */
T tf_x_of(uint i) { return load_x(IN, tf_x + int(i) * p_step); }
T tf_square(T d) { return tf_mul(d, d); }
T tf_factor(T s) { return tf_quotient(T(1), tf_root(tf_add(tf_quotient(s, p_count), p_eps))); }
void tf_store(uint i, T d, T rs) {
  precise T v = tf_mul(d, rs);
  if (WTYPE != 255u) v = tf_mul(v, load_w(WTYPE, int(i)));
  if (BTYPE != 255u) v = tf_add(v, load_b(BTYPE, int(i)));
  store_y(OUT, tf_y + int(i), v);
}
T2 tf_pass(uint i) { return T2(tf_x_of(i), T(0)); }

void main() {
  uint n = p_n, jobs = STAGE != 0u ? p_rows * ((n + 2047u) >> 11) : p_rows;
  if (tf_group() * TF_ROWS >= jobs) return;
  uint row = tf_group() * TF_ROWS + tf_row_here(), block = row / p_rows;
  bool live = row < jobs; /* the others go through the same barriers */
  row = STAGE != 0u ? row % p_rows : min(row, p_rows - 1u);
  tf_x = int(row / p_inner) * p_outer_step + int(row % p_inner) * p_inner_step;
  tf_y = int(row * n);
  precise T x[32], t[32], s, m = T(0);
  if (STAGE != 0u) {
    if (!live) return;
    if (RMS == 0u) m = load_mean(TF_OWN, int(row));
    s = load_rstd(TF_OWN, int(row));
    TF_ALONG_BLOCK(block, n, tf_pass(i), tf_store(i, tf_sub(v.x, m), s))
    return;
  }
  TF_EACH x[k] = VALUE(tf_in(k, n) ? BITS(tf_x_of(tf_element(k))) : BITS(TF_NOTHING));
  if (RMS == 0u) {
    if (KEEP != 0u) TF_KEPT_SUM(s, x)
    else TF_ROW_SUM(s, n, tf_pass(i), v.x)
    m = tf_quotient(s, p_count);
  }
  if (KEEP != 0u) {
    TF_EACH x[k] = tf_sub(x[k], m);
    TF_EACH t[k] = tf_term_in(k, n, tf_square(x[k]));
    TF_KEPT_SUM(s, t)
  } else TF_ROW_SUM(s, n, tf_pass(i), tf_square(tf_sub(v.x, m)))
  if (!live) return;
  s = tf_factor(s);
  if (KEEP != 0u) {
    TF_EACH if (tf_in(k, n)) tf_store(tf_element(k), x[k], s);
  } else TF_ALONG(n, tf_pass(i), tf_store(i, tf_sub(v.x, m), s))
  if (!tf_speaks()) return;
  if (RMS == 0u) store_mean(TF_OWN, int(row), m);
  store_rstd(TF_OWN, int(row), s);
}
