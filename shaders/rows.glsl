/* Rows of numbers, which bodies walk and sum in the canonical order (canonical_sum.glsl has the one for a single row).
 *
 * A work group has 256 invocations. Its body has, as constants or as macros,
 *   LAYOUT  0: 64 invocations sum a block of 2,048 elements, one for each lane; 1: 8 invocations a row, each with every
 *           eighth lane, for short rows; 2: the same, neighbouring invocations in neighbouring rows, for rows that lie
 *           across memory
 *   TEAMS   blocks of a row that are summed at a time: 1, 2 or 4; 1 but for layout 0
 *   SPLIT   2: two invocations share a lane, the second goes on where the first ends; else 1
 *   KEEP    how many elements an invocation has in registers, a multiple of 8, if it has all of its row: of one block
 *           with layout 0, of a row of one block with the others; 0: rows are read again for each pass
 *   FULL    1: KEEP is just what the rows take
 */
#define PARTS (LAYOUT == 0u ? 64u : 8u)
#define TF_ROWS (LAYOUT == 0u ? TF_GROUP / (64u * TEAMS * SPLIT) : TF_GROUP / 8u)
#define TF_EIGHTH (TF_GROUP / 8u)
/* Numbers of invocations; then of eight for each block; and what goes from the first half of a lane to the second. */
shared T tf_joint[TF_GROUP + TF_EIGHTH], tf_chain[TF_GROUP / 2u];

uint tf_part() {
  return LAYOUT == 2u ? gl_LocalInvocationIndex / TF_EIGHTH : gl_LocalInvocationIndex & (PARTS - 1u);
}
uint tf_half() { return gl_LocalInvocationIndex / 64u & (SPLIT - 1u); }
uint tf_team() { return LAYOUT == 0u ? gl_LocalInvocationIndex / (64u * SPLIT) & (TEAMS - 1u) : 0u; }
/* Among the blocks that the work group sums at a time. */
uint tf_block_here() { return gl_LocalInvocationIndex / (64u * SPLIT); }
/* Among the rows of the work group. */
uint tf_row_here() {
  if (LAYOUT == 0u) return gl_LocalInvocationIndex / (64u * SPLIT * TEAMS);
  return LAYOUT == 1u ? gl_LocalInvocationIndex / 8u : gl_LocalInvocationIndex & (TF_EIGHTH - 1u);
}
/* Whether the invocation is the one that writes what its row has one of. */
bool tf_speaks() { return tf_part() == 0u && tf_half() == 0u && tf_team() == 0u; }

/* Either the sum or the larger, NaN aside. */
T tf_pair(bool most, T a, T b) {
  if (most) return VALUE(tf_less(a, b) ? BITS(b) : BITS(a));
  return tf_add(a, b);
}
/* Of eight numbers, by halving. */
#define TF_EIGHT(RESULT, MOST, A)                                                                       \
  {                                                                                                     \
    UNROLL for (uint tf_h = 0u; tf_h < 4u; tf_h++) A[tf_h] = tf_pair(MOST, A[tf_h], A[tf_h + 4u]);      \
    UNROLL for (uint tf_h = 0u; tf_h < 2u; tf_h++) A[tf_h] = tf_pair(MOST, A[tf_h], A[tf_h + 2u]);      \
    RESULT = tf_pair(MOST, A[0], A[1]);                                                                 \
  }
T tf_eight(bool most, uint at, uint stride) {
  precise T a[8], r;
  UNROLL for (uint u = 0u; u < 8u; u++) a[u] = tf_joint[at + u * stride];
  TF_EIGHT(r, most, a)
  return r;
}

/* Puts the numbers of each block's invocations together by halving, those of the second halves where they are sums;
   then tf_joined has what came of them. Every invocation of the work group must come here. */
void tf_join(bool most, T v) {
  uint me = gl_LocalInvocationIndex, block = tf_block_here(), part = tf_part();
  if (LAYOUT != 0u) {
    barrier(); /* what was joined before is read */
    tf_joint[me] = v;
    barrier();
    return;
  }
  uint halves = most ? SPLIT : 1u, at = block * 64u * halves + part;
  if (most) tf_joint[me] = v;
  else if (tf_half() == SPLIT - 1u) tf_joint[at] = v;
  barrier();
  if (tf_half() == 0u && part < 8u) {
    precise T s = tf_eight(most, at, 8u * halves);
    if (halves == 2u) s = tf_pair(most, s, tf_eight(most, at + 8u, 16u));
    tf_joint[TF_GROUP + block * 8u + part] = s;
  }
  barrier();
}
/* Of one of the row's teams. */
T tf_joined(bool most, uint team) {
  uint at = TF_GROUP + (tf_row_here() * TEAMS + team) * 8u, stride = 1u;
  if (LAYOUT != 0u) at = gl_LocalInvocationIndex & ~7u;
  if (LAYOUT == 2u) {
    at = tf_row_here();
    stride = TF_EIGHTH;
  }
  return tf_eight(most, at, stride);
}
/* Of all of them: by halving too, where each has a block. */
T tf_joined_teams(bool most) {
  precise T a[4];
  UNROLL for (uint t = 0u; t < TEAMS; t++) a[t] = tf_joined(most, t);
  if (TEAMS == 4u) {
    UNROLL for (uint t = 0u; t < 2u; t++) a[t] = tf_pair(most, a[t], a[t + 2u]);
  }
  if (TEAMS > 1u) a[0] = tf_pair(most, a[0], a[1]);
  return a[0];
}
/* The largest of the row's numbers, all invocations get it. */
T tf_largest(T v) {
  tf_join(true, v);
  return tf_joined_teams(true);
}

/* ---- rows in registers: arrays of 32 numbers, of which KEEP are used. Their loops have to be unrolled. */
#ifdef TF_DOUBLE /* its functions are long texts, which software compiles slowly: compilers unroll as they like */
#define TF_UNROLL
#else
#define TF_UNROLL UNROLL
#endif
#define TF_EACH TF_UNROLL for (uint k = 0u; k < KEEP; k++)
/* Element number k of the invocation, and whether the row has it. */
uint tf_element(uint k) {
  if (LAYOUT != 0u) return 8u * k + tf_part();
  return (tf_team() << 11) + (tf_half() * KEEP + k) * 64u + tf_part();
}
bool tf_in(uint k, uint n) { return FULL != 0u || tf_element(k) < n; }
/* A term where the row has the element. */
T tf_term_in(uint k, uint n, T v) { return VALUE(tf_in(k, n) ? BITS(v) : BITS(TF_NOTHING)); }
/* The sum of the terms of a row, -0.0 where there is none. Every invocation of the work group must come here. */
#define TF_KEPT_SUM(RESULT, TERMS)                                                                      \
  {                                                                                                     \
    precise T tf_s = TF_NOTHING, tf_l[8];                                                           \
    if (LAYOUT == 0u) {                                                                                 \
      uint tf_slot = tf_block_here() * 64u + tf_part();                                                 \
      for (uint tf_h = 0u; tf_h < SPLIT; tf_h++) {                                                      \
        if (tf_half() == tf_h) {                                                                        \
          if (tf_h != 0u) tf_s = tf_chain[tf_slot];                                                     \
          TF_EACH tf_s = tf_add(tf_s, TERMS[k]);                                                        \
          if (tf_h + 1u < SPLIT) tf_chain[tf_slot] = tf_s;                                              \
        }                                                                                               \
        if (tf_h + 1u < SPLIT) barrier();                                                               \
      }                                                                                                 \
    } else {                                                                                            \
      UNROLL for (uint k = 0u; k < 8u; k++) tf_l[k] = TERMS[k];                                         \
      UNROLL for (uint k = 8u; k < KEEP; k++) tf_l[k & 7u] = tf_add(tf_l[k & 7u], TERMS[k]);            \
      TF_EIGHT(tf_s, false, tf_l)                                                                       \
    }                                                                                                   \
    tf_join(false, tf_s);                                                                               \
    RESULT = tf_joined_teams(false);                                                                    \
  }

/* ---- rows that are read again for each pass, SPLIT being 1: eight elements at a time, so that many accesses are on
   their way at once. READ gives two numbers of element i, v has them in a statement or term, which may use i too. */
#define TF_READ_EIGHT(FROM, STEP, END, READ)                                                            \
  T2 tf_v[8];                                                                                         \
  UNROLL for (uint u = 0u; u < 8u; u++) {                                                               \
    uint i = (FROM) + u * (STEP);                                                                       \
    tf_v[u] = T2(T(0));                                                                               \
    if (i < (END)) tf_v[u] = READ;                                                                      \
  }

/* Element number k of the invocation. */
uint tf_again(uint k) {
  uint each = 2048u / PARTS;
  return (k / each * TEAMS + tf_team() << 11) + k % each * PARTS + tf_part();
}
/* One statement for each element i that the invocation has of a block. */
#define TF_ALONG_BLOCK(BLOCK, N, READ, STATEMENT)                                                       \
  {                                                                                                     \
    uint tf_end = min((N), ((BLOCK) + 1u) << 11);                                                       \
    for (uint tf_i = ((BLOCK) << 11) + tf_part(); tf_i < tf_end; tf_i += 8u * PARTS) {                  \
      TF_READ_EIGHT(tf_i, PARTS, tf_end, READ)                                                          \
      TF_UNROLL for (uint u = 0u; u < 8u; u++) {                                                        \
        uint i = tf_i + u * PARTS;                                                                      \
        precise T2 v = tf_v[u];                                                                         \
        if (i < tf_end) { STATEMENT; }                                                                  \
      }                                                                                                 \
    }                                                                                                   \
  }
/* Of its row. */
#define TF_ALONG(N, READ, STATEMENT)                                                                    \
  {                                                                                                     \
    uint tf_n = (N);                                                                                    \
    for (uint tf_block = tf_team(); tf_block << 11 < tf_n; tf_block += TEAMS)                           \
      TF_ALONG_BLOCK(tf_block, tf_n, READ, STATEMENT)                                                   \
  }

/* Numbers of eight lanes as they come, in the order 0 4 2 6 1 5 3 7, by halving: LOW in place q is the last of them. */
#define TF_HALVED(LOW, TWO, FOUR, EIGHT, Q)                                                             \
  if (((Q) & 1u) == 0u) TWO = LOW; else LOW = tf_add(TWO, LOW);                                         \
  if (((Q) & 3u) == 1u) FOUR = LOW; else if (((Q) & 3u) == 3u) LOW = tf_add(FOUR, LOW);                 \
  if ((Q) == 3u) EIGHT = LOW; else if ((Q) == 7u) LOW = tf_add(EIGHT, LOW);

/* The sums of two terms over the lanes of one block, of which an invocation adds up its own. Then tf_join has to put
   the parts together. */
#define TF_BLOCK_SUMS(LOW, BLOCK, N, READ, TERM, ALSO, OTHER)                                           \
  {                                                                                                     \
    uint tf_from = (BLOCK) << 11, tf_end = min((N), tf_from + 2048u);                                   \
    precise T tf_two, tf_four, tf_eight, tf_two2, tf_four2, tf_eight2;                              \
    for (uint tf_q = 0u; tf_q < 64u / PARTS; tf_q++) {                                                  \
      uint tf_lane = PARTS == 64u ? 0u : (tf_q & 1u) << 2 | (tf_q & 2u) | tf_q >> 2;                    \
      LOW = TF_NOTHING;                                                                                 \
      ALSO = TF_NOTHING;                                                                                \
      for (uint tf_i = tf_from + tf_part() + tf_lane * PARTS; tf_i < tf_end; tf_i += 512u) {            \
        TF_READ_EIGHT(tf_i, 64u, tf_end, READ)                                                          \
        TF_UNROLL for (uint u = 0u; u < 8u; u++) {                                                      \
          uint i = tf_i + u * 64u;                                                                      \
          precise T2 v = tf_v[u];                                                                             \
          if (i < tf_end) {                                                                             \
            LOW = tf_add(LOW, TERM);                                                                    \
            ALSO = tf_add(ALSO, OTHER);                                                                 \
          }                                                                                             \
        }                                                                                               \
      }                                                                                                 \
      if (PARTS == 8u) {                                                                                \
        TF_HALVED(LOW, tf_two, tf_four, tf_eight, tf_q)                                                 \
        TF_HALVED(ALSO, tf_two2, tf_four2, tf_eight2, tf_q)                                             \
      }                                                                                                 \
    }                                                                                                   \
  }

/* The sum of a row of N terms: all invocations get it, and must come here with the same N. Rows of more than 2^22
   elements need 64 parts. */
#define TF_ROW_SUM(RESULT, N, READ, TERM)                                                               \
  {                                                                                                     \
    uint tf_n = (N), tf_blocks = (tf_n + 2047u) >> 11;                                                  \
    precise T tf_high = TF_NOTHING, tf_low = T(0), tf_none, tf_middle[8];                         \
    UNROLL for (uint tf_u = 0u; tf_u < 8u; tf_u++) tf_middle[tf_u] = TF_NOTHING;                        \
    for (uint tf_block = 0u; tf_block < tf_blocks; tf_block += TEAMS) {                                 \
      TF_BLOCK_SUMS(tf_low, tf_block + tf_team(), tf_n, READ, TERM, tf_none, TF_NOTHING)                \
      tf_join(false, tf_low);                                                                           \
      for (uint tf_b = tf_block; tf_b < min(tf_blocks, tf_block + TEAMS); tf_b++) {                     \
        tf_low = tf_joined(false, tf_b - tf_block);                                                     \
        uint tf_u = PARTS == 8u ? tf_b >> 3 & 7u : 0u;                                                  \
        if ((tf_b & (PARTS - 1u)) == tf_part()) tf_middle[tf_u] = tf_add(tf_middle[tf_u], tf_low);      \
      }                                                                                                 \
      bool tf_ends = tf_block + TEAMS >= tf_blocks;                                                     \
      if (tf_blocks > 1u && (tf_ends || (tf_block + TEAMS) % 2048u == 0u)) {                            \
        tf_low = tf_middle[0];                                                                          \
        if (PARTS == 8u) TF_EIGHT(tf_low, false, tf_middle)                                             \
        tf_join(false, tf_low);                                                                         \
        tf_low = tf_joined(false, 0u);                                                                  \
        if ((tf_block >> 11 & 63u) == tf_part()) tf_high = tf_add(tf_high, tf_low);                     \
        tf_middle[0] = TF_NOTHING;                                                                      \
      }                                                                                                 \
    }                                                                                                   \
    if (PARTS == 64u && tf_blocks > 2048u) {                                                            \
      tf_join(false, tf_high);                                                                          \
      tf_low = tf_joined(false, 0u);                                                                    \
    }                                                                                                   \
    RESULT = tf_low;                                                                                    \
  }
