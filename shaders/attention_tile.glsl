/* Tiles of attention: 8 invocations across, the others down, each with 4 rows and 8 columns of a tile of scores. A tile
 * of operands lies in shared memory by depth, four rows in a vec4.
 *
 * QUADS: all rows are dense and lie at multiples of four elements. */
#ifndef VM_SOFTFMA
#define EACH(i, n) UNROLL for (int i = 0; i < int(n); i++)
#elif defined(TF_VULKAN) /* software drivers: emulated operations take seconds to compile unrolled */
#define EACH(i, n) [[dont_unroll]] for (int i = 0; i < int(n); i++)
#else /* the same by a bound that looks unknown */
#define EACH(i, n) for (int i = 0; i < int(n) - int(p_queries >> 31); i++)
#endif
#define ACROSS (gl_LocalInvocationIndex & 7u)
#define DOWN (gl_LocalInvocationIndex >> 3)
#define HEIGHT (TF_GROUP / 2u)      /* rows of the tile */
#define LINE (int(HEIGHT) / 4)      /* vec4s from one depth to the next, on the side of rows */
#define SPAN 16                     /* and on the other side, of 64 */
#define DEPTH 16u                   /* of a step */
#define DEEP (DEPTH / 4u)
#define FOURS (HEIGHT / 4u * DEEP)  /* blocks of 4 x 4 numbers of a step's rows */
#define K_FOURS (16u * DEEP)        /* and of the other side */
#define AREA (int(DEPTH) * (LINE + SPAN)) /* vec4s of the operands of a step */
#define SHARE(n) (((n) + TF_GROUP - 1u) / TF_GROUP)
/* Place of a vec4 in line d of four: neighbours in memory that are written together lie in different banks. */
#define SWIZZLED(i, line) ((i) ^ ((line) & 7))

/* exp(x) with vm_exp's bits, in fewer steps: for x that is not above 0, or NaN; and for all. */
float sinking(float x) {
  precise float t = vm_fma(x, 1.44269504f, 12582912.0f), k = t - 12582912.0f;
  precise float y = vm_exp1(x, k), p = y * FB((UB(t) << 23) + 0x3f800000u);
  return FB(x <= FB(0xc2aeac50u) ? 0u : UB(p));
}
float falling(float x) {
  precise float c = min(max(x, -104.0f), 104.0f), t = vm_fma(c, 1.44269504f, 12582912.0f), k = t - 12582912.0f;
  precise float y = vm_exp1(c, k);
  int u = int(UB(y) + (UB(t) << 23)); /* the exponent may leave its bits */
  uint r = u < 0x00800000 ? (x > 88.0f ? 0x7f800000u : 0u) : min(uint(u), 0x7f800000u);
  return FB(tf_isnan(x) ? 0x7fc00000u : r);
}

#define FOUR_OF(NAME, WHICH)                                                                            \
  if (which == WHICH) {                                                                                 \
    if (QUADS != 0u) load4_##NAME(DTYPE, (at + int(d)) >> 2, v);                                        \
    else EACH(e, 4) v[e] = d + uint(e) < width ? load_##NAME(DTYPE, at + int(d + uint(e)) * p_step(WHICH)) : FB(pad); \
  }
/* Four numbers of a row that begins at `at`, from d on; `pad` past its width. */
vec4 four_of(uint which, int at, uint d, uint width, uint pad) {
  float v[4] = float[4](FB(pad), FB(pad), FB(pad), FB(pad));
  if (d < width) {
    FOUR_OF(q, Q)
    FOUR_OF(k, K)
    FOUR_OF(v, V)
#ifdef GRADIENT
    FOUR_OF(g, G)
#endif
  }
  return vec4(v[0], v[1], v[2], v[3]);
}
vec4 coming[4]; /* numbers on their way from memory to the tile */
shared vec4 tile[2 * AREA];

/* Four rows, `gap` apart, four numbers of each. */
void fetched(uint which, int at, uint row, uint gap, uint rows, uint d, uint width, uint pad) {
  EACH(i, 4) {
    uint r = row + gap * uint(i);
    coming[i] = r < rows ? four_of(which, at + int(r) * p_row(which), d, width, pad) : vec4(FB(pad));
  }
}
/* The same as columns of the tile: vec4 b of lines 4 e .. 4 e + 3. */
void turned(int to, int span, int b, int e) {
  EACH(k, 4) tile[to + (4 * e + k) * span + SWIZZLED(b, e)] = vec4(coming[0][k], coming[1][k], coming[2][k], coming[3][k]);
}
/* Products' operands: threads below FOURS brought rows, the ones behind them the other side. */
void keep_products(int to) {
  int t = int(gl_LocalInvocationIndex), k = t - int(FOURS);
  if (t < int(FOURS)) turned(to, LINE, t / int(DEEP), t % int(DEEP));
  else if (k < int(K_FOURS)) turned(to + int(DEPTH) * LINE, SPAN, k / int(DEEP), k % int(DEEP));
}
