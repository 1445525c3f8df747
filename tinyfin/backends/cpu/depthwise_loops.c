/* Rows of convolutions with one channel per group for one instruction set; exports one table. */
#include "isa.h"
#include "simd.h"
#include "shuffles.h"
#include "depthwise_loops.h"

#define TF_EACH16(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)

/* SHARE rows of results meet a line of the copy while it is in registers; two vectors of each fill half of 32, or most of 16 */
#define MEET(a, b) case 8 * a + b: NAME(meet)(known, a, b, nv, col, cols, s, xv, w, acc); break;
#define RANGES6(X)                                                                                               \
  X(0, 0) X(0, 1) X(0, 2) X(0, 3) X(0, 4) X(0, 5) X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(1, 5) X(2, 2) X(2, 3) X(2, 4)  \
  X(2, 5) X(3, 3) X(3, 4) X(3, 5) X(4, 4) X(4, 5) X(5, 5)
#if TF_VBYTES == 64
#define SHARE 8
#define EACH_RANGE(X)                                                                                            \
  RANGES6(X) X(0, 6) X(0, 7) X(1, 6) X(1, 7) X(2, 6) X(2, 7) X(3, 6) X(3, 7) X(4, 6) X(4, 7) X(5, 6) X(5, 7)       \
  X(6, 6) X(6, 7) X(7, 7)
#else
#define SHARE 6
#define EACH_RANGE RANGES6
#endif

#define T float
#include "depthwise_rows.inc"
#undef T
#define T double
#include "depthwise_rows.inc"
#undef T

const tf_depthwise_table TF_NAME(tf_depthwise) = {{{rows_float, turns_float}, {rows_double, turns_double}}};
