/* Losses of class labels, one for each row, and sums of them and of their weights by blocks of 2,048 rows.
 *
 * A row's classes lie `step` apart; labels are dense. SHIFTED: x are logits, of which `shift` has the largest of each
 * row and `logs` the logarithm of the sum of exp(x - it). EACH: losses are written. WTYPE: 255 where classes have no
 * weights.
 *
 * operands: loss sums x label weight shift logs fault
 * words: uint rows; uint classes; uint blocks; uint inner; int outer_step; int inner_step; int step; int weight_step;
 *   uint ignored[2]
 * constants: SHIFTED EACH OUT IN LTYPE WTYPE OPERATION
 * group: 256
 * numbers: float double
 */
#define LAYOUT 0u
#define TEAMS 1u
#define SPLIT 1u
#define KEEP 0u
#define FULL 0u
#include "rows.glsl"
#include "label.glsl"

/* Loss and weight. */
T2 tf_loss(uint row) {
  int label = tf_label(row);
  precise T v = T(0), w = T(0);
  if (label >= 0) {
    int at = int(row / p_inner) * p_outer_step + int(row % p_inner) * p_inner_step;
    v = load_x(IN, at + label * p_step);
    w = tf_class_weight(label);
    if (SHIFTED != 0u) v = tf_sub(tf_sub(v, load_shift(TF_OWN, int(row))), load_logs(TF_OWN, int(row)));
    v = tf_mul(tf_neg(v), w);
  }
  if (EACH != 0u) store_loss(OUT, int(row), v);
  return T2(v, w);
}

void main() {
  if (tf_group() * TF_ROWS >= p_blocks) return;
  uint block = tf_group() * TF_ROWS + tf_row_here();
  bool speaks = block < p_blocks && tf_part() == 0u;
  precise T s, t;
  TF_BLOCK_SUMS(s, block, p_rows, tf_loss(i), v.x, t, v.y)
  tf_join(false, s);
  s = tf_joined(false, 0u);
  if (speaks) store_sums(TF_OWN, int(block), s);
  tf_join(false, t);
  t = tf_joined(false, 0u);
  if (speaks) store_sums(TF_OWN, int(p_blocks + block), t);
}
