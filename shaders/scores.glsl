/* A score, already scaled, masked by the element of the mask at `at`; -inf where it is not visible. */
T masked(T s, int at, bool visible) {
  if (MASK == TF_BOOL) return VALUE(visible && word8_mask(at) != 0u ? BITS(s) : BITS(NONE));
  if (MASK != NO_MASK) s = tf_add(s, load_mask(MASK, at));
  return VALUE(visible ? BITS(s) : BITS(NONE));
}
