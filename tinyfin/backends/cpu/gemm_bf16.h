/* Products of bfloat16 by the instruction that takes two steps of k at a time. It is two fused multiply-adds, that of
   the high halves first, each rounded as fma is: so the chain is ours where the earlier step stands in the high half.
   It treats subnormal numbers as zeros, whatever the mode; panels therefore note between which magnitudes their
   elements lie, and where a sum might be subnormal the caller computes the product again. Follows gemm_pairs.h. */
typedef uint32_t duo;
typedef tf_v_uint32_t tf_v_duo;
#define tf_splat_duo tf_splat_uint32_t
#define tf_load_duo tf_load_uint32_t
#define tf_store_duo tf_store_uint32_t
#define tf_load_part_duo tf_load_part_uint32_t
#define tf_store_part_duo tf_store_part_uint32_t
#define tf_transpose_duo tf_transpose_uint32_t

/* as text: compilers offer it only to files that are compiled for processors with it */
TF_INLINE tf_v_duo tf_fma_duo(tf_v_duo a, tf_v_duo b, tf_v_duo c) {
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
  return c;
}

/* to bfloat16: low's lanes, then high's; rounds to nearest, flushes too, and leaves NaN to its own taste */
TF_INLINE __m512i narrow_two(tf_v_float low, tf_v_float high) {
  __m512i h;
  __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(h) : "v"(high), "v"(low));
  return h;
}

#define T duo
#define MR MR_REAL
#include "gemm_tile.h"

/* least magnitude but zero, less one, and greatest, in lanes of 16 bits */
typedef struct { __m512i least, most; } duo_reach;

TF_INLINE void duo_meet(duo_reach *r, __m512i x) {
  x = _mm512_and_si512(x, _mm512_set1_epi16(0x7fff));
  r->least = _mm512_min_epu16(r->least, _mm512_sub_epi16(x, _mm512_set1_epi16(1)));
  r->most = _mm512_max_epu16(r->most, x);
}

/* n pairs of 16 rows, from byte `at` of each on; w words from one pair's to the next's */
TF_INLINE void duo_square(const char *const *rows, int64_t at, int64_t n, uint32_t *dst, int64_t w, __mmask16 lanes,
                          duo_reach *r) {
  tf_v_uint32_t t[16];
  tf_square_uint32_t(rows, at, t);
  TF_EACH16(i, 16) {
    if (i < n) {
      const __m512i x = _mm512_rol_epi32((__m512i)t[i], 16);
      duo_meet(r, x);
      _mm512_mask_storeu_epi32(dst + i * w, lanes, x);
    }
  }
}

/* up to 16 lanes of a panel, element (i, q) at src + i * is + q * ks; `odd` completes the last pair */
static void duo_lanes(const uint16_t *src, int64_t is, int64_t ks, int64_t count, int64_t k, uint32_t *dst, int64_t w,
                      __mmask16 lanes, uint16_t odd, duo_reach *r) {
  const char *rows[16], *near[16];
  uint16_t room[16][32];
  int64_t q = 0;
  for (int i = 0; i < 16; i++) {
    rows[i] = (const char *)(src + (i < count ? i : count - 1) * is);
    near[i] = (const char *)room[i];
  }
  if (ks == 1)
    for (; q + 32 <= k; q += 32) duo_square(rows, 2 * q, 16, dst + q / 2 * w, w, lanes, r);
  for (; q < k; q += 32) {
    const int64_t some = k - q < 32 ? k - q : 32;
    for (int i = 0; i < 16; i++) {
      const uint16_t *s = (const uint16_t *)rows[i] + q * ks;
      if (ks == 1) _mm512_storeu_si512(room[i], _mm512_maskz_loadu_epi16((__mmask32)((1ull << some) - 1), s));
      else for (int64_t j = 0; j < some; j++) room[i][j] = s[j * ks];
      if (some % 2) room[i][some] = odd;
    }
    duo_square(near, 0, (some + 1) / 2, dst + q / 2 * w, w, lanes, r);
  }
}

/* rows of k that are dense along i: read in order, over all panels */
TF_INLINE void duo_dense(const int W, const uint16_t *src, int64_t ks, int64_t count, int64_t k, uint32_t *dst,
                         uint16_t odd, duo_reach *r) {
  const int64_t depth = (k + 1) / 2;
  for (int64_t q = 0; q < depth; q++) {
    const uint16_t *early = src + 2 * q * ks, *late = early + ks;
    for (int64_t i = 0; i < count; i += W) {
      TF_EACH16(h, (W + 15) / 16) {
        const int64_t left = count - i - 16 * h;
        if (left <= 0) continue;
        const __mmask16 some = left < 16 ? (1u << left) - 1 : 0xffff;
        const __mmask16 all = W - 16 * h < 16 ? (1 << W % 16) - 1 : 0xffff;
        const __mmask16 there = some & all;
        __m512i x = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, early + i + 16 * h));
        const __m256i y = 2 * q + 1 < k ? _mm256_maskz_loadu_epi16(there, late + i + 16 * h) : _mm256_set1_epi16(odd);
        x = _mm512_or_si512(_mm512_slli_epi32(x, 16), _mm512_cvtepu16_epi32(y));
        duo_meet(r, x);
        _mm512_mask_storeu_epi32(dst + (i / W * depth + q) * W + 16 * h, all, x);
      }
    }
  }
}

static void duo_note(const duo_reach *r, tf_reach *reach) {
  uint16_t least[32], most[32];
  int32_t low = 0xffff, high = 0, old;
  _mm512_storeu_si512(least, r->least), _mm512_storeu_si512(most, r->most);
  for (int i = 0; i < 32; i++) low = least[i] < low ? least[i] : low, high = most[i] > high ? most[i] : high;
  old = __atomic_load_n(&reach->least, __ATOMIC_RELAXED);
  while (low < old && !__atomic_compare_exchange_n(&reach->least, &old, low, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  old = __atomic_load_n(&reach->most, __ATOMIC_RELAXED);
  while (high > old && !__atomic_compare_exchange_n(&reach->most, &old, high, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static void pack_duos(const void *src_, int64_t is, int64_t ks, int64_t count, int64_t k, void *dst_, int side,
                      tf_reach *reach) {
  const uint16_t *src = src_, odd = side ? 0 : 0x8000; /* their product is -0, which changes no sum */
  const int64_t w = side ? NR : MR, depth = (k + 1) / 2;
  duo_reach r = {_mm512_set1_epi16(-1), _mm512_setzero_si512()};
  uint32_t *dst = dst_;
  if (is == 1 && ks != 1) {
    if (side) duo_dense(NR, src, ks, count, k, dst, odd, &r);
    else duo_dense(MR, src, ks, count, k, dst, odd, &r);
  } else {
    for (; count > 0; count -= w, src += w * is, dst += w * depth) {
      const int64_t some = count < w ? count : w;
      for (int64_t i = 0; i < some; i += 16)
        duo_lanes(src + i * is, is, ks, some - i, k, dst + i, w, w - i < 16 ? (1 << (w - i)) - 1 : 0xffff, odd, &r);
    }
  }
  duo_note(&r, reach);
}

/* Whether no product and no sum of k of them leaves the normal numbers: all are multiples of the product of the last
   places of the least elements. */
static int duos_fit(const tf_reach *a, const tf_reach *b) {
  const int32_t low = ((a->least + 1) >> 7) + ((b->least + 1) >> 7), high = (a->most >> 7) + (b->most >> 7);
  if (a->most >= 0x7f80 || b->most >= 0x7f80) return 0;
  if (a->least < 0x7f || b->least < 0x7f) return 0;
  return low >= 142 && high < 340;
}

/* sums as the tile leaves them, up to 32 columns; of operands that do not fit, they do not matter */
static void narrow_duos(int dtype, const void *acc, int64_t ld, int64_t rows, int64_t cols, void *dst, int64_t ldc) {
  const float *s = acc;
  uint16_t *d = dst;
  const __mmask32 there = (__mmask32)((1ull << cols) - 1);
  (void)dtype;
  for (int64_t i = 0; i < rows; i++, s += ld, d += ldc) {
    const tf_v_float low = (tf_v_float)_mm512_maskz_loadu_ps((__mmask16)there, s);
    const tf_v_float high = (tf_v_float)_mm512_maskz_loadu_ps((__mmask16)(there >> 16), s + 16);
    _mm512_mask_storeu_epi16(d, there, narrow_two(low, high));
  }
}

/* Whether this processor has the instructions, and they round as said above. */
static int duos_work(void) {
  uint32_t s = 1;
  if (!__builtin_cpu_supports("avx512bf16")) return 0;
  for (int round = 0; round < 400; round++) {
    uint32_t w[3][16];
    for (int i = 0; i < 48; i++) {
      s = s * 1664525u + 1013904223u;
      const uint32_t x = s ^ s >> 15;
      s = s * 1664525u + 1013904223u;
      w[i / 16][i % 16] = (x & 0x887f887fu) | 0x3c003c00u | (s >> 16 & 0x3f80) | (s & 0x3f8000) << 8;
    }
    const tf_v_uint32_t a = tf_load_uint32_t(w[0]), b = tf_load_uint32_t(w[1]), c = tf_load_uint32_t(w[2]);
    const tf_v_float sum = tf_fma_float(SECOND_BF16(a), SECOND_BF16(b), (tf_v_float)c);
    const tf_v_uint32_t want = (tf_v_uint32_t)tf_fma_float(FIRST_BF16(a), FIRST_BF16(b), sum);
    const tf_v_uint32_t got = tf_fma_duo(a, b, c);
    const half_lanes low = bf16_of((tf_v_float)got), high = bf16_of((tf_v_float)c);
    const __m512i both = narrow_two((tf_v_float)got, (tf_v_float)c);
    if (memcmp(&want, &got, 64) || memcmp(&low, &both, 32) || memcmp(&high, (const char *)&both + 32, 32)) return 0;
  }
  return 1;
}
#undef T
#undef MR
