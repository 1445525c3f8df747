/* Lines of pooling windows for one instruction set; exports one table. */
#include "isa.h"
#include "pool_loops.h"

#define INLINE static inline __attribute__((always_inline))

#define MAX(NAME, S, K, KU, INF, QUIET, SHIFT, LOWEST, HIGHEST)                                          \
  INLINE K NAME##_key(S bits) {                                                                          \
    K b = (K)((KU)bits << SHIFT);                                                                        \
    K key = b ^ (K)((KU)(b >> (8 * sizeof(K) - 1)) & (KU)HIGHEST);                                       \
    return ((KU)b & (KU)HIGHEST) > (KU)INF << SHIFT ? HIGHEST : key;                                      \
  }                                                                                                      \
  static void NAME##_begin(void *keys, int32_t *places, int64_t n) {                                     \
    K *k = keys;                                                                                         \
    for (int64_t i = 0; i < n; i++) k[i] = LOWEST, places[i] = 0;                                         \
  }                                                                                                      \
  INLINE void NAME##_tap(const S *x, int64_t step, int32_t first, int32_t stride, int64_t n,              \
                         K *restrict keys, int32_t *restrict places) {                                   \
    for (int64_t i = 0; i < n; i++) {                                                                    \
      K key = NAME##_key(x[i * step]);                                                                   \
      int take = (key > keys[i]) | (key == HIGHEST);                                                     \
      keys[i] = take ? key : keys[i];                                                                    \
      places[i] = take ? first + (int32_t)i * stride : places[i];                                        \
    }                                                                                                    \
  }                                                                                                      \
  static void NAME##_line(const tf_pool_line *p, const void *x, int32_t first, void *keys, int32_t *places) { \
    const int64_t alone[2] = {0, 1};                                                                     \
    for (int64_t r = 0; r < p->k; r++) {                                                                 \
      const int64_t *reach = p->reach ? p->reach + 2 * r : alone;                                         \
      const int64_t o = reach[0], n = reach[1] - o, at = o * p->stride - p->pad + r * p->dil; \
      const S *s = (const S *)x + at * p->step;                                                          \
      const int64_t step = p->stride * p->step;                                                          \
      const int32_t place = first + (int32_t)at, apart = (int32_t)p->stride;                             \
      if (n <= 0) continue;                                                                              \
      if (step == 1) NAME##_tap(s, 1, place, apart, n, (K *)keys + o, places + o);                        \
      else if (step == 2) NAME##_tap(s, 2, place, apart, n, (K *)keys + o, places + o);                   \
      else NAME##_tap(s, step, place, apart, n, (K *)keys + o, places + o);                               \
    }                                                                                                    \
  }                                                                                                      \
  static void NAME##_end(const void *keys, const int32_t *places, int64_t n, void *y, int64_t *indices) { \
    const K *k = keys;                                                                                   \
    S *out = y;                                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                                    \
      K b = k[i] ^ (K)((KU)(k[i] >> (8 * sizeof(K) - 1)) & (KU)HIGHEST);                                 \
      S bits = k[i] == LOWEST ? (S)((KU)INF | (KU)1 << (8 * sizeof(S) - 1)) : (S)((KU)b >> SHIFT);       \
      out[i] = k[i] == HIGHEST ? (S)QUIET : bits;                                                        \
    }                                                                                                    \
    for (int64_t i = 0; i < n; i++) indices[i] = places[i];                                              \
  }

MAX(f16, uint16_t, int32_t, uint32_t, 0x7c00, 0x7e00, 16, INT32_MIN, INT32_MAX)
MAX(bf16, uint16_t, int32_t, uint32_t, 0x7f80, 0x7fc0, 16, INT32_MIN, INT32_MAX)
MAX(f32, uint32_t, int32_t, uint32_t, 0x7f800000, 0x7fc00000, 0, INT32_MIN, INT32_MAX)
MAX(f64, uint64_t, int64_t, uint64_t, 0x7ff0000000000000, 0x7ff8000000000000, 0, INT64_MIN, INT64_MAX)

#define SUM(T)                                                                                           \
  static void T##_begin(void *acc, int64_t n) {                                                          \
    T *a = acc;                                                                                          \
    for (int64_t i = 0; i < n; i++) a[i] = -(T)0;                                                         \
  }                                                                                                      \
  INLINE void T##_add_tap(const T *x, int64_t step, int64_t n, T *restrict acc) {                        \
    for (int64_t i = 0; i < n; i++) acc[i] += x[i * step];                                               \
  }                                                                                                      \
  static void T##_add(const tf_pool_line *p, const void *x, void *acc) {                                 \
    const int64_t step = p->stride * p->step;                                                            \
    if (!p->reach) { /* one window, all inside */                                                        \
      const T *s = (const T *)x - p->pad * p->step;                                                      \
      T a = *(T *)acc;                                                                                   \
      for (int64_t r = 0; r < p->k; r++) a += s[r * p->step];                                            \
      *(T *)acc = a;                                                                                     \
      return;                                                                                            \
    }                                                                                                    \
    for (int64_t r = 0; r < p->k; r++) {                                                                 \
      const int64_t o = p->reach[2 * r], n = p->reach[2 * r + 1] - o;                                       \
      const T *s = (const T *)x + (o * p->stride - p->pad + r * p->dil) * p->step;                       \
      T *a = (T *)acc + o;                                                                               \
      if (n <= 0) continue;                                                                              \
      if (step == 1) T##_add_tap(s, 1, n, a);                                                            \
      else if (step == 2) T##_add_tap(s, 2, n, a);                                                       \
      else T##_add_tap(s, step, n, a);                                                                   \
    }                                                                                                    \
  }                                                                                                      \
  static void T##_divide(void *acc, const int64_t *counts, int64_t factor, int64_t n) {                  \
    T *a = acc;                                                                                          \
    for (int64_t i = 0; i < n; i++) a[i] /= (T)(factor * counts[i]);                                     \
  }                                                                                                      \
  /* falling taps: an element's windows come in rising order */                                          \
  static void T##_spread(const tf_pool_line *p, const void *share, void *x) {                            \
    const int64_t step = p->stride * p->step;                                                            \
    if (!p->reach) {                                                                                     \
      const T s = *(const T *)share;                                                                     \
      T *d = (T *)x - p->pad * p->step;                                                                  \
      for (int64_t r = 0; r < p->k; r++) d[r * p->step] += s;                                            \
      return;                                                                                            \
    }                                                                                                    \
    for (int64_t r = p->k - 1; r >= 0; r--) {                                                            \
      const int64_t o = p->reach[2 * r], last = p->reach[2 * r + 1];                                          \
      T *d = (T *)x + (o * p->stride - p->pad + r * p->dil) * p->step;                                   \
      const T *s = share;                                                                                \
      if (step == 1) for (int64_t i = o; i < last; i++, d++) *d += s[i];                                  \
      else for (int64_t i = o; i < last; i++, d += step) *d += s[i];                                     \
    }                                                                                                    \
  }

SUM(float)
SUM(double)

#define MAX_OF(NAME, item, key) {NAME##_begin, NAME##_line, NAME##_end, item, key}
#define SUM_OF(T) {T##_begin, T##_add, T##_divide, T##_spread}
const tf_pool_table TF_NAME(tf_pool) = {
    {MAX_OF(f16, 2, 4), MAX_OF(bf16, 2, 4), MAX_OF(f32, 4, 4), MAX_OF(f64, 8, 8)},
    {SUM_OF(float), SUM_OF(double)}};
