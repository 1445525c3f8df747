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
 * numbers: float double
 */
#include "philox.glsl"
#include "quotient.glsl"
#define PAIR(name) uvec2(name(0), name(1))
#define TWO_WORDS (OUT == TF_I64 || OUT == TF_F64) /* an element is two words */
#ifdef TF_DOUBLE
#define NUMBER(name) packDouble2x32(PAIR(name))
#define ROOT vm_sqrt
#define REALS 2u /* numbers of one counter */
#define DRAWN(w, k) uvec2(w[2u * (k)], w[2u * (k) + 1u])
#define BITS_OF(v) unpackDouble2x32(v)
#define UNIT 1.1102230246251565e-16lf /* 2^-53 */

/* The upper 53 bits of 64, high and low. */
double whole_of(uvec2 w) {
  precise double high = double(w.x) * 2097152.0lf, r = high + double(w.y >> 11);
  return r;
}
double below_one(uvec2 w) {
  precise double r = whole_of(w) * UNIT;
  return r;
}
double above_zero(uvec2 w) {
  precise double r = (whole_of(w) + 1.0lf) * UNIT;
  return r;
}
double odd(uvec2 w) {
  precise double r = whole_of(uvec2(w.x, w.y | 0x800u)) * UNIT;
  return r;
}
double turned(uvec2 w) { return vd_cos2pi(below_one(w)); }
#else
#define NUMBER(name) FB(name(0))
#define ROOT vm_root
#define REALS 4u
#define DRAWN(w, k) uvec2(w[k], 0u)
#define BITS_OF(v) uvec2(tf_bits(OUT, v), 0u)
#define UNIT 5.9604644775390625e-8f /* 2^-24 */

/* As many bits as the dtype holds, so that a half never rounds up to the upper end. */
float below_one(uvec2 w) {
  uint bits = OUT == TF_F16 ? 11u : OUT == TF_BF16 ? 8u : 24u;
  return tf_mul(float(int(w.x >> (32u - bits))), FB((127u - bits) << 23));
}
float above_zero(uvec2 w) {
  precise float r = float(int((w.x >> 8) + 1u)) * UNIT;
  return r;
}
float odd(uvec2 w) {
  precise float r = float(int(w.x >> 9 << 1 | 1u)) * UNIT;
  return r;
}
float turned(uvec2 w) { return vm_cos2pi(vm_uniform(w.x)); }
#endif

uvec2 uniform_bits(uvec2 w) { return BITS_OF(tf_add(tf_mul(below_one(w), NUMBER(p_b)), NUMBER(p_a))); }
T radius(uvec2 w) {
  precise T l = T(-2) * TF_LOG(above_zero(w));
  return ROOT(l);
}
uvec2 normal_bits(T r, uvec2 w) {
  precise T z = r * turned(w);
  return BITS_OF(tf_add(tf_mul(z, NUMBER(p_b)), NUMBER(p_a)));
}
uvec2 exponential_bits(uvec2 w) { return BITS_OF(tf_quotient(tf_neg(TF_LOG(odd(w))), NUMBER(p_a))); }
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
#ifdef TF_DOUBLE
  return unpackDouble2x32(tf_of_long(v));
#else
  return uvec2(tf_bits(OUT, FB(tf_long_to_f32(v))), 0u);
#endif
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
  if (TWO_WORDS) {
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
    UNROLL for (uint k = 0u; k < REALS; k++) e[k] = uniform_bits(DRAWN(w, k));
  } else if (WHAT == 1u) {
    UNROLL for (uint k = 0u; k < REALS; k += 2u) { /* cosine and sine of one angle */
      precise T r = radius(DRAWN(w, k));
      uvec2 angle = DRAWN(w, k + 1u);
      e[k] = normal_bits(r, angle);
      e[k + 1u] = normal_bits(r, uvec2(angle.x - 0x40000000u, angle.y));
    }
  } else if (WHAT == 2u) {
    UNROLL for (uint k = 0u; k < REALS; k++) e[k] = exponential_bits(DRAWN(w, k));
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
    if (TWO_WORDS) set_word64_out(place(i), e[k]);
    else set_word_out(OUT, place(i), e[k].x);
  }
}
