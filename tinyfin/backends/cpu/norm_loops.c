/* Inner loops of softmax and of the norms, once for float and once for double (norm_rows.inc). */
#include "norm_loops.h"
#include "canonical_sum.h"
#include "isa.h"
#include "vmath.h"
#include "halves.h"

#define PAIR(name) TF_JOIN(name, TAG)

#define T float
#define TAG f32
#define VEXP vm_exp
#define VLOG vm_log
#define ROOT __builtin_sqrtf
#define WIDEN(y, x, n, FN) tf_widen_f16(y, x, n)
#define NARROW(y, x, n, FN) tf_narrow_f16(y, x, n)
#include "norm_rows.inc"
#undef T
#undef TAG
#undef VEXP
#undef VLOG
#undef ROOT
#undef WIDEN
#undef NARROW

#define T double
#define TAG f64
#define VEXP vd_exp
#define VLOG vd_log
#define ROOT __builtin_sqrt
#define WIDEN EACH_OF
#define NARROW EACH_OF
#include "norm_rows.inc"

#define ALL(name, t)                                                                               \
  {name##_u8_##t,  name##_u8_##t,  name##_i8_##t,   name##_i16_##t, name##_i32_##t,                \
   name##_i64_##t, name##_f16_##t, name##_bf16_##t, name##_f32_##t, name##_f64_##t}
#define FLOATS(name, t)                                                                            \
  {0, 0, 0, 0, 0, 0, name##_f16_##t, name##_bf16_##t, name##_f32_##t, name##_f64_##t}
#define SOFT(kind, t)                                                                              \
  {softmax##kind##_##t, log_softmax##kind##_##t, softmax_grad##kind##_##t,                         \
   log_softmax_grad##kind##_##t}
#define LOOPS(t)                                                                                   \
  {ALL(load, t), FLOATS(store, t), ALL(load_tile, t), FLOATS(store_tile, t), SOFT(, t),            \
   SOFT(_tile, t), lse_##t, lse_tile_##t, ce_grad_##t, ce_grad_tile_##t, norm_##t, norm_grad_##t,  \
   sum_##t, sqdiff_##t, xhat_##t, add_##t, fill_##t, divide_##t, channel_##t, channel_grad_##t,    \
   group_grad_##t,                                                                                  \
   sum_tile_##t, sqdiff_tile_##t, xhat_tile_##t, channel_tile_##t, channel_grad_tile_##t}

extern const tf_norm_table TF_NAME(tf_norm);
const tf_norm_table TF_NAME(tf_norm) = {{LOOPS(f32), LOOPS(f64)}};
