/* Lines of elements that are walked one after the other: an order that rounding does not let change. A work group has
 * LINES of them and goes part by part: all invocations load, one for each line computes, all store.
 *
 * The body names the type TF_ACC of what is loaded and TF_CARRY of what goes from element to element, and gives
 * tf_start(), tf_take(at), tf_factor(at) where LINEAR, tf_next(carry, factor, v, i) with what element i becomes, and
 * tf_put(at, v, x) where line x of the input begins. ALONG and OUT_ALONG say whether a line's elements lie closer
 * than its neighbours', in the inputs and in the output.
 */
#define TF_ROOM 2112u
#define TF_PITCH (LINES == 1u ? 1u : LINES + 1u) /* no two neighbours in one bank */
#define TF_HALF (TF_ROOM / 2u)
#define TF_PART ((LINES == 32u ? 32u : LINES == 8u ? 64u : 1024u) * (LINEAR != 0u ? 1u : 2u))
#define TF_MINE (TF_PART * LINES / TF_GROUP) /* elements of an invocation, at most eight */
shared TF_ACC tf_tile[TF_ROOM];
shared ivec3 tf_base[32]; /* where lines begin: input, output, factors */

/* Which line an invocation's element k is of, and its place in the part. */
uvec2 tf_mine(uint k, bool along) {
  uint i = gl_LocalInvocationIndex + k * TF_GROUP;
  return along ? uvec2(i / TF_PART, i % TF_PART) : uvec2(i % LINES, i / LINES);
}
void tf_load_part(uint lines, uint first, uint n) {
  TF_ACC v[8], f[8];
  UNROLL for (uint k = 0u; k < 8u; k++) {
    uvec2 e = tf_mine(k, ALONG != 0u);
    if (k < TF_MINE && e.x < lines && e.y < n) {
      int i = int(first + e.y);
      v[k] = tf_take(tf_base[e.x].x + i * p_xstep);
      if (LINEAR != 0u) f[k] = tf_factor(tf_base[e.x].z + i * p_fstep);
    }
  }
  UNROLL for (uint k = 0u; k < 8u; k++) {
    uvec2 e = tf_mine(k, ALONG != 0u);
    if (k < TF_MINE && e.x < lines && e.y < n) {
      tf_tile[e.y * TF_PITCH + e.x] = v[k];
      if (LINEAR != 0u) tf_tile[TF_HALF + e.y * TF_PITCH + e.x] = f[k];
    }
  }
}
void tf_store_part(uint lines, uint first, uint n) {
  UNROLL for (uint k = 0u; k < 8u; k++) {
    uvec2 e = tf_mine(k, OUT_ALONG != 0u);
    if (k < TF_MINE && e.x < lines && e.y < n)
      tf_put(tf_base[e.x].y + int(first + e.y) * p_ystep, tf_tile[e.y * TF_PITCH + e.x], tf_base[e.x].x);
  }
}
/* A line's elements, eight at a time from memory, so that only the computing waits for itself. */
void tf_walk_part(inout TF_CARRY carry, uint first, uint n) {
  uint me = gl_LocalInvocationIndex, i = 0u;
  for (; i + 8u <= n; i += 8u) {
    TF_ACC v[8], f[8];
    UNROLL for (uint k = 0u; k < 8u; k++) {
      v[k] = tf_tile[(i + k) * TF_PITCH + me];
      if (LINEAR != 0u) f[k] = tf_tile[TF_HALF + (i + k) * TF_PITCH + me];
    }
    UNROLL for (uint k = 0u; k < 8u; k++) v[k] = tf_next(carry, f[k], v[k], first + i + k);
    UNROLL for (uint k = 0u; k < 8u; k++) tf_tile[(i + k) * TF_PITCH + me] = v[k];
  }
  for (; i < n; i++) {
    TF_ACC f = tf_tile[(LINEAR != 0u ? TF_HALF : 0u) + i * TF_PITCH + me];
    tf_tile[i * TF_PITCH + me] = tf_next(carry, f, tf_tile[i * TF_PITCH + me], first + i);
  }
}

void main() {
  uint me = gl_LocalInvocationIndex, line = tf_group() * LINES;
  if (line >= p_lines) return;
  uint lines = min(LINES, p_lines - line);
  if (me < lines) {
    ivec4 k = tf_unravel(line + me, p_shape(0), p_shape(1), p_shape(2));
    tf_base[me] = ivec3(tf_dot(k, p_stride(0), p_stride(1), p_stride(2), p_stride(3)),
                        tf_dot(k, p_stride(4), p_stride(5), p_stride(6), p_stride(7)),
                        LINEAR != 0u ? tf_dot(k, p_stride(8), p_stride(9), p_stride(10), p_stride(11)) : 0);
  }
  barrier();
  TF_CARRY carry = tf_start();
  for (uint first = 0u; first < p_n; first += TF_PART) {
    uint n = min(TF_PART, p_n - first);
    tf_load_part(lines, first, n);
    barrier();
    if (me < lines) tf_walk_part(carry, first, n);
    barrier();
    tf_store_part(lines, first, n);
    barrier();
  }
}
