/* Extremes so far and their places, the last of equal ones; values are copied by place.
 *
 * WIDE: keys of 64 bits.
 *
 * operands: out x places
 * words: int stride[12]; uint shape[3]; uint lines; uint n; int xstep; int ystep; int fstep
 * constants: KIND IN LINES ALONG OUT_ALONG WIDE
 * group: 256
 * numbers: bits
 */
#include "keys.glsl"
struct TF_Best {
  uvec2 key;
  uint place;
};
#define LINEAR 0u
#define TF_ACC uvec2 /* a key; then a place in its first word */
#define TF_CARRY TF_Best
TF_Best tf_start() { return TF_Best(TF_LEAST, 0u); }
uvec2 tf_take(int at) { return tf_key_of(WIDE != 0u ? word64_x(at) : uvec2(0u, word_x(IN, at))); }
uvec2 tf_factor(int at) { return uvec2(0u); }
uvec2 tf_next(inout TF_Best c, uvec2 f, uvec2 v, uint i) {
  if (!tf_above(c.key, v)) c = TF_Best(v, i);
  return uvec2(c.place, 0u);
}
void tf_put(int at, uvec2 v, int x) {
  int from = x + int(v.x) * p_xstep;
  set_word64_places(at, v);
  if (WIDE != 0u) set_word64_out(at, word64_x(from));
  else set_word_out(IN, at, word_x(IN, from));
}
#include "scan.glsl"
