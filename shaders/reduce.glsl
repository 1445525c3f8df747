/* Rows of elements joined to one result each, in the canonical order: 64 lanes a block of 2,048, by halving.
 *
 * The body names its type TF_ACC and gives tf_unit(), tf_join(a, b), tf_item(at, i) for element i of a row at an
 * offset, tf_items(at, i, step, v) for four neighbours, elements i, i + step, ..., tf_begin(o) before a row,
 * tf_between(v) between two PASSES over it, tf_keep(u, v) for the value of one block of several and tf_finish(o, v).
 *
 *   TF_ROWS      16 invocations for a block, each with every 16th lane
 *   TF_QUADS     the same with four neighbouring lanes: one access where elements lie along memory
 *   TF_COLUMNS   32 results side by side, eight invocations with every eighth lane for each
 *   TF_FEW       rows of at most 16 elements, one invocation each
 *   TF_ACROSS    as TF_COLUMNS, but 8 x 32 invocations with four neighbouring results and two lanes each: one access
 *                for four; not for bodies that look at the result's own numbers, as variances do
 *
 * LAYOUT is one of them, plus TF_WALKS where several axes go.
 * Up to 16 blocks of a row are joined by one work group; of more, each gives a part for the next dispatch.
 */
#define TF_ROWS 0u
#define TF_QUADS 1u
#define TF_COLUMNS 2u
#define TF_FEW 3u
#define TF_ACROSS 4u
#define TF_WALKS 8u
#define TF_SHAPE (LAYOUT & 7u)
#define TF_BESIDE (TF_SHAPE == TF_COLUMNS || TF_SHAPE == TF_ACROSS)
shared TF_ACC tf_held[1024];

/* Offset of place i of the axes from `first` to the one before `end`. */
int tf_place(uint i, uint first, uint end) {
  int at = 0;
  for (uint k = end; k > first + 1u; k--) {
    uint size = p_shape(k - 1u), outer = i / size;
    at += int(i - outer * size) * p_stride(k - 1u);
    i = outer;
  }
  return end > first ? at + int(i) * p_stride(first) : 0;
}
int tf_row(uint o) { return tf_place(o, 0u, p_kept); }
int tf_gone(uint i) { return LAYOUT >= TF_WALKS ? tf_place(i, p_kept, p_axes) : int(i) * p_stride(p_kept); }

void tf_add_items(int at, uint i, inout TF_ACC a[4]) {
  TF_ACC v[4];
  tf_items(at, i, 1u, v);
  UNROLL for (uint k = 0u; k < 4u; k++) a[k] = tf_join(a[k], v[k]);
}
/* Elements first .. end - 1 of a row: lane t + 16 k in a[k]. All of the work group must come here. */
void tf_block_rows(int at, uint first, uint end, out TF_ACC a[4]) {
  uint me = gl_LocalInvocationIndex, t = me & 15u;
  UNROLL for (uint k = 0u; k < 4u; k++) a[k] = tf_unit();
  if (TF_SHAPE == TF_QUADS) {
    uint i = first + 4u * t;
    for (; i + 195u < end; i += 256u) /* four accesses under way */
      UNROLL for (uint k = 0u; k < 4u; k++) tf_add_items(at + tf_gone(i + 64u * k), i + 64u * k, a);
    for (; i + 3u < end; i += 64u) tf_add_items(at + tf_gone(i), i, a);
    UNROLL for (uint k = 0u; k < 3u; k++) if (i + k < end) a[k] = tf_join(a[k], tf_item(at + tf_gone(i + k), i + k));
    UNROLL for (uint k = 0u; k < 4u; k++) tf_held[4u * me + k] = a[k];
    barrier();
    UNROLL for (uint k = 0u; k < 4u; k++) a[k] = tf_held[4u * (me - t) + t + 16u * k];
    barrier();
    return;
  }
  uint i = first + t;
  for (; i + 48u < end; i += 64u)
    UNROLL for (uint k = 0u; k < 4u; k++)
      a[k] = tf_join(a[k], tf_item(at + tf_gone(i + 16u * k), i + 16u * k));
  UNROLL for (uint k = 0u; k < 3u; k++)
    if (i + 16u * k < end) a[k] = tf_join(a[k], tf_item(at + tf_gone(i + 16u * k), i + 16u * k));
}
/* Invocation `me` takes that of me + by, + by / 2, ... + step, where it is in the lower half of `place`. */
TF_ACC tf_halved(TF_ACC v, uint place, uint count, uint step) {
  uint me = gl_LocalInvocationIndex;
  tf_held[me] = v;
  barrier();
  for (uint w = count >> 1; w > 0u; w >>= 1) {
    if (place < w) tf_held[me] = tf_join(tf_held[me], tf_held[me + w * step]);
    barrier();
  }
  TF_ACC r = tf_held[me - place * step];
  barrier();
  return r;
}
/* The value of a row's block, or of a whole row of up to 16 blocks. */
TF_ACC tf_row_value(int at, uint block, uint end) {
  TF_ACC a[4];
  tf_block_rows(at, block << 11, end, a);
  TF_ACC v = tf_join(tf_join(a[0], a[2]), tf_join(a[1], a[3]));
  v = tf_halved(v, gl_LocalInvocationIndex & 15u, 16u, 1u);
  if (p_teams > 1u) v = tf_halved(v, (gl_LocalInvocationIndex >> 4) & (p_teams - 1u), p_teams, 16u);
  return v;
}
TF_ACC tf_column_value(int at, uint first, uint end) {
  uint g = gl_LocalInvocationIndex >> 5, i = first + g;
  TF_ACC a[8];
  UNROLL for (uint k = 0u; k < 8u; k++) a[k] = tf_unit();
  for (; i + 56u < end; i += 64u) {
    TF_ACC v[8];
    UNROLL for (uint k = 0u; k < 8u; k++) v[k] = tf_item(at + tf_gone(i + 8u * k), i + 8u * k);
    UNROLL for (uint k = 0u; k < 8u; k++) a[k] = tf_join(a[k], v[k]);
  }
  UNROLL for (uint k = 0u; k < 7u; k++)
    if (i + 8u * k < end) a[k] = tf_join(a[k], tf_item(at + tf_gone(i + 8u * k), i + 8u * k));
  UNROLL for (uint k = 0u; k < 4u; k++) a[k] = tf_join(a[k], a[k + 4u]);
  return tf_halved(tf_join(tf_join(a[0], a[2]), tf_join(a[1], a[3])), g, 8u, 32u);
}
/* All of a block's four results at `at`; each of the first 32 invocations gets its own. */
TF_ACC tf_across_value(int at, uint first, uint end) {
  uint me = gl_LocalInvocationIndex, i = first + me / 8u;
  TF_ACC a[8];
  UNROLL for (uint k = 0u; k < 8u; k++) a[k] = tf_unit();
  for (; i < end; i += 128u) { /* four accesses under way, which wait for no branch */
    TF_ACC v[16];
    UNROLL for (uint u = 0u; u < 4u; u++) {
      TF_ACC four[4];
      uint q = min(i + 32u * u, end - 1u);
      tf_items(at + tf_gone(q), q, 0u, four);
      UNROLL for (uint k = 0u; k < 4u; k++) v[4u * u + k] = four[k];
    }
    UNROLL for (uint u = 0u; u < 4u; u++)
      if (i + 32u * u < end)
        UNROLL for (uint k = 0u; k < 4u; k++) a[u % 2u * 4u + k] = tf_join(a[u % 2u * 4u + k], v[4u * u + k]);
  }
  UNROLL for (uint k = 0u; k < 4u; k++) tf_held[256u * k + me] = tf_join(a[k], a[k + 4u]);
  barrier();
  for (uint w = 128u; w >= 8u; w >>= 1) {
    if (me < w)
      UNROLL for (uint k = 0u; k < 4u; k++)
        tf_held[256u * k + me] = tf_join(tf_held[256u * k + me], tf_held[256u * k + me + w]);
    barrier();
  }
  return tf_held[256u * (me & 3u) + (me >> 2 & 7u)];
}
TF_ACC tf_few_value(int at) {
  TF_ACC a[16];
  UNROLL for (uint k = 0u; k < 16u; k++) {
    a[k] = tf_unit();
    if (k < p_n) a[k] = tf_join(a[k], tf_item(at + tf_gone(k), k));
  }
  UNROLL for (uint k = 0u; k < 8u; k++) a[k] = tf_join(a[k], a[k + 8u]);
  UNROLL for (uint k = 0u; k < 4u; k++) a[k] = tf_join(a[k], a[k + 4u]);
  return tf_join(tf_join(a[0], a[2]), tf_join(a[1], a[3]));
}

void main() {
  uint me = gl_LocalInvocationIndex, o, block = 0u;
  uint from = 0u; /* the result whose elements are taken */
  bool mine, first, takes;
  if (TF_SHAPE == TF_FEW) {
    o = tf_thread();
    mine = first = o < p_outs;
  } else if (TF_BESIDE) {
    uint cuts = (p_outs + 31u) / 32u;
    block = tf_group() / cuts;
    o = (tf_group() - block * cuts) * 32u;
    from = o + (me & 7u) * 4u;
    o += me & 31u;
    mine = o < p_outs && block < p_blocks;
    first = mine && me < 32u;
  } else {
    uint u = tf_group() * 16u + (me >> 4);
    if (p_blocks <= 16u) {
      o = u / p_teams;
      block = u & (p_teams - 1u);
    } else if (TF_SHAPE == TF_QUADS) {
      o = u / p_blocks;
      block = u - o * p_blocks;
    } else { /* rows in gaps of each other, as a few columns are, go together */
      block = u / p_outs;
      o = u - block * p_outs;
    }
    mine = o < p_outs && block < p_blocks;
    first = mine && (me & 15u) == 0u && (p_teams == 1u || block == 0u);
  }
  if (TF_SHAPE != TF_ACROSS) from = o;
  takes = from < p_outs && block < p_blocks;
  int at = takes ? tf_row(from) : 0;
  uint end = takes ? min(p_n, (block + 1u) << 11) : 0u;
  TF_ACC v = tf_unit();
  if (mine) tf_begin(o);
  for (uint pass = 0u; pass < PASSES; pass++) {
    if (pass != 0u) tf_between(v);
    if (TF_SHAPE == TF_FEW) { if (mine) v = tf_few_value(at); }
    else if (TF_SHAPE == TF_ACROSS) v = tf_across_value(at, block << 11, end);
    else if (TF_SHAPE == TF_COLUMNS) v = tf_column_value(at, block << 11, end);
    else v = tf_row_value(at, block, end);
  }
  if (!first) return;
  if (p_blocks > 16u || (TF_BESIDE && p_blocks > 1u))
    tf_keep(TF_BESIDE ? block * p_outs + o : o * p_blocks + block, v);
  else tf_finish(o, v);
}
