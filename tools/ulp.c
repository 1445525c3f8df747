/* Measures the elementary functions: errors in units in the last place, special values, equal bits in
 * all builds and flush modes, time per element. shaders/vmath.inc is compared with the double C
 * library, vmath64.inc (ULP64 defined) with the long double one. tools/ulp.py builds and runs it: an
 * object for each build (ULP_BUILD = its name), and one with the tables.
 */
#define LIST1(F) \
  F(exp) F(exp2) F(expm1) F(sinh) F(cosh) F(tanh) F(sigmoid) F(softplus) F(log) F(log2) F(log10) \
  F(log1p) F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(asinh) F(acosh) F(atanh) F(erf) F(erfc) \
  F(erfinv) F(lgamma) F(digamma) F(rsqrt) NATIVE1(F)
#define LIST2(F) F(pow) F(atan2) NATIVE2(F)
#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)
#ifdef ULP64
typedef double T;
#define NATIVE1(F) /* sqrt and / are the instructions in float64 */
#define NATIVE2(F)
#else
typedef float T;
#define NATIVE1(F) F(sqrt)
#define NATIVE2(F) F(div)
#endif

#ifdef ULP_BUILD
#ifdef ULP64
#include "../shaders/vmath64.inc"
#define VM vd
#else
#define VM_C
#include "../shaders/vmath.inc"
#define VM vm
#endif
#define F(f) \
  void CAT(ULP_BUILD, f)(const T *restrict a, const T *restrict b, T *restrict o, long n) { \
    (void)b; \
    for (long i = 0; i < n; i++) o[i] = CAT(VM, f)(a[i]); \
  }
LIST1(F)
#undef F
#define F(f) \
  void CAT(ULP_BUILD, f)(const T *restrict a, const T *restrict b, T *restrict o, long n) { \
    for (long i = 0; i < n; i++) o[i] = CAT(VM, f)(a[i], b[i]); \
  }
LIST2(F)
#else
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef ULP64
typedef long double R; /* reference type */
typedef uint64_t U;
#define L(f) f##l
#define MANT 53
#define EMAX 1024
#define NAN_BITS 0x7ff8000000000000u
#else
typedef double R;
typedef uint32_t U;
#define L(f) f
#define MANT 24
#define EMAX 128
#define NAN_BITS 0x7fc00000u
#endif
#define BLOCK 4096
#define SIGN ((U)1 << (8 * sizeof(U) - 1))
#define PI 3.14159265358979323846264338327950288L
typedef void kernel(const T *, const T *, T *, long);
#define F(f) kernel fma_##f, soft_##f, avx512_##f;
LIST1(F) LIST2(F)
#undef F

/* References that the C library lacks. */
static R r_sigmoid(R x) { return 1 / (1 + L(exp)(-x)); }
static R r_softplus(R x) { return x > 0 ? x + L(log1p)(L(exp)(-x)) : L(log1p)(L(exp)(x)); }
static R r_rsqrt(R x) { return 1 / L(sqrt)(x); }
#ifndef ULP64
static R r_div(R x, R y) { return x / y; }
static R r_sqrt(R x) { return sqrt(x); }
#endif
static R r_digamma(R x) {
  if (isnan(x) || x == -INFINITY) return NAN;
  if (x == 0) return signbit(x) ? INFINITY : -INFINITY;
  if (x < 0) {
    R f = x - L(nearbyint)(x);
    return f == 0 ? NAN : r_digamma(-x) - 1 / x - (R)PI * L(cos)((R)PI * f) / L(sin)((R)PI * f);
  }
  long double s = 0, y = x;
  for (; y < 30; y += 1) s += 1 / y;
  long double v = 1 / y, z = v * v, c[] = {1 / 12.0L, 1 / 120.0L, 1 / 252.0L, 1 / 240.0L, 1 / 132.0L,
    691 / 32760.0L, 1 / 12.0L, 3617 / 8160.0L}, p = 0;
  for (int i = 7; i >= 0; i--) p = z * (c[i] - p);
  return (R)(logl(y) - v / 2 - p - s);
}
static R r_erfinv(R x) {
  R a = L(fabs)(x), q = 1 - a; /* exact from 1/2 on */
  if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
  if (a < 1e-12) return x * L(sqrt)((R)PI) / 2;
  R w = -L(log)(q * (1 + a)), y = w < 5 ? a * (R)(0.886 + (double)w * 0.232) : L(sqrt)(w) * (R)0.95;
  for (int i = 0; i < 6; i++) { /* Halley */
    R e = (a < 0.5 ? L(erf)(y) - a : q - L(erfc)(y)) / (2 / L(sqrt)((R)PI) * L(exp)(-y * y));
    y -= e / (1 + y * e);
  }
  return x < 0 ? -y : y;
}
#define WRAP(f) static R r_##f(R x) { return L(f)(x); }
WRAP(exp) WRAP(exp2) WRAP(expm1) WRAP(sinh) WRAP(cosh) WRAP(tanh) WRAP(log) WRAP(log2) WRAP(log10)
WRAP(log1p) WRAP(sin) WRAP(cos) WRAP(tan) WRAP(asin) WRAP(acos) WRAP(atan) WRAP(asinh) WRAP(acosh)
WRAP(atanh) WRAP(erf) WRAP(erfc)
static R r_lgamma(R x) { return L(lgamma)(x); }
static R r_pow(R x, R y) { return L(pow)(x, y); }
static R r_atan2(R y, R x) { return L(atan2)(y, x); }
static const struct entry {
  const char *name;
  kernel *k[3];
  R (*r1)(R), (*r2)(R, R);
} table[] = {
#define F(f) {#f, {fma_##f, soft_##f, avx512_##f}, r_##f, 0},
  LIST1(F)
#undef F
#define F(f) {#f, {fma_##f, soft_##f, avx512_##f}, 0, r_##f},
  LIST2(F)
#undef F
#define F(f) {#f ">0", {fma_##f, soft_##f, avx512_##f}, r_##f, 0},
  F(lgamma) F(digamma)
};

static T bits(U u) { T f; memcpy(&f, &u, sizeof f); return f; }
static U word(T f) { U u; memcpy(&u, &f, sizeof u); return u; }
static uint64_t mix(uint64_t x) { /* a random word for counter x */
  for (int i = 0; i < 2; i++) x *= 0x9E3779B97F4A7C15u, x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93u;
  return x ^ x >> 29;
}
static T near(uint64_t a, int e) { /* mantissa from a, exponent within +-e of 0 */
  return (T)ldexp(1 + (double)(a >> 12) * 0x1p-52, (int)(a % (unsigned)(2 * e)) - e);
}
static T special(uint64_t a) {
  static const double s[] = {0, 1, 2, 3, 0.5, 1.5, 0x1.fffffep23, 0x1p24, 0x1p31, 0x1p52, 0x1p53,
    0x1.8p52, 0x1.fffffffffffffp52, 0.75, 0.7, 7.5, 6, 0.875, 0.4375, 2.25, 127, 149, 1023, 1074};
  U m = word((T)INFINITY), k[] = {m, m + 1, NAN_BITS, m - 1, 1, word((T)1) + 1, word((T)1) - 1,
    (U)1 << (MANT - 1), ((U)1 << (MANT - 1)) - 1};
  unsigned n = sizeof s / sizeof *s, i = a % (n + 9);
  T v = i < n ? (T)s[i] : bits(k[i - n]);
  return a >> 63 ? bits(word(v) ^ SIGN) : v;
}
/* Input i of a function of one argument. */
static T one(uint64_t i, uint64_t stride) {
#ifdef ULP64
  uint64_t a = mix(i);
  (void)stride;
  switch (i & 7) {
  case 0: case 1: return bits(a);
  case 2: return special(a);
  case 3: return bits(word(near(mix(a), 4)) ^ (a & SIGN));
  case 4: return (T)((double)(int64_t)a * 0x1p-59);
  case 5: return (T)((double)(int64_t)a * 0x1p-53);
  case 6: return (T)((double)(int64_t)a * 0x1p-63);
  default: return bits(word(near(mix(a), 40)) ^ (a & SIGN));
  }
#else
  return bits((U)(i * stride));
#endif
}
/* Input i of a function of two arguments: any bits, x near 1, whole y, large y log x, specials. */
static void pair(uint64_t i, T *x, T *y) {
  uint64_t a = mix(2 * i), b = mix(2 * i + 1);
  U sx = (U)(mix(a) & SIGN), sy = (U)(mix(b) & SIGN);
  switch (i & 7) {
  case 0: case 1: *x = bits((U)a); *y = bits((U)b); break;
  case 2: *x = near(a, 1); *y = bits(word(near(b, MANT)) ^ sy); break;
  case 3: *x = bits(word(near(a, 2)) ^ sx); *y = (T)((int)(b % 401) - 200); break;
  case 4: case 5: *x = near(a, 8); *y = (T)((double)(int64_t)b * 0x1p-63 * 1.17 * EMAX / log2(*x)); break;
  case 6: *x = bits(word(near(a, 4)) ^ sx); *y = bits(word(near(b, 4)) ^ sy); break;
  default: *x = special(a); *y = special(b);
  }
}
/* |y - r| in ulps of r; infinity: a wrong special value. */
static double dist(T y, R r) {
  if (isnan(r) || isnan(y)) return isnan(r) && isnan(y) ? 0 : INFINITY;
  if (L(fabs)(r) < L(ldexp)(1, 2 - EMAX))
    return fabs(y) <= ldexp(1, 2 - EMAX) && (y != 0 || !signbit(y) == !signbit(r)) ? 0 : INFINITY;
  if (isinf(r)) return y == r ? 0 : INFINITY;
  R v = isinf(y) ? (y < 0 ? -1 : 1) * L(ldexp)(1, EMAX) : (R)y;
  int e;
  L(frexp)(r, &e);
  if (e > EMAX) {
    if (isinf(y) && !signbit(y) == !signbit(r)) return 0;
    e = EMAX;
  }
  return (double)(L(fabs)(v - r) * L(ldexp)(1, MANT - e));
}
static R flush(T x) { return fabs(x) < ldexp(1, 2 - EMAX) ? (signbit(x) ? -0.0 : 0.0) : x; }
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
/* Nanoseconds per element of kernel k of table entry t, in cache. */
static double speed(const struct entry *t, int k) {
  static T x[BLOCK], y[BLOCK], o[BLOCK];
  double best = 1e9;
  for (int i = 0; i < BLOCK; i++) {
    x[i] = (T)(0.001 + 0.9 * i / BLOCK);
    if (t->r1 == r_acosh) x[i] = 1 + 20 * x[i];
    y[i] = 3 - x[i];
  }
  for (int r = 0; r < 60; r++) {
    double s = now();
    t->k[k](x, y, o, BLOCK);
    s = now() - s;
    if (s < best) best = s;
  }
  return best * 1e9 / BLOCK;
}

int main(int argc, char **argv) {
  uint64_t stride = argc > 1 ? strtoull(argv[1], 0, 10) : 257, total = (1ull << 32) / stride;
  int builds = argc > 2 && !strcmp(argv[2], "fast") ? 1 : __builtin_cpu_supports("avx512f") ? 3 : 2;
  printf("%-10s %9s %24s %24s %9s %6s %6s %7s %7s %7s\n", "function", "max ulp", "at", "", "error",
      "wrong", "bits", "fma", "soft", "avx512");
  for (const struct entry *t = table; t < table + sizeof table / sizeof *table; t++) {
    int want = argc <= 3;
    for (int i = 3; i < argc; i++) want |= !strcmp(argv[i], t->name);
    if (!want) continue;
    U mask = strchr(t->name, '>') ? (U)~SIGN : (U)-1;
    double worst = 0, relative = 0;
    T wx = 0, wy = 0;
    long wrong = 0, differ = 0;
#pragma omp parallel for schedule(dynamic, 4)
    for (uint64_t base = 0; base < total; base += BLOCK) {
      static _Thread_local T x[BLOCK], y[BLOCK], o[BLOCK], p[BLOCK];
      long n = total - base < BLOCK ? (long)(total - base) : BLOCK, bad = 0, other = 0;
      double lw = 0, lr = 0;
      T lx = 0, ly = 0;
      for (long i = 0; i < n; i++) {
        if (t->r1) x[i] = bits(word(one(base + i, stride)) & mask);
        else pair(base + i, x + i, y + i);
      }
      t->k[0](x, y, o, n);
      for (int b = 0; b < 2 * builds; b++) { /* every build, subnormals kept and flushed */
        if (b == 0) continue;
        unsigned csr = _mm_getcsr();
        _mm_setcsr(b & 1 ? csr | 0x8040u : csr & ~0x8040u);
        t->k[b >> 1](x, y, p, n);
        _mm_setcsr(csr);
        for (long i = 0; i < n; i++) other += word(o[i]) != word(p[i]);
      }
      for (long i = 0; i < n; i++) {
        R r = t->r1 ? t->r1(flush(x[i])) : t->r2(flush(x[i]), flush(y[i]));
        double d = dist(o[i], r);
        if (isinf(d) || (isnan(o[i]) && word(o[i]) != NAN_BITS)) {
          if (!bad++ && !wrong)
            fprintf(stderr, "  %s(%.17g, %.17g) = %.17g, not %.17g\n", t->name, x[i], y[i], o[i], (double)r);
          continue;
        }
        if (d > lw) lw = d, lx = x[i], ly = y[i];
        if (isfinite(r) && isfinite(o[i])) {
          double e = (double)(L(fabs)(o[i] - r) / L(fmax)(1, L(fabs)(r)));
          if (e > lr) lr = e;
        }
      }
#pragma omp critical
      {
        wrong += bad;
        differ += other;
        if (lw > worst) worst = lw, wx = lx, wy = ly;
        if (lr > relative) relative = lr;
      }
    }
    printf("%-10s %9.4f %24.17g %24.17g %9.2g %6ld %6ld", t->name, worst, wx, wy, relative, wrong, differ);
    for (int b = 0; b < builds; b++) printf(" %7.2f", speed(t, b));
    printf("\n");
    fflush(stdout);
  }
}
#endif
