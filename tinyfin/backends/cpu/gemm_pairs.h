/* Products of 8-bit integers: two steps of k at a time, as pairs of 16-bit integers in 32 bits. Two products and their
   sum fit 32 bits, and sums over k wrap, so the integers are those of the plain chain. Follows simd.h. */
typedef uint32_t pair;
typedef tf_v_uint32_t tf_v_pair;
#define tf_splat_pair tf_splat_uint32_t
#define tf_load_pair tf_load_uint32_t
#define tf_store_pair tf_store_uint32_t
#define tf_load_part_pair tf_load_part_uint32_t
#define tf_store_part_pair tf_store_part_uint32_t
#define tf_transpose_pair tf_transpose_uint32_t
#define widen_pair widen_uint32_t
#define narrow_pair narrow_uint32_t

#if TF_VBYTES == 64
#define tf_fma_pair(a, b, c) \
  ((tf_v_pair)_mm512_add_epi32((__m512i)(c), _mm512_madd_epi16((__m512i)(a), (__m512i)(b))))
#elif TF_VBYTES == 32 && defined(__AVX2__)
#define tf_fma_pair(a, b, c) \
  ((tf_v_pair)_mm256_add_epi32((__m256i)(c), _mm256_madd_epi16((__m256i)(a), (__m256i)(b))))
#elif defined(__SSE2__)
#define tf_fma_pair(a, b, c) ((tf_v_pair)_mm_add_epi32((__m128i)(c), _mm_madd_epi16((__m128i)(a), (__m128i)(b))))
#else
typedef int32_t tf_v_signed __attribute__((vector_size(TF_VBYTES)));
TF_INLINE tf_v_pair tf_fma_pair(tf_v_pair a, tf_v_pair b, tf_v_pair c) {
  tf_v_signed low = ((tf_v_signed)(a << 16) >> 16) * ((tf_v_signed)(b << 16) >> 16);
  return c + (tf_v_pair)low + (tf_v_pair)(((tf_v_signed)a >> 16) * ((tf_v_signed)b >> 16));
}
#endif

#define T pair
#define MR MR_REAL
#define OWN TF_I32
#include "gemm_tile.h"
#include "gemm_pack.h"

/* the first step of k in the low half: eight_pairs relies on it, as all processors that this runs on do */
#define PAIR_OF(low, high) ((uint32_t)(uint16_t)(low) | (uint32_t)(uint16_t)(high) << 16)

typedef int16_t shorts16 __attribute__((vector_size(32)));

/* pack for a run of k elements of 8 bits, of which panels hold (k + 1) / 2 pairs; the last one's odd half is zero */
#define PACK_PAIRS(S)                                                                              \
  typedef S eight_##S __attribute__((vector_size(8)));                                             \
  typedef S sixteen_##S __attribute__((vector_size(16)));                                          \
  TF_INLINE void eight_pairs_##S(const S *low, const S *high, uint32_t *d) {                       \
    eight_##S l, h;                                                                                \
    memcpy(&l, low, 8), memcpy(&h, high, 8);                                                       \
    sixteen_##S both = __builtin_shufflevector(l, h, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15); \
    shorts16 wide = __builtin_convertvector(both, shorts16);                                       \
    memcpy(d, &wide, 32);                                                                          \
  }                                                                                                \
  TF_INLINE void pairs_dense_##S(const int W, const S *src, int64_t ks, int64_t count, int64_t k, uint32_t *dst) { \
    const int64_t depth = (k + 1) / 2;                                                             \
    for (int64_t q = 0; q < depth; q++) {                                                          \
      const S *low = src + 2 * q * ks, *high = low + ks;                                           \
      uint32_t *d = dst + q * W;                                                                   \
      for (int64_t i = 0; i < count; i += W, low += W, high += W, d += depth * W) {                \
        if (2 * q + 1 == k)                                                                        \
          for (int64_t h = 0; h < W; h++) d[h] = i + h < count ? PAIR_OF(low[h], 0) : 0;           \
        else if (count - i < W)                                                                    \
          for (int64_t h = 0; h < W; h++) d[h] = i + h < count ? PAIR_OF(low[h], high[h]) : 0;     \
        else {                                                                                     \
          for (int h = 0; h < W / 8; h++) eight_pairs_##S(low + 8 * h, high + 8 * h, d + 8 * h);   \
          for (int h = W / 8 * 8; h < W; h++) d[h] = PAIR_OF(low[h], high[h]);                     \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void pairs_run_##S(const S *src, int64_t ks, int64_t k, uint32_t *restrict d) {           \
    if (ks == 1) for (int64_t q = 0; q < k / 2; q++) d[q] = PAIR_OF(src[2 * q], src[2 * q + 1]);   \
    else for (int64_t q = 0; q < k / 2; q++) d[q] = PAIR_OF(src[2 * q * ks], src[(2 * q + 1) * ks]); \
    if (k % 2) d[k / 2] = PAIR_OF(src[(k - 1) * ks], 0);                                           \
  }                                                                                                \
  static void pairs_##S(const S *src, int64_t is, int64_t ks, int64_t count, int64_t k, uint32_t *dst, int side) { \
    enum { W = NR > MR ? NR : MR };                                                                \
    const int64_t w = side ? NR : MR, depth = (k + 1) / 2;                                         \
    uint32_t strip[W][STRIP_pair];                                                                 \
    const void *rows[W];                                                                           \
    if (is == 1 && ks != 1) {                                                                      \
      if (side) pairs_dense_##S(NR, src, ks, count, k, dst);                                       \
      else pairs_dense_##S(MR, src, ks, count, k, dst);                                            \
      return;                                                                                      \
    }                                                                                              \
    for (int i = 0; i < W; i++) rows[i] = strip[i];                                                \
    for (; count > 0; count -= w, src += w * is, dst += w * depth) {                               \
      const int64_t some = count < w ? count : w;                                                  \
      for (int64_t q = 0; q < k; q += 2 * STRIP_pair) {                                            \
        const int64_t run = k - q < 2 * STRIP_pair ? k - q : 2 * STRIP_pair;                       \
        for (int64_t i = 0; i < some; i++) pairs_run_##S(src + i * is + q * ks, ks, run, strip[i]); \
        pack_rows_pair(rows, some, (run + 1) / 2, dst + q / 2 * w, side, 0);                       \
      }                                                                                            \
    }                                                                                              \
  }
PACK_PAIRS(int8_t)
PACK_PAIRS(uint8_t)

static void pack_bytes(int dtype, const void *src, int64_t is, int64_t ks, int64_t count, int64_t k, void *dst, int side) {
  if (dtype == TF_I8) pairs_int8_t(src, is, ks, count, k, dst, side);
  else pairs_uint8_t(src, is, ks, count, k, dst, side);
}
#undef T
#undef OWN
#undef MR
