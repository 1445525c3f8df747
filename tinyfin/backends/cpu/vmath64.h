/* vmath64: elementary float64 functions for C. The rules are those of vmath.inc: + - *, vd_fma (one
 * rounding), division, sqrt, integer arithmetic; no branches, so loops vectorise. A subnormal input
 * counts as a zero, a subnormal result is a zero, a NaN result is 7ff8000000000000. The same bits
 * come out with and without FMA instructions and in any flush mode; only vd_div and vd_sqrt, which
 * are the instructions, follow the flush mode. Compile with -ffp-contract=off (and -fno-math-errno
 * -fno-trapping-math, to vectorise).
 */
#ifndef VMATH64_H
#define VMATH64_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#define VD static inline __attribute__((always_inline, unused))
#ifdef __FMA__
#define vd_fma __builtin_fma
#else
#define vd_fma fma
#endif
#define VD_NAN 0x7ff8000000000000u
#define VD_INF 0x7ff0000000000000u
#define VD_ONE 0x3ff0000000000000u
#define VD_MIN 0x0010000000000000u /* smallest normal number */
#define VD_SIGN 0x8000000000000000u
#define VD_ABS 0x7fffffffffffffffu
#define VD_LT(a, b) ((int64_t)(a) < (int64_t)(b))
typedef uint64_t vd_u;
typedef struct { double h, l; } vd_ff;
typedef struct { double h, l; vd_u q; } vd_red;

/* ---- helpers */
/* Double of bits u. */
VD double vd_d(vd_u u) { union { vd_u u; double d; } x; x.u = u; return x.d; }
/* Bits of double d. */
VD vd_u vd_b(double d) { union { vd_u u; double d; } x; x.d = d; return x.u; }
/* c ? a : b by a mask. */
VD vd_u vd_sel(bool c, vd_u a, vd_u b) { vd_u m = 0u - (vd_u)c; return (a & m) | (b & ~m); }
VD double vd_seld(bool c, double a, double b) { return vd_d(vd_sel(c, vd_b(a), vd_b(b))); }
/* Smaller and larger of two positive integers. */
VD vd_u vd_clamp(vd_u a, vd_u hi) { return vd_sel(VD_LT(a, hi), a, hi); }
VD vd_u vd_atleast(vd_u a, vd_u lo) { return vd_sel(VD_LT(a, lo), lo, a); }
/* r, or NaN where |x| > limit in bits. */
VD double vd_upto(vd_u ax, vd_u limit, vd_u r) { return vd_d(vd_sel(VD_LT(limit, ax), VD_NAN, r)); }
/* Polynomials by Horner's rule, highest coefficient first. */
#define VD_P2(x, a, b) vd_fma(a, x, b)
#define VD_P4(x, a, b, c, d) vd_fma(vd_fma(VD_P2(x, a, b), x, c), x, d)
#define VD_P6(x, a, b, c, d, e, f) vd_fma(vd_fma(VD_P4(x, a, b, c, d), x, e), x, f)
#define VD_P7(x, a, b, c, d, e, f, g) vd_fma(VD_P6(x, a, b, c, d, e, f), x, g)
#define VD_P8(x, a, b, c, d, e, f, g, h) vd_fma(VD_P7(x, a, b, c, d, e, f, g), x, h)
#define VD_N4(p, x, a, b, c, d) vd_fma(vd_fma(vd_fma(vd_fma(p, x, a), x, b), x, c), x, d)
/* a + b, exactly, as the rounded sum and its error. */
VD vd_ff vd_two(double a, double b) {
  double s = a + b, t = s - a;
  return (vd_ff){s, (a - (s - t)) + (b - t)};
}
/* Bits of y * 2^n, y a positive normal number near 1; overflow is infinity, underflow zero. */
VD vd_u vd_scale(double y, vd_u n) {
  vd_u x = (vd_b(y) >> 52) + n, r = vd_b(y) + (n << 52);
  return vd_sel(VD_LT(0, x), vd_sel(VD_LT(2046, x), VD_INF, r), 0u);
}
/* Number whose low bits are the integer nearest to x. */
VD double vd_near(double x) { return x + 0x1.8p52; }
/* That integer, modulo 2^64. */
VD vd_u vd_int(double t) { return vd_b(t) - 0x4338000000000000u; }
/* The same for x / ln 2. */
VD double vd_expq(double x) { return vd_fma(x, 0x1.71547652b82fep+0, 0x1.8p52); }
/* exp(r) - 1, |r| <= 0.35. */
VD double vd_expr(double r) {
  double p = VD_P7(r, 2.0856051918300615e-09, 2.5111728677706663e-08, 2.755746707229622e-07,
      2.755723588418301e-06, 2.480158709717703e-05, 0.0001984126989517208, 0.0013888888888996572);
  p = VD_N4(p, r, 0.008333333333317634, 0.04166666666666648, 0.16666666666666682, 0.5);
  return vd_fma(r * r, p, r);
}
/* x - l - k ln 2. */
VD double vd_expred(double x, double l, double k) {
  return vd_fma(k, -0x1.9ef35793c7673p-41, vd_fma(k, -0x1.62e42fefa2000p-1, x)) - l;
}
/* exp(x - l - k ln 2) as a sum of two numbers. */
VD vd_ff vd_expff(double x, double l, double k) {
  double s = vd_expr(vd_expred(x, l, k)), h = 1.0 + s;
  return (vd_ff){h, (1.0 - h) + s};
}
/* 2^r, |r| <= 0.51. */
VD double vd_exp2r(double r) {
  double p = VD_P4(r, 2.711666884413559e-11, 4.475749910846241e-10, 7.053922546840018e-09,
      1.0177918297454715e-07);
  p = VD_N4(p, r, 1.3215489312860728e-06, 1.5252734193874232e-05, 0.00015403530390531293,
      0.0013333558146013792);
  p = VD_N4(p, r, 0.009618129107629814, 0.05550410866482342, 0.2402265069591007,
      0.6931471805599453);
  return vd_fma(p, r, 1.0);
}
/* Exponent n of x: x / 2^n is in [b, 2 b), b the number of bits base. */
VD vd_u vd_logn(vd_u ix, vd_u base) { return ((ix - base + 0x4000000000000000u) >> 52) - 1024u; }
/* That exponent as a double. */
VD double vd_logi(vd_u n) { return vd_d(0x4330000000000000u | (n + 1024u)) - (0x1p52 + 1024.0); }
#define VD_23 0x3fe5555555555555u
/* i ln 2 + log(1 + f + c) as a sum of two numbers, |f| <= 1/3, c tiny: 2 atanh(f / (2 + f)) with
   f - f^2 / 2 exact; relative error 2^-57. */
VD vd_ff vd_logff(double i, double f, double c) {
  double g = 0.5 * f, q = g * f, ql = vd_fma(g, f, -q), s = f / (2.0 + f), z = s * s;
  double p = VD_P8(z, 0.13840639849967795, 0.13173947390960394, 0.15391091855926858,
      0.18181666460376947, 0.2222222428754926, 0.2857142855589453, 0.40000000000056496,
      0.666666666666666);
  double t = i * 0x1.62e42fefa2000p-1, h = t + f, e = (t - h) + f, r = h - q;
  e = e + ((h - r) - q);
  double w = vd_fma(-c, f, c) + vd_fma(s, vd_fma(p, z, q), -ql);
  return (vd_ff){r, e + vd_fma(i, 0x1.9ef35793c7673p-41, w)};
}
/* log(x) as a sum of two numbers, x positive and normal. */
VD vd_ff vd_log_2d(double x) {
  vd_u n = vd_logn(vd_b(x), VD_23);
  return vd_logff(vd_logi(n), vd_d(vd_b(x) - (n << 52)) - 1.0, -0.0);
}
/* log(1 + f + g) + add * ln 2, f > -1, g tiny. */
VD double vd_log1pq(double f, double g, double add) {
  double u = 1.0 + f, b = u - 1.0, c = ((1.0 - (u - b)) + (f - b)) + g;
  vd_u n = vd_logn(vd_b(u), VD_23);
  double m = vd_d(vd_b(u) - (n << 52)) - 1.0;
  c = c * vd_d(vd_sel(VD_LT(100, n), 0u, (1023u - n) << 52));
  vd_ff r = vd_logff(vd_logi(n) + add, vd_seld(n == 0u, f, m), vd_seld(n == 0u, g, c));
  return r.h + r.l;
}
/* log2(x) as a sum of two numbers, x positive and normal; relative error 2^-65: 2 atanh(s) / ln 2,
   s = f / (2 + f), with its first two terms in twice the precision. */
VD vd_ff vd_log2ff(double x) {
  vd_u n = vd_logn(vd_b(x), 0x3fe6a09e667f3bcdu);
  double m = vd_d(vd_b(x) - (n << 52)), f = m - 1.0, g = m + 1.0, gl = m - (g - 1.0), y = 1.0 / g;
  double s = f * y, sl = vd_fma(-s, gl, vd_fma(-s, g, f)) * y, t = s * s;
  double tl = vd_fma(s + s, sl, vd_fma(s, s, -t));
  double q = VD_P8(t, 0.17282992097940633, 0.16845020825261925, 0.19240137539900873,
      0.22195226929026998, 0.26230819866872757, 0.3205988979127359, 0.4121985831113458,
      0.5770780163555851);
  double w = 0x1.ec709dc3a03fdp-1 * t, wl = vd_fma(0x1.ec709dc3a03fdp-1, t, -w);
  wl = vd_fma(0x1.d27f05548af0cp-55, t, vd_fma(0x1.ec709dc3a03fdp-1, tl, wl));
  wl = vd_fma(t * t, q, wl);
  double u = 0x1.71547652b82fep+1 + w, ul = (0x1.71547652b82fep+1 - u) + w;
  ul = ul + (wl + 0x1.777d0ffda0d24p-55);
  double p = s * u, pl = vd_fma(sl, u, vd_fma(s, ul, vd_fma(s, u, -p)));
  double i = vd_logi(n), h = i + p, l = ((i - h) + p) + pl, r = h + l;
  return (vd_ff){r, (h - r) + l};
}
/* ---- roots */
/* n / d and square root: the instructions. */
VD double vd_div(double n, double d) { return n / d; }
VD double vd_sqrt(double x) { return __builtin_sqrt(x); }
/* 1 / sqrt(x), the quotient of the rounded root corrected by its residual; 0.501 ulp. */
VD double vd_rsqrt(double x) {
  vd_u ix = vd_b(x), e = (ix >> 52) & 2047u, even = 1u - (e & 1u);
  double m = vd_d((ix & 0xfffffffffffffu) | (VD_ONE + (even << 52))), q = 1.0 / __builtin_sqrt(m);
  double h = m * q, r = vd_fma(-vd_fma(m, q, -h), q, vd_fma(-h, q, 1.0));
  q = vd_fma(0.5 * q, r, q);
  vd_u u = vd_b(q) - (((e + 1u + even) >> 1) << 52) + ((512u + even) << 52);
  u = vd_sel(VD_LT(ix, 0), VD_NAN, u);
  u = vd_sel(e == 0u, VD_INF | (ix & VD_SIGN), u);
  u = vd_sel(e == 2047u, VD_NAN, u);
  return vd_d(vd_sel(ix == VD_INF, 0u, u));
}
/* ---- exponentials */
/* exp(x) = 2^k exp(r), |r| <= ln 2 / 2; 1 ulp. */
VD double vd_exp(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  double c = vd_d(vd_clamp(ax, 0x4087000000000000u) | (ix & VD_SIGN)), t = vd_expq(c); /* 736 */
  double y = 1.0 + vd_expr(vd_expred(c, -0.0, t - 0x1.8p52));
  return vd_upto(ax, VD_INF, vd_scale(y, vd_int(t)));
}
/* 2^x = 2^k 2^r, |r| <= 1/2; 1 ulp. */
VD double vd_exp2(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  double c = vd_d(vd_clamp(ax, 0x4092000000000000u) | (ix & VD_SIGN)), t = vd_near(c); /* 1152 */
  return vd_upto(ax, VD_INF, vd_scale(vd_exp2r(c - (t - 0x1.8p52)), vd_int(t)));
}
/* exp(x) - 1 = 2 (2^(k-1) (exp(r) - 1) + (2^(k-1) - 1/2)); 1.9 ulp. */
VD double vd_expm1(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS, sg = ix & VD_SIGN;
  vd_u top = vd_sel(VD_LT(ix, 0), 0x4044000000000000u, 0x4086800000000000u); /* -40, 720 */
  double c = vd_d(vd_clamp(ax, top) | sg), t = vd_expq(c);
  vd_u n = vd_int(t);
  double p = vd_d((n + 1022u) << 52);
  double y = vd_fma(p, vd_expr(vd_expred(c, -0.0, t - 0x1.8p52)), p - 0.5);
  vd_u u = vd_sel(VD_LT(1024, n), VD_INF, vd_b(y + y));
  u = vd_sel(VD_LT(ax, 0x3c80000000000000u), ix, u);
  return vd_upto(ax, VD_INF, vd_sel(VD_LT(ax, VD_MIN), sg, u));
}
/* 2^(k-1) (y + sign 4^-k / y), y = exp(a - k ln 2): sinh or cosh of a > 0. */
VD vd_u vd_hyp(double a, double sign) {
  double t = vd_expq(a);
  vd_u n = vd_int(t);
  vd_ff y = vd_expff(a, -0.0, t - 0x1.8p52);
  double w = (sign / y.h) * vd_d((1023u - 2u * vd_clamp(n, 100u)) << 52);
  double v = y.h + w;
  v = v + (((y.h - v) + w) + y.l);
  return vd_scale(v, n - 1u);
}
/* sinh(x), an odd polynomial below 1; 1 ulp. */
VD double vd_sinh(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  double a = vd_d(vd_clamp(ax, 0x4086800000000000u)), z = a * a; /* 720 */
  double p = VD_P8(z, 6.2400340732109745e-15, 7.512152079192631e-13, 1.6061205849894895e-10,
      2.505209041845334e-08, 2.755731930613009e-06, 0.00019841269841068697, 0.008333333333333567,
      0.16666666666666666);
  p = vd_fma(p * z, a, a);
  vd_u r = vd_sel(VD_LT(ax, VD_ONE), vd_b(p), vd_hyp(a, -1.0));
  r = vd_sel(VD_LT(ax, VD_MIN), 0u, r);
  return vd_upto(ax, VD_INF, r | (ix & VD_SIGN));
}
/* cosh(x); 1 ulp. */
VD double vd_cosh(double x) {
  vd_u ax = vd_b(x) & VD_ABS;
  return vd_upto(ax, VD_INF, vd_hyp(vd_d(vd_clamp(ax, 0x4086800000000000u)), 1.0));
}
/* tanh(x) = e / (e + 2), e = exp(2 |x|) - 1 in two parts; 1.7 ulp. */
VD double vd_tanh(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  double a = 2.0 * vd_d(vd_clamp(ax, 0x4036000000000000u)), t = vd_expq(a); /* 22 */
  double c = vd_d((vd_int(t) + 1023u) << 52), u = c * vd_expr(vd_expred(a, -0.0, t - 0x1.8p52));
  double b = c - 1.0, h = b + u, l = (b - h) + u, d = h + 2.0, e = d - h;
  double dl = ((h - (d - e)) + (2.0 - e)) + l, y = 1.0 / d, q = h * y;
  q = vd_fma(vd_fma(-q, d, h) + vd_fma(-q, dl, l), y, q);
  vd_u r = vd_sel(VD_LT(ax, 0x3e40000000000000u), ax, vd_b(q));
  r = vd_sel(VD_LT(ax, VD_MIN), 0u, r);
  return vd_upto(ax, VD_INF, r | (ix & VD_SIGN));
}
/* 1 / (1 + exp(-x)), from exp(-|x|); 1 ulp. */
VD double vd_sigmoid(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  bool neg = VD_LT(ix, 0);
  double c = vd_d(vd_clamp(ax, 0x4087000000000000u) | VD_SIGN), t = vd_expq(c); /* 736 */
  vd_ff y = vd_expff(c, -0.0, t - 0x1.8p52);
  double e = vd_d(vd_scale(y.h, vd_int(t))), d = 1.0 + e, n = vd_seld(neg, y.h, 1.0), q = n / d;
  double r = vd_fma(-q, d, n) + vd_fma(-q, (1.0 - d) + e, vd_seld(neg, y.l, -0.0));
  q = vd_fma(r, 1.0 / d, q);
  return vd_upto(ax, VD_INF, vd_scale(q, vd_sel(neg, vd_int(t), 0u)));
}
/* log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)); 1.5 ulp. */
VD double vd_softplus(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  double e = vd_exp(vd_d(ax | VD_SIGN));
  double l = vd_seld(VD_LT(vd_b(e), 0x3c80000000000000u), e, vd_log1pq(e, -0.0, -0.0));
  double s = vd_d(vd_clamp(ax, VD_INF)) + l;
  return vd_upto(ax, VD_INF, vd_sel(VD_LT(ix, 0), vd_b(l), vd_b(s)));
}
/* ---- logarithms */
/* Result of a logarithm with bits r, for the special arguments of x. */
VD double vd_logspec(vd_u ix, vd_u r) {
  r = vd_sel(VD_LT(ix, 0), VD_NAN, r);
  r = vd_sel(VD_LT(ix & VD_ABS, VD_MIN), 0xfff0000000000000u, r);
  r = vd_sel(ix == VD_INF, ix, r);
  return vd_upto(ix & VD_ABS, VD_INF, r);
}
/* log(x); 0.65 ulp. */
VD double vd_log(double x) {
  vd_ff g = vd_log_2d(x);
  return vd_logspec(vd_b(x), vd_b(g.h + g.l));
}
/* log2(x), from the logarithm in two parts; 0.7 ulp. */
VD double vd_log2(double x) {
  vd_u n = vd_logn(vd_b(x), VD_23);
  vd_ff g = vd_logff(0.0, vd_d(vd_b(x) - (n << 52)) - 1.0, -0.0);
  double p = g.h * 0x1.71547652b82fep+0, l = vd_fma(g.h, 0x1.71547652b82fep+0, -p);
  l = vd_fma(g.l, 0x1.71547652b82fep+0, vd_fma(g.h, 0x1.777d0ffda0d24p-56, l));
  double i = vd_logi(n), h = i + p;
  return vd_logspec(vd_b(x), vd_b(h + (((i - h) + p) + l)));
}
/* log10(x), from the logarithm in two parts; 0.65 ulp. */
VD double vd_log10(double x) {
  vd_u n = vd_logn(vd_b(x), VD_23);
  vd_ff g = vd_logff(0.0, vd_d(vd_b(x) - (n << 52)) - 1.0, -0.0);
  double p = g.h * 0x1.bcb7b1526e50ep-2, l = vd_fma(g.h, 0x1.bcb7b1526e50ep-2, -p);
  l = vd_fma(g.l, 0x1.bcb7b1526e50ep-2, vd_fma(g.h, 0x1.95355baaafad3p-57, l));
  l = vd_fma(vd_logi(n), 0x1.cff7988f8959bp-41, l);
  double b = vd_logi(n) * 0x1.34413509f4000p-2, h = b + p;
  return vd_logspec(vd_b(x), vd_b(h + (((b - h) + p) + l)));
}
/* log(1 + x), 1 + x with its rounding error; 0.8 ulp. */
VD double vd_log1p(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  vd_u r = vd_b(vd_log1pq(x, -0.0, -0.0));
  r = vd_sel(VD_LT(ax, 0x3c80000000000000u), ix, r);
  r = vd_sel(VD_LT(ax, VD_MIN), ix & VD_SIGN, r);
  r = vd_sel(VD_LT(ix, 0) && VD_LT(0x3fefffffffffffffu, ax), VD_NAN, r);
  r = vd_sel(ix == 0xbff0000000000000u, 0xfff0000000000000u, r);
  r = vd_sel(ix == VD_INF, ix, r);
  return vd_upto(ax, VD_INF, r);
}
/* x^y = 2^(y log2 |x|), the logarithm and the product in two parts; 1.7 ulp. */
VD double vd_pow(double x, double y) {
  vd_u ix = vd_b(x), iy = vd_b(y), ax = ix & VD_ABS, ay = iy & VD_ABS;
  vd_ff g = vd_log2ff(vd_d(vd_clamp(vd_atleast(ax, VD_MIN), 0x7fefffffffffffffu)));
  double p = y * g.h, l = vd_fma(y, g.l, vd_fma(y, g.h, -p));
  vd_u ap = vd_b(p) & VD_ABS;
  l = vd_d(vd_sel(VD_LT(ap, 0x4097700000000000u), vd_b(l), 0u)); /* 1500 */
  p = vd_d(vd_clamp(ap, 0x4097700000000000u) | (vd_b(p) & VD_SIGN));
  double t = vd_near(p);
  vd_u r = vd_scale(vd_exp2r((p - (t - 0x1.8p52)) + l), vd_int(t));
  double w = vd_d(vd_clamp(ay, 0x432fffffffffffffu)) + 0x1p52; /* its last bit is y modulo 2 */
  bool big = VD_LT(0x432fffffffffffffu, ay), down = VD_LT(iy, 0); /* from 2^52 on y is whole */
  vd_u whole = vd_sel(big, ~(vd_u)0u, vd_sel(vd_b(w - 0x1p52) == ay, ~(vd_u)0u, 0u));
  vd_u odd = vd_sel(VD_LT(ay, 0x4340000000000000u), vd_sel(big, ay, vd_b(w)) << 63, 0u) & whole;
  r = vd_sel(ax == VD_ONE, ax, r);
  r = vd_sel(VD_LT(ix, 0), (r & whole) | (VD_NAN & ~whole), r);
  r = vd_sel(VD_LT(ax, VD_MIN), vd_sel(down, VD_INF, 0u), r);
  r = vd_sel(ax == VD_INF, vd_sel(down, 0u, VD_INF), r) | (odd & ix);
  r = vd_sel(VD_LT(VD_INF, ax), VD_NAN, r);
  r = vd_sel(VD_LT(VD_INF, ay), VD_NAN, r);
  r = vd_sel(VD_LT(ay, VD_MIN), VD_ONE, r);
  return vd_d(vd_sel(ix == VD_ONE, VD_ONE, r));
}
#include "vmath64_more.h"
#endif
