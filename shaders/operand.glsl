/* Operand @K, `@NAME`: elements from its first one on, negative numbers allowed. The only text besides the
   prelude that knows how an API reaches memory. */
#ifdef TF_VULKAN
uvec2 at_@NAME() { return tf_p.at[@K]; }
#define TF_BEHIND_@NAME ((BEHIND >> @K & 1u) != 0u) /* an index may be negative */
uint word8_@NAME(int i) {
  if (TF_BEHIND_@NAME) return uint(B8(tf_far(tf_p.at[@K], i, 0)).v[0]);
  return uint(B8(tf_p.at[@K]).v[i]);
}
uint word16_@NAME(int i) {
  if (TF_BEHIND_@NAME) return uint(B16(tf_far(tf_p.at[@K], i, 1)).v[0]);
  return uint(B16(tf_p.at[@K]).v[i]);
}
uint word32_@NAME(int i) {
  if (TF_BEHIND_@NAME) return B32(tf_far(tf_p.at[@K], i, 2)).v[0];
  return B32(tf_p.at[@K]).v[i];
}
uvec2 word64_@NAME(int i) {
  if (TF_BEHIND_@NAME) return B64(tf_far(tf_p.at[@K], i, 3)).v[0];
  return B64(tf_p.at[@K]).v[i];
}
#ifdef VM_SOFTFMA /* processors take two words in one step only as one number */
uvec2 pair_@NAME(int i) {
  if (TF_BEHIND_@NAME) return unpackDouble2x32(BPair(tf_far(tf_p.at[@K], i, 3)).v[0]);
  return unpackDouble2x32(BPair(tf_p.at[@K]).v[i]);
}
#else
#define pair_@NAME word64_@NAME
#endif
uvec4 quad_@NAME(int i) {
  if (TF_BEHIND_@NAME) return B128(tf_far(tf_p.at[@K], i, 4)).v[0];
  return B128(tf_p.at[@K]).v[i];
}
void set_word8_@NAME(int i, uint v) {
  if (TF_BEHIND_@NAME) B8(tf_far(tf_p.at[@K], i, 0)).v[0] = uint8_t(v);
  else B8(tf_p.at[@K]).v[i] = uint8_t(v);
}
void set_word16_@NAME(int i, uint v) {
  if (TF_BEHIND_@NAME) B16(tf_far(tf_p.at[@K], i, 1)).v[0] = uint16_t(v);
  else B16(tf_p.at[@K]).v[i] = uint16_t(v);
}
void set_word32_@NAME(int i, uint v) {
  if (TF_BEHIND_@NAME) B32(tf_far(tf_p.at[@K], i, 2)).v[0] = v;
  else B32(tf_p.at[@K]).v[i] = v;
}
void set_word64_@NAME(int i, uvec2 v) {
  if (TF_BEHIND_@NAME) B64(tf_far(tf_p.at[@K], i, 3)).v[0] = v;
  else B64(tf_p.at[@K]).v[i] = v;
}
void set_quad_@NAME(int i, uvec4 v) {
  if (TF_BEHIND_@NAME) B128(tf_far(tf_p.at[@K], i, 4)).v[0] = v;
  else B128(tf_p.at[@K]).v[i] = v;
}
uint swap_@NAME(int i, uint old, uint v) { return atomicCompSwap(B32(tf_p.at[@K]).v[i], old, v); }
#else
/* In OpenGL the address is the number of bytes into the bound range, where it is not a value itself. */
layout(std430, binding = @K) buffer TF_Buffer@K { uint v[]; } tf_b@K;
layout(std430, binding = @K) buffer TF_Quads@K { uvec4 v[]; } tf_q@K; /* the same memory: one access for four words */
uvec2 at_@NAME() { return tf_gl_at[@K]; }
uint tf_byte_@NAME(int i) { return tf_gl_at[@K].x + uint(i); }
uint word8_@NAME(int i) { uint b = tf_byte_@NAME(i); return (tf_b@K.v[b >> 2] >> ((b & 3u) * 8u)) & 0xffu; }
uint word16_@NAME(int i) { uint b = tf_byte_@NAME(i * 2); return (tf_b@K.v[b >> 2] >> ((b & 2u) * 8u)) & 0xffffu; }
uint word32_@NAME(int i) { return tf_b@K.v[tf_byte_@NAME(i * 4) >> 2]; }
uvec2 word64_@NAME(int i) { uint w = tf_byte_@NAME(i * 8) >> 2; return uvec2(tf_b@K.v[w], tf_b@K.v[w + 1u]); }
#define pair_@NAME word64_@NAME
uvec4 quad_@NAME(int i) { return tf_q@K.v[tf_byte_@NAME(i * 16) >> 4]; }
/* Part of a word: two atomic operations on bits that no other invocation touches. */
void tf_part_@NAME(uint b, uint mask, uint v) {
  uint shift = (b & 3u) * 8u;
  atomicAnd(tf_b@K.v[b >> 2], ~(mask << shift));
  atomicOr(tf_b@K.v[b >> 2], (v & mask) << shift);
}
void set_word8_@NAME(int i, uint v) { tf_part_@NAME(tf_byte_@NAME(i), 0xffu, v); }
void set_word16_@NAME(int i, uint v) { tf_part_@NAME(tf_byte_@NAME(i * 2), 0xffffu, v); }
void set_word32_@NAME(int i, uint v) { tf_b@K.v[tf_byte_@NAME(i * 4) >> 2] = v; }
void set_word64_@NAME(int i, uvec2 v) {
  uint w = tf_byte_@NAME(i * 8) >> 2;
  tf_b@K.v[w] = v.x;
  tf_b@K.v[w + 1u] = v.y;
}
void set_quad_@NAME(int i, uvec4 v) { tf_q@K.v[tf_byte_@NAME(i * 16) >> 4] = v; }
uint swap_@NAME(int i, uint old, uint v) { return atomicCompSwap(tf_b@K.v[tf_byte_@NAME(i * 4) >> 2], old, v); }
#endif
/* The bits of an element of up to four bytes; integers with their sign, halves as they are. */
uint word_@NAME(uint dtype, int i) {
  uint w;
  if (dtype <= TF_I8) w = word8_@NAME(i);
  else if (dtype == TF_I16 || dtype == TF_F16 || dtype == TF_BF16) w = word16_@NAME(i);
  else w = word32_@NAME(i);
  if (dtype == TF_BOOL) w = w != 0u ? 1u : 0u;
  else if (dtype == TF_I8) w = uint(int(w << 24) >> 24);
  else if (dtype == TF_I16) w = uint(int(w << 16) >> 16);
  return w;
}
void set_word_@NAME(uint dtype, int i, uint v) {
  if (dtype <= TF_I8) set_word8_@NAME(i, v);
  else if (dtype == TF_I16 || dtype == TF_F16 || dtype == TF_BF16) set_word16_@NAME(i, v);
  else set_word32_@NAME(i, v);
}
