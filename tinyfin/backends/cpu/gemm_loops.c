/* Tiles, panels and runs of matrix products for one instruction set; exports one table. */
#include "isa.h"
#include "abi.h"
#include "vmath.h"
#include "halves.h"
#include "simd.h"
#include "shuffles.h"
#include "gemm_square.h"
#include "gemm_loops.h"
#include "gemm_halves.h"

/* groups of L columns of thin products at a time: their chains hide each other's latency */
#define THIN_GROUPS (TF_VBYTES == 16 ? 4 : 2)
/* rows that share what was transposed, which is not what takes the time where fma is no instruction */
#if defined(TF_HAVE_FMA) || defined(__aarch64__)
#define THIN_FLOAT_ROWS 4
#else
#define THIN_FLOAT_ROWS 1
#endif
#define TF_EACH16(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

/* MR x NR accumulators and one row of B fill the registers: 32 of 512 bits, 16 of the others */
#define NV 2
#if TF_VBYTES == 64
#define MR_REAL 14
#define MR_INT 6
#elif defined(__aarch64__)
#define MR_REAL 8
#define MR_INT 6
#elif TF_VBYTES == 32
#define MR_REAL 6
#define MR_INT 6
#else
#define MR_REAL 4
#define MR_INT 4
#endif

/* ---- elements of a dtype as accumulators and back */
#define RUN(S, FROM)                                                                              \
  {                                                                                               \
    const S *s = src;                                                                             \
    if (stride == 1) for (int64_t i = 0; i < n; i++) { S x = s[i]; d[i] = FROM; }                 \
    else for (int64_t i = 0; i < n; i++) { S x = s[i * stride]; d[i] = FROM; }                    \
    return;                                                                                       \
  }
#define BACK(D, INTO)                                                                             \
  {                                                                                               \
    D *d = dst;                                                                                   \
    if (stride == 1) for (int64_t i = 0; i < n; i++) { d[i] = INTO; }                             \
    else for (int64_t i = 0; i < n; i++) { d[i * stride] = INTO; }                                \
    return;                                                                                       \
  }

static void widen_float(int dtype, const void *src, int64_t stride, int64_t n, void *dst) {
  float *restrict d = dst;
  if (dtype == TF_F32) RUN(float, x)
  if (dtype == TF_F16 && stride == 1) {
    tf_widen_f16(d, src, n);
    return;
  }
  if (dtype == TF_F16) RUN(uint16_t, vm_h2f(x))
  RUN(uint16_t, FB((uint32_t)x << 16))
}
static void narrow_float(int dtype, const void *acc, int64_t n, void *dst, int64_t stride) {
  const float *restrict s = acc;
  if (dtype == TF_F32) BACK(float, s[i])
  if (dtype == TF_F16 && stride == 1) {
    tf_narrow_f16(dst, s, n);
    return;
  }
  if (dtype == TF_F16) BACK(uint16_t, (uint16_t)vm_f2h(s[i]))
  if (stride == 1) {
    narrow_bf16(dst, s, n);
    return;
  }
  BACK(uint16_t, (uint16_t)vm_f2b(s[i]))
}
static void widen_double(int dtype, const void *src, int64_t stride, int64_t n, void *dst) {
  double *restrict d = dst;
  (void)dtype;
  RUN(double, x)
}
static void narrow_double(int dtype, const void *acc, int64_t n, void *dst, int64_t stride) {
  const double *restrict s = acc;
  (void)dtype;
  BACK(double, s[i])
}
static void widen_uint32_t(int dtype, const void *src, int64_t stride, int64_t n, void *dst) {
  uint32_t *restrict d = dst;
  if (dtype == TF_BOOL) RUN(uint8_t, x != 0)
  if (dtype == TF_U8) RUN(uint8_t, x)
  if (dtype == TF_I8) RUN(int8_t, (uint32_t)(int32_t)x)
  if (dtype == TF_I16) RUN(int16_t, (uint32_t)(int32_t)x)
  RUN(uint32_t, x)
}
static void narrow_uint32_t(int dtype, const void *acc, int64_t n, void *dst, int64_t stride) {
  const uint32_t *restrict s = acc;
  if (dtype == TF_BOOL) BACK(uint8_t, s[i] != 0)
  if (dtype == TF_U8 || dtype == TF_I8) BACK(uint8_t, (uint8_t)s[i])
  if (dtype == TF_I16) BACK(uint16_t, (uint16_t)s[i])
  BACK(uint32_t, s[i])
}
static void widen_uint64_t(int dtype, const void *src, int64_t stride, int64_t n, void *dst) {
  uint64_t *restrict d = dst;
  (void)dtype;
  RUN(uint64_t, x)
}
static void narrow_uint64_t(int dtype, const void *acc, int64_t n, void *dst, int64_t stride) {
  const uint64_t *restrict s = acc;
  (void)dtype;
  BACK(uint64_t, s[i])
}

#define T float
#define CONV
#define MR MR_REAL
#define OWN TF_F32
#include "gemm_tile.h"
#include "gemm_pack.h"
#define THIN_HALF 0
#define THIN_ROWS THIN_FLOAT_ROWS
#include "gemm_thin.h"
#ifdef CONV
#include "gemm_conv.h"
#undef CONV
#endif
#define THIN_HALF 16
#define THIN_ROWS THIN_FLOAT_ROWS
#include "gemm_thin.h"
#define THIN_HALF 1
#define THIN_ROWS THIN_FLOAT_ROWS
#include "gemm_thin.h"
#undef T
#undef OWN
#undef MR

#define T double
#define CONV
#define MR MR_REAL
#define OWN TF_F64
#include "gemm_tile.h"
#include "gemm_pack.h"
#define THIN_HALF 0
#define THIN_ROWS THIN_FLOAT_ROWS
#include "gemm_thin.h"
#ifdef CONV
#include "gemm_conv.h"
#undef CONV
#endif
#undef T
#undef OWN
#undef MR

#define T uint32_t
#define MR MR_INT
#define OWN TF_I32
#include "gemm_tile.h"
#include "gemm_pack.h"
#define THIN_HALF 0
#define THIN_ROWS 1
#include "gemm_thin.h"
#ifdef CONV
#include "gemm_conv.h"
#undef CONV
#endif
#undef T
#undef OWN
#undef MR

#define T uint64_t
#define MR MR_INT
#define OWN TF_I64
#include "gemm_tile.h"
#include "gemm_pack.h"
#define THIN_HALF 0
#define THIN_ROWS 1
#include "gemm_thin.h"
#ifdef CONV
#include "gemm_conv.h"
#undef CONV
#endif
#undef T
#undef OWN
#undef MR

#include "gemm_pairs.h"
#if TF_VBYTES == 64 && defined(__x86_64__)
#include "gemm_bf16.h"
#define DUOS(kc, mc, nc, ns)                                                                      \
  {MR_REAL, NV *TF_LANES(duo), DEPTH(kc), mc *MR_REAL, nc *NV *TF_LANES(duo), TF_LANES(duo), sizeof(duo), ns, \
   .tile = tile_packed_duo, .widen = widen_float, .narrow = narrow_float, .narrow_rows = narrow_duos, .add = add_float}
#endif

#define AT(x, T) TF_JOIN(x, T)
#define DEPTH(kc) ((kc) / ((kc) <= TF_DEPTH)) /* does not compile for more */
#define KIND(T, mr, kc, mc, nc, ns, ...)                                                          \
  {mr, NV *TF_LANES(T), DEPTH(kc), mc *mr, nc *NV *TF_LANES(T), TF_LANES(T), sizeof(T), ns,              \
   AT(tile_packed, T), AT(tile_direct, T), AT(product, T), AT(pack, T),        \
   AT(pack_rows, T), AT(widen, T), AT(narrow, T), AT(narrow_rows, T), AT(add, T), __VA_ARGS__}
#define REAL(T, kc, mc, nc, ns)                                                                   \
  KIND(T, MR_REAL, kc, mc, nc, ns, AT(tile_at, T), AT(pack_runs, T), AT(pack_at, T),              \
       AT(pack_points, T), AT(fill, T), AT(fill_halves, T), AT(put, T), AT(tile_far, T), AT(lines, T),                \
       AT(channelwise, T), AT(tap_rows, T))
#define INT(T, kc, mc, nc, ns) KIND(T, MR_INT, kc, mc, nc, ns, 0)
#define PAIRS(kc, mc, nc, ns)                                                                     \
  {MR_REAL, NV *TF_LANES(pair), DEPTH(kc), mc *MR_REAL, nc *NV *TF_LANES(pair), TF_LANES(pair), sizeof(pair), ns, \
   .tile = tile_packed_pair, .pack = pack_bytes}
#define THIN(T) {AT(rows_n, T), AT(rows_t, T), AT(dots, T)}

const tf_gemm_table TF_NAME(tf_gemm) = {{
#if TF_VBYTES == 64
    REAL(float, 640, 9, 4, 0.018), REAL(double, 256, 9, 4, 0.036),
    INT(uint32_t, 384, 20, 4, 0.02), INT(uint64_t, 256, 20, 4, 0.05),
    PAIRS(512, 9, 4, 0.02),
#ifdef DUOS
    DUOS(512, 9, 4, 0.02),
#endif
#elif TF_VBYTES == 32
    REAL(float, 384, 20, 8, 0.018), REAL(double, 256, 20, 8, 0.036),
    INT(uint32_t, 384, 20, 8, 0.02), INT(uint64_t, 256, 20, 8, 0.2),
    PAIRS(384, 20, 8, 0.02),
#else
    REAL(float, 256, 16, 8, 0.8), REAL(double, 128, 16, 8, 2.6),
    INT(uint32_t, 256, 16, 8, 0.15), INT(uint64_t, 128, 16, 8, 0.3),
    PAIRS(256, 16, 8, 0.05),
#endif
}, {THIN(float), THIN(double), THIN(uint32_t), THIN(uint64_t), THIN(f16), THIN(bf16)},
#ifdef DUOS
  duos_work, pack_duos, duos_fit
#endif
};
