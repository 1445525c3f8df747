/* Random fills: an invocation takes the four words of one counter, which are four elements, or two of two words.
 *
 * WHAT: 0 uniform (from a, span b, shift f), 1 normal (mean a, deviation b), 2 exponential (rate a), 3 whole numbers
 * (from a, range b), 4 events (1 where the word is below a), 5 the words. PER: elements of one counter. Elements are
 * numbered in row-major order, `shape` and `stride` walk where LAYOUT is 0; 1 dense; 2 dense with one access for all.
 *
 * operands: out
 * words: uint count; uint seed[2]; uint draw[2]; uint first[2]; uint a[2]; uint b[2]; uint shape[8]; int stride[8]
 * constants: OUT WHAT PER LAYOUT
 * group: 256
 * numbers: float
 */
#include "philox.glsl"
#include "quotient.glsl"
#define PAIR(name) uvec2(name(0), name(1))
#define A FB(p_a(0))
#define B FB(p_b(0))
#define UNIT 5.9604644775390625e-8f /* 2^-24 */

/* As many bits as the dtype holds, so that a half never rounds up to the upper end. */
uint uniform_bits(uint w) {
  uint bits = OUT == TF_F16 ? 11u : OUT == TF_BF16 ? 8u : 24u;
  precise float u = tf_mul(float(int(w >> (32u - bits))), FB((127u - bits) << 23));
  return tf_bits(OUT, tf_add(tf_mul(u, B), A));
}
float radius(uint w) {
  precise float u = float(int((w >> 8) + 1u)) * UNIT, l = -2.0f * vm_log(u);
  return vm_root(l);
}
uint normal_bits(float r, uint w) {
  precise float z = r * vm_cos2pi(vm_uniform(w));
  return tf_bits(OUT, tf_add(tf_mul(z, B), A));
}
uint exponential_bits(uint w) {
  precise float u = float(int(w >> 9 << 1 | 1u)) * UNIT, l = vm_log(u);
  return tf_bits(OUT, tf_quotient(FB(UB(l) ^ 0x80000000u), A));
}
/* from + the upper half of the product of 64 random bits (high, low) and the range */
uvec2 whole(uint high, uint low) {
  uint ah, al, bh, bl, th, tl;
  umulExtended(high, p_b(0), ah, al);
  umulExtended(low, p_b(1), bh, bl);
  umulExtended(high, p_b(1), th, tl);
  uint s = al + bl, t = s + tf_mulhi(low, p_b(0)), carry = (s < al ? 1u : 0u) + (t < s ? 1u : 0u);
  uvec2 r = tf_add64(uvec2(tl, th), uvec2(ah, 0u));
  r = tf_add64(r, uvec2(bh, 0u));
  return tf_add64(tf_add64(r, uvec2(carry, 0u)), PAIR(p_a));
}
/* A 64-bit integer as an element. */
uvec2 element(uvec2 v) {
  if (OUT == TF_I64) return v;
  if (OUT == TF_BOOL) return uvec2(v.x != 0u || v.y != 0u ? 1u : 0u, 0u);
  if (OUT < TF_I64) return uvec2(v.x, 0u);
  return uvec2(tf_bits(OUT, FB(tf_long_to_f32(v))), 0u);
}
uvec2 event(uint w) { return element(uvec2(p_a(1) != 0u || w < p_a(0) ? 1u : 0u, 0u)); }

int place(uint i) {
  if (LAYOUT != 0u) return int(i);
  int at = 0;
  for (int d = 7; d >= 0; d--) {
    at += int(i % p_shape(d)) * p_stride(d);
    i /= p_shape(d);
  }
  return at;
}

/* All elements of counter i in one access, or two of 16 bytes. */
void wide(int i, uvec2 e[4]) {
  if (OUT == TF_I64) {
    UNROLL for (int k = 0; k < int(PER); k += 2) set_quad_out((int(PER) * i + k) / 2, uvec4(e[k], e[k + 1]));
  } else if (OUT == TF_F32 || OUT == TF_I32) {
    if (PER == 4u) set_quad_out(i, uvec4(e[0].x, e[1].x, e[2].x, e[3].x));
    else set_word64_out(i, uvec2(e[0].x, e[1].x));
  } else if (OUT <= TF_I8) {
    uvec4 v = uvec4(e[0].x, e[1].x, e[2].x, e[3].x) & 0xffu;
    set_word32_out(i, v.x | v.y << 8 | v.z << 16 | v.w << 24);
  } else {
    uvec2 low = uvec2(e[0].x & 0xffffu | e[1].x << 16, e[2].x & 0xffffu | e[3].x << 16);
    if (PER == 4u) set_word64_out(i, low);
    else set_word32_out(i, low.x);
  }
}

void main() {
  uint block = tf_thread(), first = block * PER;
  if (first >= p_count) return;
  uvec4 w = tf_philox(tf_add64(PAIR(p_first), uvec2(block, 0u)), PAIR(p_draw), PAIR(p_seed));
  uvec2 e[4];
  if (WHAT == 0u) {
    UNROLL for (int k = 0; k < 4; k++) e[k] = uvec2(uniform_bits(w[k]), 0u);
  } else if (WHAT == 1u) {
    UNROLL for (int k = 0; k < 4; k += 2) { /* cosine and sine of one angle */
      precise float r = radius(w[k]);
      e[k] = uvec2(normal_bits(r, w[k + 1]), 0u);
      e[k + 1] = uvec2(normal_bits(r, w[k + 1] - 0x40000000u), 0u);
    }
  } else if (WHAT == 2u) {
    UNROLL for (int k = 0; k < 4; k++) e[k] = uvec2(exponential_bits(w[k]), 0u);
  } else if (WHAT == 3u) {
    e[0] = element(whole(w.x, w.y));
    e[1] = element(whole(w.z, w.w));
  } else if (WHAT == 4u) {
    UNROLL for (int k = 0; k < 4; k++) e[k] = event(w[k]);
  } else if (PER == 2u) {
    e[0] = w.yx;
    e[1] = w.wz;
  } else {
    UNROLL for (int k = 0; k < 4; k++) e[k] = uvec2(w[k], 0u);
  }
  if (LAYOUT == 2u && first + PER <= p_count) {
    wide(int(block), e);
    return;
  }
  UNROLL for (uint k = 0u; k < PER; k++) {
    uint i = first + k;
    if (i >= p_count) return;
    if (OUT == TF_I64) set_word64_out(place(i), e[k]);
    else set_word_out(OUT, place(i), e[k].x);
  }
}
