/* A vector of accumulators from float16 or bfloat16, without a detour through memory. After halves.h and simd.h. */
typedef uint16_t half_lanes __attribute__((vector_size(TF_VBYTES / 2)));
typedef uint16_t half_lanes_at __attribute__((vector_size(TF_VBYTES / 2), aligned(2), may_alias));

/* Any NaN does here, since it goes through an fma, which makes it quiet. */
TF_INLINE tf_v_float wide_of_f16(half_lanes h) {
#if defined(TF_HALVES) && TF_HALVES * 4 == TF_VBYTES
  return (tf_v_float)TF_WIDE((TF_HALF)h);
#else
  tf_v_float x;
  for (int i = 0; i < TF_LANES(float); i++) x[i] = vm_h2f(h[i]);
  return x;
#endif
}
TF_INLINE tf_v_float wide_of_bf16(half_lanes h) {
  return (tf_v_float)(__builtin_convertvector(h, tf_v_uint32_t) << 16);
}
TF_INLINE half_lanes half_part(const uint16_t *p, int n) {
  half_lanes h = {0};
  for (int i = 0; i < n; i++) h[i] = p[i];
  return h;
}

/* of a pair, the first in memory, which little-endian processors load as the low half, and the second */
#define FIRST_F16(w) wide_of_f16(__builtin_convertvector(w, half_lanes))
#define SECOND_F16(w) wide_of_f16(__builtin_convertvector((w) >> 16, half_lanes))
#define FIRST_BF16(w) ((tf_v_float)((w) << 16))
#define SECOND_BF16(w) ((tf_v_float)((w) & 0xffff0000u))

/* n accumulators to bfloat16, as vm_f2b rounds */
TF_INLINE half_lanes bf16_of(tf_v_float x) {
  const tf_v_uint32_t u = (tf_v_uint32_t)x, high = u >> 16, r = (u + 0x7fff + (high & 1)) >> 16;
  const tf_v_uint32_t nan = (tf_v_uint32_t)((u & 0x7fffffff) > 0x7f800000);
  return __builtin_convertvector((nan & (high | 0x40)) | (~nan & r), half_lanes);
}
static void narrow_bf16(uint16_t *restrict d, const float *restrict s, int64_t n) {
  enum { L = TF_LANES(float) };
  for (; n >= L; n -= L, s += L, d += L) *(half_lanes_at *)d = bf16_of(tf_load_float(s));
  if (n) {
    const half_lanes h = bf16_of(tf_load_part_float(s, (int)n));
    for (int i = 0; i < n; i++) d[i] = h[i];
  }
}
