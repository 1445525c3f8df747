/* TF_FOUR(NAME): four elements of an operand from 4 i on, floats of two or four bytes in one access each; such an
   address is a multiple of four elements' bytes. */
#ifdef TF_FLOAT
uvec4 tf_unpacked(uint dtype, uvec2 w) {
  uvec4 h = uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16);
  if (dtype == TF_BF16) return h << 16;
  return uvec4(UB(vm_h2f(h.x)), UB(vm_h2f(h.y)), UB(vm_h2f(h.z)), UB(vm_h2f(h.w)));
}
uvec2 tf_packed(uint dtype, float v[4]) {
  return uvec2(tf_bits(dtype, v[0]) | tf_bits(dtype, v[1]) << 16, tf_bits(dtype, v[2]) | tf_bits(dtype, v[3]) << 16);
}
#define TF_FOUR(NAME)                                                                                   \
  void load4_##NAME(uint dtype, int i, out float v[4]) {                                                \
    if (dtype >= TF_F16 && dtype <= TF_F32) {                                                           \
      uvec4 q = dtype == TF_F32 ? quad_##NAME(i) : tf_unpacked(dtype, word64_##NAME(i));                \
      v[0] = FB(q.x); v[1] = FB(q.y); v[2] = FB(q.z); v[3] = FB(q.w);                                   \
    } else {                                                                                            \
      UNROLL for (int k = 0; k < 4; k++) v[k] = load_##NAME(dtype, 4 * i + k);                          \
    }                                                                                                   \
  }                                                                                                     \
  void store4_##NAME(uint dtype, int i, float v[4]) {                                                   \
    if (dtype == TF_F32) set_quad_##NAME(i, uvec4(UB(v[0]), UB(v[1]), UB(v[2]), UB(v[3])));             \
    else if (dtype == TF_F16 || dtype == TF_BF16) set_word64_##NAME(i, tf_packed(dtype, v));            \
    else UNROLL for (int k = 0; k < 4; k++) store_##NAME(dtype, 4 * i + k, v[k]);                       \
  }
#else
#define TF_FOUR(NAME)                                                                                   \
  void load4_##NAME(uint dtype, int i, out T v[4]) {                                                    \
    UNROLL for (int k = 0; k < 4; k++) v[k] = load_##NAME(dtype, 4 * i + k);                            \
  }                                                                                                     \
  void store4_##NAME(uint dtype, int i, T v[4]) {                                                       \
    UNROLL for (int k = 0; k < 4; k++) store_##NAME(dtype, 4 * i + k, v[k]);                            \
  }
#endif
