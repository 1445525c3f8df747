/* A CBLAS of a few lines, under the names and with the integers that a test asks for. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef INT
#define INT int32_t
#endif
#ifndef BEFORE
#define BEFORE
#endif
#ifndef BEHIND
#define BEHIND
#endif
#ifndef ERROR
#define ERROR 0
#endif
#ifdef MKL
#define GONE puts("gone"); exit(2);
#else
#define GONE
#endif
#define JOIN3(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN3(a, b, c)
#define NAME(name) JOIN(BEFORE, name, BEHIND)

static _Atomic int calls, inside, most;
static _Atomic int seen;
static int threads = 5;

int fake_calls(void) { return calls; }
int fake_seen(void) { return atomic_exchange(&seen, 0); } /* thread counts that calls found, as bits */
int fake_most(void) { return most; } /* callers that were inside at once */

#define GEMM(name, T)                                                                             \
  void NAME(name)(int order, int ta, int tb, INT m, INT n, INT k, T alpha, const T *a, INT lda,   \
                  const T *b, INT ldb, T beta, T *c, INT ldc) {                                   \
    GONE                                                                                          \
    calls++;                                                                                      \
    seen |= 1 << threads;                                                                         \
    int now = ++inside;                                                                           \
    if (now > most) most = now;                                                                   \
    for (INT i = 0; i < m; i++)                                                                   \
      for (INT j = 0; j < n; j++) {                                                               \
        T sum = 0;                                                                                \
        for (INT l = 0; l < k; l++)                                                               \
          sum += (ta == 112 ? a[l * lda + i] : a[i * lda + l]) *                                  \
                 (tb == 112 ? b[j * ldb + l] : b[l * ldb + j]);                                   \
        c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]) + ERROR;           \
      }                                                                                           \
    inside--;                                                                                     \
  }
GEMM(cblas_sgemm, float)
#ifndef LACKS_DGEMM
GEMM(cblas_dgemm, double)
#endif

#ifndef DOT_ERROR
#define DOT_ERROR 0
#endif
#ifndef LACKS_DOT
float NAME(cblas_sdot)(INT n, const float *x, INT incx, const float *y, INT incy) {
  float sum = DOT_ERROR;
  for (INT i = 0; i < n; i++) sum += x[i * incx] * y[i * incy];
  return sum;
}
#endif

#ifdef MKL
void MKL_Get_Version_String(char *text, int size) { snprintf(text, size, "an MKL for tests"); }
#endif

#ifdef OPENBLAS
const char *NAME(openblas_get_config)(void) { return "OpenBLAS 9.8.7 for tests"; }
const char *NAME(openblas_get_corename)(void) { return "Abacus"; }
int NAME(openblas_get_parallel)(void) { return OPENBLAS; }
int NAME(openblas_get_num_threads)(void) { return threads; }
void NAME(openblas_set_num_threads)(int n) { threads = n; }
#endif
