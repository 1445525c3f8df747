/* Inner loops of the optimizers: n numbers of one type, written in place; absent arrays are NULL.
   Factors are computed in double and rounded once; the rest is arithmetic of the type, in the order
   in which PyTorch's one-tensor steps do it. */
#ifndef TF_STEP_LOOPS_H
#define TF_STEP_LOOPS_H
#include <stdint.h>

enum { TF_NESTEROV = 1, TF_MAXIMIZE = 2, TF_FIRST = 4, TF_DECOUPLED = 8 };

typedef struct {
  double lr, momentum, dampening, weight_decay, beta1, beta2, eps, alpha;
  double bias1, bias2; /* Adam: 1 - beta^step */
  int flags;
} tf_step;

typedef void (*tf_stepper)(void *p, const void *g, void *const *state, int64_t n, const tf_step *s);

typedef struct {
  tf_stepper sgd;     /* state: momentum buffer or NULL */
  tf_stepper adam;    /* first moment, second moment, largest second moment or NULL */
  tf_stepper rmsprop; /* mean square, mean gradient or NULL, momentum buffer or NULL */
} tf_step_loops;

typedef struct {
  tf_step_loops of[2]; /* float, double */
} tf_step_table;

#endif
