/* Inner loops of elementwise rows: dense operands, one output; out may be one of the inputs. */
#ifndef TF_LOOPS_H
#define TF_LOOPS_H
#include "abi.h"
#include "isa.h"

typedef void (*tf_loop)(void *out, const void *const *in, int64_t n, const double *f);

#define TF_IVDEP _Pragma("GCC ivdep")
#define TF_select(c, a, b) ((c) ? (a) : (b))

/* C's and Python's remainder and the quotient rounded down, for floating-point types. */
#define TF_REMAINDER(T, S, FMOD, FLOOR)                                                          \
  /* A product, so that subnormals are flushed where the processor does; the library's function   \
     works on integers. Volatile, or the compiler leaves the product out. */                      \
  static inline T tf_flushed_##S(T x) {                                                           \
    volatile T one = 1;                                                                           \
    return x * one;                                                                               \
  }                                                                                               \
  static inline T tf_fmod_##S(T a, T b) {                                                         \
    return tf_flushed_##S(FMOD(tf_flushed_##S(a), tf_flushed_##S(b)));                            \
  }                                                                                               \
  static inline T tf_mod_##S(T a, T b) {                                                          \
    T m = tf_fmod_##S(a, b);                                                                      \
    if (m != 0 && (b < 0) != (m < 0)) m += b;                                                     \
    return m;                                                                                     \
  }                                                                                               \
  static inline T tf_floordiv_##S(T a, T b) {                                                     \
    if (b == 0) return a / b;                                                                     \
    T m = tf_fmod_##S(a, b), d = (a - m) / b;                                            \
    if (m != 0 && (b < 0) != (m < 0)) d -= 1;                                                     \
    if (d == 0) return a / b < 0 ? -(T)0 : (T)0;                                                  \
    T r = FLOOR(d);                                                                               \
    return d - r > (T)0.5 ? r + 1 : r;                                                            \
  }

#endif
