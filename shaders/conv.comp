/* Convolutions and their gradients in tiles of 64 STRIPS_M rows and 64 STRIPS_N columns.
 *
 * 16 x 16 invocations; in each strip of 64 an invocation has four neighbours. DEPTH places of the chains at a time
 * lie in shared memory, while the next ones are on their way. HOLES: whether chains leave out some places.
 * OUT_FOUR: four columns are stored at once.
 *
 * operands: out a b bias
 * words: uint images; uint groups; uint rows; uint chans; int outs[3]; int size[3]; int kernel[3]; int stride[3];
 *   int pad[3]; int dil[3]; int b_image; int b_channel
 * constants: DTYPE MODE BIASED WIDE DEPTH=8 PARTS=1 STRIPS_M=1 STRIPS_N=1 HOLES OUT_FOUR
 * group: 256
 * numbers: float
 */
#include "conv_place.glsl"
#define TF_HOLES (HOLES != 0u)
#define TF_LOADERS TF_GROUP
#define TF_COUNTS (MODE == 2u)
#define ROWS (64u * STRIPS_M)
#define COLS (64u * STRIPS_N)
#include "conv_tile.glsl"
/* In shared memory: two sides, of DEPTH rows of quads; one more quad keeps transposing stores apart. */
#define A_LINE (16u * STRIPS_M + 1u)
#define B_LINE (16u * STRIPS_N + 1u)
shared vec4 tf_as[2u * DEPTH * A_LINE];
shared uvec4 tf_bs[2u * DEPTH * B_LINE];
#define TF_FETCH(k0)                                                                                   \
  TF_FETCH_START(k0)                                                                                   \
  UNROLL for (uint x = 0u; x < ROWS * DEPTH / TF_LOADERS; x++) { TF_FETCH_A(x)    }                         \
  UNROLL for (uint x = 0u; x < COLS * DEPTH / TF_LOADERS; x++) { TF_FETCH_B(x, k0) }
#define TF_KEEP                                                                                        \
  UNROLL for (uint x = 0u; x < ROWS * DEPTH / TF_LOADERS; x++)                                               \
    tf_as[(side * DEPTH + TF_A_DEEP(x)) * A_LINE + TF_A_WIDE(x) / 4u][TF_A_WIDE(x) % 4u] = ra[x];      \
  UNROLL for (uint x = 0u; x < COLS * DEPTH / TF_LOADERS; x++)                                               \
    tf_bs[(side * DEPTH + TF_B_DEEP(x)) * B_LINE + TF_B_WIDE(x) / 4u][TF_B_WIDE(x) % 4u] = rb[x];
/* The other side is taken, and filled where there is more. */
#define TF_TURN                                                                                        \
  side = 1u - side;                                                                                    \
  if (more) { TF_KEEP }                                                                                \
  barrier();
/* What place k of the chains takes: from shared memory into one of two sets of registers, */
#define TF_FRAGMENT(set, k)                                                                            \
  UNROLL for (uint i = 0u; i < STRIPS_M; i++) {                                                        \
    precise vec4 v = tf_as[(side * DEPTH + k) * A_LINE + 16u * i + down];                              \
    TF_SPREAD(fa[set], i)                                                                              \
  }                                                                                                    \
  UNROLL for (uint j = 0u; j < STRIPS_N; j++) {                                                        \
    uvec4 v = tf_bs[(side * DEPTH + k) * B_LINE + 16u * j + across];                                   \
    TF_SPREAD(fb[set], j)                                                                              \
  }
#define TF_SPREAD(to, i) to[4u * i] = v.x; to[4u * i + 1u] = v.y; to[4u * i + 2u] = v.z; to[4u * i + 3u] = v.w;
/* and the place itself. */
#define TF_STEP(set)                                                                                   \
  UNROLL for (uint j = 0u; j < 4u * STRIPS_N; j++) {                                                   \
    if (!TF_HOLES || fb[set][j] != TF_HOLE) {                                                          \
      UNROLL for (uint i = 0u; i < 4u * STRIPS_M; i++)                                                 \
        sum[i * 4u * STRIPS_N + j] = tf_link(fa[set][i], FB(fb[set][j]), sum[i * 4u * STRIPS_N + j]);  \
    }                                                                                                  \
  }

/* Four neighbours of a row, in columns from `col` of the tile on; fewer at its end. */
void tf_put(Tile tile, uint row, uint col, vec4 four) {
  precise float v[4] = {four.x, four.y, four.z, four.w};
  if (tile.row + row >= p_rows || tile.col + col >= tile.conv.cols) return;
  uint last = min(tile.conv.cols - tile.col - col, 4u);
  int line = tile.conv.y + int(tile.row + row) * tf_y_row();
  if (BIASED != 0u) {
    precise float bias = load_bias(DTYPE, tile.conv.y / tf_y_row() + int(tile.row + row));
    UNROLL for (uint e = 0u; e < 4u; e++) v[e] = tf_add(v[e], bias);
  }
  if (OUT_FOUR != 0u && TF_RESULT == TF_F32) {
    set_quad_out((line + tf_results[col]) >> 2, uvec4(UB(v[0]), UB(v[1]), UB(v[2]), UB(v[3])));
  } else {
    UNROLL for (uint e = 0u; e < 4u; e++)
      if (e < last) store_out(TF_RESULT, line + tf_results[col + e], v[e]);
  }
}

void main() {
  Tile tile = tf_tile();
  if (tile.none) return;
  /* 32 neighbours are 4 rows of 8, so that they read few different quads */
  uint t = gl_LocalInvocationIndex, across = t / 32u % 2u * 8u + t % 8u, down = t / 64u * 4u + t / 8u % 4u, side = 0u;
  int a_row = tf_a_row();
  ivec3 limits = tf_limits();
  precise float ra[ROWS * DEPTH / TF_GROUP], fa[2][4u * STRIPS_M], sum[16u * STRIPS_M * STRIPS_N];
  uint rb[COLS * DEPTH / TF_GROUP], fb[2][4u * STRIPS_N];
  UNROLL for (uint i = 0u; i < 16u * STRIPS_M * STRIPS_N; i++) sum[i] = FB(0u);
  tf_table_columns(tile);
  TF_TABLE_START
  TF_TABLE_BLOCK(tile.conv.begin)
  TF_TABLE_BLOCK(tile.conv.begin + TF_LOADERS)
  barrier();
  { TF_FETCH(tile.conv.begin) }
  TF_KEEP
  barrier();
  TF_FRAGMENT(0u, 0u)
  for (uint k0 = tile.conv.begin; k0 < tile.conv.depth; k0 += DEPTH) {
    uint next = k0 + DEPTH;
    bool more = next < tile.conv.depth;
    if (more) {
      TF_FETCH(next)
      if (next % TF_LOADERS == 0u) { TF_TABLE_BLOCK(next + TF_LOADERS) }
    }
    if (FLUSH > 1u) { /* a long text for each: not unrolled */
      for (uint k = 0u; k < DEPTH; k++) {
        TF_FRAGMENT(0u, k)
        TF_STEP(0u)
      }
      TF_TURN
    } else {
      UNROLL for (uint k = 0u; k < DEPTH; k++) {
        if (k == DEPTH - 1u) { TF_TURN }
        TF_FRAGMENT((k + 1u) % 2u, (k + 1u) % DEPTH)
        TF_STEP(k % 2u)
      }
    }
  }
  UNROLL for (uint i = 0u; i < 4u * STRIPS_M; i++)
    UNROLL for (uint j = 0u; j < STRIPS_N; j++) {
      uint s = i * 4u * STRIPS_N + 4u * j;
      tf_put(tile, i / 4u * 64u + down * 4u + i % 4u, 64u * j + across * 4u,
             vec4(sum[s], sum[s + 1u], sum[s + 2u], sum[s + 3u]));
    }
}
