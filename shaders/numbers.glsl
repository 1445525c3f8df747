/* Elements of every storage type as the number that a body computes with, and back. */
#define TF_BOOL 0u
#define TF_U8 1u
#define TF_I8 2u
#define TF_I16 3u
#define TF_I32 4u
#define TF_I64 5u
#define TF_F16 6u
#define TF_BF16 7u
#define TF_F32 8u
#define TF_F64 9u
#define TF_SCALAR 16u /* added to a dtype: the operand's address is the value itself, in the body's type */

uint tf_word(uvec2 at, uint dtype, int i) {
  if (dtype == TF_BOOL) return uint(B8(at).v[i]) != 0u ? 1u : 0u;
  if (dtype == TF_U8) return uint(B8(at).v[i]);
  if (dtype == TF_I8) return uint(int(uint(B8(at).v[i]) << 24) >> 24);
  if (dtype == TF_I16) return uint(int(uint(B16(at).v[i]) << 16) >> 16);
  if (dtype == TF_F16 || dtype == TF_BF16) return uint(B16(at).v[i]);
  return B32(at).v[i];
}
void tf_set_word(uvec2 at, uint dtype, int i, uint v) {
  if (dtype <= TF_I8) B8(at).v[i] = uint8_t(v);
  else if (dtype == TF_I16 || dtype == TF_F16 || dtype == TF_BF16) B16(at).v[i] = uint16_t(v);
  else B32(at).v[i] = v;
}
#ifdef TF_FLOAT
#define T float
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
float tf_load(uvec2 at, uint dtype, int i) {
  if (dtype >= TF_SCALAR) return FB(at.x);
  uint w = tf_word(at, dtype, i);
  if (dtype == TF_F32) return FB(w);
  if (dtype == TF_F16) return vm_h2f(w);
  if (dtype == TF_BF16) return FB(w << 16);
  return tf_from_int(int(w));
}
void tf_store(uvec2 at, uint dtype, int i, float v) {
  uint w = UB(v);
  if (dtype == TF_F16) w = vm_f2h(v);
  else if (dtype == TF_BF16) w = vm_f2b(v);
  else if (dtype == TF_BOOL) w = (w & 0x7fffffffu) != 0u ? 1u : 0u;
  else if (dtype == TF_U8) w = uint(tf_to_int(v, 0.0f, 255.0f, 0, 255));
  else if (dtype == TF_I8) w = uint(tf_to_int(v, -128.0f, 127.0f, -128, 127));
  else if (dtype == TF_I16) w = uint(tf_to_int(v, -32768.0f, 32767.0f, -32768, 32767));
  else if (dtype == TF_I32) w = uint(tf_to_int(v, -2147483648.0f, 2147483648.0f, -2147483648, 2147483647));
  tf_set_word(at, dtype, i, w);
}
#else
#define T int
int tf_load(uvec2 at, uint dtype, int i) { return dtype >= TF_SCALAR ? int(at.x) : int(tf_word(at, dtype, i)); }
void tf_store(uvec2 at, uint dtype, int i, int v) { tf_set_word(at, dtype, i, uint(v)); }
#endif
