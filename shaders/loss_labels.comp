/* What flows to the log-probability of each row's label, and the label, -1 where none counts: a row of numbers and one of
 * words.
 *
 * REDUCTION 0: the cotangent has a number for each row; 1, mean: it is divided by the sum of weights; 2: sum.
 *
 * operands: flow label weight cotangent total fault
 * words: uint rows; uint classes; int weight_step; uint ignored[2]
 * constants: REDUCTION LTYPE WTYPE GTYPE OPERATION
 * group: 256
 * numbers: float double
 */
#include "label.glsl"
#include "quotient.glsl"

void main() {
  uint row = tf_thread();
  if (row >= p_rows) return;
  int label = tf_label(row);
  precise T v = T(0);
  if (label >= 0) {
    v = load_cotangent(GTYPE, REDUCTION == 0u ? int(row) : 0);
    if (REDUCTION == 1u) v = tf_quotient(v, load_total(TF_OWN, 0));
    v = tf_mul(tf_neg(v), tf_class_weight(label));
  }
  store_flow(TF_OWN, int(row), v);
  set_word32_flow(int(TF_EACH_WORDS * p_rows + row), uint(label));
}
