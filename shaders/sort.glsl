/* What is sorted: keys that compare as unsigned numbers, each with its element's place in its line. No two items
   are equal, so any method is stable. WIDE, a constant: the keys have 64 bits. */
struct TF_Item { uint key, high, place; };

bool tf_before(TF_Item a, TF_Item b) {
  if (WIDE != 0u && a.high != b.high) return a.high < b.high;
  return a.key != b.key ? a.key < b.key : a.place < b.place;
}
#define TF_ITEMS(NAME)                                              \
  TF_Item item_##NAME(int i) {                                      \
    if (WIDE != 0u) {                                               \
      uvec4 q = quad_##NAME(i);                                     \
      return TF_Item(q.x, q.y, q.z);                                \
    }                                                               \
    uvec2 q = word64_##NAME(i);                                     \
    return TF_Item(q.x, 0u, q.y);                                   \
  }                                                                 \
  void set_item_##NAME(int i, TF_Item t) {                          \
    if (WIDE != 0u) set_quad_##NAME(i, uvec4(t.key, t.high, t.place, 0u)); \
    else set_word64_##NAME(i, uvec2(t.key, t.place));               \
  }
