/* vmath's texts as C of the instruction set at hand: fma by instruction, or the exact emulation. */
#ifndef TF_VMATH_H
#define TF_VMATH_H
#define VM_C
#if !defined(__FMA__) && !defined(__aarch64__)
#define VM_SOFTFMA
#endif
#include "vmath.inc"
#include "vmath64.inc"
#endif
