/* Integer keys in the order of the values of dtype IN: NaN is the greatest, -0 lies below +0. KIND_MIN takes
 * complements, KIND_ANY and KIND_ALL what is and is not zero, so that the greatest key wins always.
 *
 * A key is a low and a high word; only the high one where WIDE (keys of 64 bits) is 0.
 */
#define KIND_MAX 0u
#define KIND_MIN 1u
#define KIND_ANY 2u
#define TF_LEAST uvec2(0u, 0x80000000u)
#define TF_FLIP (KIND == KIND_MIN ? 0xffffffffu : 0u)
#define TF_INFINITY (IN == TF_F16 ? 0x7c00u : IN == TF_BF16 ? 0x7f80u : IN == TF_F32 ? 0x7f800000u : 0x7ff00000u)
#define TF_QUIET (IN == TF_F16 ? 0x7e00u : IN == TF_BF16 ? 0x7fc0u : IN == TF_F32 ? 0x7fc00000u : 0x7ff80000u)
#define TF_MAGNITUDE (IN == TF_F16 || IN == TF_BF16 ? 0x7fffu : 0x7fffffffu)

bool tf_above(uvec2 a, uvec2 b) { return int(a.y) > int(b.y) || (WIDE != 0u && a.y == b.y && a.x > b.x); }
/* The key of a value whose bits of 32 or fewer are w.y, or whose low and high word are w. */
uvec2 tf_key_of(uvec2 w) {
  if (IN == TF_F16 || IN == TF_BF16) w.y = uint(int(w.y << 16) >> 16);
  uint magnitude = IN >= TF_F16 ? w.y & TF_MAGNITUDE : w.y;
  if (KIND >= KIND_ANY) return uvec2(0u, ((magnitude | w.x) != 0u) == (KIND == KIND_ANY) ? 1u : 0u);
  if (IN < TF_F16) return uvec2(WIDE != 0u ? w.x ^ TF_FLIP : 0u, w.y ^ TF_FLIP);
  uint sign = uint(int(w.y) >> 31);
  if (magnitude > TF_INFINITY || (magnitude == TF_INFINITY && w.x != 0u)) return uvec2(0u, TF_QUIET);
  return uvec2(WIDE != 0u ? w.x ^ sign ^ TF_FLIP : 0u, w.y ^ (sign & TF_MAGNITUDE) ^ TF_FLIP);
}
/* And back. */
uvec2 tf_value_of(uvec2 k) {
  if (IN >= TF_F16 && (int(k.y) > int(TF_INFINITY) || (k.y == TF_INFINITY && k.x != 0u))) return k;
  k = uvec2(k.x ^ TF_FLIP, k.y ^ TF_FLIP);
  uint sign = IN >= TF_F16 ? uint(int(k.y) >> 31) : 0u;
  return uvec2(k.x ^ sign, k.y ^ (sign & TF_MAGNITUDE));
}
