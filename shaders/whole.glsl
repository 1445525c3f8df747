/* 64-bit integers as pairs of words (low, high), for bodies whose module computes in float: no device feature. */
uvec2 tf_whole_add(uvec2 a, uvec2 b) {
  uint carry, low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}
uvec2 tf_whole_mul(uvec2 a, uvec2 b) {
  uint high, low;
  umulExtended(a.x, b.x, high, low);
  return uvec2(low, high + a.x * b.y + a.y * b.x);
}
/* The whole number of an element of up to 32 bits; floats toward zero. */
uvec2 tf_whole(uint dtype, uint w) {
  if (dtype >= TF_F16) return tf_f32_to_long(UB(tf_number(dtype, w)));
  return uvec2(w, int(w) < 0 ? 0xffffffffu : 0u);
}
#define TF_WHOLE(NAME)                                                                                  \
  uvec2 whole_##NAME(uint dtype, int i) {                                                               \
    return dtype == TF_I64 ? word64_##NAME(i) : tf_whole(dtype, word_##NAME(dtype, i));                 \
  }                                                                                                     \
  void set_whole_##NAME(uint dtype, int i, uvec2 v) {                                                   \
    if (dtype == TF_I64) set_word64_##NAME(i, v);                                                       \
    else set_word_##NAME(dtype, i, dtype == TF_BOOL ? ((v.x | v.y) != 0u ? 1u : 0u) : v.x);             \
  }
