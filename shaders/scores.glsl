/* A score, already scaled, masked by the element of the mask at `at`; -inf where it is not visible. */
float masked(float s, int at, bool visible) {
  if (MASK == TF_BOOL) return FB(visible && word8_mask(at) != 0u ? UB(s) : UB(NONE));
  if (MASK != NO_MASK) s = tf_add(s, load_mask(MASK, at));
  return FB(visible ? UB(s) : UB(NONE));
}
