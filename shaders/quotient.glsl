/* Quotients and roots of which the CPU computes the native ones: rounded once, down to the last subnormal
   number where FLUSH leaves them alone; vm_div and vm_sqrt give zeros there. */
#ifdef TF_DOUBLE
#define tf_quotient vm_div
#define tf_root vm_sqrt
#else
/* Mantissa in [1, 2) of a finite number that is not 0, and its exponent with float's bias. */
uint tf_mantissa(uint a, out int e) {
  e = int(a >> 23);
  if (e != 0) return (a & 0x7fffffu) | 0x3f800000u;
  int up = 23 - findMSB(a);
  e = 1 - up;
  return ((a << uint(up)) & 0x7fffffu) | 0x3f800000u;
}
float tf_quotient(float n, float d) {
  precise float r = vm_div(n, d);
  if (FLUSH != 0u) return r;
  uint a = UB(n) & 0x7fffffffu, b = UB(d) & 0x7fffffffu, u = UB(r) & 0x7fffffffu;
  bool whole = u - 0x00800000u < 0x7f000000u && a >= 0x00800000u && b >= 0x00800000u; /* normal numbers all */
  if (whole || a == 0u || b == 0u || a >= 0x7f800000u || b >= 0x7f800000u) return r;
  int ea, eb;
  precise float x = FB(tf_mantissa(a, ea)), y = FB(tf_mantissa(b, eb)), q = vm_quot(x, y), rest = vm_fma(-q, y, x);
  int e = int(UB(q) >> 23) + ea - eb;
  uint sign = (UB(n) ^ UB(d)) & 0x80000000u, m = UB(q) & 0x7fffffu;
  if (e >= 255) return FB(sign | 0x7f800000u);
  if (e > 0) return FB(sign | m | uint(e) << 23);
  uint down = uint(min(2 - e, 27)); /* one bit more says on which side of q the quotient lies */
  m = 2u * (m | 0x800000u);
  if (UB(rest) << 1 != 0u) m = UB(rest) >> 31 != 0u ? m - 1u : m + 1u;
  uint cut = m & ((1u << down) - 1u), half_ = 1u << (down - 1u);
  m >>= down;
  return FB(sign | (m + (cut > half_ || (cut == half_ && (m & 1u) != 0u) ? 1u : 0u)));
}
float tf_root(float a) {
  uint u = UB(a);
  if (FLUSH != 0u || (u & 0x7f800000u) != 0u || (u & 0x7fffffffu) == 0u) return vm_sqrt(a);
  if (u >> 31 != 0u) return FB(0x7fc00000u);
  precise float r = vm_sqrt(float(int(u)) * 2.0f); /* a 2^150 */
  return FB(UB(r) - (75u << 23));
}
#endif
