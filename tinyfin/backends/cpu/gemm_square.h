/* Squares of lanes x lanes elements, read from as many rows and transposed: t[i] holds each row's element i after q
   bytes. Quarters of 128 bits go to their places while they are loaded, which spares half of the shuffles. Rows may lie
   at any address. After simd.h. */
#ifndef TF_GEMM_SQUARE_H
#define TF_GEMM_SQUARE_H

#if TF_VBYTES == 64
/* 16 bytes each of four rows */
TF_INLINE __m512i tf_four_rows(const void *a, const void *b, const void *c, const void *d) {
  __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)a));
  x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)b), 1);
  x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)c), 2);
  return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)d), 3);
}
TF_INLINE void tf_square_4(const char *const *rows, int64_t q, tf_v_float *t) {
  __m512 x[16];
  TF_EACH(p, 4) TF_EACH(s, 4) {
    const int64_t at = q + 16 * s;
    x[4 * s + p] = _mm512_castsi512_ps(
      tf_four_rows(rows[p] + at, rows[4 + p] + at, rows[8 + p] + at, rows[12 + p] + at));
  }
  TF_EACH(s, 4) TF_SQUARES(__m512, __m512d, _mm512, x + 4 * s, (__m512 *)t + 4 * s);
}
TF_INLINE void tf_square_8(const char *const *rows, int64_t q, tf_v_double *t) {
  TF_EACH(s, 4) {
    const int64_t at = q + 16 * s;
    const __m512d a = _mm512_castsi512_pd(tf_four_rows(rows[0] + at, rows[2] + at, rows[4] + at, rows[6] + at));
    const __m512d b = _mm512_castsi512_pd(tf_four_rows(rows[1] + at, rows[3] + at, rows[5] + at, rows[7] + at));
    t[2 * s] = (tf_v_double)_mm512_unpacklo_pd(a, b), t[2 * s + 1] = (tf_v_double)_mm512_unpackhi_pd(a, b);
  }
}
#elif TF_VBYTES == 32
TF_INLINE __m256 tf_two_rows(const void *a, const void *b) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1);
}
TF_INLINE void tf_square_4(const char *const *rows, int64_t q, tf_v_float *t) {
  __m256 x[8];
  TF_EACH(p, 4) TF_EACH(s, 2) x[4 * s + p] = tf_two_rows(rows[p] + q + 16 * s, rows[4 + p] + q + 16 * s);
  TF_EACH(s, 2) TF_SQUARES(__m256, __m256d, _mm256, x + 4 * s, (__m256 *)t + 4 * s);
}
TF_INLINE void tf_square_8(const char *const *rows, int64_t q, tf_v_double *t) {
  TF_EACH(s, 2) {
    const __m256d a = _mm256_castps_pd(tf_two_rows(rows[0] + q + 16 * s, rows[2] + q + 16 * s));
    const __m256d b = _mm256_castps_pd(tf_two_rows(rows[1] + q + 16 * s, rows[3] + q + 16 * s));
    t[2 * s] = (tf_v_double)_mm256_unpacklo_pd(a, b), t[2 * s + 1] = (tf_v_double)_mm256_unpackhi_pd(a, b);
  }
}
#else
TF_INLINE void tf_square_4(const char *const *rows, int64_t q, tf_v_float *t) {
  TF_EACH(i, 4) memcpy(t + i, rows[i] + q, TF_VBYTES);
  tf_transpose_float(t);
}
TF_INLINE void tf_square_8(const char *const *rows, int64_t q, tf_v_double *t) {
  TF_EACH(i, 2) memcpy(t + i, rows[i] + q, TF_VBYTES);
  tf_transpose_double(t);
}
#endif

/* by the type of an element; q in bytes */
#define tf_square_float tf_square_4
#define tf_square_double tf_square_8
TF_INLINE void tf_square_uint32_t(const char *const *rows, int64_t q, tf_v_uint32_t *t) {
  tf_square_4(rows, q, (tf_v_float *)t);
}
TF_INLINE void tf_square_uint64_t(const char *const *rows, int64_t q, tf_v_uint64_t *t) {
  tf_square_8(rows, q, (tf_v_double *)t);
}

#endif
