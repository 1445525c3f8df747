/* Inner loops of recurrent layers, once for float and once for double (recurrent_cells.inc). */
#include "recurrent_loops.h"
#include "isa.h"
#include "loops.h"
#include "vmath.h"

#define PAIR(name) TF_JOIN(name, TAG)

#define T float
#define TAG f32
#define VTANH vm_tanh
#define VSIGMOID vm_sigmoid
#include "recurrent_cells.inc"
#undef T
#undef TAG
#undef VTANH
#undef VSIGMOID

#define T double
#define TAG f64
#define VTANH vd_tanh
#define VSIGMOID vd_sigmoid
#include "recurrent_cells.inc"

#define LOOPS(t)                                                                                   \
  {{tanh_step_##t, relu_step_##t, lstm_step_##t, gru_step_##t},                                    \
   {tanh_step_grad_##t, relu_step_grad_##t, lstm_step_grad_##t, gru_step_grad_##t}}

extern const tf_recurrent_table TF_NAME(tf_recurrent);
const tf_recurrent_table TF_NAME(tf_recurrent) = {{LOOPS(f32), LOOPS(f64)}};
