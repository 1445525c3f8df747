/* Softmax along an axis: rows of n elements, `step` apart, which lie in memory as rows of rows.
 *
 * KIND 0: softmax(x); 1: log_softmax(x); 2, 3: their gradients, x being the result and g the cotangent; 4: of x the
 * largest number in y and the logarithm of the sum of exp(x - it) in g, one for each row. NARROW: x is rounded to the
 * result's type first.
 *
 * operands: x y g
 * words: uint rows; uint n; uint inner; int outer_step[3]; int inner_step[3]; int step[3]
 * constants: KIND OUT IN GIN NARROW LAYOUT TEAMS SPLIT KEEP FULL
 * group: 256
 * numbers: float
 */
#include "rows.glsl"
#include "quotient.glsl"

int tf_x, tf_y, tf_g; /* where the row begins */
float tf_x_of(uint i) {
  precise float v = load_x(IN, tf_x + int(i) * p_step(0));
  if (NARROW != 0u) v = tf_number(OUT, tf_bits(OUT, v));
  return v;
}
float tf_g_of(uint i) { return load_g(GIN, tf_g + int(i) * p_step(2)); }
void tf_store(uint i, float v) { store_y(OUT, tf_y + int(i) * p_step(1), v); }

/* vm_exp of what is not above 0, its exponent from the bits of the sum that rounds it. */
float tf_exp(float x) {
  uint a = UB(x) & 0x7fffffffu;
  precise float c = FB(min(a, 0x42d00000u) | 0x80000000u); /* -104 */
  precise float t = vm_fma(c, 1.44269504f, 12582912.0f), k = t - 12582912.0f, y = vm_exp1(c, k);
  uint r = UB(y) + (UB(t) << 23);
  r = int(r) < 0x00800000 ? 0u : r;
  return FB(a > 0x7f800000u ? 0x7fc00000u : r);
}
/* n / s for the terms of one sum: `over` is what vm_quot makes of s alone. */
float tf_over(float s) {
  precise float y = vm_rcp0(s), e = vm_fma(-s, y, 1.0f);
  y = vm_fma(y, e, y);
  e = vm_fma(-s, y, 1.0f);
  y = vm_fma(y, e, y);
  return y;
}
/* Whether vm_quot gives the quotient: for 0, and from 2^-60 to 1. */
bool tf_plain(float n) { return UB(n) - 0x21800000u <= 0x1e000000u || UB(n) == 0u; }
float tf_share(float n, float s, float over) {
  precise float q = n * over, r = vm_fma(-s, q, n);
  q = vm_fma(r, over, q);
  r = vm_fma(-s, q, n);
  q = vm_fma(r, over, q);
  return q;
}
float tf_slope(float g, float x, float s) {
  if (KIND == 2u) return tf_mul(x, tf_sub(g, s));
  return tf_sub(g, tf_mul(vm_exp(x), s));
}
void tf_sums(uint row, float m, float s) {
  if (!tf_speaks()) return;
  store_y(TF_F32, int(row), m);
  store_g(TF_F32, int(row), s);
}
void tf_softmax(uint i, float x, float m, float s, float over) {
  precise float e = tf_exp(tf_sub(x, m));
  if (tf_plain(e)) tf_store(i, tf_share(e, s, over));
  else tf_store(i, tf_quotient(e, s));
}
void tf_mend(uint i, float m, float s) {
  precise float e = tf_exp(tf_sub(tf_x_of(i), m));
  if (!tf_plain(e)) tf_store(i, tf_quotient(e, s));
}

/* Rows in registers. */
void tf_kept(uint row, bool live) {
  uint n = p_n;
  precise float x[32], t[32], s, m = FB(0xff800000u);
  TF_EACH x[k] = FB(tf_in(k, n) ? UB(tf_x_of(tf_element(k))) : 0xff800000u);
  if (KIND == 2u || KIND == 3u) {
    precise float g[32];
    TF_EACH g[k] = FB(tf_in(k, n) ? UB(tf_g_of(tf_element(k))) : 0u);
    TF_EACH {
      t[k] = g[k];
      if (KIND == 2u) t[k] = tf_mul(g[k], x[k]);
      t[k] = tf_term_in(k, n, t[k]);
    }
    TF_KEPT_SUM(s, t)
    if (live) TF_EACH if (tf_in(k, n)) tf_store(tf_element(k), tf_slope(g[k], x[k], s));
    return;
  }
  TF_EACH m = tf_pair(true, m, x[k]);
  m = tf_flushed(tf_largest(m));
  TF_EACH x[k] = tf_sub(x[k], m);
  TF_EACH t[k] = tf_term_in(k, n, tf_exp(x[k]));
  TF_KEPT_SUM(s, t)
  if (!live) return;
  if (KIND == 0u) {
    precise float over = tf_over(s);
    bool plain = true;
    TF_EACH if (tf_in(k, n)) {
      plain = plain && tf_plain(t[k]);
      tf_store(tf_element(k), tf_share(t[k], s, over));
    }
    if (!plain) for (uint k = 0u; k < KEEP; k++) if (tf_in(k, n)) tf_mend(tf_element(k), m, s);
    return;
  }
  s = vm_log(s);
  if (KIND == 1u) TF_EACH if (tf_in(k, n)) tf_store(tf_element(k), tf_sub(x[k], s));
  if (KIND == 4u) tf_sums(row, m, s);
}

/* Rows that are read again. */
vec2 tf_both(uint i) {
  precise vec2 v = vec2(tf_x_of(i), 0.0f);
  if (KIND == 2u || KIND == 3u) v.y = tf_g_of(i);
  return v;
}
void tf_read(uint row, bool live) {
  uint n = p_n;
  precise float s, m = FB(0xff800000u);
  if (KIND == 2u || KIND == 3u) {
    if (KIND == 2u) TF_ROW_SUM(s, n, tf_both(i), tf_mul(v.y, v.x))
    else TF_ROW_SUM(s, n, tf_both(i), v.y)
    if (live) TF_ALONG(n, tf_both(i), tf_store(i, tf_slope(v.y, v.x, s)))
    return;
  }
  TF_ALONG(n, tf_both(i), m = tf_pair(true, m, v.x))
  m = tf_flushed(tf_largest(m));
  TF_ROW_SUM(s, n, tf_both(i), tf_exp(tf_sub(v.x, m)))
  if (!live) return;
  if (KIND == 0u) {
    precise float over = tf_over(s);
    TF_ALONG(n, tf_both(i), tf_softmax(i, v.x, m, s, over))
    return;
  }
  s = vm_log(s);
  if (KIND == 1u) TF_ALONG(n, tf_both(i), tf_store(i, tf_sub(tf_sub(v.x, m), s)))
  if (KIND == 4u) tf_sums(row, m, s);
}

void main() {
  if (tf_group() * TF_ROWS >= p_rows) return;
  uint row = tf_group() * TF_ROWS + tf_row_here();
  bool live = row < p_rows; /* the others go through the same barriers */
  row = min(row, p_rows - 1u);
  int outer = int(row / p_inner), inner = int(row % p_inner);
  tf_x = outer * p_outer_step(0) + inner * p_inner_step(0);
  tf_y = outer * p_outer_step(1) + inner * p_inner_step(1);
  tf_g = outer * p_outer_step(2) + inner * p_inner_step(2);
  if (KEEP != 0u) tf_kept(row, live);
  else tf_read(row, live);
}
