/* Numbers of every storage type as the type that a body computes with, and back, by integers. */
/* A 64-bit integer rounded once to float: its magnitude's leading 24 bits, nearest even. */
uint tf_long_to_f32(uvec2 w) {
  uint sign = w.y & 0x80000000u;
  if (sign != 0u) w = uvec2(0u - w.x, ~w.y + (w.x == 0u ? 1u : 0u));
  if (w.y == 0u && w.x == 0u) return 0u;
  int high = w.y != 0u ? 32 + findMSB(w.y) : findMSB(w.x);
  uint m;
  if (high <= 23) {
    m = w.x << uint(23 - high);
  } else {
    uint cut = uint(high - 23), rest, half_;
    bool below;
    if (cut < 32u) {
      m = (w.x >> cut) | (w.y << (32u - cut));
      rest = w.x & ((1u << cut) - 1u);
      half_ = 1u << (cut - 1u);
      below = false;
    } else {
      m = cut == 32u ? w.y : w.y >> (cut - 32u);
      rest = cut == 32u ? 0u : w.y & ((1u << (cut - 32u)) - 1u);
      half_ = cut == 32u ? 0u : 1u << (cut - 33u);
      if (cut == 32u) { rest = w.x; half_ = 0x80000000u; below = false; } else below = w.x != 0u;
    }
    bool up = rest > half_ || (rest == half_ && (below || (m & 1u) != 0u));
    m += up ? 1u : 0u;
  }
  return sign | (m + (uint(high + 126) << 23)); /* a carry goes into the exponent */
}
/* Toward zero, the nearest number in range where it is out of it, NaN is 0. */
uvec2 tf_f32_to_long(uint u) {
  uint a = u & 0x7fffffffu;
  int e = int(a >> 23) - 150; /* value = m * 2^e */
  uint m = (a & 0x7fffffu) | 0x800000u;
  if (a > 0x7f800000u || e < -23) return uvec2(0u);
  bool negative = u >> 31 != 0u;
  if (e >= 40) return negative ? uvec2(0u, 0x80000000u) : uvec2(0xffffffffu, 0x7fffffffu);
  uvec2 r = e <= 0 ? uvec2(m >> uint(-e), 0u)
                   : uvec2(e < 32 ? m << uint(e) : 0u, e < 32 ? m >> uint(32 - e) : m << uint(e - 32));
  return negative ? uvec2(0u - r.x, ~r.y + (r.x == 0u ? 1u : 0u)) : r;
}
/* float64 to float32, nearest even; what is below float32's normal numbers keeps its bits as far as they go,
   or is flushed as x86 processors do after rounding. */
uint tf_f64_to_f32(uvec2 w) {
  uint sign = w.y & 0x80000000u, high = w.y & 0x7fffffffu;
  if (TF_FLUSHES && (high < 0x380fffffu || (high == 0x380fffffu && w.x < 0xf0000000u))) return sign;
  int e = int(high >> 20) - 896; /* exponent of the float */
  if (high > 0x7ff00000u || (high == 0x7ff00000u && w.x != 0u)) return sign | 0x7fc00000u | ((high & 0xfffffu) << 3) | (w.x >> 29);
  if (e >= 255) return sign | 0x7f800000u;
  uint m = ((high & 0xfffffu) << 3) | (w.x >> 29), rest = w.x << 3; /* 23 bits, and what is cut */
  if (e > 0) {
    m |= uint(e) << 23;
  } else {
    int down = 1 - e;
    if (down > 24) return sign;
    m |= 0x800000u;
    uint low = m & ((1u << uint(down)) - 1u);
    bool sticky = rest != 0u;
    m >>= uint(down);
    rest = (low << uint(32 - down)) | (sticky ? 1u : 0u);
  }
  return sign | (m + (rest > 0x80000000u || (rest == 0x80000000u && (m & 1u) != 0u) ? 1u : 0u));
}
/* float32 to float64, exact. */
uvec2 tf_f32_to_f64(uint u) {
  uint sign = u & 0x80000000u, a = u & 0x7fffffffu, e = a >> 23, m = a & 0x7fffffu;
  if (e == 255u) return uvec2(m << 29, sign | 0x7ff00000u | (m >> 3) | (m != 0u ? 0x80000u : 0u));
  if (e == 0u) {
    if (m == 0u) return uvec2(0u, sign);
    int top = findMSB(m);
    m = (m << uint(23 - top)) & 0x7fffffu;
    return uvec2(m << 29, sign | (uint(874 + top) << 20) | (m >> 3));
  }
  return uvec2(m << 29, sign | ((e + 896u) << 20) | (m >> 3));
}
#if defined(TF_FLOAT) || defined(TF_DOUBLE)
/* An integer rounded once: both halves are exact, only their sum rounds. */
float tf_from_int(int i) {
  precise float high = float(i >> 16) * 65536.0f, low = float(i & 0xffff), r = high + low;
  return r;
}
/* Toward zero; NaN is 0, what is out of range the nearest number in it. */
int tf_to_int(float v, float low, float high, int least, int most) {
  if ((UB(v) & 0x7fffffffu) > 0x7f800000u) return 0;
  return v <= low ? least : v >= high ? most : int(v);
}
/* The value of an element's bits, and the bits of a value. */
/* One way out of each function: drivers of OpenGL make a loop of a function with several. */
float tf_number(uint dtype, uint w) {
  if (dtype == TF_BF16) w <<= 16;
  else if (dtype == TF_F16) w = UB(vm_h2f(w));
  else if (dtype != TF_F32) w = UB(tf_from_int(int(w)));
  return FB(w);
}
uint tf_bits(uint dtype, float v) {
  uint w = UB(v);
  if (dtype == TF_F16) w = vm_f2h(v);
  else if (dtype == TF_BF16) w = vm_f2b(v);
  else if (dtype == TF_BOOL) w = (w & 0x7fffffffu) != 0u ? 1u : 0u;
  else if (dtype == TF_U8) w = uint(tf_to_int(v, 0.0f, 255.0f, 0, 255));
  else if (dtype == TF_I8) w = uint(tf_to_int(v, -128.0f, 127.0f, -128, 127));
  else if (dtype == TF_I16) w = uint(tf_to_int(v, -32768.0f, 32767.0f, -32768, 32767));
  else if (dtype == TF_I32) w = uint(tf_to_int(v, -2147483648.0f, 2147483648.0f, -2147483648, 2147483647));
  return w;
}
#endif
#ifdef TF_DOUBLE
/* A 64-bit integer, rounded once; float32, exact but for what deterministic mode flushes. */
double tf_of_long(uvec2 w) {
  precise double high = double(int(w.y)) * 4294967296.0lf, r = high + double(w.x);
  return r;
}
double tf_of_float(float v) { return packDouble2x32(tf_f32_to_f64(UB(TF_FLUSHES ? vm_fz(v) : v))); }
/* Toward zero; NaN is 0, what is out of range the nearest number in it. */
bool tf_no_number(double v) {
  uvec2 w = unpackDouble2x32(v);
  return (w.y & 0x7fffffffu) > 0x7ff00000u || ((w.y & 0x7fffffffu) == 0x7ff00000u && w.x != 0u);
}
uvec2 tf_to_long(double v) {
  if (tf_no_number(v)) return uvec2(0u);
  if (v <= -9223372036854775808.0lf) return uvec2(0u, 0x80000000u);
  if (v >= 9223372036854775808.0lf) return uvec2(0xffffffffu, 0x7fffffffu);
  return uvec2(unpackInt2x32(int64_t(v)));
}
uint tf_clamped(double v, int least, int most) {
  if (tf_no_number(v)) return 0u;
  return uint(v <= double(least) ? least : v >= double(most) ? most : int(v));
}
/* The bits of a type of up to 32 bits. */
uint tf_short(uint dtype, double v) {
  uvec2 w = unpackDouble2x32(v);
  uint size = w.y & 0x7fffffffu;
  if (dtype == TF_BOOL) return size >= 0x100000u || (!TF_FLUSHES && (size | w.x) != 0u) ? 1u : 0u;
  if (dtype == TF_U8) return tf_clamped(v, 0, 255);
  if (dtype == TF_I8) return tf_clamped(v, -128, 127);
  if (dtype == TF_I16) return tf_clamped(v, -32768, 32767);
  if (dtype == TF_I32) return tf_clamped(v, -2147483647 - 1, 2147483647);
  return tf_bits(dtype, FB(tf_f64_to_f32(w)));
}
#endif
