/* Every row with an expression, and copies: up to three inputs, any strides, any storage types.
 *
 * One module for each row and kind of numbers. An operand that is a number has its value in place of its address.
 * LAYOUT: 0 strided, 1 dense, 2 dense with four elements to an invocation.
 *
 * operands: out a b c
 * words: int stride[16]; uint shape[3]; uint count; number f[3]
 * constants: OUT IN0 IN1 IN2 COMPUTE LAYOUT
 * group: 256
 * numbers: float integer long double
 */
#if !defined(TF_FLOAT) && !defined(TF_DOUBLE)
/* The value as the type that is computed in has it. */
T tf_cut(T v) {
  if (COMPUTE == TF_BOOL) return v != T(0) ? T(1) : T(0);
  if (COMPUTE == TF_U8) return v & 0xff;
  if (COMPUTE == TF_I8) return v << 24 >> 24;
  if (COMPUTE == TF_I16) return v << 16 >> 16;
  return v;
}
#else
#define tf_cut(v) v
#endif

void tf_one(int out_at, int a_at, int b_at, int c_at) {
  T a = load_a(IN0, a_at), b = T(0), c = T(0);
#if TF_INPUTS > 1
  b = load_b(IN1, b_at);
#endif
#if TF_INPUTS > 2
  c = load_c(IN2, c_at);
#endif
  store_out(OUT, out_at, tf_cut(tf_row(a, b, c)));
}

#if !defined(TF_LONG) && !defined(TF_DOUBLE)
#ifdef TF_FLOAT
#define TF_OF_WORD(dtype, w) FB(w)
#define TF_TO_WORD(v) UB(v)
#define TF_IS_WORD(dtype) ((dtype) == TF_F32)
#else
#define TF_OF_WORD(dtype, w) int(w)
#define TF_TO_WORD(v) uint(v)
#define TF_IS_WORD(dtype) ((dtype) == TF_I32)
#endif
/* Four elements from 4 * i on; 32-bit ones in one access. */
#define TF_FOUR(NAME, DTYPE)                                                                            \
  void tf_four_##NAME(int i, out T v[4]) {                                                              \
    if (TF_IS_WORD(DTYPE)) {                                                                            \
      uvec4 q = quad_##NAME(i);                                                                         \
      v[0] = TF_OF_WORD(DTYPE, q.x); v[1] = TF_OF_WORD(DTYPE, q.y);                                     \
      v[2] = TF_OF_WORD(DTYPE, q.z); v[3] = TF_OF_WORD(DTYPE, q.w);                                     \
    } else {                                                                                            \
      v[0] = load_##NAME(DTYPE, 4 * i); v[1] = load_##NAME(DTYPE, 4 * i + 1);                           \
      v[2] = load_##NAME(DTYPE, 4 * i + 2); v[3] = load_##NAME(DTYPE, 4 * i + 3);                       \
    }                                                                                                   \
  }
TF_FOUR(a, IN0)
#if TF_INPUTS > 1
TF_FOUR(b, IN1)
#endif
#if TF_INPUTS > 2
TF_FOUR(c, IN2)
#endif
void tf_four(int i) {
  T a[4], b[4], c[4], v[4];
  tf_four_a(i, a);
#if TF_INPUTS > 1
  tf_four_b(i, b);
#else
  b = a;
#endif
#if TF_INPUTS > 2
  tf_four_c(i, c);
#else
  c = a;
#endif
  UNROLL for (int k = 0; k < 4; k++) v[k] = tf_cut(tf_row(a[k], b[k], c[k]));
  if (TF_IS_WORD(OUT)) set_quad_out(i, uvec4(TF_TO_WORD(v[0]), TF_TO_WORD(v[1]), TF_TO_WORD(v[2]), TF_TO_WORD(v[3])));
  else UNROLL for (int k = 0; k < 4; k++) store_out(OUT, 4 * i + k, v[k]);
}
#endif

void main() {
  uint i = tf_thread();
#if !defined(TF_LONG) && !defined(TF_DOUBLE)
  if (LAYOUT == 2u) {
    if (i < p_count / 4u) tf_four(int(i));
    else if (i < p_count / 4u + (p_count & 3u)) {
      int k = int((p_count & ~3u) + i - p_count / 4u);
      tf_one(k, k, k, k);
    }
    return;
  }
#endif
  if (i >= p_count) return;
  if (LAYOUT == 1u) {
    tf_one(int(i), int(i), int(i), int(i));
    return;
  }
  ivec4 k = tf_unravel(i, p_shape(0), p_shape(1), p_shape(2));
#define TF_AT(n) tf_dot(k, p_stride(4 * (n)), p_stride(4 * (n) + 1), p_stride(4 * (n) + 2), p_stride(4 * (n) + 3))
  tf_one(TF_AT(0), TF_AT(1), TF_AT(2), TF_AT(3));
}
