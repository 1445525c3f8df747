/* What the names in the rows' expressions mean for float64, on devices that have it and 64-bit integers; the
   texts are those of the CPU's loops.

   FLUSH: 0 keeps subnormal numbers, else each operation flushes as x86 processors do, since devices that flush those
   of float32 keep these. 4 is added where the device splits fma, which is emulated then. */
#define TF_SPLITS (FLUSH >= 4u)
#define DB(x) uint64BitsToDouble(x)
#define DU(x) doubleBitsToUint64(x)
#define TF_D_SIGN 0x8000000000000000UL
#define TF_D_SIZE 0x7fffffffffffffffUL
#define TF_D_INFINITY 0x7ff0000000000000UL
#define TF_D_NAN 0x7ff8000000000000UL
#define TF_D_NORMAL 0x0010000000000000UL /* the smallest normal number */
#define TF_D_MANTISSA 0x000fffffffffffffUL

#define TF_OWN TF_F64
#define TF_UINT uint64_t
#define T2 dvec2
#define T4 dvec4
#define TF_UINT4 u64vec4
#define TF_EACH_WORDS 2u
#define TF_WIDE_BITS(x) unpackDouble2x32(x)
#define TF_EXP vd_exp
#define TF_LOG vd_log
#define TF_BELOW DB(TF_D_SIGN | TF_D_INFINITY)
#define BITS(x) DU(x)
#define VALUE(x) DB(x)
#define TF_COUNT(i) double(i)
#define TF_NOTHING DB(TF_D_SIGN)

double tf_flushed(double x) {
  uint64_t u = DU(x);
  return DB(TF_FLUSHES && (u & TF_D_SIZE) < TF_D_NORMAL ? u & TF_D_SIGN : u);
}
/* r, or a zero of its sign where `up`, 2^54 times the exact value, says that it is below the normal numbers. */
double tf_normal(double r, double up) {
  uint64_t u = DU(r);
  return DB((DU(up) & TF_D_SIZE) < 0x0370000000000000UL ? u & TF_D_SIGN : u);
}
double tf_add(double a, double b) {
  precise double r = tf_flushed(a) + tf_flushed(b);
  return tf_flushed(r);
}
double tf_mul(double a0, double b0) {
  precise double a = tf_flushed(a0), b = tf_flushed(b0), r = a * b;
  if (!TF_FLUSHES) return r;
  precise double x = a * 18014398509481984.0lf, up = x * b;
  return tf_normal(r, up);
}
/* Number in [1, 2) with the sign of a finite one that is not 0, and its exponent. */
double tf_scaled(double v, out int e) {
  uint64_t u = DU(v), a = u & TF_D_SIZE;
  e = int(a >> 52) - 1023;
  if (a < TF_D_NORMAL) {
    uvec2 w = unpackUint2x32(a);
    int top = w.y != 0u ? 32 + findMSB(w.y) : findMSB(w.x);
    a <<= uint(52 - top);
    e = top - 1074;
  }
  return DB((u & TF_D_SIGN) | (a & TF_D_MANTISSA) | 0x3ff0000000000000UL);
}
/* q 2^e of a normal q, rounded once more only with `rest`, whose sign says on which side of q the exact value lies. */
double tf_placed(double q, int e, double rest) {
  uint64_t u = DU(q), sign = u & TF_D_SIGN, m = u & TF_D_MANTISSA, left = DU(rest);
  int to = int((u & TF_D_SIZE) >> 52) + e;
  if (to >= 2047) return DB(sign | TF_D_INFINITY);
  if (to > 0) return DB(sign | uint64_t(to) << 52 | m);
  if (TF_FLUSHES) return DB(sign);
  m = (m | TF_D_NORMAL) << 1;
  if ((left & TF_D_SIZE) != 0UL) m = (left & TF_D_SIGN) == sign ? m + 1UL : m - 1UL;
  uint down = uint(min(2 - to, 60));
  uint64_t cut = m & ((1UL << down) - 1UL), half_ = 1UL << (down - 1u);
  m >>= down;
  return DB(sign | (m + (cut > half_ || (cut == half_ && (m & 1UL) != 0UL) ? 1UL : 0UL)));
}
/* a * b + c rounded once, and what it lacks, of numbers whose products neither overflow nor reach the smallest
   ones: the exact product, added in two steps of which the first is rounded to odd (Boldo and Melquiond). */
double tf_fused(double a, double b, double c, out double rest) {
  precise double x = a * 134217729.0lf, ah = x - (x - a), al = a - ah;
  precise double y = b * 134217729.0lf, bh = y - (y - b), bl = b - bh;
  precise double p = a * b, pl = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  precise double s = c + pl, t = s - c, sl = (c - (s - t)) + (pl - t);
  precise double v = p + s, w = v - p, vl = (p - (v - w)) + (s - w);
  precise double z = sl + vl, k = z - sl, lost = (sl - (z - k)) + (vl - k);
  uint64_t u = DU(z), l = DU(lost);
  if ((l & TF_D_SIZE) != 0UL && (u & 1UL) == 0UL) z = DB(((l ^ u) & TF_D_SIGN) == 0UL ? u + 1UL : u - 1UL);
  precise double r = v + z, d = (v - r) + z;
  rest = d;
  return r;
}
/* The same for every number. */
double tf_fused_all(double a, double b, double c) {
  uint64_t x = DU(a) & TF_D_SIZE, y = DU(b) & TF_D_SIZE, z = DU(c) & TF_D_SIZE;
  precise double w = c, r;
  if (x >= TF_D_INFINITY || y >= TF_D_INFINITY || x == 0UL || y == 0UL) {
    r = a * b + c; /* the product is exact, or no number */
    return r;
  }
  if (z >= TF_D_INFINITY) return c;
  int ea, eb, ec;
  precise double m = tf_scaled(a, ea), n = tf_scaled(b, eb), rest;
  int e = ea + eb;
  if (z != 0UL) { /* far apart, the smaller one says only on which side the exact value lies */
    w = tf_scaled(c, ec);
    w = DB(DU(w) + (uint64_t(int64_t(clamp(ec - e, -200, 200))) << 52));
    e = max(e, ec - 200);
  }
  r = tf_fused(m, n, w, rest);
  return (DU(r) & TF_D_SIZE) == 0UL ? r : tf_placed(r, e, rest);
}
/* a * b + c of ordinary numbers, rounded once. */
double vd_fma(double a, double b, double c) {
  precise double r, rest;
  if (TF_SPLITS) r = tf_fused(a, b, c, rest);
  else r = fma(a, b, c);
  return r;
}
/* a * b + c, rounded once. */
double tf_fma(double a0, double b0, double c0) {
  precise double a = tf_flushed(a0), b = tf_flushed(b0), c = tf_flushed(c0), r;
  if (TF_SPLITS) return tf_fused_all(a, b, c);
  r = fma(a, b, c);
  if (!TF_FLUSHES) return r;
  precise double x = a * 18014398509481984.0lf, z = c * 18014398509481984.0lf, up = fma(x, b, z);
  return tf_normal(r, up);
}
/* One link of a long chain of products: rounded twice in normal mode where the device splits fma, as that of float32. */
double tf_link(double a, double b, double c) {
  if (TF_SPLITS && !TF_FLUSHES) {
    precise double p = a * b, r = p + c;
    return r;
  }
  return tf_fma(a, b, c);
}
double tf_neg(double x) { return DB(DU(x) ^ TF_D_SIGN); }
double tf_abs(double x) { return DB(DU(x) & TF_D_SIZE); }
double tf_sub(double a, double b) { return tf_add(a, tf_neg(b)); }
double tf_copysign(double x, double s) { return DB((DU(x) & TF_D_SIZE) | (DU(s) & TF_D_SIGN)); }
bool tf_isnan(double x) { return (DU(x) & TF_D_SIZE) > TF_D_INFINITY; }
bool tf_isinf(double x) { return (DU(x) & TF_D_SIZE) == TF_D_INFINITY; }
bool tf_signbit(double x) { return (DU(x) & TF_D_SIGN) != 0UL; }
bool tf_less(double a, double b) { return tf_flushed(a) < tf_flushed(b); }
bool tf_least(double a, double b) { return tf_flushed(a) <= tf_flushed(b); }
bool tf_equal(double a, double b) { return tf_flushed(a) == tf_flushed(b); }
/* n / d of ordinary numbers, rounded once: the device's own, corrected by what it leaves. */
double vd_quot(double n, double d) {
  precise double i = 1.0lf / d, e = vd_fma(-d, i, 1.0lf);
  i = vd_fma(i, e, i);
  precise double q = n * i, rest = vd_fma(-d, q, n);
  q = vd_fma(rest, i, q);
  rest = vd_fma(-d, q, n);
  return vd_fma(rest, i, q);
}
/* n / d of all numbers. */
double vm_div(double n0, double d0) {
  precise double n = tf_flushed(n0), d = tf_flushed(d0);
  uint64_t a = DU(n) & TF_D_SIZE, b = DU(d) & TF_D_SIZE, sign = (DU(n) ^ DU(d)) & TF_D_SIGN;
  if (a > TF_D_INFINITY || b > TF_D_INFINITY) return DB(TF_D_NAN);
  if (a == 0UL || b == TF_D_INFINITY) return DB(b == 0UL || a == TF_D_INFINITY ? TF_D_NAN : sign);
  if (b == 0UL || a == TF_D_INFINITY) return DB(sign | TF_D_INFINITY);
  int ea, eb;
  precise double x = tf_scaled(DB(a), ea), y = tf_scaled(DB(b), eb);
  precise double q = vd_quot(x, y), rest = vd_fma(-y, q, x);
  return DB(DU(tf_placed(q, ea - eb, rest)) | sign);
}
double vm_sqrt(double v) {
  precise double x = tf_flushed(v);
  uint64_t u = DU(x);
  if ((u & TF_D_SIZE) == 0UL || u == TF_D_INFINITY) return x;
  if (u > TF_D_INFINITY) return DB(TF_D_NAN);
  int e;
  precise double m = tf_scaled(x, e);
  if ((e & 1) != 0) m = m * 2.0lf;
  precise double r = sqrt(m), h = 0.5lf / r, rest = vd_fma(-r, r, m);
  r = vd_fma(rest, h, r);
  rest = vd_fma(-r, r, m);
  r = vd_fma(rest, h, r);
  return DB(DU(r) + (uint64_t(int64_t(e >> 1)) << 52));
}
double tf_round(double x) {
  uint64_t u = DU(x), a = u & TF_D_SIZE;
  precise double up = DB(a) + 4503599627370496.0lf, r = up - 4503599627370496.0lf;
  return DB(a < 0x4330000000000000UL ? DU(r) | (u & TF_D_SIGN) : u);
}
double tf_trunc(double x) {
  precise double a = tf_abs(x), r = tf_round(a), d = r - 1.0lf;
  return tf_copysign(DB(r > a ? DU(d) : DU(r)), x);
}
double tf_floor(double x) {
  precise double r = tf_round(x), d = r - 1.0lf;
  return DB(tf_less(x, r) ? DU(d) : DU(r));
}
double tf_ceil(double x) { return tf_neg(tf_floor(tf_neg(x))); }
int64_t tf_key(double x) {
  int64_t i = int64_t(DU(x));
  return i ^ (i < 0L ? 0x7fffffffffffffffL : 0L);
}
#include "floating.glsl"
/* The exact remainder of whole multiples, bit by bit, as C's fmod. */
double tf_fmod(double a_given, double b_given) {
  precise double a = tf_flushed(a_given), b = tf_flushed(b_given);
  uint64_t x = DU(a) & TF_D_SIZE, y = DU(b) & TF_D_SIZE, sign = DU(a) & TF_D_SIGN;
  if (x >= TF_D_INFINITY || y > TF_D_INFINITY || y == 0UL) return DB(TF_D_NAN);
  if (x < y) return a;
  int ex, ey;
  uint64_t mx = (DU(tf_scaled(DB(x), ex)) & TF_D_MANTISSA) | TF_D_NORMAL;
  uint64_t my = (DU(tf_scaled(DB(y), ey)) & TF_D_MANTISSA) | TF_D_NORMAL;
  for (; ex > ey; ex--) {
    if (mx >= my) mx -= my;
    mx <<= 1;
  }
  if (mx >= my) mx -= my;
  if (mx == 0UL) return DB(sign);
  while ((mx & TF_D_NORMAL) == 0UL) {
    mx <<= 1;
    ex--;
  }
  ex += 1023;
  uint64_t r = ex > 0 ? (mx & TF_D_MANTISSA) | uint64_t(ex) << 52 : mx >> uint(1 - ex);
  return tf_flushed(DB(r | sign));
}
double tf_mod(double a, double b) {
  precise double m = tf_fmod(a, b);
  if (!tf_equal(m, 0.0lf) && tf_signbit(b) != tf_signbit(m)) m = tf_add(m, b);
  return m;
}
double tf_floordiv(double a, double b) {
  if (tf_equal(b, 0.0lf)) return vm_div(a, b);
  precise double m = tf_fmod(a, b), d = vm_div(tf_sub(a, m), b);
  if (!tf_equal(m, 0.0lf) && tf_signbit(b) != tf_signbit(m)) d = tf_sub(d, 1.0lf);
  if (tf_equal(d, 0.0lf)) return tf_less(vm_div(a, b), 0.0lf) ? DB(TF_D_SIGN) : DB(0UL);
  precise double r = tf_floor(d);
  return tf_less(0.5lf, tf_sub(d, r)) ? tf_add(r, 1.0lf) : r;
}
