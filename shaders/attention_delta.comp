/* What gradients need of each row of queries, behind the table in `aux`: lse, +inf where the row saw no key; then
 * the canonical sum of g out.
 *
 * operands: aux g out lse
 * words: uint queries; uint columns; uint group; uint lines; int row[3]; int step[2]
 * constants: DTYPE
 * group: 256
 * numbers: float
 */
#include "canonical_sum.glsl"
#include "attention.glsl"
void main() {
  uint id = tf_group() * TF_TEAMS + TF_TEAM, line = min(id, p_lines - 1u); /* all take part in the barriers */
  uint head = line / p_queries, query = line % p_queries, place = head / p_group, sub = head % p_group;
  int g_at = origin(G, place, sub) + int(query) * p_row(0), out_at = origin(RESULT, place, sub) + int(query) * p_row(1);
  precise float delta;
  TF_CANONICAL_SUM(delta, p_columns,
                   tf_mul(load_g(DTYPE, g_at + int(i) * p_step(0)), load_out(DTYPE, out_at + int(i) * p_step(1))));
  if (TF_LANE != 0u || id >= p_lines) return;
  precise float l = load_lse(TF_F32, origin(LSE, place, sub) + int(query) * p_row(2));
  set_word32_aux(TABLE + int(line), UB(l) == UB(NONE) ? 0x7f800000u : UB(l));
  set_word32_aux(TABLE + int(p_lines + line), UB(delta));
}
