/* Sorted runs of `width` items merged two by two: an item's new place is its own and the number of those before it
 * in the other run.
 *
 * operands: merged items
 * words: uint count; uint n; uint width
 * constants: WIDE
 * group: 256
 */
#include "sort.glsl"
TF_ITEMS(merged)
TF_ITEMS(items)

void main() {
  uint i = tf_thread();
  if (i >= p_count) return;
  uint line = i / p_n, j = i - line * p_n, run = j / p_width;
  uint other = (run ^ 1u) * p_width, base = line * p_n;
  TF_Item mine = item_items(int(i));
  uint low = min(other, p_n), high = min(other + p_width, p_n), begin = low;
  while (low < high) {
    uint middle = (low + high) >> 1;
    if (tf_before(item_items(int(base + middle)), mine)) low = middle + 1u;
    else high = middle;
  }
  uint to = (run & ~1u) * p_width + (j - run * p_width) + low - begin;
  set_item_merged(int(base + to), mine);
}
