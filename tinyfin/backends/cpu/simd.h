/* What the tiles of matrix products need beyond lanes.h: integer vectors, broadcasts, the first n
   lanes of a load or store, transposes, and a fused multiply-add for every instruction set.

   Names end in the element type, so that templates can paste them: float double uint32_t uint64_t.
   Integers are unsigned because products wrap. */
#ifndef TF_SIMD_H
#define TF_SIMD_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "lanes.h"

typedef uint32_t tf_v_uint32_t __attribute__((vector_size(TF_VBYTES)));
typedef uint64_t tf_v_uint64_t __attribute__((vector_size(TF_VBYTES)));
typedef uint32_t tf_vu_uint32_t __attribute__((vector_size(TF_VBYTES), aligned(4), may_alias));
typedef uint64_t tf_vu_uint64_t __attribute__((vector_size(TF_VBYTES), aligned(8), may_alias));

#define TF_INLINE static inline __attribute__((always_inline))
#define TF_LANES(T) ((int)(TF_VBYTES / sizeof(T)))

#define tf_fma_uint32_t(a, b, c) ((a) * (b) + (c))
#define tf_fma_uint64_t(a, b, c) ((a) * (b) + (c))

/* ---- whole vectors at any address */
#define TF_MOVE(T)                                                                             \
  TF_INLINE tf_v_##T tf_load_##T(const T *p) { return *(const tf_vu_##T *)p; }                 \
  TF_INLINE void tf_store_##T(T *p, tf_v_##T x) { *(tf_vu_##T *)p = x; }
TF_MOVE(float)
TF_MOVE(double)
TF_MOVE(uint32_t)
TF_MOVE(uint64_t)

/* ---- x in every lane: not 0 + x, which would lose the sign of -0 */
TF_INLINE tf_v_uint32_t tf_splat_uint32_t(uint32_t x) { return (tf_v_uint32_t){0} + x; }
TF_INLINE tf_v_uint64_t tf_splat_uint64_t(uint64_t x) { return (tf_v_uint64_t){0} + x; }
#if TF_VBYTES == 64
TF_INLINE tf_v_float tf_splat_float(float x) { return (tf_v_float)_mm512_set1_ps(x); }
TF_INLINE tf_v_double tf_splat_double(double x) { return (tf_v_double)_mm512_set1_pd(x); }
#elif TF_VBYTES == 32
TF_INLINE tf_v_float tf_splat_float(float x) { return (tf_v_float)_mm256_set1_ps(x); }
TF_INLINE tf_v_double tf_splat_double(double x) { return (tf_v_double)_mm256_set1_pd(x); }
#else
TF_INLINE tf_v_float tf_splat_float(float x) { return (tf_v_float){x, x, x, x}; }
TF_INLINE tf_v_double tf_splat_double(double x) { return (tf_v_double){x, x}; }
#endif

/* ---- the first n lanes (1 <= n <= lanes); no other byte is touched, other lanes load as zero */
#if TF_VBYTES == 64
#define TF_PART(T, M, LOAD, STORE)                                                             \
  TF_INLINE tf_v_##T tf_load_part_##T(const T *p, int n) {                                     \
    return (tf_v_##T)LOAD((M)((1u << n) - 1), p);                                              \
  }                                                                                            \
  TF_INLINE void tf_store_part_##T(T *p, tf_v_##T x, int n) {                                  \
    STORE((void *)p, (M)((1u << n) - 1), (__m512i)x);                                          \
  }
TF_PART(float, __mmask16, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32)
TF_PART(uint32_t, __mmask16, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32)
TF_PART(double, __mmask8, _mm512_maskz_loadu_epi64, _mm512_mask_storeu_epi64)
TF_PART(uint64_t, __mmask8, _mm512_maskz_loadu_epi64, _mm512_mask_storeu_epi64)
#else
#if TF_VBYTES == 32
TF_INLINE __m256i tf_mask(int bytes) { /* the first `bytes` bytes set */
  static const int32_t m[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i *)((const char *)m + 32 - bytes));
}
#define TF_LOAD_PART(T)                                                                        \
  TF_INLINE tf_v_##T tf_load_part_##T(const T *p, int n) {                                     \
    return (tf_v_##T)_mm256_maskload_ps((const float *)p, tf_mask(n * (int)sizeof(T)));        \
  }
#else
#define TF_LOAD_PART(T)                                                                        \
  TF_INLINE tf_v_##T tf_load_part_##T(const T *p, int n) {                                     \
    tf_v_##T x = {0};                                                                          \
    for (int i = 0; i < n; i++) x[i] = p[i];                                                   \
    return x;                                                                                  \
  }
#endif
#define TF_PART(T)                                                                             \
  TF_LOAD_PART(T)                                                                              \
  TF_INLINE void tf_store_part_##T(T *p, tf_v_##T x, int n) {                                  \
    union { tf_v_##T v; T t[TF_LANES(T)]; } u = {x};                                           \
    for (int i = 0; i < n; i++) p[i] = u.t[i];                                                 \
  }
TF_PART(float)
TF_PART(uint32_t)
TF_PART(double)
TF_PART(uint64_t)
#endif

/* ---- lanes x lanes transpose in registers: lane j of r[i] and lane i of r[j] change places */
#if TF_VBYTES >= 32
/* four rows: squares of four lanes within each 128 bits */
#define TF_SQUARES(M, MD, P, q, s)                                                             \
  do {                                                                                         \
    MD a = (MD)P##_unpacklo_ps((q)[0], (q)[1]), b = (MD)P##_unpackhi_ps((q)[0], (q)[1]);       \
    MD c = (MD)P##_unpacklo_ps((q)[2], (q)[3]), d = (MD)P##_unpackhi_ps((q)[2], (q)[3]);       \
    (s)[0] = (M)P##_unpacklo_pd(a, c), (s)[1] = (M)P##_unpackhi_pd(a, c);                      \
    (s)[2] = (M)P##_unpacklo_pd(b, d), (s)[3] = (M)P##_unpackhi_pd(b, d);                      \
  } while (0)
#endif
#if TF_VBYTES == 64
TF_INLINE void tf_transpose_float(tf_v_float *r) {
  __m512 s[16], *q = (__m512 *)r;
  TF_EACH(h, 4) TF_SQUARES(__m512, __m512d, _mm512, q + 4 * h, s + 4 * h);
  TF_EACH(i, 4) { /* then quarters of 128 bits */
    __m512 a = _mm512_shuffle_f32x4(s[i], s[4 + i], 0x88);
    __m512 b = _mm512_shuffle_f32x4(s[i], s[4 + i], 0xdd);
    __m512 c = _mm512_shuffle_f32x4(s[8 + i], s[12 + i], 0x88);
    __m512 d = _mm512_shuffle_f32x4(s[8 + i], s[12 + i], 0xdd);
    q[i] = _mm512_shuffle_f32x4(a, c, 0x88), q[8 + i] = _mm512_shuffle_f32x4(a, c, 0xdd);
    q[4 + i] = _mm512_shuffle_f32x4(b, d, 0x88), q[12 + i] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
}
TF_INLINE void tf_transpose_double(tf_v_double *r) {
  __m512d s[8], *q = (__m512d *)r;
  TF_EACH(h, 4) {
    s[2 * h] = _mm512_unpacklo_pd(q[2 * h], q[2 * h + 1]);
    s[2 * h + 1] = _mm512_unpackhi_pd(q[2 * h], q[2 * h + 1]);
  }
  TF_EACH(i, 2) {
    __m512d a = _mm512_shuffle_f64x2(s[i], s[2 + i], 0x88);
    __m512d b = _mm512_shuffle_f64x2(s[i], s[2 + i], 0xdd);
    __m512d c = _mm512_shuffle_f64x2(s[4 + i], s[6 + i], 0x88);
    __m512d d = _mm512_shuffle_f64x2(s[4 + i], s[6 + i], 0xdd);
    q[i] = _mm512_shuffle_f64x2(a, c, 0x88), q[4 + i] = _mm512_shuffle_f64x2(a, c, 0xdd);
    q[2 + i] = _mm512_shuffle_f64x2(b, d, 0x88), q[6 + i] = _mm512_shuffle_f64x2(b, d, 0xdd);
  }
}
#elif TF_VBYTES == 32
TF_INLINE void tf_transpose_float(tf_v_float *r) {
  __m256 s[8], *q = (__m256 *)r;
  TF_EACH(h, 2) TF_SQUARES(__m256, __m256d, _mm256, q + 4 * h, s + 4 * h);
  TF_EACH(i, 4) {
    q[i] = _mm256_permute2f128_ps(s[i], s[4 + i], 0x20);
    q[4 + i] = _mm256_permute2f128_ps(s[i], s[4 + i], 0x31);
  }
}
TF_INLINE void tf_transpose_double(tf_v_double *r) {
  __m256d *q = (__m256d *)r;
  __m256d a = _mm256_unpacklo_pd(q[0], q[1]), b = _mm256_unpackhi_pd(q[0], q[1]);
  __m256d c = _mm256_unpacklo_pd(q[2], q[3]), d = _mm256_unpackhi_pd(q[2], q[3]);
  q[0] = _mm256_permute2f128_pd(a, c, 0x20), q[2] = _mm256_permute2f128_pd(a, c, 0x31);
  q[1] = _mm256_permute2f128_pd(b, d, 0x20), q[3] = _mm256_permute2f128_pd(b, d, 0x31);
}
#else
TF_INLINE void tf_transpose_float(tf_v_float *r) {
  tf_v_float a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  tf_v_float b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  tf_v_float c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  tf_v_float d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
TF_INLINE void tf_transpose_double(tf_v_double *r) {
  tf_v_double a = __builtin_shufflevector(r[0], r[1], 0, 2);
  r[1] = __builtin_shufflevector(r[0], r[1], 1, 3), r[0] = a;
}
#endif
/* integers move as floats of their size: shuffles look at no value */
TF_INLINE void tf_transpose_uint32_t(tf_v_uint32_t *r) { tf_transpose_float((tf_v_float *)r); }
/* eight lanes of 16 bits on every instruction set */
typedef uint16_t tf_v_uint16_t __attribute__((vector_size(16)));
typedef uint16_t tf_vu_uint16_t __attribute__((vector_size(16), aligned(2), may_alias));
TF_MOVE(uint16_t)
#define TF_TURNS(a, b, low)                                                                        \
  (low ? __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)                                   \
       : __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15))
TF_INLINE void tf_transpose_uint16_t(tf_v_uint16_t *r) { /* rows i and i + 4 lane by lane, three times */
  tf_v_uint16_t s[8];
  for (int pass = 0; pass < 3; pass++) {
    TF_EACH(i, 4) s[2 * i] = TF_TURNS(r[i], r[i + 4], 1), s[2 * i + 1] = TF_TURNS(r[i], r[i + 4], 0);
    TF_EACH(i, 8) r[i] = s[i];
  }
}
TF_INLINE void tf_transpose_uint64_t(tf_v_uint64_t *r) { tf_transpose_double((tf_v_double *)r); }

/* ---- a * b + c with one rounding, where the processor has no instruction for it */
#if !defined(TF_HAVE_FMA)
#if defined(__ARM_NEON)
#include <arm_neon.h>
#define tf_fma_float(a, b, c) \
  ((tf_v_float)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define tf_fma_double(a, b, c) \
  ((tf_v_double)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#else
#if defined(__SSE2__)
/* The double sum of the exact product and c is made odd where it is inexact and lies near a
   midpoint of two floats; its rounding to float is then the right one (vm_fma in two lanes). */
TF_INLINE __m128d tf_odd(__m128d p, __m128d z, __m128d s) {
  __m128d t = _mm_sub_pd(s, p), e = _mm_add_pd(_mm_sub_pd(p, _mm_sub_pd(s, t)), _mm_sub_pd(z, t));
  __m128d zero = _mm_setzero_pd(), off = _mm_or_pd(_mm_cmplt_pd(e, zero), _mm_cmpgt_pd(e, zero));
  __m128i w = _mm_castpd_si128(s), even = _mm_andnot_si128(w, _mm_set1_epi64x(1));
  __m128i opposed = _mm_and_si128(even, _mm_srli_epi64(_mm_xor_si128(_mm_castpd_si128(e), w), 63));
  __m128i step = _mm_sub_epi64(even, _mm_slli_epi64(opposed, 1)); /* towards e */
  return _mm_castsi128_pd(_mm_add_epi64(w, _mm_and_si128(step, _mm_castpd_si128(off))));
}
TF_INLINE tf_v_float tf_fma_float(tf_v_float a_, tf_v_float b_, tf_v_float c_) {
  __m128 a = (__m128)a_, b = (__m128)b_, c = (__m128)c_;
  __m128d c0 = _mm_cvtps_pd(c), c1 = _mm_cvtps_pd(_mm_movehl_ps(c, c));
  __m128d p0 = _mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b));
  __m128d p1 = _mm_mul_pd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)));
  __m128d s0 = _mm_add_pd(p0, c0), s1 = _mm_add_pd(p1, c1);
  const __m128i low = _mm_set_epi32(0, 0x0fffffff, 0, 0x0fffffff), rest = _mm_set_epi32(1, 0, 1, 0);
  __m128i near0 = _mm_or_si128(_mm_and_si128(_mm_castpd_si128(s0), low), rest);
  __m128i near1 = _mm_or_si128(_mm_and_si128(_mm_castpd_si128(s1), low), rest);
  __m128i hit = _mm_or_si128(_mm_cmpeq_epi32(near0, _mm_setzero_si128()),
                             _mm_cmpeq_epi32(near1, _mm_setzero_si128()));
  if (__builtin_expect(_mm_movemask_epi8(hit) != 0, 0)) {
    s0 = tf_odd(p0, c0, s0), s1 = tf_odd(p1, c1, s1);
  }
  return (tf_v_float)_mm_movelh_ps(_mm_cvtpd_ps(s0), _mm_cvtpd_ps(s1));
}
#else
TF_INLINE tf_v_float tf_fma_float(tf_v_float a, tf_v_float b, tf_v_float c) {
  return (tf_v_float){fmaf(a[0], b[0], c[0]), fmaf(a[1], b[1], c[1]), fmaf(a[2], b[2], c[2]),
                      fmaf(a[3], b[3], c[3])};
}
#endif
TF_INLINE tf_v_double tf_fma_double(tf_v_double a, tf_v_double b, tf_v_double c) {
  return (tf_v_double){fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])};
}
#endif
#endif

#endif
