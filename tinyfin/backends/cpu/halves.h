/* float16 to float32 and back, by instruction where there is one; runs with a NaN, whose bits the
   instruction would choose, by the text of vmath. Include vmath.inc before. */
#ifndef TF_HALVES_H
#define TF_HALVES_H
#include <stdint.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

static void tf_widen_text(float *restrict d, const uint16_t *restrict s, int64_t n) {
  for (int64_t i = 0; i < n; i++) d[i] = vm_h2f(s[i]);
}
static void tf_narrow_text(uint16_t *restrict d, const float *restrict s, int64_t n) {
  for (int64_t i = 0; i < n; i++) d[i] = (uint16_t)vm_f2h(s[i]);
}

/* TF_HALVES of them at a time: TF_WIDE and TF_NARROW convert, TF_EITHER finds NaN in x or y. */
#if defined(__AVX512BW__)
#define TF_HALVES 16
#define TF_HALF __m256i
#define TF_WHOLE __m512
#define TF_GET(p) _mm256_loadu_si256((const __m256i *)(p))
#define TF_PUT(p, h) _mm256_storeu_si256((__m256i *)(p), h)
#define TF_LOAD(p) _mm512_loadu_ps(p)
#define TF_STORE(p, x) _mm512_storeu_ps(p, x)
#define TF_WIDE(h) _mm512_cvtph_ps(h)
#define TF_NARROW(x) _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define TF_EITHER(x, y) _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q)
#elif defined(__F16C__)
#define TF_HALVES 8
#define TF_HALF __m128i
#define TF_WHOLE __m256
#define TF_GET(p) _mm_loadu_si128((const __m128i *)(p))
#define TF_PUT(p, h) _mm_storeu_si128((__m128i *)(p), h)
#define TF_LOAD(p) _mm256_loadu_ps(p)
#define TF_STORE(p, x) _mm256_storeu_ps(p, x)
#define TF_WIDE(h) _mm256_cvtph_ps(h)
#define TF_NARROW(x) _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define TF_EITHER(x, y) _mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q))
#endif

#if defined(TF_HALVES)
static void tf_widen_f16(float *restrict d, const uint16_t *restrict s, int64_t n) {
  enum { N = TF_HALVES };
  for (; n >= 4 * N; n -= 4 * N, s += 4 * N, d += 4 * N) {
    const TF_WHOLE a = TF_WIDE(TF_GET(s)), b = TF_WIDE(TF_GET(s + N));
    const TF_WHOLE e = TF_WIDE(TF_GET(s + 2 * N)), f = TF_WIDE(TF_GET(s + 3 * N));
    if (__builtin_expect(TF_EITHER(a, b) | TF_EITHER(e, f), 0)) tf_widen_text(d, s, 4 * N);
    else TF_STORE(d, a), TF_STORE(d + N, b), TF_STORE(d + 2 * N, e), TF_STORE(d + 3 * N, f);
  }
  for (; n >= N; n -= N, s += N, d += N) {
    const TF_WHOLE a = TF_WIDE(TF_GET(s));
    if (__builtin_expect(TF_EITHER(a, a), 0)) tf_widen_text(d, s, N);
    else TF_STORE(d, a);
  }
  tf_widen_text(d, s, n);
}
static void tf_narrow_f16(uint16_t *restrict d, const float *restrict s, int64_t n) {
  enum { N = TF_HALVES };
  for (; n >= 4 * N; n -= 4 * N, s += 4 * N, d += 4 * N) {
    const TF_WHOLE a = TF_LOAD(s), b = TF_LOAD(s + N), e = TF_LOAD(s + 2 * N), f = TF_LOAD(s + 3 * N);
    if (__builtin_expect(TF_EITHER(a, b) | TF_EITHER(e, f), 0)) tf_narrow_text(d, s, 4 * N);
    else {
      TF_PUT(d, TF_NARROW(a)), TF_PUT(d + N, TF_NARROW(b));
      TF_PUT(d + 2 * N, TF_NARROW(e)), TF_PUT(d + 3 * N, TF_NARROW(f));
    }
  }
  for (; n >= N; n -= N, s += N, d += N) {
    const TF_WHOLE a = TF_LOAD(s);
    if (__builtin_expect(TF_EITHER(a, a), 0)) tf_narrow_text(d, s, N);
    else TF_PUT(d, TF_NARROW(a));
  }
  tf_narrow_text(d, s, n);
}
#else
#define tf_widen_f16 tf_widen_text
#define tf_narrow_f16 tf_narrow_text
#endif

#endif
