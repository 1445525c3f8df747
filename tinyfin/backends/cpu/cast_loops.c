/* Conversions between dtypes: halves by integer texts, float to integer clamped before the cast. */
#include "isa.h"
#include "cast_loops.h"
#include "simd.h"
#define VM_C
#if !defined(__FMA__) && !defined(__aarch64__)
#define VM_SOFTFMA
#endif
#include "vmath.inc"

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

#define MOVE(T)                                                                      \
  static void move_##T(const char *s, int64_t ss, char *d, int64_t ds, int64_t n) {  \
    for (int64_t i = 0; i < n; i++) *(T *)(d + i * ds) = *(const T *)(s + i * ss);   \
  }
/* Squares of TILE elements stay in cache; SQUARE moves a part of one. */
enum { TILE = 32 };
#define TILES(T, L, SQUARE)                                                          \
  static void tile_##T(const char *s, int64_t s0, int64_t s1, char *d, int64_t d0, int64_t d1, \
                       int64_t n0, int64_t n1) {                                     \
    for (int64_t a = 0; a < n0; a += TILE)                                           \
      for (int64_t b = 0; b < n1; b += TILE)                                         \
        for (int64_t i = a; i < n0 && i < a + TILE; i += L)                          \
          for (int64_t j = b; j < n1 && j < b + TILE; j += L)                        \
            SQUARE(T, L, s + i * s0 + j * s1, d + i * d0 + j * d1)                   \
  }
#define ONE(T, L, from, to) *(T *)(to) = *(const T *)(from);
/* Lanes x lanes in registers, where the source is dense along one axis and the target along the other. */
#define LANES(L) _Pragma("GCC unroll 16") for (int k = 0; k < L; k++)
#define TURNED(T, L, from, to) {                                                     \
    const char *f = from;                                                            \
    char *t = to;                                                                    \
    if (s0 == sizeof(T) && d1 == sizeof(T) && i + L <= n0 && j + L <= n1) {          \
      tf_v_##T r[L];                                                                 \
      LANES(L) r[k] = tf_load_##T((const T *)(f + k * s1));                          \
      tf_transpose_##T(r);                                                           \
      LANES(L) tf_store_##T((T *)(t + k * d0), r[k]);                                \
    } else {                                                                         \
      for (int64_t x = 0; x < L && i + x < n0; x++)                                  \
        for (int64_t y = 0; y < L && j + y < n1; y++)                                \
          *(T *)(t + x * d0 + y * d1) = *(const T *)(f + x * s0 + y * s1);           \
    }                                                                                \
  }
MOVE(uint8_t)
MOVE(uint16_t)
MOVE(uint32_t)
MOVE(uint64_t)
TILES(uint8_t, 1, ONE)
TILES(uint16_t, 1, ONE)
TILES(uint32_t, TF_LANES(uint32_t), TURNED)
TILES(uint64_t, TF_LANES(uint64_t), TURNED)

#define ROW(N) {N##_bool, N##_u8, N##_i8, N##_i16, N##_i32, N##_i64, N##_f16, N##_bf16, N##_f32, N##_f64}
const tf_cast_table TF_NAME(tf_cast) = {
  {ROW(bool), ROW(u8), ROW(i8), ROW(i16), ROW(i32), ROW(i64), ROW(f16), ROW(bf16), ROW(f32), ROW(f64)},
  {move_uint8_t, move_uint16_t, move_uint32_t, move_uint64_t},
  {tile_uint8_t, tile_uint16_t, tile_uint32_t, tile_uint64_t},
};
