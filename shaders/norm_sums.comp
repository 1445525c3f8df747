/* Sums of one block of each row, for norms: a row has n elements, which lie along two axes, `inner` of them on the
 * second; those of batch norm are channels, those of weights' gradients lie across the rows that are normalised.
 *
 * KIND 0: of x; 1: of (x - mean)^2; 2: of g xhat, and in `second` of g, as far as WANTED has bits 1 and 2 set; with
 * bit 4, x is not centred.
 * WTYPE: dtype of w, whose element i goes with that of g; 255: none. LINE: there is one axis. The mean and rstd of
 * element i are at i * stat_step(1) from those of the row.
 *
 * operands: first second x g mean rstd w
 * words: uint rows; uint n; uint blocks; uint inner; int row_step[2]; int outer_step[2]; int inner_step[2];
 *   int stat_step[2]
 * constants: KIND OUT IN GIN WTYPE WANTED LINE LAYOUT
 * group: 256
 * numbers: float double
 */
#define TEAMS 1u
#define SPLIT 1u
#define KEEP 0u
#define FULL 0u
#include "rows.glsl"

int tf_x, tf_g, tf_stat; /* where the row begins */
/* x and g */
T2 tf_both(uint i) {
  int outer = 0, inner = int(i);
  if (LINE == 0u) {
    outer = int(i / p_inner);
    inner = int(i % p_inner);
  }
  precise T2 v = T2(load_x(IN, tf_x + outer * p_outer_step(0) + inner * p_inner_step(0)), T(0));
  if (KIND == 2u) v.y = load_g(GIN, tf_g + outer * p_outer_step(1) + inner * p_inner_step(1));
  if (KIND == 2u && WTYPE != 255u) v.y = tf_mul(v.y, load_w(WTYPE, int(i)));
  return v;
}
T tf_term(uint i, T x, T g) {
  if (KIND == 0u) return x;
  int stat = tf_stat + int(i) * p_stat_step(1);
  precise T d = x;
  if ((WANTED & 4u) == 0u) d = tf_sub(x, load_mean(TF_OWN, stat));
  if (KIND == 1u) return tf_mul(d, d);
  return tf_mul(g, tf_mul(d, load_rstd(TF_OWN, stat)));
}

void main() {
  uint group = tf_group(), block = 0u, row;
  if (LAYOUT == 2u) {
    row = group / p_blocks * TF_ROWS + tf_row_here();
    block = group % p_blocks;
    if (group / p_blocks * TF_ROWS >= p_rows) return;
  } else {
    uint job = group * TF_ROWS + tf_row_here();
    if (group * TF_ROWS >= p_rows * p_blocks) return;
    row = job / p_blocks;
    block = job % p_blocks;
  }
  bool live = row < p_rows; /* the others go through the same barriers */
  row = min(row, p_rows - 1u);
  tf_x = int(row) * p_row_step(0);
  tf_g = int(row) * p_row_step(1);
  tf_stat = int(row) * p_stat_step(0);
  precise T s, t;
  TF_BLOCK_SUMS(s, block, p_n, tf_both(i), tf_term(i, v.x, v.y), t, v.y)
  tf_join(false, s);
  s = tf_joined(false, 0u);
  bool speaks = live && tf_part() == 0u;
  int at = int(row * p_blocks + block);
  if (speaks && (KIND != 2u || (WANTED & 1u) != 0u)) store_first(OUT, at, s);
  if (KIND == 2u && (WANTED & 2u) != 0u) {
    tf_join(false, t);
    t = tf_joined(false, 0u);
    if (speaks) store_second(OUT, at, t);
  }
}
