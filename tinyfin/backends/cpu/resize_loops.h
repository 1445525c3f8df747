/* Inner loops between neighbouring elements of an axis: dense numbers of the table's type. */
#ifndef TF_RESIZE_LOOPS_H
#define TF_RESIZE_LOOPS_H
#include <stdint.h>

/* A line's n places: which elements they lie between, and the weights of both. */
typedef struct {
  const int32_t *low, *high;
  const void *first, *second;
  int64_t n;
} tf_between;

typedef struct {
  void (*weights)(void *first, const void *second, int64_t n); /* first[i] = 1 - second[i] */
  void (*line)(const tf_between *a, const void *x, void *y);
  /* the same for each of n numbers: place j of the axis */
  void (*row)(const tf_between *a, int64_t j, const void *low, const void *high, void *y, int64_t n);
  /* the adjoints: x takes the first parts, `rest` the second ones, both from zeros */
  void (*line_back)(const tf_between *a, const void *g, void *x, void *rest);
  void (*row_back)(const tf_between *a, int64_t j, const void *g, void *low, void *high, int64_t n);
  void (*add)(void *x, const void *rest, int64_t n);
} tf_resize_loops;

typedef struct {
  tf_resize_loops of[2]; /* float, double */
} tf_resize_table;

#endif
