/* Conversions between dtypes: halves by integer texts, float to integer clamped before the cast. */
#include "isa.h"
#include "cast_loops.h"
#include "simd.h"
#define VM_C
#if !defined(__FMA__) && !defined(__aarch64__)
#define VM_SOFTFMA
#endif
#include "vmath.inc"
#include "halves.h"

/* Value type of each storage type, and how to load and store it. */
#define LOAD_PLAIN(x) (x)
#define TO_BOOL(v) ((v) != 0)
#define TO_F16(v) vm_f2h((float)(v))
#define TO_BF16(v) vm_f2b((float)(v))

#define CLAMPED(NAME, T, LOW, HIGH)                                                 \
  static inline T NAME##_f(float v) {                                               \
    v = v != v ? 0.0f : v;                                                          \
    return v <= (float)LOW ? LOW : v >= (float)HIGH ? HIGH : (T)v;                  \
  }                                                                                 \
  static inline T NAME##_d(double v) {                                              \
    v = v != v ? 0.0 : v;                                                           \
    return v <= (double)LOW ? LOW : v >= (double)HIGH ? HIGH : (T)v;                \
  }
CLAMPED(to_u8, uint8_t, 0, 255)
CLAMPED(to_i8, int8_t, -128, 127)
CLAMPED(to_i16, int16_t, -32768, 32767)
CLAMPED(to_i32, int32_t, INT32_MIN, INT32_MAX)
CLAMPED(to_i64, int64_t, INT64_MIN, INT64_MAX)

#define CAST(NAME, S, D, EXPR)                                                      \
  static void NAME(const void *src, void *dst, int64_t n) {                         \
    const S *s = src; D *d = dst;                                                   \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) { S x = s[i]; d[i] = (D)(EXPR); } \
  }

/* From one storage type to all ten: V is the loaded value, F tells how floats become integers. */
#define FROM(N, S, V, I)                                                            \
  CAST(N##_bool, S, uint8_t, (V) != 0)                                              \
  CAST(N##_u8, S, uint8_t, I(to_u8, uint8_t, V))                                    \
  CAST(N##_i8, S, int8_t, I(to_i8, int8_t, V))                                      \
  CAST(N##_i16, S, int16_t, I(to_i16, int16_t, V))                                  \
  CAST(N##_i32, S, int32_t, I(to_i32, int32_t, V))                                  \
  CAST(N##_i64, S, int64_t, I(to_i64, int64_t, V))                                  \
  CAST(N##_f16, S, uint16_t, vm_f2h((float)(V)))                                    \
  CAST(N##_bf16, S, uint16_t, vm_f2b((float)(V)))                                   \
  CAST(N##_f32, S, float, V)                                                        \
  CAST(N##_f64, S, double, V)
#define WHOLE(f, T, v) (T)(v)
#define SINGLE(f, T, v) f##_f(v)
#define DOUBLE(f, T, v) f##_d(v)

FROM(bool, uint8_t, x != 0, WHOLE) /* borrowed memory may hold any byte */
FROM(u8, uint8_t, x, WHOLE)
FROM(i8, int8_t, x, WHOLE)
FROM(i16, int16_t, x, WHOLE)
FROM(i32, int32_t, x, WHOLE)
FROM(i64, int64_t, x, WHOLE)
FROM(f16, uint16_t, vm_h2f(x), SINGLE)
FROM(bf16, uint16_t, FB((uint)x << 16), SINGLE)
FROM(f32, float, x, SINGLE)
FROM(f64, double, x, DOUBLE)

static void f32_to_f16(const void *src, void *dst, int64_t n) { tf_narrow_f16(dst, src, n); }
static void f16_to_f32(const void *src, void *dst, int64_t n) { tf_widen_f16(dst, src, n); }

/* Dense targets, which most are, by vectors: copied, filled with one value, reversed. */
#define MOVE(T)                                                                      \
  static void move_##T(const char *s, int64_t ss, char *d, int64_t ds, int64_t n) {  \
    const int64_t item = sizeof(T);                                                  \
    T *restrict y = (T *)d;                                                          \
    const T *restrict x = (const T *)s;                                              \
    if (ds != item)                                                                  \
      for (int64_t i = 0; i < n; i++) *(T *)(d + i * ds) = *(const T *)(s + i * ss); \
    else if (ss == item) memcpy(d, s, (size_t)(n * item));                           \
    else if (ss == 0) for (const T v = *x; n > 0; n--) *y++ = v;                     \
    else if (ss == -item) for (int64_t i = 0; i < n; i++) y[i] = x[-i];              \
    else for (int64_t i = 0; i < n; i++) y[i] = *(const T *)(s + i * ss);            \
  }
/* Rows shorter than a vector are written whole: the next one writes over what is too much. */
#define SPREAD(T)                                                                    \
  static void spread_##T(const void *src, void *dst, int64_t rows, int64_t n) {      \
    typedef T V __attribute__((vector_size(TF_VBYTES), aligned(1), may_alias));      \
    enum { W = TF_VBYTES / sizeof(T) };                                              \
    const T *x = src;                                                                \
    T *y = dst, *const end = y + rows * n;                                           \
    for (int64_t r = 0; r < rows; r++) {                                             \
      T *const next = y + n;                                                         \
      const V v = (V){0} + x[r];                                                     \
      for (; next - y >= W; y += W) *(V *)y = v;                                     \
      if (end - y >= W) *(V *)y = v;                                                 \
      else for (; y < next; y++) *y = x[r];                                          \
      y = next;                                                                      \
    }                                                                                \
  }
/* Rows by vectors of their size or less, the last of which overlaps the one before. */
#define ROWS(W)                                                                      \
  {                                                                                  \
    typedef uint8_t V __attribute__((vector_size(W), aligned(1), may_alias));        \
    for (; rows > 0; rows--, src += step, dst += n) {                                \
      for (int64_t i = 0; i + W <= n; i += W) *(V *)(dst + i) = *(const V *)(src + i); \
      *(V *)(dst + n - W) = *(const V *)(src + n - W);                               \
    }                                                                                \
  }
static void rows(const char *src, int64_t step, char *dst, int64_t rows, int64_t n) {
  if (n >= TF_VBYTES) ROWS(TF_VBYTES)
  else if (n >= 16) ROWS(16)
  else if (n >= 8) ROWS(8)
  else if (n >= 4) ROWS(4)
  else
    for (; rows > 0; rows--, src += step, dst += n)
      for (int64_t i = 0; i < n; i++) dst[i] = src[i];
}
/* Copies into another order of axes: element (i, j) of n0 x n1 from s + i * s0 + j * s1 to d + i * d0 + j * d1.

   One short axis is unrolled along the other. Else squares of TILE elements stay in cache, and where the source is
   dense along i and the target along j, L rows of a whole line of memory each are turned round in registers, while
   what lies AHEAD bytes on in the source's rows, too many for the processor to follow, is on its way. With
   `around` they go to memory past the caches, which spares reading what is written over: for targets that the caches
   cannot hold (25 MB: 6.3 to 2.9 ms). */
enum { TILE = 32, FEW = 8, LINE = 64, AHEAD = 512 };
#define LANES(L) _Pragma("GCC unroll 16") for (int k = 0; k < L; k++)
#if TF_VBYTES == 64
#define PAST(p, v) _mm512_stream_si512((__m512i *)(p), (__m512i)(v))
#elif TF_VBYTES == 32
#define PAST(p, v) _mm256_stream_si256((__m256i *)(p), (__m256i)(v))
#elif defined(__SSE2__)
#define PAST(p, v) _mm_stream_si128((__m128i *)(p), (__m128i)(v))
#endif
#ifdef PAST
#define FENCE() _mm_sfence()
#else
#define PAST(p, v) (*(__typeof__(v) *)(p) = (v))
#define FENCE() ((void)0)
#endif
#if defined(__SSE2__) /* vectors of halves have 16 bytes everywhere */
#define PAST_uint16_t(p, v) _mm_stream_si128((__m128i *)(p), (__m128i)(v))
#else
#define PAST_uint16_t PAST
#endif
#define PAST_uint32_t PAST
#define PAST_uint64_t PAST

#define FEW_CASE(T, m)                                                                         \
  case m:                                                                                      \
    for (int64_t i = 0; i < n; i++, s += s0, d += d0)                                          \
      LANES(m) *(T *)(d + k * d1) = *(const T *)(s + k * s1);                                  \
    break;
#define TILES(T, L, SQUARE)                                                                    \
  static void few_##T(const char *s, int64_t s0, int64_t s1, char *d, int64_t d0, int64_t d1,  \
                      int64_t n, int64_t m) {                                                  \
    switch (m) {                                                                               \
      FEW_CASE(T, 1) FEW_CASE(T, 2) FEW_CASE(T, 3) FEW_CASE(T, 4)                              \
      FEW_CASE(T, 5) FEW_CASE(T, 6) FEW_CASE(T, 7) FEW_CASE(T, 8)                              \
    }                                                                                          \
  }                                                                                            \
  static void tile_##T(const char *s, int64_t s0, int64_t s1, char *d, int64_t d0, int64_t d1, \
                       int64_t n0, int64_t n1, int around) {                                   \
    if (n1 <= FEW) {                                                                           \
      few_##T(s, s0, s1, d, d0, d1, n0, n1);                                                   \
      return;                                                                                  \
    }                                                                                          \
    if (n0 <= FEW) {                                                                           \
      few_##T(s, s1, s0, d, d1, d0, n1, n0);                                                   \
      return;                                                                                  \
    }                                                                                          \
    around = around && !(((uintptr_t)d | (uintptr_t)d0) % LINE);                               \
    for (int64_t a = 0; a < n0; a += TILE)                                                     \
      for (int64_t b = 0; b < n1; b += TILE)                                                   \
        for (int64_t i = a; i < n0 && i < a + TILE; i += L)                                    \
          for (int64_t j = b; j < n1 && j < b + TILE; j += LINE / (int)sizeof(T))              \
            SQUARE(T, L, LINE / (int)sizeof(T), s + i * s0 + j * s1, d + i * d0 + j * d1)      \
    if (around) FENCE();                                                                       \
  }
#define ONES(T, L, W, from, to)                                                                \
  for (int64_t x = 0; x < L && i + x < n0; x++)                                                \
    for (int64_t y = 0; y < W && j + y < n1; y++)                                              \
      *(T *)((to) + x * d0 + y * d1) = *(const T *)((from) + x * s0 + y * s1);
#define TURNED(T, L, W, from, to) {                                                            \
    const char *f = from;                                                                      \
    char *t = to;                                                                              \
    if (s0 == sizeof(T) && d1 == sizeof(T) && i + L <= n0 && j + W <= n1) {                    \
      tf_v_##T r[W];                                                                           \
      LANES(W) __builtin_prefetch(f + k * s1 + AHEAD);                                         \
      LANES(W) r[k] = tf_load_##T((const T *)(f + k * s1));                                    \
      LANES(W / L) tf_transpose_##T(r + k * L);                                                \
      LANES(L) _Pragma("GCC unroll 4") for (int h = 0; h < W / L; h++) {                       \
        T *at = (T *)(t + k * d0) + h * L;                                                     \
        if (around) PAST_##T(at, r[h * L + k]);                                                \
        else tf_store_##T(at, r[h * L + k]);                                                   \
      }                                                                                        \
    } else {                                                                                   \
      ONES(T, L, W, f, t)                                                                      \
    }                                                                                          \
  }
/* Elements by index: y[i] = x[i step + index[i] size]. */
#define PICK(T)                                                                                             \
  static void pick_##T(void *y0, const void *x0, int64_t step, const int64_t *restrict index, int64_t size, \
                       int64_t n) {                                                                         \
    T *restrict y = y0;                                                                                     \
    const T *restrict x = x0;                                                                               \
    if (step == 0 && size == 1)                                                                             \
      _Pragma("GCC unroll 8") for (int64_t i = 0; i < n; i++) y[i] = x[index[i]];                           \
    else                                                                                                    \
      _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++) y[i] = x[i * step + index[i] * size];         \
  }
PICK(uint8_t)
PICK(uint16_t)
PICK(uint32_t)
PICK(uint64_t)
static int outside(const int64_t *index, int64_t n, int64_t low, int64_t high) { /* wraps around by design */
  const uint64_t lo = (uint64_t)low, hi = (uint64_t)(high - 1);
  uint64_t bad = 0;
  for (int64_t j = 0; j < n; j++) bad |= ((uint64_t)index[j] - lo) | (hi - (uint64_t)index[j]);
  return bad >> 63 != 0;
}
static void fence(void) { FENCE(); }
static void stream(char *d, const char *s, int64_t n) {
  int64_t head = -(int64_t)(uintptr_t)d & (LINE - 1);
  if (head > n) head = n;
  memcpy(d, s, (size_t)head);
  for (d += head, s += head, n -= head; n >= LINE; n -= LINE, d += LINE, s += LINE) {
    tf_v_uint32_t v[LINE / TF_VBYTES];
    memcpy(v, s, LINE);
    LANES(LINE / TF_VBYTES) PAST(d + k * TF_VBYTES, v[k]);
  }
  memcpy(d, s, (size_t)n);
}
MOVE(uint8_t)
MOVE(uint16_t)
MOVE(uint32_t)
MOVE(uint64_t)
SPREAD(uint8_t)
SPREAD(uint16_t)
SPREAD(uint32_t)
SPREAD(uint64_t)
TILES(uint8_t, 16, ONES)
TILES(uint16_t, 8, TURNED)
TILES(uint32_t, TF_LANES(uint32_t), TURNED)
TILES(uint64_t, TF_LANES(uint64_t), TURNED)

#define ROW(N) {N##_bool, N##_u8, N##_i8, N##_i16, N##_i32, N##_i64, N##_f16, N##_bf16, N##_f32, N##_f64}
#define FIRST(N) N##_bool, N##_u8, N##_i8, N##_i16, N##_i32, N##_i64
const tf_cast_table TF_NAME(tf_cast) = {
  {ROW(bool), ROW(u8), ROW(i8), ROW(i16), ROW(i32), ROW(i64),
   {FIRST(f16), f16_f16, f16_bf16, f16_to_f32, f16_f64}, ROW(bf16), {FIRST(f32), f32_to_f16, f32_bf16, f32_f32, f32_f64}, ROW(f64)},
  {move_uint8_t, move_uint16_t, move_uint32_t, move_uint64_t},
  {spread_uint8_t, spread_uint16_t, spread_uint32_t, spread_uint64_t},
  rows,
  {tile_uint8_t, tile_uint16_t, tile_uint32_t, tile_uint64_t},
  stream,
  fence,
  {pick_uint8_t, pick_uint16_t, pick_uint32_t, pick_uint64_t},
  outside,
};
