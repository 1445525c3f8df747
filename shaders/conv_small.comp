/* Convolutions and their gradients where results are few or chains long: a work group has a tile of 16 x 16.
 *
 * 64 invocations have 2 x 2 results each; 128 others load what comes next, DEPTH places of the chains at a time: one
 * part lies in shared memory, the next one is stored there, and the one after it is on its way.
 *
 * operands: out a b bias
 * words: uint images; uint groups; uint rows; uint chans; int outs[3]; int size[3]; int kernel[3]; int stride[3];
 *   int pad[3]; int dil[3]; int b_image; int b_channel
 * constants: DTYPE MODE BIASED WIDE DEPTH=32 PARTS=1
 * group: 192
 * numbers: float double
 */
#include "conv_place.glsl"
#define ROWS 16u
#define COLS 16u
#define TF_HOLES (MODE == 1u)
#define TF_LOADERS 128u
#define TF_COUNTS true
#define TF_WORKERS 64u
#include "conv_tile.glsl"
#define LINE (DEPTH / 4u + 1u) /* quads of a row in shared memory, which has two sides */
shared T4 tf_as[32u * LINE];
shared TF_UINT4 tf_bs[32u * LINE];
#define TF_FETCH(k0)                                                                                   \
  TF_FETCH_START(k0)                                                                                   \
  UNROLL for (uint x = 0u; x < DEPTH / 8u; x++) {                                                      \
    TF_FETCH_A(x)                                                                                      \
    TF_FETCH_B(x, k0)                                                                                  \
  }
#define TF_KEEP(side)                                                                                  \
  UNROLL for (uint x = 0u; x < DEPTH / 8u; x++) {                                                      \
    tf_as[(16u * (side) + TF_A_WIDE(x)) * LINE + TF_A_DEEP(x) / 4u][TF_A_DEEP(x) % 4u] = ra[x];        \
    tf_bs[(16u * (side) + TF_B_WIDE(x)) * LINE + TF_B_DEEP(x) / 4u][TF_B_DEEP(x) % 4u] = rb[x];        \
  }
/* Four places of each chain. */
#define TF_STEP                                                                                        \
  T4 a[2] = {tf_as[(16u * side + row) * LINE + k], tf_as[(16u * side + row + 8u) * LINE + k]};         \
  TF_UINT4 b[2] = {tf_bs[(16u * side + col) * LINE + k], tf_bs[(16u * side + col + 8u) * LINE + k]};   \
  UNROLL for (uint e = 0u; e < 4u; e++)                                                                \
    UNROLL for (uint i = 0u; i < 4u; i++)                                                              \
      if (!TF_HOLES || b[i % 2u][e] != TF_HOLE) sum[i] = tf_link(a[i / 2u][e], VALUE(b[i % 2u][e]), sum[i]);

void main() {
  Tile tile = tf_tile();
  if (tile.none) return;
  uint me = gl_LocalInvocationIndex, t = me - TF_WORKERS, row = me / 8u, col = me % 8u, side = 0u;
  bool works = me < TF_WORKERS;
  int a_row = tf_a_row();
  ivec3 limits = tf_limits();
  precise T ra[DEPTH / 8u], sum[4] = {T(0), T(0), T(0), T(0)};
  TF_UINT rb[DEPTH / 8u];
  uint depth = tile.conv.depth;
  TF_TABLE_START
  tf_table_columns(tile);
  if (!works) {
    TF_TABLE_BLOCK(tile.conv.begin)
    TF_TABLE_BLOCK(tile.conv.begin + TF_LOADERS)
  }
  barrier();
  if (!works) {
    { TF_FETCH(tile.conv.begin) }
    TF_KEEP(0u)
    TF_FETCH(tile.conv.begin + DEPTH)
  }
  barrier();
  for (uint k0 = tile.conv.begin; k0 < depth; k0 += DEPTH) {
    uint later = k0 + 2u * DEPTH; /* behind the last place there are loads too, which nobody uses */
    if (!works) {
      TF_KEEP(1u - side)
      TF_FETCH(later)
      if (later % TF_LOADERS == 0u) { TF_TABLE_BLOCK(later + TF_LOADERS) }
    } else if (FLUSH > 1u) { /* a long text for each: not unrolled */
      for (uint k = 0u; k < DEPTH / 4u; k++) { TF_STEP }
    } else {
      for (uint four = 0u; four < DEPTH / 4u; four += 4u)
        UNROLL for (uint j = 0u; j < 4u; j++) {
          uint k = four + j;
          TF_STEP
        }
    }
    side = 1u - side;
    barrier();
  }
  int line = tf_y_row();
  for (uint i = 0u; works && i < 4u; i++) {
    uint r = tile.row + row + i / 2u * 8u, c = col + i % 2u * 8u;
    if (r >= p_rows || tile.col + c >= tile.conv.cols) continue;
    precise T v = sum[i];
    if (BIASED != 0u) v = tf_add(v, load_bias(DTYPE, tile.conv.y / line + int(r)));
    store_out(TF_RESULT, tile.conv.y + int(r) * line + tf_results[c], v);
  }
}
