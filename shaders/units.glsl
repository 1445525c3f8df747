/* Moves of UNIT bytes, a constant: of one element, or of several where they lie side by side. */
#define TF_UNITS(NAME)                                              \
  uvec4 pick_##NAME(int i) {                                        \
    if (UNIT == 16u) return quad_##NAME(i);                         \
    if (UNIT == 8u) return uvec4(word64_##NAME(i), 0u, 0u);         \
    if (UNIT == 4u) return uvec4(word32_##NAME(i));                 \
    return uvec4(UNIT == 2u ? word16_##NAME(i) : word8_##NAME(i));  \
  }                                                                 \
  void place_##NAME(int i, uvec4 v) {                               \
    if (UNIT == 16u) set_quad_##NAME(i, v);                         \
    else if (UNIT == 8u) set_word64_##NAME(i, v.xy);                \
    else if (UNIT == 4u) set_word32_##NAME(i, v.x);                 \
    else if (UNIT == 2u) set_word16_##NAME(i, v.x);                 \
    else set_word8_##NAME(i, v.x);                                  \
  }                                                                 \
  uvec4 value_##NAME() { return at_##NAME().xyxy; } /* an element repeated over eight bytes stands for the address */
