/* Lines between neighbouring elements for one instruction set; exports one table. */
#include "isa.h"
#include "resize_loops.h"

#define NAME(x) TF_JOIN(x, T)
#define T float
#include "resize_rows.inc"
#undef T
#define T double
#include "resize_rows.inc"
#undef T

#define OF(T) {weights_##T, line_##T, row_##T, line_back_##T, row_back_##T, add_##T}
extern const tf_resize_table TF_NAME(tf_resize);
const tf_resize_table TF_NAME(tf_resize) = {{OF(float), OF(double)}};
