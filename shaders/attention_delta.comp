/* What gradients need of each row of queries, behind the table in `aux`: lse, +inf where the row saw no key; then
 * the canonical sum of g out.
 *
 * operands: aux g out lse
 * words: uint queries; uint columns; uint lines; int row[3]; int step[2]
 * constants: DTYPE
 * group: 256
 * numbers: float double
 */
#include "canonical_sum.glsl"
#include "attention.glsl"
void main() {
  uint id = tf_group() * TF_TEAMS + TF_TEAM, line = min(id, p_lines - 1u); /* all take part in the barriers */
  uint head = line / p_queries, query = line % p_queries, place = head / group(), sub = head % group();
  int g_at = origin(G, place, sub) + int(query) * p_row(0), out_at = origin(RESULT, place, sub) + int(query) * p_row(1);
  precise T delta;
  TF_CANONICAL_SUM(delta, p_columns,
                   tf_mul(load_g(DTYPE, g_at + int(i) * p_step(0)), load_out(DTYPE, out_at + int(i) * p_step(1))));
  if (TF_LANE != 0u || id >= p_lines) return;
  precise T l = load_lse(TF_OWN, origin(LSE, place, sub) + int(query) * p_row(2));
  KEEP_NUMBER(line, VALUE(BITS(l) == BITS(NONE) ? BITS(tf_neg(NONE)) : BITS(l)));
  KEEP_NUMBER(p_lines + line, delta);
}
