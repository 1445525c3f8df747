/* Every second lane of two vectors, and two vectors lane by lane in turn, by the number of lanes of one. */
#ifndef TF_SHUFFLES_H
#define TF_SHUFFLES_H
#include "lanes.h"

#define TF_EVEN16(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define TF_EVEN8(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define TF_EVEN4(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define TF_EVEN2(a, b) __builtin_shufflevector(a, b, 0, 2)
#define TF_ODD16(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define TF_ODD8(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define TF_ODD4(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define TF_ODD2(a, b) __builtin_shufflevector(a, b, 1, 3)
#define TF_TURNS_LOW16(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define TF_TURNS_LOW8(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define TF_TURNS_LOW4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define TF_TURNS_LOW2(a, b) __builtin_shufflevector(a, b, 0, 2)
#define TF_TURNS_HIGH16(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define TF_TURNS_HIGH8(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define TF_TURNS_HIGH4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define TF_TURNS_HIGH2(a, b) __builtin_shufflevector(a, b, 1, 3)

/* by the bytes of an element */
#if TF_VBYTES == 64
#define TF_OF_4(x) x##16
#define TF_OF_8(x) x##8
#elif TF_VBYTES == 32
#define TF_OF_4(x) x##8
#define TF_OF_8(x) x##4
#else
#define TF_OF_4(x) x##4
#define TF_OF_8(x) x##2
#endif
#define TF_SHUFFLES(T, OF)                                                                                   \
  static inline tf_v_##T tf_even_##T(tf_v_##T a, tf_v_##T b) { return OF(TF_EVEN)(a, b); }                   \
  static inline tf_v_##T tf_odd_##T(tf_v_##T a, tf_v_##T b) { return OF(TF_ODD)(a, b); }                     \
  static inline tf_v_##T tf_turns_low_##T(tf_v_##T a, tf_v_##T b) { return OF(TF_TURNS_LOW)(a, b); }         \
  static inline tf_v_##T tf_turns_high_##T(tf_v_##T a, tf_v_##T b) { return OF(TF_TURNS_HIGH)(a, b); }
TF_SHUFFLES(float, TF_OF_4)
TF_SHUFFLES(double, TF_OF_8)

#endif
