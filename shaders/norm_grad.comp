/* Gradient of layer norm and RMS norm for x: with h = g w, ((h - mean of h) - xhat (mean of h xhat)) rstd.
 *
 * RMS: not centred, without the first mean. WTYPE: dtype of the weights, 255 where there are none.
 * STAGE 1: the means are there, in two rows, and teams of 64 share the blocks of few long rows, with layout 0, TEAMS 1
 * and KEEP 0.
 *
 * operands: y x g mean rstd w means
 * words: uint rows; uint n; uint inner; int outer_step[2]; int inner_step[2]; int step[2]; number count
 * constants: RMS OUT IN GIN WTYPE LAYOUT TEAMS SPLIT KEEP FULL STAGE
 * group: 256
 * numbers: float double
 */
#include "rows.glsl"
#include "quotient.glsl"

int tf_x, tf_g, tf_y; /* where the row begins */
T tf_m, tf_rs;    /* globals are never `precise`: glslang takes them for locals then */
T tf_xhat(uint i) { return tf_mul(tf_sub(load_x(IN, tf_x + int(i) * p_step(0)), tf_m), tf_rs); }
/* g w */
T tf_h(uint i) {
  precise T g = load_g(GIN, tf_g + int(i) * p_step(1));
  if (WTYPE != 255u) g = tf_mul(g, load_w(WTYPE, int(i)));
  return g;
}
void tf_store(uint i, T h, T xhat, T s, T p) {
  store_y(OUT, tf_y + int(i), tf_mul(tf_sub(tf_sub(h, s), tf_mul(xhat, p)), tf_rs));
}

T2 tf_both(uint i) { return T2(tf_h(i), tf_xhat(i)); }

void main() {
  uint n = p_n, jobs = STAGE != 0u ? p_rows * ((n + 2047u) >> 11) : p_rows;
  if (tf_group() * TF_ROWS >= jobs) return;
  uint row = tf_group() * TF_ROWS + tf_row_here(), block = row / p_rows;
  bool live = row < jobs; /* the others go through the same barriers */
  row = STAGE != 0u ? row % p_rows : min(row, p_rows - 1u);
  int outer = int(row / p_inner), inner = int(row % p_inner);
  tf_y = int(row * n);
  tf_x = outer * p_outer_step(0) + inner * p_inner_step(0);
  tf_g = outer * p_outer_step(1) + inner * p_inner_step(1);
  tf_m = T(0);
  if (RMS == 0u) tf_m = load_mean(TF_OWN, int(row));
  tf_rs = load_rstd(TF_OWN, int(row));
  precise T x[32], h[32], t[32], s = T(0), p;
  if (STAGE != 0u) {
    if (!live) return;
    if (RMS == 0u) s = load_means(TF_OWN, int(row));
    p = load_means(TF_OWN, int(p_rows + row));
    TF_ALONG_BLOCK(block, n, tf_both(i), tf_store(i, v.x, v.y, s, p))
    return;
  }
  TF_EACH {
    x[k] = T(0);
    h[k] = TF_NOTHING;
    if (tf_in(k, n)) {
      precise T2 v = tf_both(tf_element(k));
      h[k] = v.x;
      x[k] = v.y;
    }
  }
  if (RMS == 0u) {
    if (KEEP != 0u) TF_KEPT_SUM(s, h)
    else TF_ROW_SUM(s, n, tf_both(i), v.x)
    s = tf_quotient(s, p_count);
  }
  if (KEEP != 0u) {
    TF_EACH t[k] = tf_term_in(k, n, tf_mul(h[k], x[k]));
    TF_KEPT_SUM(p, t)
  } else TF_ROW_SUM(p, n, tf_both(i), tf_mul(v.x, v.y))
  p = tf_quotient(p, p_count);
  if (!live) return;
  if (KEEP != 0u) {
    TF_EACH if (tf_in(k, n)) tf_store(tf_element(k), h[k], x[k], s, p);
  } else TF_ALONG(n, tf_both(i), tf_store(i, v.x, v.y, s, p))
}
