/* Inner loops of random numbers, compiled once per instruction set; see random_loops.h. */
#include "isa.h"
#include "lanes.h"
#include "random_loops.h"
#include "vmath.h"

/* Counters side by side in vectors of 64-bit lanes, two vectors at a time. Only the low half of a
   lane counts: the product reads no more, so the upper half need not be cleared between rounds. */
#define GROUP 16
typedef uint64_t lanes64 __attribute__((vector_size(TF_VBYTES)));
enum { WIDTH = TF_VBYTES / 8, PAIR = 2 };
#if TF_VBYTES == 64
#define MUL32(a, b) ((lanes64)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#elif TF_VBYTES == 32 && defined(__AVX2__)
#define MUL32(a, b) ((lanes64)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#elif TF_VBYTES == 16 && defined(__SSE2__)
#define MUL32(a, b) ((lanes64)_mm_mul_epu32((__m128i)(a), (__m128i)(b)))
#else
#define MUL32(a, b) (((a) & 0xffffffffu) * (b))
#endif

static void philox(uint32_t *w, uint64_t block, uint64_t seed, uint64_t draw) {
  const lanes64 m0 = (lanes64){0} + 0xD2511F53u, m1 = (lanes64){0} + 0xCD9E8D57u;
  lanes64 rising, c0[PAIR], c1[PAIR], c2[PAIR], c3[PAIR];
  for (int j = 0; j < WIDTH; j++) rising[j] = j;
  for (int at = 0; at < GROUP; at += WIDTH * PAIR) {
    uint64_t k0 = seed, k1 = seed >> 32;
    TF_EACH(i, PAIR) {
      c0[i] = rising + (block + at + i * WIDTH);
      c1[i] = c0[i] >> 32;
      c2[i] = (lanes64){0} + draw;
      c3[i] = (lanes64){0} + (draw >> 32);
    }
    _Pragma("GCC unroll 10") for (int r = 0; r < 10; r++) {
      TF_EACH(i, PAIR) {
        lanes64 p = MUL32(c0[i], m0), q = MUL32(c2[i], m1);
        c0[i] = (q >> 32) ^ c1[i] ^ k0;
        c2[i] = (p >> 32) ^ c3[i] ^ k1;
        c1[i] = q;
        c3[i] = p;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    TF_EACH(i, PAIR) for (int j = 0; j < WIDTH; j++, w += 4) {
      w[0] = (uint32_t)c0[i][j];
      w[1] = (uint32_t)c1[i][j];
      w[2] = (uint32_t)c2[i][j];
      w[3] = (uint32_t)c3[i][j];
    }
  }
}

static void words(uint32_t *w, uint64_t block, int64_t blocks, uint64_t seed, uint64_t draw) {
  uint32_t rest[4 * GROUP];
  for (; blocks >= GROUP; blocks -= GROUP, block += GROUP, w += 4 * GROUP)
    philox(w, block, seed, draw);
  if (blocks <= 0) return;
  philox(rest, block, seed, draw);
  for (int64_t j = 0; j < 4 * blocks; j++) w[j] = rest[j];
}

/* 53 and 52 bits of two words */
FN uint64_t bits64(uint32_t hi, uint32_t lo) { return (uint64_t)hi << 32 | lo; }
FN double bits53(uint32_t hi, uint32_t lo) { return (double)(int64_t)(bits64(hi, lo) >> 11); }
FN double bits52(uint32_t hi, uint32_t lo) { return (double)(int64_t)(bits64(hi, lo) >> 12); }

/* As many bits as the dtype holds, so that a half never rounds up to the upper end. */
static void uniform_f32(void *y0, const uint32_t *restrict w, int64_t n, double low, double high,
                        int bits) {
  float *restrict y = y0;
  const float lo = (float)low, span = (float)(high - low), unit = 1.0f / (float)(1 << bits);
  const int shift = 32 - bits;
  for (int64_t i = 0; i < n; i++) y[i] = (float)(int)(w[i] >> shift) * unit * span + lo;
}

static void uniform_f64(void *y0, const uint32_t *restrict w, int64_t n, double low, double high,
                        int bits) {
  double *restrict y = y0;
  const double span = high - low;
  (void)bits;
  for (int64_t i = 0; i < n; i++) y[i] = bits53(w[2 * i], w[2 * i + 1]) * 0x1p-53 * span + low;
}

/* Elements 2j and 2j + 1 are the cosine and sine of one angle: vm_normal(w0, w1) and, a quarter
   turn back, vm_normal(w0, w1 - 2^30). n may be odd; whole pairs are written. */
static void normal_f32(void *y0, const uint32_t *restrict w, int64_t n, double mean, double std) {
  float *restrict y = y0;
  const float m = (float)mean, s = (float)std;
  for (int64_t i = 0; i < n; i += 2) {
    const float r = vm_root(-2.0f * vm_log((float)(int)((w[i] >> 8) + 1) * 5.9604644775390625e-8f));
    y[i] = r * vm_cos2pi(vm_uniform(w[i + 1])) * s + m;
    y[i + 1] = r * vm_cos2pi(vm_uniform(w[i + 1] - 0x40000000u)) * s + m;
  }
}

static void normal_f64(void *y0, const uint32_t *restrict w, int64_t n, double mean, double std) {
  double *restrict y = y0;
  for (int64_t i = 0; i < n; i += 2, w += 4) {
    const double r = __builtin_sqrt(-2.0 * vd_log((bits53(w[0], w[1]) + 1.0) * 0x1p-53));
    y[i] = r * vd_cos2pi(bits53(w[2], w[3]) * 0x1p-53) * std + mean;
    y[i + 1] = r * vd_cos2pi(bits53(w[2] - 0x40000000u, w[3]) * 0x1p-53) * std + mean;
  }
}

/* -log u / rate with u = odd / 2^24: never 0 or 1, so the result is positive and finite */
static void exponential_f32(void *y0, const uint32_t *restrict w, int64_t n, double rate) {
  float *restrict y = y0;
  const float r = (float)rate;
  for (int64_t i = 0; i < n; i++)
    y[i] = -vm_log((float)(int)(w[i] >> 9 << 1 | 1) * 5.9604644775390625e-8f) / r;
}

static void exponential_f64(void *y0, const uint32_t *restrict w, int64_t n, double rate) {
  double *restrict y = y0;
  for (int64_t i = 0; i < n; i++)
    y[i] = -vd_log((2.0 * bits52(w[2 * i], w[2 * i + 1]) + 1.0) * 0x1p-53) / rate;
}

/* low + the upper half of the 128-bit product of a random 64-bit number and the range, by halves */
static void randint(int64_t *restrict y, const uint32_t *restrict w, int64_t n, uint64_t low,
                    uint64_t range) {
  const uint64_t r0 = (uint32_t)range, r1 = range >> 32;
  for (int64_t i = 0; i < n; i++) {
    uint64_t hi = w[2 * i], lo = w[2 * i + 1], a = hi * r0, b = lo * r1;
    uint64_t carry = ((uint32_t)a + (uint64_t)(uint32_t)b + (lo * r0 >> 32)) >> 32;
    y[i] = (int64_t)(low + hi * r1 + (a >> 32) + (b >> 32) + carry);
  }
}

static void below(int64_t *restrict y, const uint32_t *restrict w, int64_t n, uint64_t limit) {
  for (int64_t i = 0; i < n; i++) y[i] = w[i] < limit;
}

#define DROP(NAME, T)                                                                             \
  static void NAME(void *y0, const void *x0, const uint32_t *restrict w, int64_t n,               \
                   uint64_t limit, double scale) {                                                \
    T *restrict y = y0;                                                                           \
    const T *restrict x = x0;                                                                     \
    const T s = (T)scale;                                                                         \
    if (limit >> 32) {                                                                            \
      for (int64_t i = 0; i < n; i++) y[i] = 0;                                                   \
      return;                                                                                     \
    }                                                                                             \
    const uint32_t least = (uint32_t)limit;                                                       \
    for (int64_t i = 0; i < n; i++) {                                                             \
      T v = x[i] * s;                                                                             \
      y[i] = w[i] >= least ? v : 0;                                                               \
    }                                                                                             \
  }
DROP(drop_f32, float)
DROP(drop_f64, double)

const tf_random_table TF_NAME(tf_random) = {
    words,
    {uniform_f32, uniform_f64},
    {normal_f32, normal_f64},
    {exponential_f32, exponential_f64},
    randint,
    below,
    {drop_f32, drop_f64},
};
