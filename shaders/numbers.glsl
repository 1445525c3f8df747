/* Elements of `@NAME` as the type T that the body computes with. */
#ifdef TF_FLOAT
float load_@NAME(uint dtype, int i) {
  uint w;
  if (dtype >= TF_SCALAR) w = at_@NAME().x;
  else if (dtype == TF_I64) w = tf_long_to_f32(word64_@NAME(i));
  else if (dtype == TF_F64) w = tf_f64_to_f32(word64_@NAME(i));
  else w = UB(tf_number(dtype, word_@NAME(dtype, i)));
  return FB(w);
}
void store_@NAME(uint dtype, int i, float v) {
  if (dtype == TF_I64) set_word64_@NAME(i, tf_f32_to_long(UB(v)));
  else if (dtype == TF_F64) set_word64_@NAME(i, tf_f32_to_f64(UB(v)));
  else set_word_@NAME(dtype, i, tf_bits(dtype, v));
}
#elif defined(TF_DOUBLE)
double load_@NAME(uint dtype, int i) {
  if (dtype >= TF_SCALAR) return packDouble2x32(at_@NAME());
  if (dtype == TF_F64) return packDouble2x32(word64_@NAME(i));
  if (dtype == TF_I64) return tf_of_long(word64_@NAME(i));
  uint w = word_@NAME(dtype, i);
  return dtype < TF_I64 ? double(int(w)) : tf_of_float(tf_number(dtype, w));
}
void store_@NAME(uint dtype, int i, double v) {
  if (dtype == TF_F64) set_word64_@NAME(i, unpackDouble2x32(v));
  else if (dtype == TF_I64) set_word64_@NAME(i, tf_to_long(v));
  else set_word_@NAME(dtype, i, tf_short(dtype, v));
}
#elif defined(TF_LONG)
int64_t load_@NAME(uint dtype, int i) {
  if (dtype >= TF_SCALAR) return packInt2x32(ivec2(at_@NAME()));
  if (dtype == TF_I64) return packInt2x32(ivec2(word64_@NAME(i)));
  return int64_t(int(word_@NAME(dtype, i)));
}
void store_@NAME(uint dtype, int i, int64_t v) {
  if (dtype == TF_I64) set_word64_@NAME(i, uvec2(unpackInt2x32(v)));
  else set_word_@NAME(dtype, i, dtype == TF_BOOL ? (v != int64_t(0) ? 1u : 0u) : uint(unpackInt2x32(v).x));
}
#else
int load_@NAME(uint dtype, int i) {
  if (dtype >= TF_SCALAR) return int(at_@NAME().x);
  if (dtype == TF_I64) return int(word64_@NAME(i).x);
  return int(word_@NAME(dtype, i));
}
void store_@NAME(uint dtype, int i, int v) {
  if (dtype == TF_I64) set_word64_@NAME(i, uvec2(uint(v), v < 0 ? 0xffffffffu : 0u));
  else set_word_@NAME(dtype, i, uint(v));
}
#endif
