/* Prints hashes of products by every road of gemm_loops.c: run natively and under an emulator. */
#include <stdio.h>
#include <stdlib.h>
#include "abi.h"
#include "gemm_loops.h"

extern const tf_gemm_table tf_gemm_probe;
static uint64_t state = 88172645463325252ull, hash = 14695981039346656037ull;

static uint64_t next(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}
static double number(int kind) { /* moderate, tiny or whole */
  double v = ((double)(next() >> 11) / 9007199254740992.0 - 0.5) * 4;
  return kind % 3 == 1 ? v * 1e-20 : kind % 3 == 2 ? (int)v * 3 : v;
}
static void take(const void *p, size_t n) {
  for (size_t i = 0; i < n; i++) hash = (hash ^ ((const unsigned char *)p)[i]) * 1099511628211ull;
}

#define CASES(T, ACC, DTYPE)                                                                       \
  for (int it = 0; it < 60; it++) {                                                                \
    const tf_gemm_kind *g = &tf_gemm_probe.kind[ACC];                                              \
    const int m = 1 + next() % 40, n = 1 + next() % 50, k = 1 + next() % 60;                       \
    T *a = malloc(m * k * sizeof(T)), *b = malloc(k * n * sizeof(T)), *c = calloc(m * n, sizeof(T)); \
    T *pa = malloc((g->mr + 1) * k * sizeof(T)), *pb = malloc((g->nr + 1) * k * sizeof(T));         \
    for (int i = 0; i < m * k; i++) a[i] = (T)0.5 ? (T)number(it) : (T)(int64_t)number(it);        \
    for (int i = 0; i < k * n; i++) b[i] = (T)0.5 ? (T)number(it + 1) : (T)(int64_t)number(it + 1); \
    tf_product p = {m, n, k, a, b, c, pb, k, 1, n, 1, n, 0};                                       \
    if (it % 4 == 1) p.ar = 1, p.ac = m;                                                           \
    if (it % 4 == 2) p.br = 1, p.bc = k;                                                           \
    g->product(&p), take(c, m * n * sizeof(T));                                                    \
    p.br = n, p.bc = 1;                                                                            \
    tf_gemm_probe.thin[ACC].rows_n(&p), take(c, m * n * sizeof(T));                                                     \
    p.m = 1, p.ar = k, p.ac = 1, p.br = 1, p.bc = k;                                               \
    tf_gemm_probe.thin[ACC].rows_t(&p), take(c, m * n * sizeof(T));                                                      \
    for (int i = 0; i < m; i += g->mr)                                                             \
      for (int j = 0; j < n; j += g->nr) {                                                         \
        const int rows = m - i < g->mr ? m - i : g->mr, cols = n - j < g->nr ? n - j : g->nr;       \
        g->pack(DTYPE, a + i * k, k, 1, rows, k, pa, 0);                                           \
        g->pack(DTYPE, b + j, 1, n, cols, k, pb, 1);                                               \
        g->tile(k, pa, pb, c + i * n + j, n, rows, cols, it & 1);                                  \
      }                                                                                            \
    take(c, m * n * sizeof(T));                                                                    \
    printf(#T " %d %016llx\n", it, (unsigned long long)hash);                                      \
    free(a), free(b), free(c), free(pa), free(pb);                                                 \
  }

/* float16 and bfloat16 in B, which few rows read where it lies; rows of A and B for dots */
#define HALVES(NAME, THIN)                                                                         \
  for (int it = 0; it < 60; it++) {                                                                \
    const tf_gemm_thin *g = &tf_gemm_probe.thin[THIN];                                             \
    const int m = 1 + next() % 6, n = 1 + next() % 70, k = 1 + next() % 90, skip = next() % 4;     \
    uint16_t *all = malloc((k * n + skip) * 2), *b = all + skip;                                   \
    float *a = malloc(m * k * 4), *c = calloc(m * n, 4), lanes[16];                                \
    const char *x[16], *y[16];                                                                     \
    for (int i = 0; i < m * k; i++) a[i] = (float)number(it);                                      \
    for (int i = 0; i < k * n; i++) b[i] = next() & 0xbfff; /* finite, subnormal ones too */       \
    tf_product p = {m, n, k, a, b, c, 0, k, 1, n, 1, n, 0};                                        \
    g->rows_n(&p), take(c, m * n * 4);                                                             \
    p.br = 1, p.bc = k, p.load = it & 1;                                                           \
    g->rows_t(&p), take(c, m * n * 4);                                                             \
    for (int i = 0; i < 16; i++) x[i] = (char *)(b + i % n * k), y[i] = (char *)(b + (i + 1) % n * k); \
    g->dots(x, y, k, lanes), take(lanes, 16); /* four of them */                             \
    printf(#NAME " %d %016llx\n", it, (unsigned long long)hash);                                  \
    free(all), free(a), free(c);                                                                   \
  }

int main(void) {
  CASES(float, TF_GEMM_F32, TF_F32)
  CASES(double, TF_GEMM_F64, TF_F64)
  CASES(uint32_t, TF_GEMM_I32, TF_I32)
  CASES(uint64_t, TF_GEMM_I64, TF_I64)
  HALVES(float16, TF_THIN_F16)
  HALVES(bfloat16, TF_THIN_BF16)
  return 0;
}
