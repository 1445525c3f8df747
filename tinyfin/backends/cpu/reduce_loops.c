/* Inner loops of reductions, compiled once per instruction set; see reduce_loops.h. */
#include <float.h>
#include <string.h>

#include "isa.h"
#include "canonical_sum.h"
#include "reduce_loops.h"
#include "simd.h"
#include "vmath.h"
#include "halves.h"

#if defined(__GNUC__)
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) ((void)0)
#endif
#define AHEAD(p, bytes, by) \
  for (int64_t at = 0; at < (int64_t)(bytes); at += 64) PREFETCH((const char *)(p) + (by) + at);

/* ---- types: X(name, stored type, key type, accumulator) */
#define INTEGERS(X) \
  X(b, uint8_t) X(u8, uint8_t) X(i8, int8_t) X(i16, int16_t) X(i32, int32_t) X(i64, int64_t)
#define NUMBERS(X) INTEGERS(X) X(f16, uint16_t) X(bf16, uint16_t) X(f32, float) X(f64, double)

FN int64_t int_of(double v) { /* as a cast, but clamped: out of range is undefined in C */
  if (!(v > -9223372036854775808.0)) return v < 0 ? INT64_MIN : 0;
  return v >= 9223372036854775808.0 ? INT64_MAX : (int64_t)v;
}

/* ---- numbers in and out: READ gives a C number, the casts do the rest */
#define READ_b(v) ((v) != 0)
#define READ_u8(v) (v)
#define READ_i8(v) (v)
#define READ_i16(v) (v)
#define READ_i32(v) (v)
#define READ_i64(v) (v)
#define READ_f16(v) vm_h2f(v)
#define READ_bf16(v) FB((uint)(v) << 16)
#define READ_f32(v) (v)
#define READ_f64(v) (v)
#define WHOLE_f16(v) int_of(READ_f16(v))
#define WHOLE_bf16(v) int_of(READ_bf16(v))
#define WHOLE_f32(v) int_of(v)
#define WHOLE_f64(v) int_of(v)

#define LOOP(NAME, Y, X, EXPR)                                                                    \
  static void NAME(void *y0, const void *x0, int64_t n) {                                         \
    Y *restrict y = y0;                                                                           \
    const X *restrict x = x0;                                                                     \
    for (int64_t i = 0; i < n; i++) y[i] = EXPR;                                                  \
  }
#define SINGLES(s, T) LOOP(load_f32_##s, float, T, (float)READ_##s(x[i]))
#define DOUBLES(s, T) LOOP(load_f64_##s, double, T, (double)READ_##s(x[i]))
#define LOAD_WHOLE(s, T) LOOP(load_i64_##s, int64_t, T, (int64_t)READ_##s(x[i]))
#define LOAD_CUT(s, T) LOOP(load_i64_##s, int64_t, T, WHOLE_##s(x[i]))
INTEGERS(SINGLES)
SINGLES(bf16, uint16_t)
SINGLES(f32, float)
SINGLES(f64, double)
static void load_f32_f16(void *y, const void *x, int64_t n) { tf_widen_f16(y, x, n); }
NUMBERS(DOUBLES)
INTEGERS(LOAD_WHOLE)
LOAD_CUT(f16, uint16_t)
LOAD_CUT(bf16, uint16_t)
LOAD_CUT(f32, float)
LOAD_CUT(f64, double)

#define STORE_INT(s, T) LOOP(store_##s, T, int64_t, (T)x[i])
LOOP(store_b, uint8_t, int64_t, x[i] != 0)
STORE_INT(u8, uint8_t)
STORE_INT(i8, int8_t)
STORE_INT(i16, int16_t)
STORE_INT(i32, int32_t)
STORE_INT(i64, int64_t)
static void store_f16(void *y, const void *x, int64_t n) { tf_narrow_f16(y, x, n); }
LOOP(store_bf16, uint16_t, float, (uint16_t)vm_f2b(x[i]))
LOOP(store_f32, float, float, x[i])
LOOP(store_f64, double, double, x[i])

/* ---- lanes: element i of a block belongs to lane i mod 64, a lane takes its elements in rising
   order, the lanes are joined by halving. `unit` is the identity, read through a volatile so that
   joining it to a number stays an operation (which flushes subnormals where the mode says so).
   Reading ahead never faults, whatever the address. */
static volatile const float unit_sum_f32 = -0.0f, unit_prod_f32 = 1.0f;
static volatile const double unit_sum_f64 = -0.0, unit_prod_f64 = 1.0;
static volatile const uint64_t unit_sum_i64 = 0, unit_prod_i64 = 1;

#define LANE_OPS(op, OP, s, T)                                                                    \
  FN void small_##op##_##s(T *y, const T *x, int64_t n) { /* n <= 16: other lanes are units */    \
    T a[16], unit = unit_##op##_##s;                                                              \
    if (n == 16) memcpy(a, x, sizeof a);                                                          \
    else {                                                                                        \
      for (int j = 0; j < 16; j++) a[j] = unit;                                                   \
      for (int64_t j = 0; j < n; j++) a[j] = x[j];                                                \
    }                                                                                             \
    for (int h = 8; h > 0; h >>= 1)                                                               \
      for (int j = 0; j < h; j++) a[j] = a[j] OP a[j + h];                                        \
    *y = a[0];                                                                                    \
  }                                                                                               \
  static void block_##op##_##s(void *y, const void *x0, int64_t n) {                              \
    const T *restrict x = x0;                                                                     \
    if (n <= 16) { small_##op##_##s(y, x, n); return; }                                           \
    T a[TF_SUM_LANES], unit = unit_##op##_##s;                                                     \
    for (int j = 0; j < TF_SUM_LANES; j++) a[j] = unit;                                            \
    for (; n >= TF_SUM_LANES; n -= TF_SUM_LANES, x += TF_SUM_LANES) {                              \
      AHEAD(x, TF_SUM_LANES * sizeof(T), 4096)                                                     \
      for (int j = 0; j < TF_SUM_LANES; j++) a[j] = a[j] OP x[j];                                  \
    }                                                                                             \
    for (int64_t j = 0; j < n; j++) a[j] = a[j] OP x[j];                                          \
    for (int h = TF_SUM_LANES / 2; h > 0; h >>= 1)                                                 \
      for (int j = 0; j < h; j++) a[j] = a[j] OP a[j + h];                                        \
    *(T *)y = a[0];                                                                               \
  }                                                                                               \
  static void rows_##op##_##s(void *lanes, int64_t w, const void *x0, int64_t stride,             \
                              int64_t first, int64_t n) {                                         \
    const T *restrict x = x0;                                                                     \
    for (int64_t i = first; i < first + n; i++, x += stride) {                                    \
      T *restrict a = (T *)lanes + (i % TF_SUM_LANES) * w;                                         \
      if (stride > w || stride < 0) /* the hardware does not foresee such jumps */                \
        AHEAD(x, w * sizeof(T), 4 * stride * (int64_t)sizeof(T))                                  \
      if (i < TF_SUM_LANES) memcpy(a, x, w * sizeof(T));                                           \
      else for (int64_t c = 0; c < w; c++) a[c] = a[c] OP x[c];                                   \
    }                                                                                             \
  }                                                                                               \
  static void fold_##op##_##s(void *lanes, int64_t w, int64_t used) {                             \
    T *restrict a = lanes;                                                                        \
    T unit = unit_##op##_##s;                                                                     \
    if (used == 1) for (int64_t c = 0; c < w; c++) a[c] = a[c] OP unit;                           \
    for (int64_t h = TF_SUM_LANES / 2; h > 0; h >>= 1) {                                           \
      int64_t pairs = used - h < h ? used - h : h; /* lanes past `used` would be units */         \
      for (int64_t q = 0; q < pairs * w; q++) a[q] = a[q] OP a[q + h * w];                        \
      if (used > h) used = h;                                                                     \
    }                                                                                             \
  }
#define PRODUCTS(s, T)                                                                             \
  static void dot_##s(void *y, const void *a, const void *b, int64_t n) {                         \
    *(T *)y = tf_dot_##s##_block(a, b, 0, n);                                                     \
  }                                                                                               \
  static void block_squares_##s(void *y, const void *x, const void *mean, int64_t n) {            \
    *(T *)y = tf_sqdiff_##s##_block(x, *(const T *)mean, 0, n);                                   \
  }
PRODUCTS(f32, float)
PRODUCTS(f64, double)

/* Rows one after the other, as many as a vector has lanes: each is joined to one vector, and those are turned over, so that
   the last steps of the halving are the same additions of all of them. */
#define BLOCK_ROWS(op, OP, s, T, I)                                                               \
  FN tf_v_##T some_##op##_##s(const T *x, int n, tf_v_##T unit) { /* the first n lanes */         \
    typedef I IV __attribute__((vector_size(TF_VBYTES)));                                         \
    static const I index[16] __attribute__((aligned(64))) = {0, 1, 2,  3,  4,  5,  6,  7,         \
                                                             8, 9, 10, 11, 12, 13, 14, 15};       \
    const IV keep = *(const IV *)index < (IV){0} + n;                                             \
    return (tf_v_##T)(((IV)tf_load_part_##T(x, n) & keep) | ((IV)unit & ~keep));                  \
  }                                                                                               \
  FN tf_v_##T folded_##op##_##s(const T *x, int64_t n, tf_v_##T unit) {                           \
    enum { W = TF_LANES(T), NV = TF_SUM_LANES / W };                                              \
    tf_v_##T a[NV];                                                                               \
    TF_EACH(k, NV) a[k] = unit;                                                                   \
    for (; n >= TF_SUM_LANES; n -= TF_SUM_LANES, x += TF_SUM_LANES)                               \
      TF_EACH(k, NV) a[k] = a[k] OP tf_load_##T(x + k * W);                                       \
    TF_EACH(k, NV) if (n >= (k + 1) * W) a[k] = a[k] OP tf_load_##T(x + k * W);                   \
    else if (n > k * W) a[k] = a[k] OP some_##op##_##s(x + k * W, (int)n - k * W, unit);          \
    TF_EACH(d, 6) for (int k = 0, h = NV >> (d + 1); k < h; k++) a[k] = a[k] OP a[k + h];         \
    return a[0];                                                                                  \
  }                                                                                               \
  static void block_rows_##op##_##s(void *y, const void *x, int64_t stride, int64_t rows,         \
                                    int64_t n) {                                                  \
    enum { W = TF_LANES(T) };                                                                     \
    T *a = y;                                                                                     \
    const T *p = x;                                                                               \
    const tf_v_##T unit = tf_splat_##T(unit_##op##_##s);                                          \
    for (; n <= 512 && rows > 1; rows -= W, a += W, p += W * stride) {                            \
      tf_v_##T r[W];                                                                              \
      if (rows >= W) TF_EACH(k, W) r[k] = folded_##op##_##s(p + k * stride, n, unit);             \
      else for (int k = 0; k < W; k++)                                                            \
        r[k] = k < rows ? folded_##op##_##s(p + k * stride, n, unit) : unit;                      \
      tf_transpose_##T(r);                                                                        \
      TF_EACH(d, 4) for (int k = 0, h = W >> (d + 1); k < h; k++) r[k] = r[k] OP r[k + h];        \
      if (rows >= W) tf_store_##T(a, r[0]);                                                       \
      else tf_store_part_##T(a, r[0], (int)rows);                                                 \
    }                                                                                             \
    for (; rows > 0; rows--, a++, p += stride) block_##op##_##s(a, p, n);                         \
  }
LANE_OPS(sum, +, f32, float)
LANE_OPS(sum, +, f64, double)
LANE_OPS(sum, +, i64, uint64_t)
LANE_OPS(prod, *, f32, float)
LANE_OPS(prod, *, f64, double)
LANE_OPS(prod, *, i64, uint64_t)
BLOCK_ROWS(sum, +, f32, float, int32_t)
BLOCK_ROWS(sum, +, f64, double, int64_t)
BLOCK_ROWS(sum, +, i64, uint64_t, int64_t)
BLOCK_ROWS(prod, *, f32, float, int32_t)
BLOCK_ROWS(prod, *, f64, double, int64_t)
BLOCK_ROWS(prod, *, i64, uint64_t, int64_t)

#define SQUARE(s, T)                                                                              \
  static void square_##s(void *y0, const void *x0, const void *mean, int64_t n) {                 \
    T *restrict y = y0;                                                                           \
    const T *restrict x = x0, *restrict m = mean;                                                 \
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m[i]) * (x[i] - m[i]);                         \
  }
SQUARE(f32, float)
SQUARE(f64, double)

/* ---- keys: the bits of a float, as a signed integer with the magnitude of negatives complemented,
   are in the order of the floats; any NaN becomes the quiet positive one, above infinity */
#define FLOAT_KEY(T, bits, mag, inf, nan, u, flip)                                                \
  ((T)((u) & (mag)) > (inf) ? (T)(nan) : (T)(((u) ^ (((u) >> (bits)) & (mag))) ^ (flip)))
FN int32_t key32(int32_t u, int32_t flip) {
  return FLOAT_KEY(int32_t, 31, 0x7fffffff, 0x7f800000, 0x7fc00000, u, flip);
}
FN int64_t key64(int64_t u, int64_t flip) {
  return FLOAT_KEY(int64_t, 63, INT64_MAX, 0x7ff0000000000000, 0x7ff8000000000000, u, flip);
}
FN int32_t key_h(int32_t u, int32_t flip) {
  return FLOAT_KEY(int32_t, 15, 0x7fff, 0x7c00, 0x7e00, u, flip);
}
FN int32_t key_b(int32_t u, int32_t flip) {
  return FLOAT_KEY(int32_t, 15, 0x7fff, 0x7f80, 0x7fc0, u, flip);
}
/* and back: the value of a key of MAX (flip 0) or MIN (flip -1); above infinity NaN in both */
#define FLOAT_VALUE(T, bits, mag, inf, k, flip) \
  ((k) > (T)(inf) ? (k) : (((k) ^ (flip)) ^ ((((k) ^ (flip)) >> (bits)) & (mag))))

/* stored types as signed integers of their own width */
#define KEY_b(v, f) ((int32_t)((v) != 0) ^ (f))
#define KEY_u8(v, f) ((int32_t)(v) ^ (f))
#define KEY_i8(v, f) ((int32_t)(v) ^ (f))
#define KEY_i16(v, f) ((int32_t)(v) ^ (f))
#define KEY_i32(v, f) ((v) ^ (f))
#define KEY_i64(v, f) ((v) ^ (f))
#define KEY_f16(v, f) key_h(v, f)
#define KEY_bf16(v, f) key_b(v, f)
#define KEY_f32(v, f) key32(v, f)
#define KEY_f64(v, f) key64(v, f)
#define SOME_b(v) ((v) != 0)
#define SOME_u8(v) ((v) != 0)
#define SOME_i8(v) ((v) != 0)
#define SOME_i16(v) ((v) != 0)
#define SOME_i32(v) ((v) != 0)
#define SOME_i64(v) ((v) != 0)
#define SOME_f16(v) (((v) & 0x7fff) != 0)
#define SOME_bf16(v) (((v) & 0x7fff) != 0)
#define SOME_f32(v) (((v) & 0x7fffffff) != 0)
#define SOME_f64(v) (((v) & INT64_MAX) != 0)
#define KEYED(X)                                                                                  \
  X(b, uint8_t, int32_t) X(u8, uint8_t, int32_t) X(i8, int8_t, int32_t) X(i16, int16_t, int32_t)  \
  X(i32, int32_t, int32_t) X(i64, int64_t, int64_t) X(f16, int16_t, int32_t)                      \
  X(bf16, int16_t, int32_t) X(f32, int32_t, int32_t) X(f64, int64_t, int64_t)

#define KEY_OPS(kind, s, T, K, EXPR)                                                              \
  static int64_t best_##kind##_##s(const void *x0, int64_t n) {                                   \
    const T *restrict x = x0;                                                                     \
    K m = sizeof(K) == 4 ? (K)INT32_MIN : (K)INT64_MIN;                                           \
    for (int64_t i = 0; i < n; i++) { K k = EXPR; m = k > m ? k : m; }                            \
    return m;                                                                                     \
  }                                                                                               \
  static int64_t find_##kind##_##s(const void *x0, int64_t n, int64_t key) {                      \
    const K want = (K)key;                                                                        \
    int64_t at = 0;                                                                               \
    for (K hit = 0; at + 64 <= n; at += 64) { /* 64 at a time without a branch */                 \
      const T *restrict x = (const T *)x0 + at;                                                   \
      for (int i = 0; i < 64; i++) hit |= (K)((EXPR) == want);                                    \
      if (hit) break;                                                                             \
    }                                                                                             \
    const T *restrict x = (const T *)x0 + at;                                                     \
    for (int64_t i = 0; at + i < n; i++)                                                          \
      if ((EXPR) == want) return at + i;                                                          \
    return n;                                                                                     \
  }                                                                                               \
  static void raise_##kind##_##s(void *best0, const void *x0, int64_t n) {                        \
    K *restrict best = best0;                                                                     \
    const T *restrict x = x0;                                                                     \
    for (int64_t i = 0; i < n; i++) { K k = EXPR; best[i] = k > best[i] ? k : best[i]; }          \
  }                                                                                               \
  LOOP(keys_##kind##_##s, K, T, EXPR)
#define KEY_KINDS(s, T, K)                                                                        \
  KEY_OPS(max, s, T, K, KEY_##s(x[i], (K)0))                                                      \
  KEY_OPS(min, s, T, K, KEY_##s(x[i], (K)-1))                                                     \
  KEY_OPS(any, s, T, K, (K)SOME_##s(x[i]))                                                        \
  KEY_OPS(all, s, T, K, (K)!SOME_##s(x[i]))
KEYED(KEY_KINDS)

/* The greatest key of float numbers by comparing numbers, twice as fast. Keys decide where that does not tell:
   with a NaN, and of zeros and subnormal numbers, which compare equal where they are flushed. */
#define FASTER(s, T, K, kind, SIGN, TINY)                                                         \
  static int64_t fast_##kind##_##s(const void *x0, int64_t n) {                                   \
    enum { W = TF_LANES(T) };                                                                     \
    const T *x = x0;                                                                              \
    if (n < 8 * W) return best_##kind##_##s(x0, n);                                               \
    tf_v_##T m[4];                                                                                \
    __typeof__(m[0] != m[0]) odd[4] = {{0}};                                                      \
    TF_EACH(k, 4) m[k] = SIGN tf_load_##T(x);                                                     \
    int64_t i = 0;                                                                                \
    for (; i + 4 * W <= n; i += 4 * W) TF_EACH(k, 4) {                                            \
      const tf_v_##T v = SIGN tf_load_##T(x + i + k * W);                                         \
      odd[k] |= v != v;                                                                           \
      m[k] = tf_max_##T(v, m[k]);                                                                 \
    }                                                                                             \
    odd[0] |= odd[1] | odd[2] | odd[3];                                                           \
    T most = m[0][0];                                                                             \
    K any = 0;                                                                                    \
    TF_EACH(k, 4) for (int j = 0; j < W; j++) most = m[k][j] > most ? m[k][j] : most;             \
    for (int j = 0; j < W; j++) any |= odd[0][j];                                                 \
    for (; i < n; i++) {                                                                          \
      const T v = SIGN x[i];                                                                      \
      any |= v != v;                                                                              \
      most = v > most ? v : most;                                                                 \
    }                                                                                             \
    if (any || !(most >= TINY || most <= -TINY)) return best_##kind##_##s(x0, n);                 \
    most = SIGN most;                                                                             \
    return best_##kind##_##s(&most, 1);                                                           \
  }
FASTER(f32, float, int32_t, max, +, FLT_MIN)
FASTER(f32, float, int32_t, min, -, FLT_MIN)
FASTER(f64, double, int64_t, max, +, DBL_MIN)
FASTER(f64, double, int64_t, min, -, DBL_MIN)

#define VALUES(s, T, K, MAX, MIN)                                                                 \
  LOOP(value_max_##s, T, int64_t, (T)(MAX)) LOOP(value_min_##s, T, int64_t, (T)(MIN))
#define INT_VALUES(s, T) VALUES(s, T, int64_t, x[i], ~x[i])
INTEGERS(INT_VALUES)
VALUES(f16, int16_t, int64_t, FLOAT_VALUE(int64_t, 15, 0x7fff, 0x7c00, x[i], 0),
       FLOAT_VALUE(int64_t, 15, 0x7fff, 0x7c00, x[i], -1))
VALUES(bf16, int16_t, int64_t, FLOAT_VALUE(int64_t, 15, 0x7fff, 0x7f80, x[i], 0),
       FLOAT_VALUE(int64_t, 15, 0x7fff, 0x7f80, x[i], -1))
VALUES(f32, int32_t, int64_t, FLOAT_VALUE(int64_t, 31, 0x7fffffff, 0x7f800000, x[i], 0),
       FLOAT_VALUE(int64_t, 31, 0x7fffffff, 0x7f800000, x[i], -1))
VALUES(f64, int64_t, int64_t, FLOAT_VALUE(int64_t, 63, INT64_MAX, 0x7ff0000000000000, x[i], 0),
       FLOAT_VALUE(int64_t, 63, INT64_MAX, 0x7ff0000000000000, x[i], (int64_t)-1))
LOOP(value_any, uint8_t, int64_t, x[i] != 0)
LOOP(value_all, uint8_t, int64_t, x[i] == 0)

#define LIFT(NAME, K)                                                                             \
  static void NAME(void *best0, void *where0, const void *keys0, int64_t i, int64_t n) {          \
    K *restrict best = best0, *restrict where = where0;                                           \
    const K *restrict k = keys0;                                                                  \
    for (int64_t c = 0; c < n; c++) {                                                             \
      where[c] = k[c] > best[c] ? (K)i : where[c];                                                \
      best[c] = k[c] > best[c] ? k[c] : best[c];                                                  \
    }                                                                                             \
  }
LIFT(lift_32, int32_t)
LIFT(lift_64, int64_t)

/* ---- the table */
#define EACH(p) \
  {p##_b, p##_u8, p##_i8, p##_i16, p##_i32, p##_i64, p##_f16, p##_bf16, p##_f32, p##_f64}
#define FAST(kind)                                                                                \
  {best_##kind##_b, best_##kind##_u8, best_##kind##_i8, best_##kind##_i16, best_##kind##_i32,     \
   best_##kind##_i64, best_##kind##_f16, best_##kind##_bf16, fast_##kind##_f32, fast_##kind##_f64}
#define ACCS(p) {p##_f32, p##_f64, p##_i64}
#define KINDS(p) {EACH(p##_max), EACH(p##_min), EACH(p##_any), EACH(p##_all)}
#define TEN(f) {f, f, f, f, f, f, f, f, f, f}

const tf_reduce_table TF_NAME(tf_reduce) = {
    .load = {EACH(load_f32), EACH(load_f64), EACH(load_i64)},
    .store = EACH(store),
    .block = {ACCS(block_sum), ACCS(block_prod)},
    .dot = {dot_f32, dot_f64},
    .block_squares = {block_squares_f32, block_squares_f64},
    .block_rows = {ACCS(block_rows_sum), ACCS(block_rows_prod)},
    .rows = {ACCS(rows_sum), ACCS(rows_prod)},
    .fold = {ACCS(fold_sum), ACCS(fold_prod)},
    .square = {square_f32, square_f64},
    .best = {FAST(max), FAST(min), EACH(best_any), EACH(best_all)},
    .find = KINDS(find),
    .keys = KINDS(keys),
    .raise = KINDS(raise),
    .value = {EACH(value_max), EACH(value_min), TEN(value_any), TEN(value_all)},
    .lift = {lift_32, lift_64},
};
