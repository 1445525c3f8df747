/* What the names in the rows' expressions mean for bool and integers up to 32 bits: wrapping, never undefined.
   Narrow types are computed in int and cut to their width when the result is stored. */
int tf_max(int a, int b) { return a > b ? a : b; }
int tf_min(int a, int b) { return a < b ? a : b; }
int tf_neg(int a) { return int(0u - uint(a)); }
int tf_abs(int a) { return a < 0 ? tf_neg(a) : a; }
int tf_wrap_add(int a, int b) { return int(uint(a) + uint(b)); }
int tf_wrap_sub(int a, int b) { return int(uint(a) - uint(b)); }
int tf_wrap_mul(int a, int b) { return int(uint(a) * uint(b)); }
/* Quotient toward zero by magnitudes: signed division of negative numbers is not defined in GLSL. */
int tf_truncdiv(int a, int b) {
  if (b == 0) return 0;
  uint x = uint(tf_abs(a)), y = uint(tf_abs(b)), q = x / y;
  return (a < 0) != (b < 0) ? int(0u - q) : int(q);
}
int tf_fmod(int a, int b) {
  if (b == 0) return 0;
  uint m = uint(tf_abs(a)) % uint(tf_abs(b));
  return a < 0 ? int(0u - m) : int(m);
}
int tf_mod(int a, int b) {
  int m = tf_fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
int tf_floordiv(int a, int b) {
  int q = tf_truncdiv(a, b);
  return b != 0 && tf_fmod(a, b) != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
int tf_pow(int a, int b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0;
  uint r = 1u, base = uint(a);
  for (uint n = uint(b); n != 0u; n >>= 1) {
    if ((n & 1u) != 0u) r *= base;
    base *= base;
  }
  return int(r);
}
int tf_shl(int a, int b) { return b < 0 || uint(b) >= tf_width() ? 0 : int(uint(a) << uint(b)); }
int tf_shr(int a, int b) { return b < 0 || uint(b) >= tf_width() ? (a < 0 ? -1 : 0) : a >> b; }
int tf_floor(int a) { return a; }
int tf_ceil(int a) { return a; }
int tf_trunc(int a) { return a; }
int tf_round(int a) { return a; }
bool tf_isnan(int a) { return false; }
bool tf_isinf(int a) { return false; }
bool tf_signbit(int a) { return a < 0; }
int tf_bitnot(int a) { return COMPUTE == TF_BOOL ? 1 - a : ~a; }
