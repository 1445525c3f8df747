/* TF_FOUR_WORDS(NAME): what word_NAME gives for four elements from 4 i on, in one access; such an address is a
   multiple of four elements' bytes. */
uvec4 tf_split(uint dtype, uint bits, uvec4 v) {
  uvec4 up = v << (32u - bits);
  if (dtype == TF_BOOL) return uvec4(notEqual(up, uvec4(0u)));
  return dtype == TF_I8 || dtype == TF_I16 ? uvec4(ivec4(up) >> int(32u - bits)) : up >> (32u - bits);
}
#define TF_FOUR_WORDS(NAME)                                                                             \
  uvec4 words4_##NAME(uint dtype, int i) {                                                              \
    if (dtype == TF_I32 || dtype == TF_F32) return quad_##NAME(i);                                      \
    if (dtype <= TF_I8) {                                                                               \
      uint w = word32_##NAME(i);                                                                        \
      return tf_split(dtype, 8u, uvec4(w, w >> 8, w >> 16, w >> 24));                                   \
    }                                                                                                   \
    uvec2 w = word64_##NAME(i);                                                                         \
    return tf_split(dtype, 16u, uvec4(w.x, w.x >> 16, w.y, w.y >> 16));                                 \
  }
