/* Gradients of the losses of class labels: places of y in row-major order, (outer, classes, inner), `flow` having
 * what loss_labels.comp writes.
 *
 * SHIFTED 0: flow at the label, else 0; 1: (flow at the label, else 0) - exp((x - shift) - logs) flow.
 * The rows of x lie in two axes, `x_inner` of them on the second. FOUR: all is dense, and four neighbours are of the
 * same row.
 *
 * operands: y x flow shift logs
 * words: uint count; uint rows; uint classes; uint inner; uint x_inner; int outer_step; int inner_step; int step
 * constants: SHIFTED OUT IN FOUR
 * group: 256
 * numbers: float double
 */
#include "four.glsl"
TF_FOUR(y)
TF_FOUR(x)

T tf_value(T x, T shift, T logs, T flow, bool here) {
  precise T v = VALUE(here ? BITS(flow) : BITS(T(0)));
  if (SHIFTED != 0u) v = tf_sub(v, tf_mul(TF_EXP(tf_sub(tf_sub(x, shift), logs)), flow));
  return v;
}

void main() {
  uint i = tf_thread();
  if (i >= (FOUR != 0u ? p_count / 4u : p_count)) return;
  uint at = FOUR != 0u ? 4u * i : i, rest = at / p_inner, inner = at % p_inner;
  uint row = rest / p_classes * p_inner + inner;
  int class_ = int(rest % p_classes), label = int(word32_flow(int(TF_EACH_WORDS * p_rows + row)));
  precise T flow = load_flow(TF_OWN, int(row)), shift = T(0), logs = T(0);
  if (SHIFTED != 0u) {
    shift = load_shift(TF_OWN, int(row));
    logs = load_logs(TF_OWN, int(row));
  }
  if (FOUR != 0u) {
    precise T x[4], v[4];
    if (SHIFTED != 0u) load4_x(IN, int(i), x);
    UNROLL for (int k = 0; k < 4; k++) v[k] = tf_value(x[k], shift, logs, flow, class_ + k == label);
    store4_y(OUT, int(i), v);
    return;
  }
  precise T x = T(0);
  if (SHIFTED != 0u)
    x = load_x(IN, int(row / p_x_inner) * p_outer_step + int(row % p_x_inner) * p_inner_step + class_ * p_step);
  store_y(OUT, int(at), tf_value(x, shift, logs, flow, class_ == label));
}
