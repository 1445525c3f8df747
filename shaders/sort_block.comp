/* Parts of at most 2,048 items sorted, the first `keep` of each kept: lines that are longer are several parts, of
 * those that are shorter a work group sorts several.
 *
 * SOURCE: the dtype of elements, whose keys have the order of the values (NaN greatest, -0 below +0); TF_KEYS where
 * they are keys already, TF_PAIRS where they are items. `down`: greatest first.
 *
 * operands: items x
 * words: uint lines; uint n; uint parts; uint bits; uint keep; uint kept; uint shape[3]; int stride[4]; int step;
 *   uint down
 * constants: SOURCE WIDE
 * group: 256
 */
#define IN SOURCE
#define KIND KIND_MAX
#include "keys.glsl"
#include "sort.glsl"
#define TF_KEYS 64u
#define TF_PAIRS 65u
#define TF_PART 2048u
shared uint tf_keys[TF_PART];
shared uint tf_highs[TF_PART];
shared uint tf_places[TF_PART];
TF_ITEMS(items)
TF_ITEMS(x)

TF_Item tf_item(int i, uint place) {
  if (SOURCE == TF_PAIRS) return item_x(i);
  if (SOURCE == TF_KEYS) return TF_Item(word32_x(i), 0u, place);
  uvec2 k = tf_key_of(WIDE != 0u ? word64_x(i) : uvec2(0u, word_x(SOURCE, i)));
  k.y ^= 0x80000000u;
  if (p_down != 0u) k = ~k;
  return WIDE != 0u ? TF_Item(k.x, k.y, place) : TF_Item(k.y, 0u, place);
}

void main() {
  uint size = 1u << p_bits, per = TF_PART >> p_bits, group = tf_group(), part = 0u;
  uint line = group * per;
  if (p_parts > 1u) {
    line = group / p_parts;
    part = group - line * p_parts;
  }
  if (line >= p_lines) return;
  uint items = min(per, p_lines - line) << p_bits, first = part * TF_PART;
  for (uint e = gl_LocalInvocationIndex; e < items; e += TF_GROUP) {
    uint l = line + (e >> p_bits), j = first + (e & (size - 1u));
    TF_Item t = TF_Item(0xffffffffu, 0xffffffffu, 0xffffffffu); /* after all others */
    if (j < p_n) {
      ivec4 k = tf_unravel(l, p_shape(0), p_shape(1), p_shape(2));
      t = tf_item(tf_dot(k, p_stride(0), p_stride(1), p_stride(2), p_stride(3)) + int(j) * p_step, j);
    }
    tf_keys[e] = t.key;
    tf_highs[e] = t.high;
    tf_places[e] = t.place;
  }
  barrier();
  /* Bitonic: two sorted sequences of `run` items, one of them backwards, become one of twice as many. */
  for (uint run = 2u; run <= size; run <<= 1) {
    for (uint step = run >> 1; step > 0u; step >>= 1) {
      for (uint e = gl_LocalInvocationIndex; e < items >> 1; e += TF_GROUP) {
        uint low = 2u * e - (e & (step - 1u)), high = low + step;
        TF_Item a = TF_Item(tf_keys[low], tf_highs[low], tf_places[low]);
        TF_Item b = TF_Item(tf_keys[high], tf_highs[high], tf_places[high]);
        bool rising = run == size || (low & run) == 0u;
        if (tf_before(b, a) == rising) {
          tf_keys[low] = b.key;
          tf_highs[low] = b.high;
          tf_places[low] = b.place;
          tf_keys[high] = a.key;
          tf_highs[high] = a.high;
          tf_places[high] = a.place;
        }
      }
      barrier();
    }
  }
  for (uint e = gl_LocalInvocationIndex; e < items; e += TF_GROUP) {
    uint l = line + (e >> p_bits), j = e & (size - 1u);
    if (j < p_keep && first + j < p_n)
      set_item_items(int(l * p_kept + part * p_keep + j), TF_Item(tf_keys[e], tf_highs[e], tf_places[e]));
  }
}
