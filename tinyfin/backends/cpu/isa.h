/* Names of what a file compiled once per instruction set exports: TF_NAME(tf_gemm) -> tf_gemm_avx2. */
#ifndef TF_ISA_H
#define TF_ISA_H
#include <stdint.h>
#define TF_JOIN2(a, b) a##_##b
#define TF_JOIN(a, b) TF_JOIN2(a, b)
#define TF_NAME(x) TF_JOIN(x, TF_ISA)
#endif
