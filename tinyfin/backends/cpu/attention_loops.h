/* Inner loops of attention: tiles of keys x queries, 64 x 64 at most, in the computing type.

   For each query, keys come in blocks of 64, blocks rising:
     s[j]  = chain over d of fma(k[j][d], q[d], .) from 0, times scale, plus the mask's number
     m'    = max(m, largest s[j])            -inf counts as 0 below, so a masked row gives zeros
     p[j]  = exp(s[j] - m'),   a = exp(m - m')
     l     = l * a + canonical sum of the block's p[j]
     acc   = acc * a, then a chain over rising j of fma(p[j], v[j], .)
   and out = acc / l (0 where l is 0), lse = m + log(l). Backward:
     p = exp(s - lse),  dp[j] = chain over d of fma(v[j][d], g[d], .)
     delta = canonical sum of g out
     ds[j] = p[j] (dp[j] - delta) scale
     gq: chain over rising j of fma(ds[j], k[j], .); gk: over rising queries of fma(ds[j], q, .);
     gv: over rising queries of fma(p[j], g, .)
   A score of -inf (masked, or beyond the diagonal) gives p = 0 exactly. */
#ifndef TF_ATTENTION_LOOPS_H
#define TF_ATTENTION_LOOPS_H
#include <stdint.h>

#define TF_QUERIES 64 /* columns of a tile */
#define TF_KEYS 64    /* rows of a tile */

/* Scores of a tile become weights in place. `mask` may be NULL; arrays: one number per query. */
typedef struct {
  void *s;              /* [keys][TF_QUERIES] */
  void *dp;             /* backward: [keys][TF_QUERIES], becomes ds */
  const void *mask;     /* [keys][TF_QUERIES] */
  void *m, *l, *alpha;  /* forward: running maximum and sum; factor of what was accumulated */
  const void *lse, *delta;
  double scale;
  int64_t diagonal;     /* key row j is visible to columns >= j + diagonal; very negative: to all */
  int keys, queries;    /* queries: a multiple of 16 */
  int chosen;           /* the mask is 0 or 1 and says which scores count */
} tf_attend;

typedef struct {
  /* c[i][j] = chain over k of fma(a[i][k], b[k][j], .) from c[i][j]; a's strides are free; n is a
     multiple of 16 */
  void (*chain)(void *c, int64_t ldc, const void *a, int64_t rs, int64_t ks, const void *b,
                int64_t ldb, int64_t m, int64_t n, int64_t k);
  void (*forward)(const tf_attend *a);
  void (*backward)(const tf_attend *a);
  /* rows of c times one number each; rows divided by l (0 where l is 0) and lse = m + log(l) */
  void (*scale_rows)(void *c, int64_t ldc, const void *by, int64_t rows, int64_t n);
  void (*finish)(void *c, int64_t ldc, const void *m, const void *l, void *lse, int64_t rows,
                 int64_t n);
  /* y[d][i] = x[i][d], columns up to `columns` zero; sums of products of rows */
  void (*transpose)(void *y, const void *x, int64_t ldx, int64_t rows, int64_t n, int64_t columns);
  void (*dots)(void *y, const void *a, int64_t lda, const void *b, int64_t ldb, int64_t rows,
               int64_t n);
} tf_attention_loops;

typedef struct {
  tf_attention_loops of[2]; /* float, double */
} tf_attention_table;

#endif
