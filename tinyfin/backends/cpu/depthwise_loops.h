/* Inner loops of convolutions with one channel per group: rows of results from lines of a padded copy. */
#ifndef TF_DEPTHWISE_LOOPS_H
#define TF_DEPTHWISE_LOOPS_H
#include <stdint.h>

/* Result row o is the chain over (i, j) of w[i][j] times the copy's line o * stride + i from col[j] on. Lines are places
   in the copy, in elements: line[t] for t = 0, 1, ...; line[t + stride] - line[t] is the same for all t. A vector past
   the end of a line is readable. */
typedef struct {
  int64_t rows, cols; /* of the kernel */
  int64_t stride, n;  /* n results per row */
  int64_t y_row;      /* elements between rows of results; may be negative */
  const int64_t *line, *col;
  const void *w;    /* accumulators; rows of the kernel are tf_pitch apart */
  const void *bias; /* one accumulator, added after the chain, or NULL */
  int32_t load;     /* chains go on from what y holds */
} tf_depthwise;

typedef struct {
  void (*rows)(const tf_depthwise *p, const void *x, int64_t rows, void *y);
  /* y[2 i] = a[i], y[2 i + 1] = b[i] for n elements of y; a and b are readable a vector past their ends */
  void (*turns)(const void *a, const void *b, int64_t n, void *y);
} tf_depthwise_kind;

typedef struct {
  tf_depthwise_kind kind[2]; /* float, double */
} tf_depthwise_table;

/* Kernel rows that neighbouring rows of results have for the same line lie TF_BACK elements apart, where they fit: their
   addresses then differ by constants. Otherwise rows of results share no lines. */
enum { TF_BACK = 48 };
static inline int tf_shared(int64_t cols, int64_t stride) { return cols * stride <= TF_BACK && TF_BACK % stride == 0; }
static inline int64_t tf_pitch(int64_t cols, int64_t stride) {
  return tf_shared(cols, stride) ? TF_BACK / stride : cols;
}

/* bytes that are wanted soon */
static inline void tf_soon(const void *p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)p + i);
}

#endif
