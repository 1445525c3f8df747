/* Inner loops of reductions: canonical lane sums, integer keys of extrema, conversions. */
#ifndef TF_REDUCE_LOOPS_H
#define TF_REDUCE_LOOPS_H
#include <stdint.h>
#include "blocks.h"

#define TF_NUMERIC 10 /* dtypes TF_BOOL .. TF_F64 */

enum { TF_LANE_SUM, TF_LANE_PROD, TF_NLANE };
enum { TF_ACC_F32, TF_ACC_F64, TF_ACC_I64, TF_NACC }; /* types that lanes add in */
enum { TF_KEY_MAX, TF_KEY_MIN, TF_KEY_ANY, TF_KEY_ALL, TF_NKEY };

/* Indexed by operation, then by accumulator or dtype. Arrays are dense unless a stride is named. */
typedef struct {
  /* dtype -> accumulator, accumulator -> dtype */
  void (*load[TF_NACC][TF_NUMERIC])(void *y, const void *x, int64_t n);
  void (*store[TF_NUMERIC])(void *y, const void *acc, int64_t n);
  /* one canonical block, 0 < n <= TF_BLOCK */
  void (*block[TF_NLANE][TF_NACC])(void *y, const void *x, int64_t n);
  /* one of products, and one of squared distances from one mean; F32 and F64 */
  void (*dot[2])(void *y, const void *a, const void *b, int64_t n);
  void (*block_squares[2])(void *y, const void *x, const void *mean, int64_t n);
  /* the same for many rows of one block each, `stride` apart */
  void (*block_rows[TF_NLANE][TF_NACC])(void *y, const void *x, int64_t stride, int64_t rows,
                                        int64_t n);
  /* and for w columns at once: rows first .. first + n of a block go to lanes[TF_SUM_LANES][w] */
  void (*rows[TF_NLANE][TF_NACC])(void *lanes, int64_t w, const void *x, int64_t stride,
                                  int64_t first, int64_t n);
  /* halves the lanes; `used` = rows of the block, at most TF_SUM_LANES; the result is lanes[0] */
  void (*fold[TF_NLANE][TF_NACC])(void *lanes, int64_t w, int64_t used);
  /* y = (x - mean)^2, with a mean for each element */
  void (*square[2])(void *y, const void *x, const void *mean, int64_t n);
  /* Keys: integers in the order of the values, NaN greatest and -0 < +0 (MIN: of the complement, so
     that the greatest key wins there too). int64 for TF_I64 and TF_F64, else int32. */
  int64_t (*best[TF_NKEY][TF_NUMERIC])(const void *x, int64_t n);
  int64_t (*find[TF_NKEY][TF_NUMERIC])(const void *x, int64_t n, int64_t key); /* n: absent */
  void (*keys[TF_NKEY][TF_NUMERIC])(void *y, const void *x, int64_t n);
  void (*value[TF_NKEY][TF_NUMERIC])(void *y, const void *keys, int64_t n); /* from int64 keys */
  void (*raise[TF_NKEY][TF_NUMERIC])(void *best, const void *x, int64_t n); /* best = max(best, keys of x) */
  /* best = max(best, keys), where = i for columns that rose; [1]: int64 keys */
  void (*lift[2])(void *best, void *where, const void *keys, int64_t i, int64_t n);
} tf_reduce_table;

#endif
