/* Tiles of attention, 64 rows by 64 others: 8 invocations across, 16 down, each with 4 rows and 8 others. Operands lie
 * in shared memory by depth, four rows in a vec4.
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
#define LINE 16                       /* vec4s from one depth to the next */
#define DEPTH 16u                     /* of a step */
#define DEEP (DEPTH / 4u)
#define FOURS (16u * DEEP)            /* blocks of 4 x 4 numbers of one side of a step's products */
#define PART (COLUMNS > 2u ? 8 : 16)  /* others whose weights and numbers are the operands of a step */
#define BREADTH (8 * int(COLUMNS))    /* vec4s of a row of these numbers */
#define AREA 512                      /* vec4s of the operands of a step */
#define ACC(a, r, c) a[(r) * 4 * int(COLUMNS) + (c)]
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
  precise float v[4] = float[4](FB(pad), FB(pad), FB(pad), FB(pad));
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
/* Operands of products from depth d on: half of the invocations bring rows, half the other side. -0 times 0 leaves a
   chain as it is. */
void fetch_sides(uint rows, int rows_at, uint row, uint rows_end, uint others, int others_at, uint other,
                 uint others_end, uint d, uint width) {
  uint t = gl_LocalInvocationIndex, b = t / DEEP & 15u;
  d += 4u * (t % DEEP);
  if (t < FOURS) fetched(rows, rows_at, row + 4u * b, 1u, rows_end, d, width, 0x80000000u);
  else fetched(others, others_at, other + (b & 7u) + (b >> 3) * 32u, 8u, others_end, d, width, 0u);
}
void keep_products(int side) {
  int t = int(gl_LocalInvocationIndex), b = t / int(DEEP) & 15, e = t % int(DEEP);
  int to = side + 4 * e * LINE + (t < int(FOURS) ? 0 : int(DEPTH) * LINE) + SWIZZLED(b, e);
  EACH(k, 4) tile[to + k * LINE] = vec4(coming[0][k], coming[1][k], coming[2][k], coming[3][k]);
}
/* Rows of the other side as they lie, some of their columns; -0 where there are none: a weight of 0 adds nothing. */
void fetch_numbers(uint which, int at, uint other, uint others, uint column, uint width) {
  EACH(n, PART * BREADTH / 128) {
    uint t = gl_LocalInvocationIndex + uint(n) * 128u, j = other + t / uint(BREADTH);
    uint c = column + 4u * (t % uint(BREADTH));
    coming[n] = j < others ? four_of(which, at + int(j) * p_row(which), c, width, 0x80000000u) : vec4(FB(0x80000000u));
  }
}
void keep_numbers(int side) {
  EACH(n, PART * BREADTH / 128) tile[side + PART * LINE + int(gl_LocalInvocationIndex) + 128 * n] = coming[n];
}
/* The weights S of the others that step WHICH takes. */
#define KEEP_WEIGHTS(S, WHICH)                                                                          \
  EACH(j, 8) {                                                                                          \
    if (uint(8 * j / PART) == (WHICH))                                                                  \
      tile[side + (8 * j % PART + int(ACROSS)) * LINE + SWIZZLED(int(DOWN), int(ACROSS))] =             \
        vec4(S[0][j], S[1][j], S[2][j], S[3][j]);                                                       \
  }
/* One step of the chains S over depth, of the chains A over others. */
#define PRODUCTS(S)                                                                                     \
  EACH(d, DEPTH) {                                                                                      \
    precise vec4 a = tile[side + d * LINE + SWIZZLED(int(DOWN), d >> 2)], b[2];                                 \
    EACH(i, 2) b[i] = tile[side + (int(DEPTH) + d) * LINE + SWIZZLED(8 * i + int(ACROSS), d >> 2)];     \
    EACH(r, 4) EACH(j, 8) S[r][j] = tf_fma(b[j >> 2][j & 3], a[r], S[r][j]);                            \
  }
#define GATHERED(A)                                                                                     \
  EACH(j, PART) {                                                                                       \
    precise vec4 a = tile[side + j * LINE + SWIZZLED(int(DOWN), j)], b[4];                                      \
    EACH(i, COLUMNS) b[i] = tile[side + PART * LINE + j * BREADTH + 8 * i + int(ACROSS)];               \
    EACH(r, 4) EACH(c, 4u * COLUMNS) ACC(A, r, c) = tf_fma(a[r], b[c >> 2][c & 3], ACC(A, r, c));       \
  }
