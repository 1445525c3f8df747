/* What a driver makes of things that are written plainly: `tinyfin shaders validate` tells it, no operation uses
 * them. Nothing here may be `precise` that is not so already: what drivers do without it is the question.
 *
 * operands: out a b c
 * words: uint count
 * constants: WHICH EXTRA
 * group: 64
 * numbers: bits
 */
shared uint tf_lane[64u + EXTRA]; /* EXTRA: more than the device has, to see whether that is noticed */

float tf_inner(float a, float b, float c) { return a * b + c; }

void main() {
  uint i = tf_thread(), me = gl_LocalInvocationIndex;
  int k = int(i);
  bool inside = i < p_count;
  uint ua = inside ? word32_a(k) : 0u, ub = inside ? word32_b(k) : 0u, uc = inside ? word32_c(k) : 0u, u = 0u;
  float a = FB(ua), b = FB(ub), c = FB(uc);
  tf_lane[me] = ua;
  barrier();
  if (WHICH == 0u) {
    precise float r = fma(a, b, c);
    u = UB(r);
  } else if (WHICH == 1u) {
    float r = a * b + c;
    u = UB(r);
  } else if (WHICH == 2u) {
    precise float r = tf_inner(a, b, c);
    u = UB(r);
  } else if (WHICH == 3u) {
    precise float r = a * b;
    u = UB(r);
  } else if (WHICH == 4u) {
    precise float r = a + b;
    u = UB(r);
  } else if (WHICH == 5u) {
    u = a < b ? 1u : 0u;
  } else if (WHICH == 6u) {
    float r = a > b ? a : b;
    u = UB(r);
  } else if (WHICH == 7u) {
    precise float r = a + 0.0;
    u = UB(r);
  } else if (WHICH == 8u) {
    precise float r = a / b;
    u = UB(r);
  } else if (WHICH == 9u) {
    precise float r = sqrt(a);
    u = UB(r);
  } else if (WHICH == 10u) {
    u = uint(int(ua) % int(ub));
  } else if (WHICH == 11u) {
    u = uint(int(a));
  } else if (WHICH == 12u) {
    u = a != a ? 1u : 0u;
  } else if (WHICH == 13u) {
    u = tf_lane[63u - me];
  }
  if (inside) set_word32_out(k, u);
}
