/* Extremes and their places, any and all: integer keys in the order of the values, the greatest wins, the first of
 * equal ones.
 *
 * WIDE: keys of 64 bits. START: the operand is a tensor, not parts of three words each.
 *
 * operands: out places x
 * words: int stride[8]; uint shape[8]; uint kept; uint axes; uint outs; uint n; uint blocks; uint teams
 * constants: KIND IN LAYOUT PASSES WIDE START VALUES PLACES
 * group: 256
 * numbers: bits
 */
#include "four_words.glsl"
#include "keys.glsl"
struct TF_Best {
  uvec2 key; /* low and high word; only the high one where keys have 32 bits */
  uint place;
};
#define TF_ACC TF_Best
TF_FOUR_WORDS(x)

TF_Best tf_unit() { return TF_Best(TF_LEAST, 0xffffffffu); }
TF_Best tf_join(TF_Best a, TF_Best b) {
  bool other = tf_above(b.key, a.key) || (PLACES != 0u && b.key == a.key && b.place < a.place);
  return TF_Best(uvec2(other ? b.key.x : a.key.x, other ? b.key.y : a.key.y), other ? b.place : a.place);
}
TF_Best tf_item(int at, uint i) {
  if (START == 0u) return TF_Best(uvec2(word32_x(3 * at), word32_x(3 * at + 1)), word32_x(3 * at + 2));
  if (WIDE != 0u) return TF_Best(tf_key_of(word64_x(at)), i);
  return TF_Best(tf_key_of(uvec2(0u, word_x(IN, at))), i);
}
void tf_items(int at, uint i, uint step, out TF_Best v[4]) {
  if (START == 0u || WIDE != 0u) {
    UNROLL for (int k = 0; k < 4; k++) v[k] = tf_item(at + k, i + step * uint(k));
    return;
  }
  uvec4 w = words4_x(IN, at >> 2);
  v[0] = TF_Best(tf_key_of(uvec2(0u, w.x)), i);
  v[1] = TF_Best(tf_key_of(uvec2(0u, w.y)), i + step);
  v[2] = TF_Best(tf_key_of(uvec2(0u, w.z)), i + 2u * step);
  v[3] = TF_Best(tf_key_of(uvec2(0u, w.w)), i + 3u * step);
}
void tf_begin(uint o) {}
void tf_between(TF_Best v) {}
void tf_keep(uint u, TF_Best v) {
  set_word32_out(int(3u * u), v.key.x);
  set_word32_out(int(3u * u) + 1, v.key.y);
  set_word32_out(int(3u * u) + 2, v.place);
}
void tf_finish(uint o, TF_Best v) {
  if (PLACES != 0u) set_word64_places(int(o), uvec2(v.place, 0u));
  if (VALUES == 0u) return;
  uvec2 r = tf_value_of(v.key);
  if (KIND >= KIND_ANY) set_word8_out(int(o), (v.key.y == 1u) == (KIND == KIND_ANY) ? 1u : 0u);
  else if (WIDE != 0u) set_word64_out(int(o), r);
  else set_word_out(IN, int(o), r.y);
}
#include "reduce.glsl"
