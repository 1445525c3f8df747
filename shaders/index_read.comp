/* Slices chosen by indices: the units of the result in order, which are those of the axes before the indices, of
 * the indices, of the axes after them.
 *
 * INDEX: the dtype of a vector of indices, or TF_OFFSETS where index_offsets.comp has been over them. BEFORE, AFTER:
 * number of axes, 2 for more too; 0 and 1 are walked without divisions.
 *
 * operands: out x index fault
 * words: uint count; uint indices; uint inner; uint before[3]; int before_step[4]; uint after[3]; int after_step[4];
 *   int index_step; int size; int step; uint operation; uint wraps
 * constants: UNIT INDEX BEFORE AFTER
 * group: 256
 */
#include "place.glsl"
#include "units.glsl"
#define TF_OFFSETS 64u
#define TF_NOWHERE 0x80000000u
TF_UNITS(out)
TF_UNITS(x)

void main() {
  uint i = tf_thread(), c = i, a = 0u;
  if (i >= p_count) return;
  int at = 0;
  if (AFTER > 0u) {
    c = i / p_inner;
    a = i - c * p_inner;
  }
  if (AFTER == 1u) {
    at = int(a) * p_after_step(3);
  } else if (AFTER > 1u) {
    ivec4 k = tf_unravel(a, p_after(0), p_after(1), p_after(2));
    at = tf_dot(k, p_after_step(0), p_after_step(1), p_after_step(2), p_after_step(3));
  }
  if (BEFORE > 0u) {
    uint b = c / p_indices;
    c -= b * p_indices;
    if (BEFORE == 1u) {
      at += int(b) * p_before_step(3);
    } else {
      ivec4 k = tf_unravel(b, p_before(0), p_before(1), p_before(2));
      at += tf_dot(k, p_before_step(0), p_before_step(1), p_before_step(2), p_before_step(3));
    }
  }
  bool good;
  if (INDEX == TF_OFFSETS) {
    uint offset = word32_index(int(c));
    good = offset != TF_NOWHERE;
    at += int(offset);
  } else {
    int place = tf_place(INDEX, int(c) * p_index_step, p_size, p_wraps != 0u, p_operation);
    good = place >= 0;
    at += place * p_step;
  }
  uvec4 v = uvec4(0u);
  if (good) v = pick_x(at);
  place_out(int(i), v);
}
