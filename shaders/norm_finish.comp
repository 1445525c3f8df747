/* Sums of blocks put together, n of them in each row, and what norms and losses make of the sums.
 *
 * KIND 0: a = the first over count
 *      1: a = the first over count, b = 1 / sqrt(a + eps)
 *      2: a = the first, b = the second, as far as WANTED has bits 1 and 2 set
 *      3: the same, and c = the second over count, the first over count, rstd w, rows of each
 *      4: b = 1 / sqrt(v + eps), without sums
 *      5: a = the first over the second, where WANTED has bit 1 set the first; b = the second
 *
 * operands: first second v w a b c
 * words: uint rows; uint n; number count; number eps
 * constants: KIND OUT VTYPE WTYPE WANTED LAYOUT TEAMS
 * group: 256
 * numbers: float double
 */
#define SPLIT 1u
#define KEEP 0u
#define FULL 0u
#include "rows.glsl"
#include "quotient.glsl"

T tf_factor(T v) { return tf_quotient(T(1), tf_root(tf_add(v, p_eps))); }

void main() {
  if (tf_group() * TF_ROWS >= p_rows) return;
  uint row = tf_group() * TF_ROWS + tf_row_here();
  bool live = row < p_rows && tf_speaks();
  row = min(row, p_rows - 1u);
  int r = int(row), at = int(row * p_n);
  precise T s = T(0), t = T(0);
  bool first = KIND != 4u, second = KIND == 3u || KIND == 5u;
  if (KIND == 2u) {
    first = (WANTED & 1u) != 0u;
    second = (WANTED & 2u) != 0u;
  }
  if (first) TF_ROW_SUM(s, p_n, T2(load_first(TF_OWN, at + int(i)), T(0)), v.x)
  if (second) TF_ROW_SUM(t, p_n, T2(load_second(TF_OWN, at + int(i)), T(0)), v.x)
  if (!live) return;
  if (KIND == 0u || KIND == 1u) {
    precise T mean = tf_quotient(s, p_count);
    store_a(TF_OWN, r, mean);
    if (KIND == 1u) store_b(TF_OWN, r, tf_factor(mean));
  } else if (KIND == 2u || KIND == 3u) {
    if (first) store_a(OUT, r, s);
    if (second) store_b(OUT, r, t);
    if (KIND == 3u) {
      precise T scale = load_v(TF_OWN, r);
      if (WTYPE != 255u) scale = tf_mul(scale, load_w(WTYPE, r));
      store_c(TF_OWN, r, tf_quotient(t, p_count));
      store_c(TF_OWN, int(p_rows) + r, tf_quotient(s, p_count));
      store_c(TF_OWN, 2 * int(p_rows) + r, scale);
    }
  } else if (KIND == 4u) {
    store_b(TF_OWN, r, tf_factor(load_v(VTYPE, r)));
  } else {
    if (WANTED != 1u) s = tf_quotient(s, t);
    store_a(OUT, 0, s);
    store_b(TF_OWN, 0, t);
  }
}
