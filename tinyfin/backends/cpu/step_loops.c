/* Inner loops of the optimizers, once for float and once for double (step_rows.inc). */
#include "step_loops.h"
#include "isa.h"

#define PAIR(name) TF_JOIN(name, TAG)

#define T float
#define TAG f32
#define ROOT __builtin_sqrtf
#include "step_rows.inc"
#undef T
#undef TAG
#undef ROOT

#define T double
#define TAG f64
#define ROOT __builtin_sqrt
#include "step_rows.inc"

extern const tf_step_table TF_NAME(tf_step);
const tf_step_table TF_NAME(tf_step) = {{
  {sgd_f32, adam_f32, rmsprop_f32},
  {sgd_f64, adam_f64, rmsprop_f64},
}};
