/* The canonical sum: one order of additions for every device, thread count and instruction set.

   n numbers are cut into blocks of 2048. Inside a block, element i belongs to lane i mod 64; a lane
   adds in rising order, starting from -0.0 (the exact identity of addition); the 64 lanes are added
   by halving: lane j takes lane j + 32, then j + 16, ... j + 1. The block sums are summed by the
   same rule. An empty sum is +0.0. Compile with -ffp-contract=off. Included once per instruction
   set: vector width changes the registers in which the lanes live, never the order.

   TF_CANONICAL_SUM(name, tag, T, PARAMS, ARGS, EXPR) defines two functions for the sum of EXPR over
   elements i, of which EXPR reaches a vector as AT(pointer); it may mix vectors and numbers:
     T name_block(PARAMS, int64_t i0, int64_t i1)   one block, 0 < i1 - i0 <= 2048, lanes from i0
     T name(PARAMS, int64_t n)                      elements 0 .. n - 1, n may be 0
   PARAMS and ARGS are lists in parentheses. Pointers need the alignment of an element only.

   Ready-made, for f32 and f64: tf_sum_f32(x), tf_sqdiff_f32(x, mean), tf_dot_f32(a, b). The sum of
   an array of block sums is tf_sum_f32 again. tf_tree_f32 adds block sums as they come.
   Sums side by side (over a leading axis): tf_lanes_clear_f32, add row i to lanes[i % 64] with any
   loop, and tf_lanes_fold_f32 after each 2048 rows (and at the end). */
#ifndef TF_CANONICAL_SUM_H
#define TF_CANONICAL_SUM_H
#include "blocks.h"
#include "simd.h"
#include <stdint.h>
#include <string.h>

#define TF_UNPAREN(...) __VA_ARGS__
/* Vector i of an array; where `part_` is not 0 only that many of its elements exist. */
#define AT(p) (part_ ? (E)TF_AT_PART(p)((p) + i, part_) : *(const E *)((p) + i))
#define TF_AT_PART(p) _Generic(*(p), float: tf_load_part_float, double: tf_load_part_double)

/* x in the first n lanes, -0.0 in the others */
#define TF_FIRST(T, I)                                                                             \
  static inline tf_v_##T tf_first_##T(tf_v_##T x, int n) {                                         \
    typedef I IV __attribute__((vector_size(TF_VBYTES)));                                          \
    static const I index[16] __attribute__((aligned(64))) = {0, 1, 2,  3,  4,  5,  6,  7,          \
                                                             8, 9, 10, 11, 12, 13, 14, 15};        \
    const IV keep = *(const IV *)index < (IV){0} + n, zero = (IV)(-(tf_v_##T){0});                 \
    return (tf_v_##T)(((IV)x & keep) | (zero & ~keep));                                            \
  }
TF_FIRST(float, int32_t)
TF_FIRST(double, int64_t)

/* At most 8 accumulators at a time (G): more would not fit in 16 registers. The vectors of the rest
   are added by tests of constants, so that the accumulators stay in registers; lanes beyond the
   last element take -0.0. Names end in _ so that EXPR cannot meet them. */
#define TF_CANONICAL_BLOCK(name, T, PARAMS, EXPR)                                                  \
  static inline T name##_block(TF_UNPAREN PARAMS, int64_t i0, int64_t i1) {                        \
    typedef tf_vu_##T E;                                                                           \
    enum { W = TF_VBYTES / sizeof(T), NV = TF_SUM_LANES / W, G = NV < 8 ? NV : 8 };                \
    const int64_t whole_ = i0 + ((i1 - i0) & ~(int64_t)(TF_SUM_LANES - 1));                        \
    const int64_t full_ = (i1 - whole_) / W;                                                       \
    tf_v_##T lane_[NV], last_ = -(tf_v_##T){0};                                                    \
    if (whole_ + full_ * W < i1) {                                                                 \
      const int part_ = (int)(i1 - whole_ - full_ * W);                                            \
      const int64_t i = whole_ + full_ * W;                                                        \
      last_ = tf_first_##T((EXPR), part_);                                                         \
    }                                                                                              \
    for (int q_ = 0; q_ < NV; q_ += G) {                                                           \
      const int part_ = 0;                                                                         \
      tf_v_##T acc_[G];                                                                            \
      TF_EACH(k_, G) acc_[k_] = -(tf_v_##T){0};                                                    \
      for (int64_t j_ = i0 + q_ * W; j_ < whole_; j_ += TF_SUM_LANES) TF_EACH(k_, G) {             \
        const int64_t i = j_ + k_ * W;                                                             \
        acc_[k_] += (EXPR);                                                                        \
      }                                                                                            \
      TF_EACH(k_, G) if (q_ + k_ < full_) {                                                        \
        const int64_t i = whole_ + (q_ + k_) * W;                                                  \
        acc_[k_] += (EXPR);                                                                        \
      } else if (q_ + k_ == full_) {                                                               \
        acc_[k_] += last_;                                                                         \
      }                                                                                            \
      TF_EACH(k_, G) lane_[q_ + k_] = acc_[k_];                                                    \
    }                                                                                              \
    TF_EACH(d_, 6) for (int k_ = 0, h_ = NV >> (d_ + 1); k_ < h_; k_++)                            \
      lane_[k_] += lane_[k_ + h_];                                                                 \
    return tf_hadd_##T(lane_[0]);                                                                  \
  }

TF_CANONICAL_BLOCK(tf_sum_f32, float, (const float *x), AT(x))
TF_CANONICAL_BLOCK(tf_sum_f64, double, (const double *x), AT(x))

/* Block sums as they come, in rising order; level k holds sums of 2048^(k + 1) elements. */
#define TF_SUM_LEVELS 4
#define TF_SUM_TREE(tag, T)                                                                        \
  typedef struct {                                                                                 \
    int n[TF_SUM_LEVELS];                                                                          \
    T sums[TF_SUM_LEVELS][TF_BLOCK];                                                               \
  } tf_tree_##tag;                                                                                 \
  static inline void tf_tree_start_##tag(tf_tree_##tag *t) { memset(t->n, 0, sizeof t->n); }       \
  static inline void tf_tree_add_##tag(tf_tree_##tag *t, T sum) {                                  \
    for (int k = 0; k < TF_SUM_LEVELS; k++) {                                                      \
      t->sums[k][t->n[k]++] = sum;                                                                 \
      if (t->n[k] < TF_BLOCK) return;                                                              \
      sum = tf_sum_##tag##_block(t->sums[k], 0, TF_BLOCK);                                         \
      t->n[k] = 0;                                                                                 \
    }                                                                                              \
  }                                                                                                \
  static inline T tf_tree_end_##tag(tf_tree_##tag *t) {                                            \
    int top = 0;                                                                                   \
    for (int k = 1; k < TF_SUM_LEVELS; k++) top = t->n[k] ? k : top;                               \
    for (int k = 0; k < top; k++)                                                                  \
      if (t->n[k]) t->sums[k + 1][t->n[k + 1]++] = tf_sum_##tag##_block(t->sums[k], 0, t->n[k]);   \
    return t->n[top] ? tf_sum_##tag##_block(t->sums[top], 0, t->n[top]) : 0;                       \
  }

TF_SUM_TREE(f32, float)
TF_SUM_TREE(f64, double)

/* Apart and not inlined, so that short rows do not pay for the tree on the stack. */
#define TF_CANONICAL_ROW(name, tag, T, PARAMS, ARGS)                                               \
  static __attribute__((noinline, unused)) T name##_blocks(TF_UNPAREN PARAMS, int64_t n) {         \
    tf_tree_##tag t;                                                                               \
    tf_tree_start_##tag(&t);                                                                       \
    for (int64_t i = 0; i < n; i += TF_BLOCK)                                                      \
      tf_tree_add_##tag(&t, name##_block(TF_UNPAREN ARGS, i,                                       \
                                         n - i < TF_BLOCK ? n : i + TF_BLOCK));                    \
    return tf_tree_end_##tag(&t);                                                                  \
  }                                                                                                \
  static inline T name(TF_UNPAREN PARAMS, int64_t n) {                                             \
    if (n == 0) return 0;                                                                          \
    return n <= TF_BLOCK ? name##_block(TF_UNPAREN ARGS, 0, n)                                     \
                             : name##_blocks(TF_UNPAREN ARGS, n);                                  \
  }

#define TF_CANONICAL_SUM(name, tag, T, PARAMS, ARGS, EXPR)                                         \
  TF_CANONICAL_BLOCK(name, T, PARAMS, EXPR)                                                        \
  TF_CANONICAL_ROW(name, tag, T, PARAMS, ARGS)

TF_CANONICAL_ROW(tf_sum_f32, f32, float, (const float *x), (x))
TF_CANONICAL_ROW(tf_sum_f64, f64, double, (const double *x), (x))
TF_CANONICAL_SUM(tf_sqdiff_f32, f32, float, (const float *x, float m), (x, m),
                 (AT(x) - m) * (AT(x) - m))
TF_CANONICAL_SUM(tf_sqdiff_f64, f64, double, (const double *x, double m), (x, m),
                 (AT(x) - m) * (AT(x) - m))
TF_CANONICAL_SUM(tf_dot_f32, f32, float, (const float *a, const float *b), (a, b), AT(a) * AT(b))
TF_CANONICAL_SUM(tf_dot_f64, f64, double, (const double *a, const double *b), (a, b), AT(a) * AT(b))

/* w sums side by side: `lanes` is [64][w]; folding leaves the w block sums in its first row. */
#define TF_SUM_SIDE(tag, T)                                                                        \
  static inline void tf_lanes_clear_##tag(T *lanes, int64_t w) {                                   \
    for (int64_t i = 0; i < TF_SUM_LANES * w; i++) lanes[i] = -(T)0;                               \
  }                                                                                                \
  static inline void tf_lanes_fold_##tag(T *lanes, int64_t w) {                                    \
    for (int64_t h = TF_SUM_LANES / 2 * w; h >= w && h > 0; h /= 2)                                \
      for (int64_t i = 0; i < h; i++) lanes[i] += lanes[i + h];                                    \
  }

TF_SUM_SIDE(f32, float)
TF_SUM_SIDE(f64, double)

#endif
