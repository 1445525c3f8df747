/* The processor's floating-point mode: which bits make it flush subnormal numbers to zero. */
#ifndef TF_FLUSH_H
#define TF_FLUSH_H
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#define TF_FLUSH 0x8040u /* FTZ | DAZ */
static inline uint32_t tf_csr_get(void) { return _mm_getcsr(); }
static inline void tf_csr_set(uint32_t x) { _mm_setcsr(x); }
#elif defined(__aarch64__)
#define TF_FLUSH (1u << 24) /* FZ */
static inline uint32_t tf_csr_get(void) {
  uint64_t x;
  __asm__ volatile("mrs %0, fpcr" : "=r"(x));
  return (uint32_t)x;
}
static inline void tf_csr_set(uint32_t x) { __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)x)); }
#else
#define TF_FLUSH 0u
static inline uint32_t tf_csr_get(void) { return 0; }
static inline void tf_csr_set(uint32_t x) { (void)x; }
#endif
#endif
