/* Attention, 128 queries to a work group.
 *
 * operands: out lse q k v mask aux
 * words: uint queries; uint keys; uint width; uint columns; uint group; float scale; int row[5]; int step[5]
 * constants: DTYPE MASK CAUSAL QUADS COLUMNS
 * group: 256
 * numbers: float
 */
#include "attention_forward.glsl"
