/* Steps of optimizers: parameter and state are written in place, in the order of operations of the CPU's
 * backends/cpu/step_rows.inc.
 *
 * RULE: 0 SGD (a: momentum buffer), 1 Adam (a, b: moments; c: largest second moment), 2 RMSprop (a: mean square;
 * b: mean gradient; c: momentum buffer). LAYOUT: 0 strided, `table` holds the number of axes, their sizes and each
 * operand's strides, eight of each; 1 dense; 2 dense with four elements to an invocation.
 *
 * operands: p g a b c table
 * words: uint count; uint flags; number f[8]
 * constants: P G A B C RULE LAYOUT
 * group: 256
 * numbers: float double
 */
#include "quotient.glsl"
#include "four.glsl"
#define NESTEROV 1u
#define MAXIMIZE 2u
#define FIRST 4u
#define DECAY 8u    /* a part of the parameter is added to the gradient */
#define SHRINK 16u  /* the parameter is scaled */
#define HAS_A 32u
#define HAS_B 64u
#define HAS_C 128u
#define SLOW 256u   /* lerp's part is below 1/2 */
#define IS(flag) ((p_flags & (flag)) != 0u)

/* x moves towards y by a part, exact at both ends. */
T lerped(T x, T y, T part) {
  precise T d = tf_sub(y, x);
  if (IS(SLOW)) return tf_add(x, tf_mul(part, d));
  return tf_sub(y, tf_mul(d, tf_sub(T(1), part)));
}

/* m f + rest d */
T blended(T m, T f, T rest, T d) { return tf_add(tf_mul(m, f), tf_mul(rest, d)); }

void sgd(inout T p, T d, inout T m) {
  if (IS(HAS_A)) {
    m = VALUE(IS(FIRST) ? BITS(d) : BITS(blended(m, p_f(1), p_f(2), d)));
    d = VALUE(IS(NESTEROV) ? BITS(tf_add(d, tf_mul(p_f(1), m))) : BITS(m));
  }
  p = tf_add(p, tf_mul(p_f(0), d));
}

void adam(inout T p, T d, inout T m, inout T v, inout T top) {
  if (IS(SHRINK)) p = tf_mul(p, p_f(1));
  m = lerped(m, d, p_f(2));
  v = tf_add(tf_mul(v, p_f(4)), tf_mul(tf_mul(p_f(5), d), d));
  precise T s = v;
  if (IS(HAS_C)) {
    top = VALUE(tf_less(top, v) || tf_isnan(v) ? BITS(v) : BITS(top));
    s = top;
  }
  p = tf_add(p, tf_quotient(tf_mul(p_f(0), m), tf_add(tf_quotient(tf_root(s), p_f(6)), p_f(7))));
}

void rmsprop(inout T p, T d, inout T v, inout T mean, inout T m) {
  v = tf_add(tf_mul(v, p_f(4)), tf_mul(tf_mul(p_f(2), d), d));
  precise T s = v;
  if (IS(HAS_B)) {
    mean = lerped(mean, d, p_f(2));
    s = tf_sub(v, tf_mul(mean, mean));
  }
  precise T r = tf_add(tf_root(s), p_f(7));
  if (IS(HAS_C)) {
    m = tf_add(tf_mul(m, p_f(1)), tf_quotient(d, r));
    p = tf_add(p, tf_mul(p_f(0), m));
  } else {
    p = tf_add(p, tf_quotient(tf_mul(p_f(0), d), r));
  }
}

void stepped(inout T p, T g, inout T a, inout T b, inout T c) {
  precise T d = VALUE(IS(MAXIMIZE) ? BITS(tf_neg(g)) : BITS(g));
  if (IS(DECAY)) d = tf_add(d, tf_mul(p_f(3), p));
  if (RULE == 0u) sgd(p, d, a);
  else if (RULE == 1u) adam(p, d, a, b, c);
  else rmsprop(p, d, a, b, c);
}

void one(int pi, int gi, int ai, int bi, int ci) {
  precise T p = load_p(P, pi), g = load_g(G, gi), a = T(0), b = T(0), c = T(0);
  if (IS(HAS_A)) a = load_a(A, ai);
  if (IS(HAS_B)) b = load_b(B, bi);
  if (IS(HAS_C)) c = load_c(C, ci);
  stepped(p, g, a, b, c);
  store_p(P, pi, p);
  if (IS(HAS_A)) store_a(A, ai, a);
  if (IS(HAS_B)) store_b(B, bi, b);
  if (IS(HAS_C)) store_c(C, ci, c);
}

TF_FOUR(p)
TF_FOUR(g)
TF_FOUR(a)
TF_FOUR(b)
TF_FOUR(c)
void four(int i) {
  precise T p[4], g[4], a[4], b[4], c[4];
  load4_p(P, i, p);
  load4_g(G, i, g);
  a = b = c = T[4](T(0), T(0), T(0), T(0));
  if (IS(HAS_A)) load4_a(A, i, a);
  if (IS(HAS_B)) load4_b(B, i, b);
  if (IS(HAS_C)) load4_c(C, i, c);
  UNROLL for (int k = 0; k < 4; k++) stepped(p[k], g[k], a[k], b[k], c[k]);
  store4_p(P, i, p);
  if (IS(HAS_A)) store4_a(A, i, a);
  if (IS(HAS_B)) store4_b(B, i, b);
  if (IS(HAS_C)) store4_c(C, i, c);
}

void main() {
  uint i = tf_thread();
  if (LAYOUT == 2u) {
    uint whole = p_count >> 2;
    if (i < whole) four(int(i));
    else if (i < whole + (p_count & 3u)) {
      int k = int(3u * whole + i);
      one(k, k, k, k, k);
    }
    return;
  }
  if (i >= p_count) return;
  int at[5];
  at[0] = at[1] = at[2] = at[3] = at[4] = int(i);
  if (LAYOUT == 0u) {
    at[0] = at[1] = at[2] = at[3] = at[4] = 0;
    uint rest = i;
    for (int d = int(word32_table(0)) - 1; d >= 0; d--) {
      uint size = word32_table(1 + d);
      int k = int(rest % size);
      rest /= size;
      UNROLL for (int o = 0; o < 5; o++) at[o] += k * int(word32_table(9 + 8 * o + d));
    }
  }
  one(at[0], at[1], at[2], at[3], at[4]);
}
