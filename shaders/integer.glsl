/* What the names in the rows' expressions mean for bool and integers: wrapping, never undefined. T and its
   unsigned U have 32 bits, or 64 where the device has them; narrow types are computed in int and cut to their
   width when the result is stored. */
#ifdef TF_LONG
#define U uint64_t
#define TF_WIDTH 64
#else
#define U uint
#define TF_WIDTH (COMPUTE == TF_I16 ? 16 : COMPUTE == TF_I32 ? 32 : 8)
#endif
T tf_add(T a, T b) { return T(U(a) + U(b)); }
T tf_sub(T a, T b) { return T(U(a) - U(b)); }
T tf_mul(T a, T b) { return T(U(a) * U(b)); }
bool tf_less(T a, T b) { return a < b; }
bool tf_least(T a, T b) { return a <= b; }
bool tf_equal(T a, T b) { return a == b; }
T tf_max(T a, T b) { return a > b ? a : b; }
T tf_min(T a, T b) { return a < b ? a : b; }
T tf_neg(T a) { return T(U(0) - U(a)); }
T tf_abs(T a) { return a < 0 ? tf_neg(a) : a; }
T tf_wrap_add(T a, T b) { return T(U(a) + U(b)); }
T tf_wrap_sub(T a, T b) { return T(U(a) - U(b)); }
T tf_wrap_mul(T a, T b) { return T(U(a) * U(b)); }
/* Quotient toward zero by magnitudes: signed division of negative numbers is not defined in GLSL. */
T tf_truncdiv(T a, T b) {
  if (b == 0) return 0;
  U x = U(tf_abs(a)), y = U(tf_abs(b)), q = x / y;
  return (a < 0) != (b < 0) ? T(U(0) - q) : T(q);
}
T tf_fmod(T a, T b) {
  if (b == 0) return 0;
  U m = U(tf_abs(a)) % U(tf_abs(b));
  return a < 0 ? T(U(0) - m) : T(m);
}
T tf_mod(T a, T b) {
  T m = tf_fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
T tf_floordiv(T a, T b) {
  T q = tf_truncdiv(a, b);
  return b != 0 && tf_fmod(a, b) != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
T tf_pow(T a, T b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;
  U r = U(1), base = U(a);
  for (U n = U(b); n != U(0); n >>= 1) {
    if ((n & U(1)) != U(0)) r *= base;
    base *= base;
  }
  return T(r);
}
T tf_shl(T a, T b) { return b < 0 || U(b) >= U(TF_WIDTH) ? 0 : T(U(a) << uint(b)); }
T tf_shr(T a, T b) { return b < 0 || U(b) >= U(TF_WIDTH) ? (a < 0 ? -1 : 0) : a >> uint(b); }
T tf_floor(T a) { return a; }
T tf_ceil(T a) { return a; }
T tf_trunc(T a) { return a; }
T tf_round(T a) { return a; }
bool tf_isnan(T a) { return false; }
bool tf_isinf(T a) { return false; }
bool tf_signbit(T a) { return a < 0; }
T tf_bitnot(T a) { return COMPUTE == TF_BOOL ? 1 - a : ~a; }
