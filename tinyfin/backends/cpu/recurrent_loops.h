/* Inner loops of recurrent layers: one step of some rows of a batch and some units, in the
   computing type. `acc` is what the weights made of the state; the order of operations is that of
   the formulas in ops/recurrent.py.

   Units lie side by side. What is not given is -0.0, which changes nothing where it is added. */
#ifndef TF_RECURRENT_LOOPS_H
#define TF_RECURRENT_LOOPS_H
#include <stdint.h>

enum { TF_RNN_TANH, TF_RNN_RELU, TF_LSTM, TF_GRU, TF_MODES };

/* Numbers by row, block and unit: rows and blocks are `row` and `block` elements apart. */
typedef struct {
  const void *at;
  int64_t row, block;
} tf_part;
typedef struct {
  void *at;
  int64_t row, block;
} tf_place;

typedef struct {
  int64_t rows, n;
  tf_part acc, x, b, h, c; /* h, c: where the step begins */
  tf_place y, cells, gates; /* cells may be where c is; four blocks of gates */
} tf_step;

/* left: in, what the step after this one left of the gradient of c (of h in a GRU); out, what this
   one leaves. own: the gradient of what the weights made of the state, where it is not gx. */
typedef struct {
  int64_t rows, n;
  tf_part acc, g, g_cells, g_gates, h, c, y, cells, gates;
  tf_place left, gx, own;
} tf_step_grad;

typedef struct {
  void (*step[TF_MODES])(const tf_step *a);
  void (*step_grad[TF_MODES])(const tf_step_grad *a);
} tf_recurrent_loops;

typedef struct {
  tf_recurrent_loops of[2]; /* float, double */
} tf_recurrent_table;

#endif
