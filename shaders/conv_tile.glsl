/* What the bodies share whose work group computes a tile of ROWS x COLS, DEPTH places of the chains at a time.
 *
 * Where an element of b lies is the sum of what its column and its place in the chain say, which stand in tables: an
 * offset, and what tells whether it is inside. One of the two is a tap, the other has a place for it: with WIDE 0
 * the tap has a bit for each axis, the place all bits whose taps are inside. With WIDE 1, where taps are too many
 * for a word, each has three coordinates, whose sums must be inside.
 *
 * PARTS, a constant: pieces that chains are cut into, in whole blocks of the table; the results of each follow those
 * of the one before it, in the type that computes.
 *
 * TF_HOLES: what is not inside is left out of the chains; else it is 0. TF_LOADERS: how many invocations load; the
 * table of the chains is a ring of two blocks of as many places, each loader writes its place of the next block.
 */
#define TF_RING(k) ((k) & (2u * TF_LOADERS - 1u))
shared ivec2 tf_columns[COLS], tf_chains[2u * TF_LOADERS];
shared ivec2 tf_columns_more[COLS * WIDE + 1u], tf_chains_more[2u * TF_LOADERS * WIDE + 1u];
shared int tf_results[COLS], tf_in_row[2u * TF_LOADERS];
#define TF_RESULT (PARTS > 1u ? TF_OWN : DTYPE)
/* A NaN that no tensor has, since theirs of these bits become another. */
#ifdef TF_DOUBLE
#define TF_HOLE 0x7ffdcba987654321UL
#define TF_OTHER TF_D_NAN
#else
#define TF_HOLE 0x7fedcba9u
#define TF_OTHER 0x7fc00000u
#endif
struct Tile {
  Conv conv;
  uint row, col; /* the first ones */
  bool none;     /* past the last tile */
};

Tile tf_tile() {
  Tile t;
  ivec3 classes = tf_classes();
  uint down = (p_rows + ROWS - 1u) / ROWS, across = (tf_most_columns() + COLS - 1u) / COLS, i = tf_group();
  t.row = i % down * ROWS;
  i /= down;
  t.col = i % across * COLS;
  i /= across;
  uint all = uint(tf_volume(classes)), group = i / all % p_groups, part = i / all / p_groups;
  t.conv = tf_conv(group, i % all);
  t.none = part >= PARTS || t.col >= t.conv.cols;
  if (PARTS > 1u) {
    uint each = (t.conv.depth + PARTS * TF_LOADERS - 1u) / (PARTS * TF_LOADERS) * TF_LOADERS;
    t.conv.begin = part * each;
    t.conv.depth = min(t.conv.depth, t.conv.begin + each);
    t.conv.y += int(part * p_groups * p_rows) * tf_y_row();
  }
  return t;
}

uint tf_bit(int d, int tap) { return 1u << uint(tap + (d > 0 ? p_kernel(0) : 0) + (d > 1 ? p_kernel(1) : 0)); }
/* A tap, or the taps that are inside from a place. */
int tf_tap_bits(ivec3 tap) { return int(tf_bit(0, tap.x) | tf_bit(1, tap.y) | tf_bit(2, tap.z)); }
int tf_place_bits(ivec3 at, ivec3 step, ivec3 taps) {
  ivec3 limits = tf_limits();
  uint bits = 0u;
  for (int d = 0; d < 3; d++)
    for (int r = 0; r < taps[d]; r++)
      if (uint(at[d] + r * step[d]) < uint(limits[d])) bits |= tf_bit(d, r);
  return int(bits);
}

void tf_table_column(Conv c, uint i, uint col) {
  ivec4 k;
  ivec3 at;
  int offset = c.b, result = int(col), bits = 0;
  if (MODE == 2u) {
    k = tf_places(col, tf_kernel());
    at = k.yzw * tf_dil() - tf_pad();
    offset += k.x * p_b_channel;
    if (WIDE == 0u) bits = tf_tap_bits(k.yzw);
  } else {
    k = tf_places(col, c.count);
    at = MODE == 1u ? k.yzw + c.from : k.yzw * tf_stride() - tf_pad();
    offset += k.x * p_b_image;
    result = k.x * tf_other_image();
    if (MODE == 1u) result += tf_linear(c.rest + k.yzw * tf_stride(), tf_size());
    else result += tf_linear(k.yzw, tf_outs());
    if (WIDE == 0u) bits = tf_place_bits(at, MODE == 1u ? -c.step : tf_dil(), c.taps);
  }
  tf_results[i] = result;
  tf_columns[i] = ivec2(offset + tf_linear(at, tf_limits()), WIDE == 0u ? bits : at.z);
  if (WIDE != 0u) tf_columns_more[i] = at.xy;
}

/* Places in the chains as numbers of four digits: image or channel, and three coordinates of a place or tap. */
ivec3 tf_radix(Conv c) { return MODE == 2u ? tf_outs() : max(c.taps, ivec3(1)); }
ivec4 tf_sum(ivec4 a, ivec4 b, ivec3 radix) {
  a += b;
  for (int d = 3; d > 0; d--)
    if (a[d] >= radix[d - 1]) {
      a[d] -= radix[d - 1];
      a[d - 1]++;
    }
  return a;
}
/* Place k, whose digits are p. */
void tf_table_chain(Conv c, uint k, ivec4 p) {
  int row = -1, offset = 0, bits = MODE == 2u ? 0 : int(0x80000000u); /* behind the last place nothing is inside */
  ivec3 at = ivec3(0x40000000);
  if (k < c.depth && MODE == 2u) {
    at = p.yzw * tf_stride();
    row = p.x * tf_other_image() + tf_linear(p.yzw, tf_outs());
    offset = p.x * p_b_image + tf_linear(at, tf_size());
    if (WIDE == 0u) bits = tf_place_bits(at - tf_pad(), tf_dil(), tf_kernel());
  } else if (k < c.depth) {
    at = MODE == 1u ? -p.yzw * c.step : p.yzw * tf_dil();
    row = int(k);
    if (MODE == 1u) row = p.x * int(p_rows) * tf_volume(tf_kernel()) + tf_linear(c.first + p.yzw * c.gap, tf_kernel());
    offset = p.x * p_b_channel + tf_linear(at, tf_limits());
    if (WIDE == 0u) bits = tf_tap_bits(p.yzw);
  }
  tf_in_row[TF_RING(k)] = row;
  tf_chains[TF_RING(k)] = ivec2(offset, WIDE == 0u ? bits : at.z);
  if (WIDE != 0u) tf_chains_more[TF_RING(k)] = at.xy;
}
/* Loader t begins with its first two places; then comes the block from k on. TF_COUNTS: whether digits are kept and
   counted on, which takes registers, or found by divisions. */
#define TF_TABLE_BLOCK(k)                                                                              \
  tf_table_chain(tile.conv, (k) + t, TF_COUNTS ? place : tf_places((k) + t, radix));                   \
  if (TF_COUNTS) place = tf_sum(place, block, radix);
#define TF_TABLE_START                                                                                 \
  ivec3 radix = tf_radix(tile.conv);                                                                   \
  ivec4 place = tf_places(tile.conv.begin + t, radix), block = tf_places(TF_LOADERS, radix);

/* Columns past the last are the last one again: what they give is not stored. */
void tf_table_columns(Tile t) {
  for (uint i = gl_LocalInvocationIndex; i < COLS; i += TF_GROUP)
    tf_table_column(t.conv, i, min(t.col + i, t.conv.cols - 1u));
}

/* An element of b as bits. What is not inside is read too, from the first element: nothing waits for a branch then. */
TF_UINT tf_element(ivec2 column, ivec2 chain, uint i, uint k, ivec3 limits) {
  bool outside;
  if (WIDE == 0u) {
    int tap = MODE == 2u ? column.y : chain.y, place = MODE == 2u ? chain.y : column.y;
    outside = (tap & ~place) != 0;
  } else {
    ivec2 more = tf_columns_more[i] + tf_chains_more[k];
    outside = any(greaterThanEqual(uvec3(more, column.y + chain.y), uvec3(limits)));
  }
  TF_UINT w = BITS(load_b(DTYPE, outside ? 0 : column.x + chain.x));
  if (TF_HOLES && w == TF_HOLE) w = TF_OTHER;
  return outside ? (TF_HOLES ? TF_HOLE : TF_UINT(0)) : w;
}
/* One of a; -0 behind the last place, which with 0 in b leaves a chain as it is. */
T tf_weight(int row, int at) {
  TF_UINT w = BITS(load_a(DTYPE, at < 0 ? 0 : row + at));
  return VALUE(at < 0 ? BITS(TF_NOTHING) : w);
}

/* What x of loader t loads: neighbours along k in a, in b along columns but where k are neighbours in memory. A
   loader has one k for all x in a; in b too, or one column. */
#define TF_A_WIDE(x) (t / DEPTH + TF_LOADERS / DEPTH * (x))
#define TF_A_DEEP(x) (t % DEPTH)
#define TF_B_WIDE(x) (MODE == 2u ? TF_A_WIDE(x) : t % COLS)
#define TF_B_DEEP(x) (MODE == 2u ? TF_A_DEEP(x) : t / COLS + TF_LOADERS / COLS * (x))
/* What is the same for all x, and one load of each. */
#define TF_FETCH_START(k0)                                                                             \
  int in_row = tf_in_row[TF_RING((k0) + t % DEPTH)];                                                   \
  ivec2 same = MODE == 2u ? tf_chains[TF_RING((k0) + t % DEPTH)] : tf_columns[t % COLS];
#define TF_FETCH_A(x)                                                                                  \
  ra[x] = tf_weight(tile.conv.a + int(min(tile.row + TF_A_WIDE(x), p_rows - 1u)) * a_row, in_row);
#define TF_FETCH_B(x, k0)                                                                              \
  {                                                                                                    \
    uint i_ = TF_B_WIDE(x), k_ = TF_RING((k0) + TF_B_DEEP(x));                                          \
    if (MODE == 2u) rb[x] = tf_element(tf_columns[i_], same, i_, k_, limits);                          \
    else rb[x] = tf_element(same, tf_chains[k_], i_, k_, limits);                                      \
  }
