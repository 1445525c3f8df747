/* Inner loops of matrix products and convolutions: one tile, one panel, one run of elements.

   Every element of a product is one chain acc = fma(a[i,k], b[k,j], acc) for rising k, from 0 or
   from what C holds. No loop here splits or reorders a chain: tile sizes are a matter of speed. */
#ifndef TF_GEMM_LOOPS_H
#define TF_GEMM_LOOPS_H
#include <stdint.h>

/* what accumulates: f16, bf16 and f32 in TF_GEMM_F32, bool to int32 in TF_GEMM_I32. TF_GEMM_PAIRS: 8-bit integers into int32;
   its panels hold pairs of k, which their k counts, but for pack, which counts elements. TF_GEMM_DUOS: bf16 into float32,
   the same way, where the processor can */
enum { TF_GEMM_F32, TF_GEMM_F64, TF_GEMM_I32, TF_GEMM_I64, TF_GEMM_PAIRS, TF_GEMM_DUOS, TF_NGEMM };

/* C = A B, or C += A B with `load`; strides in elements. c has unit stride along its rows.
   panel: room for k * nr elements where b has no unit stride along its rows (bc != 1). */
typedef struct {
  int64_t m, n, k;
  const void *a, *b;
  void *c, *panel;
  int64_t ar, ac, br, bc, ldc;
  int32_t load;
} tf_product;

/* Where a tile of a convolution goes: rows are y_row apart, columns step, in elements of dtype. */
typedef struct {
  void *y;
  const void *bias; /* accumulators, one for each row; NULL: none */
  int64_t y_row, step;
  int32_t dtype;
} tf_put;

/* Rows of a padded copy: `before` zeros, n elements of a dtype, `after` zeros. In src, elements are
   step and rows are row elements apart. */
typedef struct {
  int64_t before, n, after, step, row;
  int32_t dtype;
} tf_fill;

#define TF_DEPTH 640 /* no kind has a deeper block: buffers for its positions */

/* Packed panels: A's are k x mr, B's k x nr, rows of a panel one after the other.
   Rows over `rows` and columns over `cols` of a panel may hold anything. Runs are pairs (start,
   length) of elements; acc, off and runs count accumulators. */
typedef struct {
  int32_t mr, nr;     /* rows and columns of a tile */
  int32_t kc, mc, nc; /* depth of a packed block; rows and columns of one task */
  int32_t lanes, itemsize;
  double fma_ns;      /* time of one multiply-add in a full tile, for work splitting */
  /* c[rows, cols] from packed panels */
  void (*tile)(int64_t k, const void *a, const void *b, void *c, int64_t ldc, int rows, int cols,
               int load);
  /* the same, where element (i, k) of A is at a + i * ar + k * ac and rows of B's panel are br apart */
  void (*tile_direct)(int64_t k, const void *a, int64_t ar, int64_t ac, const void *b, int64_t br, void *c, int64_t ldc,
                      int rows, int cols, int load);
  /* without packing; for products small enough to stay in cache */
  void (*product)(const tf_product *p);
  /* panels[][k][width] from element (i, k) at src + i * is + k * ks of dtype; side 0: A, 1: B;
     count rows of A or columns of B fill as many panels as they need */
  void (*pack)(int dtype, const void *src, int64_t is, int64_t ks, int64_t count, int64_t k,
               void *dst, int side);
  /* one panel[k][width] from runs of accumulators, rows[i][0:k]; count <= width. `beyond`: rows may
     be read up to a vector past their end */
  void (*pack_rows)(const void *const *rows, int64_t count, int64_t k, void *dst, int side,
                    int beyond);
  /* elements of a dtype to accumulators and back; strides in elements, accumulators dense */
  void (*widen)(int dtype, const void *src, int64_t stride, int64_t n, void *dst);
  void (*narrow)(int dtype, const void *acc, int64_t n, void *dst, int64_t stride);
  /* rows of a tile, whose accumulators are ld apart, to rows ldc elements apart; of TF_GEMM_DUOS, only such as its tiles
     leave, nothing added */
  void (*narrow_rows)(int dtype, const void *acc, int64_t ld, int64_t rows, int64_t cols, void *dst, int64_t ldc);
  /* acc[0:n] += bias[0:n * stride] */
  void (*add)(void *acc, const void *bias, int64_t stride, int64_t n);

  /* For convolutions; none of these for integers. */
  /* tile, where row k of B's panel begins off[k] after b; a whole row of it is readable */
  void (*tile_at)(int64_t k, const void *a, const void *b, const int64_t *off, void *c, int64_t ldc,
                  int rows, int cols, int load);
  /* one panel of B: row q is the runs of src + off[q], joined */
  void (*pack_runs)(const void *src, const int64_t *off, int64_t k, const int64_t *runs, int count,
                    void *dst);
  /* one panel of A: element (i, q) at src + i * is + off[q]; a whole row of it is readable where is == 1 */
  void (*pack_at)(const void *src, int64_t is, const int64_t *off, int64_t count, int64_t k,
                  void *dst);
  /* one panel of A: element (i, q) at src + at[i] + off[q]; nothing is written past count */
  void (*pack_points)(const void *src, const int64_t *at, const int64_t *off, int64_t count,
                      int64_t k, void *dst);
  /* rows of zeros, elements, zeros */
  void (*fill)(const tf_fill *p, const void *src, int64_t rows, void *dst);
  /* two such copies of accumulators that lie side by side in src: of the even and of the odd ones */
  void (*fill_halves)(const tf_fill *p, const tf_fill *q, const void *src, int64_t rows, void *even, void *odd);
  /* a tile, whose columns are runs, to its places; acc is readable a vector past the tile */
  void (*put)(const tf_put *p, const void *acc, int64_t ld, int64_t rows, const int64_t *runs,
              const int64_t *places, int n);
  /* tile_at for a B that is in no near cache; `more` entries of off follow */
  void (*tile_far)(int64_t k, int64_t more, const void *a, const void *b, const int64_t *off,
                   void *c,
                   int64_t ldc, int rows, int cols, int load);
  /* m rows of `count` lines of n columns by tile_at, whose panels hold even rows; y holds accumulators with unit stride */
  void (*lines)(int64_t k, const void *panels, int64_t m, const void *src, const int64_t *off,
                int64_t n,
                int64_t count, int64_t src_step, void *y, int64_t y_row, int64_t y_step);
  /* acc[tap][0:nr] += g[q][0:nr] * x[p + off[tap]][0:nr]; q counts the places p of all runs */
  void (*channelwise)(const void *g, const void *x, const int64_t *off, int64_t taps,
                      const int64_t *runs,
                      int64_t n, void *acc);
  /* acc[j][0:cols] += x[p + off[j]] * g[q][0:cols] for 3 * threes rows j, each three with neighbouring offsets; rows of
     acc and g are nr apart, and whole vectors of them are read and written */
  void (*tap_rows)(const void *g, int64_t cols, const void *x, const int64_t *off, int64_t threes, const int64_t *runs,
                   int64_t n, void *acc);
} tf_gemm_kind;

/* Rows of each tile of m: even parts where the last would have so few that it waits for its own chains. */
static inline int64_t tf_even_rows(int64_t m, int64_t mr) {
  const int64_t tiles = (m + mr - 1) / mr, last = m % mr;
  return tiles > 1 && last && last <= 3 ? (m + tiles - 1) / tiles : mr;
}

/* Products of few rows by dtype of B, and of A in dots; of float16 and bfloat16, a and c are float all the same. */
enum { TF_THIN_F32, TF_THIN_F64, TF_THIN_I32, TF_THIN_I64, TF_THIN_F16, TF_THIN_BF16, TF_NTHIN };
typedef struct {
  void (*rows_n)(const tf_product *p); /* for bc == 1 */
  void (*rows_t)(const tf_product *p); /* for br == 1 and ac == 1 */
  /* c[i] = a[i][0:k] . b[i][0:k] in each lane of a vector of accumulators */
  void (*dots)(const char *const *a, const char *const *b, int64_t k, void *c);
} tf_gemm_thin;

/* Magnitudes of bf16 elements as integers: the least but zero, less one (0xffff: none), and the greatest. */
typedef struct {
  int32_t least, most;
} tf_reach;

typedef struct {
  tf_gemm_kind kind[TF_NGEMM];
  tf_gemm_thin thin[TF_NTHIN];
  /* of TF_GEMM_DUOS; NULL: none. Whether the processor has what they need; panels as pack makes them, whose elements
     widen the reach of their operand; whether the result of operands of such reach stands */
  int (*duos_work)(void);
  void (*pack_duos)(const void *src, int64_t is, int64_t ks, int64_t count, int64_t k, void *dst, int side,
                    tf_reach *reach);
  int (*duos_fit)(const tf_reach *a, const tf_reach *b);
} tf_gemm_table;

#endif
