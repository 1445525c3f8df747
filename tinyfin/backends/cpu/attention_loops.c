/* Inner loops of attention, once for float and once for double (attention_tiles.inc). */
#include "attention_loops.h"
#include "canonical_sum.h"
#include "isa.h"
#include "simd.h"
#include "vmath.h"

#define PAIR(name) TF_JOIN(name, TAG)

#define T float
#define TAG f32
#define VEXP vm_exp
#define VLOG vm_log
#include "attention_tiles.inc"
#undef T
#undef TAG
#undef VEXP
#undef VLOG

#define T double
#define TAG f64
#define VEXP vd_exp
#define VLOG vd_log
#include "attention_tiles.inc"

#define LOOPS(t)                                                                                   \
  {chain_##t, forward_##t, backward_##t, scale_rows_##t, finish_##t, transpose_##t, dots_##t}

extern const tf_attention_table TF_NAME(tf_attention);
const tf_attention_table TF_NAME(tf_attention) = {{LOOPS(f32), LOOPS(f64)}};
