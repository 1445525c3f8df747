/* An element of operand `index` as a place below `size`; -1 where it is none, which is told. Needs operand `fault`. */
#include "fault.glsl"
int tf_place(uint dtype, int i, int size, bool wraps, uint operation) {
  uvec2 w = uvec2(0u);
  if (dtype == TF_I64) {
    w = word64_index(i);
  } else {
    w.x = word32_index(i);
    w.y = int(w.x) < 0 ? 0xffffffffu : 0u;
  }
  int v = int(w.x);
  bool narrow = w.y == (v < 0 ? 0xffffffffu : 0u);
  if (wraps && v < 0) v += size;
  if (narrow && v >= 0 && v < size) return v;
  tf_report(operation, w, size);
  return -1;
}
