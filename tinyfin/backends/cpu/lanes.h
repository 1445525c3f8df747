/* Vectors of the instruction set at hand, as numbers: GCC's vector types, and what they lack.

   tf_v_float, tf_v_double    in registers: + - * / - and comparisons work on them
   tf_vu_float, tf_vu_double  the same in memory, at any address
   tf_max_float(a, m)         a > m ? a : m in each lane (so m where a is NaN)
   tf_fma_float(a, b, c)      a * b + c with one rounding, by instruction
   tf_hadd_float(a)           the lanes added by halving

   Width may show in speed, never in bits: code that adds lanes says in which order. */
#ifndef TF_LANES_H
#define TF_LANES_H
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define TF_VBYTES 64
#elif defined(__AVX__)
#define TF_VBYTES 32
#else
#define TF_VBYTES 16
#endif

/* vectors in registers, and the same in memory at any address */
typedef float tf_v_float __attribute__((vector_size(TF_VBYTES)));
typedef double tf_v_double __attribute__((vector_size(TF_VBYTES)));
typedef float tf_vu_float __attribute__((vector_size(TF_VBYTES), aligned(4), may_alias));
typedef double tf_vu_double __attribute__((vector_size(TF_VBYTES), aligned(8), may_alias));

/* lane j takes lane j + half of the same vector; lanes from half on are then of no use */
#if TF_VBYTES == 64
static inline float tf_hadd_float(tf_v_float a) {
  a += __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
  a += __builtin_shufflevector(a, a, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
  a += __builtin_shufflevector(a, a, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3);
  return a[0] + a[1];
}
static inline double tf_hadd_double(tf_v_double a) {
  a += __builtin_shufflevector(a, a, 4, 5, 6, 7, 4, 5, 6, 7);
  a += __builtin_shufflevector(a, a, 2, 3, 2, 3, 2, 3, 2, 3);
  return a[0] + a[1];
}
#elif TF_VBYTES == 32
static inline float tf_hadd_float(tf_v_float a) {
  a += __builtin_shufflevector(a, a, 4, 5, 6, 7, 4, 5, 6, 7);
  a += __builtin_shufflevector(a, a, 2, 3, 2, 3, 2, 3, 2, 3);
  return a[0] + a[1];
}
static inline double tf_hadd_double(tf_v_double a) {
  a += __builtin_shufflevector(a, a, 2, 3, 2, 3);
  return a[0] + a[1];
}
#else
static inline float tf_hadd_float(tf_v_float a) {
  a += __builtin_shufflevector(a, a, 2, 3, 2, 3);
  return a[0] + a[1];
}
static inline double tf_hadd_double(tf_v_double a) { return a[0] + a[1]; }
#endif

#define TF_EACH(k, n) _Pragma("GCC unroll 8") for (int k = 0; k < (n); k++)

#if TF_VBYTES == 64
#define tf_max_float(a, m) ((tf_v_float)_mm512_max_ps((__m512)(a), (__m512)(m)))
#define tf_max_double(a, m) ((tf_v_double)_mm512_max_pd((__m512d)(a), (__m512d)(m)))
#define tf_fma_float(a, b, c) \
  ((tf_v_float)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define tf_fma_double(a, b, c) \
  ((tf_v_double)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define TF_HAVE_FMA 1
#elif TF_VBYTES == 32 && defined(__FMA__)
#define tf_max_float(a, m) ((tf_v_float)_mm256_max_ps((__m256)(a), (__m256)(m)))
#define tf_max_double(a, m) ((tf_v_double)_mm256_max_pd((__m256d)(a), (__m256d)(m)))
#define tf_fma_float(a, b, c) \
  ((tf_v_float)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define tf_fma_double(a, b, c) \
  ((tf_v_double)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define TF_HAVE_FMA 1
#elif TF_VBYTES == 16 && defined(__SSE2__)
#define tf_max_float(a, m) ((tf_v_float)_mm_max_ps((__m128)(a), (__m128)(m)))
#define tf_max_double(a, m) ((tf_v_double)_mm_max_pd((__m128d)(a), (__m128d)(m)))
#else
static inline tf_v_float tf_max_float(tf_v_float a, tf_v_float m) {
  for (int k = 0; k < (int)(TF_VBYTES / sizeof(float)); k++) m[k] = a[k] > m[k] ? a[k] : m[k];
  return m;
}
static inline tf_v_double tf_max_double(tf_v_double a, tf_v_double m) {
  for (int k = 0; k < (int)(TF_VBYTES / sizeof(double)); k++) m[k] = a[k] > m[k] ? a[k] : m[k];
  return m;
}
#endif

#endif
