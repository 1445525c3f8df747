/* Inner loops of random numbers: the words of a draw, and numbers made of words. */
#ifndef TF_RANDOM_LOOPS_H
#define TF_RANDOM_LOOPS_H
#include <stdint.h>

/* A draw is a stream of 32-bit words: word k is word k % 4 of Philox 4x32-10 with the key `seed` at
   counter (k / 4, draw), both of 64 bits, low half first. Element i, where each needs m
   words, takes words m i .. m i + m - 1. */
typedef struct {
  void (*words)(uint32_t *w, uint64_t block, int64_t blocks, uint64_t seed, uint64_t draw);
  /* [0] float, 1 word per element; [1] double, 2 words; normal numbers come in pairs */
  void (*uniform[2])(void *y, const uint32_t *w, int64_t n, double low, double high, int bits);
  void (*normal[2])(void *y, const uint32_t *w, int64_t n, double mean, double std);
  void (*exponential[2])(void *y, const uint32_t *w, int64_t n, double rate);
  /* 2 words */
  void (*randint)(int64_t *y, const uint32_t *w, int64_t n, uint64_t low, uint64_t range);
  /* 1 word: 1 where w < limit (of 2^32), else 0 */
  void (*below)(int64_t *y, const uint32_t *w, int64_t n, uint64_t limit);
  /* y = x scale where w >= limit, else 0 */
  void (*drop[2])(void *y, const void *x, const uint32_t *w, int64_t n, uint64_t limit,
                  double scale);
} tf_random_table;

#endif
