/* Zeros, with values added at flat places of dense planes, in rising order at each.
 *
 * A work group has 2,048 elements of the result, of one plane or several, and goes over all values of these
 * planes, 256 at a time. Where some of them go to the same element, each round adds the first that is left.
 *
 * operands: out x places fault
 * words: uint count; uint places; uint area; uint values
 * constants: DTYPE
 * group: 256
 * numbers: float double
 */
#define TF_TILE 2048u
#define TF_NOBODY 0xffffffffu
#include "fault.glsl"
shared T tf_sum[TF_TILE];
shared uint tf_next[TF_TILE];
shared uint tf_left[2];

void main() {
  uint me = gl_LocalInvocationIndex, start = tf_group() * TF_TILE, stop = min(start + TF_TILE, p_count);
  if (start >= p_count) return;
  for (uint i = me; i < TF_TILE; i += TF_GROUP) {
    tf_sum[i] = T(0);
    tf_next[i] = TF_NOBODY;
  }
  if (me < 2u) tf_left[me] = 0u;
  barrier();
  uint last = min(((stop - 1u) / p_area + 1u) * p_places, p_values), turn = 0u;
  for (uint first = start / p_area * p_places; first < last; first += TF_GROUP) {
    uint i = first + me, at = TF_TILE;
    precise T v = T(0);
    if (i < last) {
      uvec2 place = word64_places(int(i));
      if (place.y != 0u || place.x >= p_area) {
        tf_report(17u, place, int(p_area));
      } else {
        at = i / p_places * p_area + place.x - start; /* what lies before start wraps round */
        if (at < stop - start) v = load_x(DTYPE, int(i));
        else at = TF_TILE;
      }
    }
    bool more = true;
    while (more) {
      if (at < TF_TILE) atomicMin(tf_next[at], me);
      if (me == 0u) tf_left[1u - turn] = 0u;
      barrier();
      bool mine = at < TF_TILE && tf_next[min(at, TF_TILE - 1u)] == me;
      if (at < TF_TILE && !mine) tf_left[turn] = 1u;
      barrier();
      if (mine) {
        tf_sum[at] = tf_add(tf_sum[at], v);
        tf_next[at] = TF_NOBODY;
        at = TF_TILE;
      }
      more = tf_left[turn] != 0u;
      turn = 1u - turn;
      barrier();
    }
  }
  for (uint i = me; i < stop - start; i += TF_GROUP) store_out(DTYPE, int(start + i), tf_sum[i]);
}
