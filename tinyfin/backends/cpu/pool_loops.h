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
  void (*divide)(void *acc, const int64_t *counts, int64_t factor,
                 int64_t n); /* by factor * counts[o] */
  void (*spread)(const tf_pool_line *p, const void *share,
                 void *x); /* elements take their windows' shares */
} tf_pool_sum;

typedef struct {
  tf_pool_max max[4]; /* f16, bf16, f32, f64 */
  tf_pool_sum sum[2]; /* f32, f64 */
} tf_pool_table;

#endif
