/* Softmax along an axis: rows of n elements, `step` apart, which lie in memory as rows of rows.
 *
 * KIND 0: softmax(x); 1: log_softmax(x); 2, 3: their gradients, x being the result and g the cotangent; 4: of x the
 * largest number in y and the logarithm of the sum of exp(x - it) in g, one for each row. NARROW: x is rounded to the
 * result's type first.
 *
 * STAGE 0: a row is one work group's, or less. Few long rows take several dispatches, in which teams of 64 share their
 * blocks, those of all rows beside each other, with layout 0, TEAMS 1 and KEEP 0. 1: the largest number of each of
 * `cuts` parts of `cut` blocks; 2: the sum of each block; 3: the results, `sums` having those of rows.
 *
 * operands: x y g largest sums
 * words: uint rows; uint n; uint inner; int outer_step[3]; int inner_step[3]; int step[3]; uint cut; uint cuts
 * constants: KIND OUT IN GIN NARROW LAYOUT TEAMS SPLIT KEEP FULL STAGE
 * group: 256
 * numbers: float double
 */
#include "rows.glsl"
#include "quotient.glsl"

int tf_x, tf_y, tf_g; /* where the row begins */
T tf_x_of(uint i) {
  precise T v = load_x(IN, tf_x + int(i) * p_step(0));
#ifdef TF_FLOAT
  if (NARROW != 0u) v = tf_number(OUT, tf_bits(OUT, v));
#endif
  return v;
}
T tf_g_of(uint i) { return load_g(GIN, tf_g + int(i) * p_step(2)); }

#ifdef TF_DOUBLE
#define tf_exp vd_exp
#define tf_over(s) (s)
#define tf_plain(n) true
#define tf_share(n, s, over) vm_div(n, s)
#else
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
#endif
/* What is summed, of x and the cotangent. */
T tf_term(T x, T g, T m) {
  if (KIND == 2u) return tf_mul(g, x);
  if (KIND == 3u) return g;
  return tf_exp(tf_sub(x, m));
}
/* The result, but for what is not plain; e is tf_exp(x - m) where softmax needs it. */
T tf_result(T x, T g, T m, T e, T s, T over) {
  if (KIND == 0u) return tf_share(e, s, over);
  if (KIND == 1u) return tf_sub(tf_sub(x, m), s);
  if (KIND == 2u) return tf_mul(x, tf_sub(g, s));
  return tf_sub(g, tf_mul(TF_EXP(x), s));
}
T2 tf_both(uint i) {
  precise T2 v = T2(tf_x_of(i), T(0));
  if (KIND == 2u || KIND == 3u) v.y = tf_g_of(i);
  return v;
}
bool tf_store(uint i, T x, T g, T m, T e, T s, T over) {
  store_y(OUT, tf_y + int(i) * p_step(1), tf_result(x, g, m, e, s, over));
  return KIND != 0u || tf_plain(e);
}

void main() {
  uint n = p_n, blocks = (n + 2047u) >> 11, jobs = p_rows, block = 0u;
  if (STAGE == 1u) jobs *= p_cuts;
  if (STAGE > 1u && !(STAGE == 3u && KIND == 4u)) jobs *= blocks;
  if (tf_group() * TF_ROWS >= jobs) return;
  uint job = tf_group() * TF_ROWS + tf_row_here();
  bool live = job < jobs, plain = true; /* those past the last go through the same barriers */
  job = min(job, jobs - 1u);
  uint row = job;
  if (STAGE != 0u) {
    row = job % p_rows;
    block = job / p_rows;
  }
  int outer = int(row / p_inner), inner = int(row % p_inner);
  tf_x = outer * p_outer_step(0) + inner * p_inner_step(0);
  tf_y = outer * p_outer_step(1) + inner * p_inner_step(1);
  tf_g = outer * p_outer_step(2) + inner * p_inner_step(2);
  precise T s, over, m = TF_BELOW, x[32], g[32], t[32];
  TF_EACH {
    x[k] = m;
    g[k] = T(0);
    if (tf_in(k, n)) {
      precise T2 v = tf_both(tf_element(k));
      x[k] = v.x;
      g[k] = v.y;
    }
  }
  if (KIND != 2u && KIND != 3u) {
    if (STAGE > 1u) {
      for (uint k = tf_part(); k < p_cuts; k += 64u)
        m = tf_pair(true, m, load_largest(TF_OWN, int(row * p_cuts + k)));
    } else if (STAGE == 1u) {
      for (uint b = block * p_cut; b < min(blocks, (block + 1u) * p_cut); b++)
        TF_ALONG_BLOCK(b, n, tf_both(i), m = tf_pair(true, m, v.x))
    } else {
      if (KEEP != 0u) TF_EACH m = tf_pair(true, m, x[k]);
      else TF_ALONG(n, tf_both(i), m = tf_pair(true, m, v.x))
    }
    m = tf_flushed(tf_largest(m));
    if (STAGE == 1u) {
      if (live && tf_speaks()) store_largest(TF_OWN, int(row * p_cuts + block), m);
      return;
    }
  }
  if (STAGE == 2u) {
    precise T none;
    TF_BLOCK_SUMS(s, block, n, tf_both(i), tf_term(v.x, v.y, m), none, TF_NOTHING)
    tf_join(false, s);
    s = tf_joined(false, 0u);
    if (live && tf_speaks()) store_sums(TF_OWN, int(job), s);
    return;
  }
  if (STAGE == 3u) {
    s = load_sums(TF_OWN, int(row));
  } else {
    if (KEEP != 0u) {
      TF_EACH t[k] = tf_term_in(k, n, tf_term(x[k], g[k], m));
      TF_KEPT_SUM(s, t)
    } else TF_ROW_SUM(s, n, tf_both(i), tf_term(v.x, v.y, m))
  }
  if (!live) return;
  if (KIND == 4u) {
    if (tf_speaks()) {
      store_y(TF_OWN, int(row), m);
      store_g(TF_OWN, int(row), TF_LOG(s));
    }
    return;
  }
  if (KIND == 0u) over = tf_over(s);
  if (KIND == 1u) s = TF_LOG(s);
  if (KEEP != 0u) {
    TF_EACH if (tf_in(k, n)) plain = tf_store(tf_element(k), x[k], g[k], m, t[k], s, over) && plain;
  } else if (STAGE == 3u) {
    TF_ALONG_BLOCK(block, n, tf_both(i), plain = tf_store(i, v.x, v.y, m, tf_term(v.x, v.y, m), s, over) && plain)
    n = min(n, (block + 1u) << 11);
  } else {
    TF_ALONG(n, tf_both(i), plain = tf_store(i, v.x, v.y, m, tf_term(v.x, v.y, m), s, over) && plain)
  }
  if (plain) return;
  for (uint k = STAGE == 3u ? 32u * block : 0u; KEEP != 0u ? k < KEEP : tf_again(k) < n; k++) {
    uint i = KEEP != 0u ? tf_element(k) : tf_again(k);
    if (i >= n) continue;
    precise T e = tf_exp(tf_sub(tf_x_of(i), m));
    if (!tf_plain(e)) store_y(OUT, tf_y + int(i) * p_step(1), tf_quotient(e, s));
  }
}
