/* Inner loops of pooling: one line of windows against one line of the input. */
#ifndef TF_POOL_LOOPS_H
#define TF_POOL_LOOPS_H
#include <stdint.h>

/* Windows o = 0..n-1 along the last axis. Tap r of the k taps of a window is element
   o * stride - pad + r * dil; windows reach[2 r] up to reach[2 r + 1] have it inside the line.
   Without reach there is one window, all inside. Elements of a line are `step` apart in memory. */
typedef struct {
  int64_t n, k, stride, pad, dil, step;
  const int64_t *reach;
} tf_pool_line;

/* max: integer keys of the same order as the numbers, NaN above all and -0 below +0; of equal
   elements the first counts, of NaNs the last. Places are flat: `first` for the line's element 0.
   A window without elements (padding and dilation can make one) gives -inf and place 0.
   Keys begin with the lowest one. `windows` does all of a line of windows, where lines of the input are dense: their keys
   are put into `padded`, `length` for each, whose other elements are the lowest, and windows are taken up to a multiple
   of TF_WHOLE, so that vectors are full. */
#define TF_WHOLE 16
typedef struct {
  void (*lowest)(void *keys, int64_t n);
  void (*line)(const tf_pool_line *p, const void *x, int32_t first, void *keys, int32_t *places);
  void (*end)(const void *keys, const int32_t *places, int64_t n, void *y, int64_t *indices);
  void (*windows)(const tf_pool_line *p, const void *const *x, const int32_t *firsts, int64_t lines, int64_t size,
                  void *padded, int64_t length, void *y, int64_t *indices);
  int32_t itemsize, keysize;
} tf_pool_max;

/* sums start from -0, which changes no first element */
typedef struct {
  void (*begin)(void *acc, int64_t n);
  void (*add)(const tf_pool_line *p, const void *x,
              void *acc);     /* windows take their elements */
  /* the same of few wide windows, o the elements reach[2 o] up to reach[2 o + 1], `step` apart in memory */
  void (*wide)(const void *x, int64_t step, const int64_t *reach, int64_t n, void *acc);
  void (*divide)(void *acc, const int64_t *counts, int64_t factor,
                 int64_t n); /* by factor * counts[o] */
  void (*spread)(const tf_pool_line *p, const void *share,
                 void *x); /* elements take their windows' shares */
} tf_pool_sum;

/* TF_PLANES planes side by side: a tile has a row of as many numbers for each place. Planes begin `at` bytes after
   x[c] or y[c]; `lift` reads n places of all of them, `step` elements apart, `lower` writes n neighbouring places of the
   first `count`. `join` adds to row o of acc the places reach[2 o] up to reach[2 o + 1] of each line, one line after the
   other; `share` divides row o by factor * counts[o]. */
#define TF_PLANES 16
typedef struct {
  void (*lift)(void *tile, const char *const *x, int64_t at, int64_t step, int64_t n);
  void (*lower)(char *const *y, int64_t at, int count, const void *tile, int64_t n);
  void (*join)(void *acc, const void *const *rows, int64_t lines, const int64_t *reach, int64_t n);
  void (*share)(void *acc, const int64_t *counts, int64_t factor, int64_t n);
} tf_pool_tile;

typedef struct {
  tf_pool_max max[4]; /* f16, bf16, f32, f64 */
  tf_pool_sum sum[2]; /* f32, f64 */
  tf_pool_tile tile[2];
} tf_pool_table;

#endif
