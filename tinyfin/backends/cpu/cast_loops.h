/* Conversions of dense blocks between dtypes, and strided loads and stores by element size. */
#ifndef TF_CAST_LOOPS_H
#define TF_CAST_LOOPS_H
#include "abi.h"

typedef void (*tf_cast)(const void *src, void *dst, int64_t n);
typedef void (*tf_move)(const char *src, int64_t sstep, char *dst, int64_t dstep, int64_t n); /* steps in bytes */
typedef struct {
  tf_cast cast[10][10];
  tf_move move[4]; /* by log2 of the element size */
  void (*spread[4])(const void *src, void *dst, int64_t rows, int64_t n); /* rows of n times one element each */
  void (*rows)(const char *src, int64_t step, char *dst, int64_t rows, int64_t nbytes); /* side by side */
  void (*tile[4])(const char *src, int64_t s0, int64_t s1, char *dst, int64_t d0, int64_t d1, int64_t n0, int64_t n1,
                  int around);
  void (*stream)(char *dst, const char *src, int64_t nbytes); /* to memory past the caches; then fence, once */
  void (*fence)(void);
  /* y[i] = x[i step + index[i] size], steps in elements; by log2 of the element size */
  void (*pick[4])(void *y, const void *x, int64_t step, const int64_t *index, int64_t size, int64_t n);
  int (*outside)(const int64_t *index, int64_t n, int64_t low, int64_t high); /* is one not in low .. high - 1? */
} tf_cast_table;

#endif
