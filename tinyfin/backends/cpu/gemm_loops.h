/* Inner loops of matrix products and convolutions: one tile, one panel, one run of elements.

   Every element of a product is one chain acc = fma(a[i,k], b[k,j], acc) for rising k, from 0 or
   from what C holds. No loop here splits or reorders a chain, so tile sizes are a matter of speed. */
#ifndef TF_GEMM_LOOPS_H
#define TF_GEMM_LOOPS_H
#include <stdint.h>

/* what accumulates: f16, bf16 and f32 in TF_ACC_F32, bool to int32 in TF_ACC_I32 */
enum { TF_ACC_F32, TF_ACC_F64, TF_ACC_I32, TF_ACC_I64, TF_NACC };

/* C = A B, or C += A B with `load`; strides in elements. c has unit stride along its rows.
   panel: room for k * nr elements where b has no unit stride along its rows (bc != 1). */
typedef struct {
  int64_t m, n, k;
  const void *a, *b;
  void *c, *panel;
  int64_t ar, ac, br, bc, ldc;
  int32_t load;
} tf_product;

/* Packed panels: A's are k x mr, B's k x nr, rows of a panel one after the other.
   Rows over `rows` and columns over `cols` of a panel may hold anything. */
typedef struct {
  int32_t mr, nr;     /* rows and columns of a tile */
  int32_t kc, mc, nc; /* depth of a packed block; rows and columns of one task */
  int32_t lanes, itemsize;
  double fma_ns;      /* time of one multiply-add in a full tile, for work splitting */
  /* c[rows, cols] from packed panels */
  void (*tile)(int64_t k, const void *a, const void *b, void *c, int64_t ldc, int rows, int cols, int load);
  /* the same, where row k of the panel begins off[k] elements after b; a whole panel row is readable */
  void (*tile_at)(int64_t k, const void *a, const void *b, const int64_t *off, void *c, int64_t ldc,
                  int rows, int cols, int load);
  /* without packing; for products small enough to stay in cache, or too thin to pay for packing */
  void (*product)(const tf_product *p);
  /* few rows, B in memory: rows_n for bc == 1; row_t for one row, br == 1 and ac == 1 */
  void (*rows_n)(const tf_product *p);
  void (*row_t)(const tf_product *p);
  /* panels[][k][width] from element (i, k) at src + i * is + k * ks of dtype; side 0: A, 1: B;
     count rows of A or columns of B fill as many panels as they need */
  void (*pack)(int dtype, const void *src, int64_t is, int64_t ks, int64_t count, int64_t k, void *dst, int side);
  /* one panel[k][width] from runs of accumulator type, rows[i][0:k]; count <= width */
  void (*pack_rows)(const void *const *rows, int64_t count, int64_t k, void *dst, int side);
  /* elements of a dtype to accumulators and back; strides in elements, wide and acc dense */
  void (*widen)(int dtype, const void *src, int64_t stride, int64_t n, void *dst);
  void (*narrow)(int dtype, const void *acc, int64_t n, void *dst, int64_t stride);
  /* acc[0:n] += bias[0:n * stride] */
  void (*add)(void *acc, const void *bias, int64_t stride, int64_t n);
} tf_gemm_kind;

typedef struct {
  tf_gemm_kind kind[TF_NACC];
} tf_gemm_table;

#endif
