/* Products of matrices of floats in tiles of 64 STRIPS_M rows and 64 STRIPS_N columns.
 *
 * 16 x 16 invocations; in each strip of 64 an invocation has four neighbours, so it has 4 STRIPS_M x 4 STRIPS_N
 * results. DEPTH elements of the chains at a time lie in shared memory, while the next ones are on their way.
 * A_LAYOUT, B_LAYOUT: 0 one element at a time, neighbours along k; 1 one at a time, neighbours along the rows of a,
 * the columns of b; 2 four at a time along k; 3 four at a time along rows, columns. OUT_FOUR: four results are
 * stored at once. SHORT: for drivers that compile long texts slowly.
 *
 * operands: out a b bias
 * words: uint m; uint n; uint k; int a_row; int a_k; int b_k; int b_col; int out_row; int out_col;
 *   int bias_row; int bias_col; uint batch; uint shape[3]; int step[8]
 * constants: COMPUTE STRIPS_M STRIPS_N A_LAYOUT B_LAYOUT OUT_FOUR DEPTH SHORT
 * group: 256
 * numbers: float
 */
#include "matmul_place.glsl"
#define ROWS (64u * STRIPS_M)
#define COLS (64u * STRIPS_N)
/* In shared memory: two sides, of DEPTH rows of quads; one more quad keeps transposing stores apart. */
#define A_LINE (16u * STRIPS_M + 1u)
#define B_LINE (16u * STRIPS_N + 1u)
shared vec4 tf_as[2u * DEPTH * A_LINE];
shared vec4 tf_bs[2u * DEPTH * B_LINE];

#define TF_FOUR(NAME)                                                                                  \
  vec4 four_##NAME(int i) {                                                                            \
    if (COMPUTE == TF_F32) return uintBitsToFloat(quad_##NAME(i >> 2));                                \
    uvec2 w = word64_##NAME(i >> 2);                                                                   \
    return vec4(tf_number(COMPUTE, w.x & 0xffffu), tf_number(COMPUTE, w.x >> 16),                      \
                tf_number(COMPUTE, w.y & 0xffffu), tf_number(COMPUTE, w.y >> 16));                     \
  }
TF_FOUR(a)
TF_FOUR(b)

/* Place of what x of this invocation loads in a tile of WIDTH x DEPTH, counted in elements. */
#define TF_WIDE(x, WIDTH, LAYOUT)                                                                      \
  (LAYOUT == 0u ? (t + 256u * (x)) / DEPTH : LAYOUT == 1u ? (t + 256u * (x)) % WIDTH                   \
   : LAYOUT == 2u ? (t + 256u * (x)) / (DEPTH / 4u) : (t + 256u * (x)) % (WIDTH / 4u) * 4u)
#define TF_DEEP(x, WIDTH, LAYOUT)                                                                      \
  (LAYOUT == 0u ? (t + 256u * (x)) % DEPTH : LAYOUT == 1u ? (t + 256u * (x)) / WIDTH                   \
   : LAYOUT == 2u ? (t + 256u * (x)) % (DEPTH / 4u) * 4u : (t + 256u * (x)) / (WIDTH / 4u))
#define TF_AT(x, WIDTH, LAYOUT, base, first, size, step, k_step)                                       \
  base + int(min(first + TF_WIDE(x, WIDTH, LAYOUT), size - (LAYOUT == 3u ? 4u : 1u))) * (step) +       \
    int(k0 + TF_DEEP(x, WIDTH, LAYOUT)) * (k_step)
/* From memory. Rows past the last are the last one again: what they give is not stored. Behind the last k stands
   PAD; -0 in a with 0 in b leaves a chain as it is. */
#define TF_FETCH(r, NAME, END, WIDTH, LAYOUT, PAD, base, first, size, step, k_step)                    \
  if (LAYOUT < 2u) {                                                                                   \
    UNROLL for (uint x = 0u; x < WIDTH * DEPTH / 256u; x++) {                                          \
      r[x / 4u][x % 4u] = PAD;                                                                         \
      if (!END || k0 + TF_DEEP(x, WIDTH, LAYOUT) < p_k)                                                \
        r[x / 4u][x % 4u] = load_##NAME(COMPUTE, TF_AT(x, WIDTH, LAYOUT, base, first, size, step, k_step)); \
    }                                                                                                  \
  } else {                                                                                             \
    UNROLL for (uint x = 0u; x < WIDTH * DEPTH / 1024u; x++) {                                         \
      r[x] = vec4(PAD);                                                                                \
      if (!END || k0 + TF_DEEP(x, WIDTH, LAYOUT) < p_k)                                                \
        r[x] = four_##NAME(TF_AT(x, WIDTH, LAYOUT, base, first, size, step, k_step));                  \
    }                                                                                                  \
  }
#define TF_FETCH_BOTH(END)                                                                             \
  TF_FETCH(ra, a, END, ROWS, A_LAYOUT, FB(0x80000000u), at.a, at.row, p_m, p_a_row, p_a_k)             \
  TF_FETCH(rb, b, END, COLS, B_LAYOUT, FB(0u), at.b, at.col, p_n, p_b_col, p_b_k)
/* To shared memory. */
#define TF_KEEP(r, s, WIDTH, LAYOUT, LINE)                                                             \
  UNROLL for (uint x = 0u; x < WIDTH * DEPTH / (LAYOUT < 2u ? 256u : 1024u); x++) {                    \
    uint w = TF_WIDE(x, WIDTH, LAYOUT), to = (side * DEPTH + TF_DEEP(x, WIDTH, LAYOUT)) * LINE + w / 4u; \
    if (LAYOUT < 2u) s[to][w % 4u] = r[x / 4u][x % 4u];                                                \
    else if (LAYOUT == 2u) UNROLL for (uint e = 0u; e < 4u; e++) s[to + e * LINE][w % 4u] = r[x][e];   \
    else s[to] = r[x];                                                                                 \
  }
#define TF_KEEP_BOTH TF_KEEP(ra, tf_as, ROWS, A_LAYOUT, A_LINE) TF_KEEP(rb, tf_bs, COLS, B_LAYOUT, B_LINE)

/* One element of four chains. */
vec4 tf_four_fma(float a, vec4 b, vec4 c) {
#ifndef VM_SOFTFMA
  if (FLUSH <= 1u) {
    precise vec4 r = vm_fma(vec4(a), b, c);
    return r;
  }
#endif
  return vec4(tf_link(a, b.x, c.x), tf_link(a, b.y, c.y), tf_link(a, b.z, c.z), tf_link(a, b.w, c.w));
}
/* One element of each chain. */
#define TF_STEP                                                                                        \
  UNROLL for (uint i = 0u; i < STRIPS_M; i++) fa[i] = tf_as[(side * DEPTH + k) * A_LINE + 16u * i + down];   \
  UNROLL for (uint j = 0u; j < STRIPS_N; j++) fb[j] = tf_bs[(side * DEPTH + k) * B_LINE + 16u * j + across]; \
  UNROLL for (uint i = 0u; i < 4u * STRIPS_M; i++)                                                     \
    UNROLL for (uint j = 0u; j < STRIPS_N; j++)                                                        \
      sum[i * STRIPS_N + j] = tf_four_fma(fa[i / 4u][i % 4u], fb[j], sum[i * STRIPS_N + j]);

/* Four neighbours of a row; fewer at its end. */
void tf_put(Tile at, uint row, uint col, vec4 four) {
  precise float v[4] = {four.x, four.y, four.z, four.w};
  if (row >= p_m || col >= p_n) return;
  uint last = min(p_n - col, 4u);
  if (tf_biased())
    for (uint e = 0u; e < last; e++) v[e] = tf_add(v[e], load_bias(COMPUTE, int(col + e) * p_bias_col));
  int to = at.y + int(row * p_n + col);
  if (OUT_FOUR == 0u) {
    for (uint e = 0u; e < last; e++) store_out(COMPUTE, to + int(e), v[e]);
  } else if (COMPUTE == TF_F32) {
    set_quad_out(to >> 2, uvec4(UB(v[0]), UB(v[1]), UB(v[2]), UB(v[3])));
  } else {
    set_word64_out(to >> 2, uvec2(tf_bits(COMPUTE, v[0]) | tf_bits(COMPUTE, v[1]) << 16,
                                  tf_bits(COMPUTE, v[2]) | tf_bits(COMPUTE, v[3]) << 16));
  }
}

void main() {
  Tile at = tf_tile(ROWS, COLS);
  if (at.none) return;
  /* 32 neighbours are 4 rows of 8, so that they read few different quads */
  uint t = gl_LocalInvocationIndex, across = t / 32u % 2u * 8u + t % 8u, down = t / 64u * 4u + t / 8u % 4u;
  uint side = 0u, k0 = 0u;
  precise vec4 ra[ROWS * DEPTH / 1024u], rb[COLS * DEPTH / 1024u], fa[ROWS / 64u], fb[COLS / 64u],
      sum[4u * STRIPS_M * STRIPS_N];
  UNROLL for (uint i = 0u; i < 4u * STRIPS_M * STRIPS_N; i++) sum[i] = vec4(FB(0u));
  TF_FETCH_BOTH(true)
  TF_KEEP_BOTH
  barrier();
  for (uint left = p_k; left > 0u; left -= min(left, DEPTH)) {
    k0 += DEPTH;
    if (left >= 2u * DEPTH) { TF_FETCH_BOTH(false) } else if (left > DEPTH) { TF_FETCH_BOTH(true) }
    if (FLUSH > 1u || SHORT != 0u) {
      for (uint k = 0u; k < DEPTH; k++) { TF_STEP }
    } else {
      UNROLL for (uint k = 0u; k < DEPTH; k++) { TF_STEP }
    }
    side = 1u - side;
    if (left > DEPTH) { TF_KEEP_BOTH }
    barrier();
  }
  UNROLL for (uint i = 0u; i < 4u * STRIPS_M; i++)
    UNROLL for (uint j = 0u; j < STRIPS_N; j++)
      tf_put(at, at.row + i / 4u * 64u + down * 4u + i % 4u, at.col + 64u * j + across * 4u, sum[i * STRIPS_N + j]);
}
