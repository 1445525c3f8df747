/* Sums in the canonical order: blocks of 2,048 numbers, 64 lanes a block, halving; then the blocks' sums alike.
 *
 * 64 invocations are a team; a work group may hold several, which all go through the same barriers, so their
 * sums must have the same length (or ask for TF_MOST of them, terms past the end are not added).
 *
 *   precise T s;
 *   TF_CANONICAL_SUM(s, n, load_x(DTYPE, base + int(i)));     the term may use i
 */
shared T tf_lanes[TF_GROUP];
#define TF_LANE (gl_LocalInvocationIndex & 63u)
#define TF_TEAM (gl_LocalInvocationIndex >> 6)
#define TF_TEAMS (TF_GROUP / 64u)

/* The sum of the team's 64 numbers: lane j takes lane j + 32, then + 16, ... + 1; all get it. */
T tf_halved(T v) {
  uint lane = TF_LANE, me = gl_LocalInvocationIndex;
  tf_lanes[me] = v;
  barrier();
  for (uint w = 32u; w > 0u; w >>= 1) {
    if (lane < w) tf_lanes[me] = tf_add(tf_lanes[me], tf_lanes[me + w]);
    barrier();
  }
  precise T r = tf_lanes[me - lane];
  barrier();
  return r;
}

/* Three levels: 2^33 numbers. Every invocation of the work group must come here, with the same N. */
#define TF_CANONICAL_SUM(RESULT, N, TERM)                                                               \
  {                                                                                                     \
    uint tf_n = (N), tf_blocks = (tf_n + 2047u) >> 11;                                                  \
    precise T tf_high = TF_NOTHING, tf_middle = TF_NOTHING, tf_low;                                     \
    for (uint tf_block = 0u; tf_block < tf_blocks; tf_block++) {                                        \
      uint tf_end = min(tf_n, (tf_block + 1u) << 11);                                                   \
      tf_low = TF_NOTHING;                                                                              \
      for (uint i = (tf_block << 11) + TF_LANE; i < tf_end; i += 64u) tf_low = tf_add(tf_low, TERM);    \
      tf_low = tf_halved(tf_low);                                                                       \
      if ((tf_block & 63u) == TF_LANE) tf_middle = tf_add(tf_middle, tf_low);                           \
      if ((tf_block & 2047u) == 2047u && tf_blocks > 2048u) {                                           \
        tf_middle = tf_halved(tf_middle);                                                               \
        if ((tf_block >> 11 & 63u) == TF_LANE) tf_high = tf_add(tf_high, tf_middle);                    \
        tf_middle = TF_NOTHING;                                                                         \
      }                                                                                                 \
    }                                                                                                   \
    if (tf_blocks == 1u) RESULT = tf_low;                                                               \
    else if (tf_blocks <= 2048u) RESULT = tf_halved(tf_middle);                                         \
    else {                                                                                              \
      tf_middle = tf_halved(tf_middle);                                                                 \
      if ((tf_blocks & 2047u) != 0u && (tf_blocks >> 11 & 63u) == TF_LANE) tf_high = tf_add(tf_high, tf_middle); \
      RESULT = tf_halved(tf_high);                                                                      \
    }                                                                                                   \
    if (tf_n == 0u) RESULT = T(0);                                                                      \
  }
