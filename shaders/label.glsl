/* Class labels: operands `label`, int64 or uint8, `weight` and `fault`; words classes, ignored[2], weight_step. */
#include "fault.glsl"
/* The label of a row, -1 where it is the one to ignore or none at all, which is told. */
int tf_label(uint row) {
  uvec2 w = uvec2(0u);
  if (LTYPE == TF_I64) w = word64_label(int(row));
  else w.x = word8_label(int(row));
  if (w == uvec2(p_ignored(0), p_ignored(1))) return -1;
  if (w.y == 0u && w.x < p_classes) return int(w.x);
  tf_report(OPERATION, w, int(p_classes));
  return -1;
}
T tf_class_weight(int label) {
  if (WTYPE == 255u) return T(1);
  return load_weight(WTYPE, label * p_weight_step);
}
