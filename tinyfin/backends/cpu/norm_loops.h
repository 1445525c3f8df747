/* Inner loops of softmax and of the norms. Numbers of the table's type that lie side by side,
   unless said otherwise; arrays may be the same array, but not overlap in part. */
#ifndef TF_NORM_LOOPS_H
#define TF_NORM_LOOPS_H
#include <stdint.h>
#include "blocks.h"

#define TF_TILE 16 /* columns of a tile: element i of column c is at 16 i + c */

/* `rows` rows of n numbers; row r of an array begins r * step further. For gradients x is the
   result of the forward row. Tiles have n rows of 16 columns; y must then be another array. */
typedef struct {
  const void *x, *g;
  void *y;
  int64_t rows, n, xstep, gstep, ystep;
} tf_soft_rows;

/* Rows of a norm over n numbers; absent arrays are NULL. Without `mean` the norm is not centred.
   Gradients read mean and rstd, and add each row's share to gw and gb. */
typedef struct {
  const void *x, *g, *w, *b;
  void *y, *mean, *rstd, *gw, *gb;
  int64_t rows, n, xstep, gstep, ystep, step; /* step: of mean and rstd */
  double eps;
} tf_norm_rows;

/* One channel of a batch norm, or 16: pointers to as many numbers; w and b may be NULL. For one, rstd
   may stand for var and eps, and sums are those of the group that the channel belongs to. */
typedef struct {
  const void *mean, *var, *rstd, *w, *b, *sum_g, *sum_gx;
  int64_t count;
  double eps;
} tf_channel;

/* Largest number of each row, and the logarithm of the sum of exp(x - shift). */
typedef struct {
  const void *x;
  void *shift, *log;
  int64_t rows, n, xstep;
} tf_lse_rows;

/* Cross entropy: g[r] is the gradient of the log-probability of label[r] (-1: of none). */
typedef struct {
  const void *x, *shift, *log, *g;
  void *y;
  const int64_t *label;
  int64_t rows, n, xstep, ystep;
} tf_ce_rows;

typedef void (*tf_load)(void *to, const char *from, int64_t n, int64_t stride);
typedef void (*tf_store)(char *to, const void *from, int64_t n, int64_t stride);
typedef void (*tf_load_tile)(void *to, const char *from, int64_t n, int cols, int64_t sn,
                             int64_t sc);
typedef void (*tf_store_tile)(char *to, const void *from, int64_t n, int cols, int64_t sn,
                              int64_t sc);
typedef void (*tf_soft)(const tf_soft_rows *a);

typedef struct {
  /* n numbers of the dtype that is the index, `stride` elements apart, to the table's type; back */
  tf_load load[10];
  tf_store store[10];
  /* n numbers in each of `cols` columns, strides sn and sc, to tiles of 16 columns; back */
  tf_load_tile load_tile[10];
  tf_store_tile store_tile[10];
  /* [0] softmax, [1] log_softmax, [2] softmax_grad, [3] log_softmax_grad */
  tf_soft soft[4], soft_tile[4];
  void (*lse)(const tf_lse_rows *a), (*lse_tile)(const tf_lse_rows *a, void *work);
  void (*ce_grad)(const tf_ce_rows *a), (*ce_grad_tile)(const tf_ce_rows *a);
  void (*norm)(const tf_norm_rows *a), (*norm_grad)(const tf_norm_rows *a);
  /* canonical sums of any count of numbers; block sums are made with at most 2048 */
  void (*sum)(void *sum, const void *x, int64_t n);
  void (*sqdiff)(void *sum, const void *x, const void *mean, int64_t n);
  void (*xhat)(void *sum, const void *g, const void *x, const tf_channel *c, int64_t n);
  void (*add)(void *a, const void *b, int64_t n); /* a[i] += b[i] */
  void (*fill)(void *a, double value, int64_t n);
  void (*divide)(void *a, int64_t by, int64_t n);
  void (*channel)(void *y, const void *x, const tf_channel *c, int64_t n);
  void (*channel_grad)(void *gx, const void *g, const void *x, const tf_channel *c, int64_t n);
  void (*group_grad)(void *gx, const void *g, const void *x, const tf_channel *c, int64_t n);
  /* channels by columns of a tile, n <= 2048 but for sum_tile, which may then overwrite x */
  void (*sum_tile)(void *sums, void *x, int64_t n);
  void (*sqdiff_tile)(void *sums, const void *x, const void *mean, int64_t n);
  void (*xhat_tile)(void *sums, const void *g, const void *x, const tf_channel *c, int64_t n);
  void (*channel_tile)(void *y, const void *x, const tf_channel *c, int64_t n);
  void (*channel_grad_tile)(void *gx, const void *g, const void *x, const tf_channel *c, int64_t n);
} tf_norm_loops;

typedef struct {
  tf_norm_loops of[2]; /* float, double */
} tf_norm_table;

#endif
