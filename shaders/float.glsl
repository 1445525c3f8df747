/* What the names in the rows' expressions mean for float; the texts are those of the CPU's loops.

   FLUSH: 0 as the device does; 1 the device flushes subnormal numbers by itself, and comparisons are told to;
   2 it keeps them, and each operation flushes as x86 processors do. */
#define TF_OWN TF_F32 /* the dtype that holds a T; its bits, and back */
#define TF_UINT uint
#define T2 vec2
#define T4 vec4
#define TF_UINT4 uvec4
#define TF_EACH_WORDS 1u
#define TF_WIDE_BITS(x) tf_f32_to_f64(UB(x))
#define TF_EXP vm_exp
#define TF_LOG vm_log
#define TF_BELOW FB(0xff800000u) /* -infinity */
#define BITS(x) UB(x)
#define VALUE(x) FB(x)
#define TF_COUNT(i) tf_from_int(int(i))
#define TF_NOTHING FB(0x80000000u) /* -0.0, to which adding gives the number itself */
float tf_flushed(float x) { return FLUSH != 0u ? vm_fz(x) : x; }
float tf_add(float a, float b) {
  if (FLUSH > 1u) return vm_add_fz(a, b);
  precise float r = a + b;
  return r;
}
float tf_mul(float a, float b) {
#ifdef VM_SOFTFMA
  if (FLUSH > 1u) return vm_mul_fz(a, b);
#else
  if (FLUSH > 1u) return vm_mul_up(a, b);
#endif
  precise float r = a * b;
  return r;
}
/* a * b + c, rounded once. */
float tf_fma(float a, float b, float c) {
#ifdef VM_SOFTFMA
  if (FLUSH > 1u) return vm_fma_fz(a, b, c);
#else
  if (FLUSH > 1u) return vm_fma_up(a, b, c);
#endif
  precise float r = vm_fma(a, b, c);
  return r;
}
/* One link of a long chain of products: rounded twice in normal mode where the device has no fused
   multiply-add, whose emulation takes ten times as long. */
#if defined(TF_OPENGL) && !defined(VM_SOFTFMA) /* some drivers call functions that are called often */
#define tf_link(a, b, c) (FLUSH > 1u ? vm_fma_up(a, b, c) : vm_fma(a, b, c))
#else
float tf_link(float a, float b, float c) {
#ifdef VM_SOFTFMA
  if (FLUSH == 0u) {
    precise float p = a * b, r = p + c;
    return r;
  }
#endif
  return tf_fma(a, b, c);
}
#endif
float tf_sub(float a, float b) {
  if (FLUSH > 1u) return vm_add_fz(a, FB(UB(b) ^ 0x80000000u));
  precise float r = a - b;
  return r;
}
bool tf_less(float a, float b) { return tf_flushed(a) < tf_flushed(b); }
bool tf_least(float a, float b) { return tf_flushed(a) <= tf_flushed(b); }
bool tf_equal(float a, float b) { return tf_flushed(a) == tf_flushed(b); }
float tf_trunc(float x) {
  uint u = UB(x), a = u & 0x7fffffffu;
  precise float c = FB(a < 0x4b000000u ? u : 0u);
  uint t = UB(float(int(c))) | (u & 0x80000000u);
  return FB(a < 0x4b000000u ? t : u);
}
float tf_floor(float x) {
  precise float t = tf_trunc(x), d = t - 1.0f;
  return tf_less(x, t) ? d : t;
}
float tf_round(float x) {
  uint u = UB(x), a = u & 0x7fffffffu;
  precise float up = FB(a) + 8388608.0f, r = up - 8388608.0f;
  return FB(a < 0x4b000000u ? UB(r) | (u & 0x80000000u) : u);
}
float tf_neg(float x) { return FB(UB(x) ^ 0x80000000u); }
float tf_ceil(float x) { return tf_neg(tf_floor(tf_neg(x))); }
float tf_abs(float x) { return FB(UB(x) & 0x7fffffffu); }
float tf_copysign(float x, float s) { return FB((UB(x) & 0x7fffffffu) | (UB(s) & 0x80000000u)); }
bool tf_isnan(float x) { return (UB(x) & 0x7fffffffu) > 0x7f800000u; }
bool tf_isinf(float x) { return (UB(x) & 0x7fffffffu) == 0x7f800000u; }
bool tf_signbit(float x) { return UB(x) >> 31 != 0u; }
int tf_key(float x) { int i = int(UB(x)); return i ^ ((i >> 31) & 0x7fffffff); }
#include "floating.glsl"
/* The exact remainder of whole multiples, bit by bit, as C's fmodf. */
float tf_fmod(float a_given, float b_given) {
  precise float a = tf_flushed(a_given), b = tf_flushed(b_given);
  uint x = UB(a) & 0x7fffffffu, y = UB(b) & 0x7fffffffu, sign = UB(a) & 0x80000000u;
  if (x > 0x7f800000u || y > 0x7f800000u || x == 0x7f800000u || y == 0u) return FB(0x7fc00000u);
  if (x < y) return a;
  int ex = int(x >> 23), ey = int(y >> 23);
  uint mx = x & 0x7fffffu, my = y & 0x7fffffu;
  if (ex == 0) { ex = 1; while ((mx & 0x800000u) == 0u && mx != 0u) { mx <<= 1; ex--; } } else mx |= 0x800000u;
  if (ey == 0) { ey = 1; while ((my & 0x800000u) == 0u) { my <<= 1; ey--; } } else my |= 0x800000u;
  for (; ex > ey; ex--) {
    if (mx >= my) mx -= my;
    mx <<= 1;
  }
  if (mx >= my) mx -= my;
  if (mx == 0u) return FB(sign);
  while ((mx & 0x800000u) == 0u) { mx <<= 1; ex--; }
  uint r = ex > 0 ? (mx & 0x7fffffu) | uint(ex) << 23 : mx >> uint(1 - ex);
  return tf_flushed(FB(r | sign));
}
float tf_mod(float a, float b) {
  precise float m = tf_fmod(a, b);
  if (!tf_equal(m, FB(0u)) && (UB(b) >> 31) != (UB(m) >> 31)) m = tf_add(m, b); /* a sum may flush m: so does this */
  return m;
}
float tf_floordiv(float a_given, float b_given) {
  precise float a = vm_fz(a_given), b = vm_fz(b_given); /* as the quotient has them in every mode */
  if ((UB(b) & 0x7fffffffu) == 0u) return vm_div(a, b);
  precise float m = tf_fmod(a, b), n = tf_sub(a, m), d = vm_div(n, b);
  if ((UB(m) & 0x7fffffffu) != 0u && (UB(b) >> 31) != (UB(m) >> 31)) d = d - 1.0f;
  if ((UB(d) & 0x7fffffffu) == 0u) {
    uint q = UB(vm_div(a, b)); /* its sign where it is not 0; a driver took a choice between zeros for one of them */
    return FB(q & min(q & 0x7fffffffu, 1u) << 31);
  }
  precise float r = tf_floor(d), rest = tf_sub(d, r), up = r + 1.0f;
  return rest > 0.5f ? up : r;
}
