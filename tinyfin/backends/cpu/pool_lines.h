/* Template: lines of max pooling for elements S, an unsigned type, with keys K (KU unsigned), or,
   with SUM, of sums of T. INF and QUIET are bit patterns of S. */
#ifndef SUM
#define LOWEST ((K)((KU)1 << (8 * sizeof(K) - 1)))
#define HIGHEST ((K)~LOWEST)
#define SHIFT (8 * (sizeof(K) - sizeof(S)))

/* numbers of either sign in order: negative ones with their other bits turned */
INLINE K NAME(turn)(K b) { return b ^ (K)((KU)(b >> (8 * sizeof(K) - 1)) & (KU)HIGHEST); }

INLINE K NAME(key)(S bits) {
  K b = (K)((KU)bits << SHIFT);
  return ((KU)b & (KU)HIGHEST) > (KU)INF << SHIFT ? HIGHEST : NAME(turn)(b);
}

static void NAME(lowest)(void *keys, int64_t n) {
  K *k = keys;
  for (int64_t i = 0; i < n; i++) k[i] = LOWEST;
}

INLINE void NAME(take)(K key, int64_t i, int32_t place, K *restrict keys, int32_t *restrict places) {
  int take = (key > keys[i]) | (key == HIGHEST);
  keys[i] = take ? key : keys[i];
  places[i] = take ? place : places[i];
}

INLINE void NAME(tap)(const S *x, int64_t step, int32_t first, int32_t stride, int64_t n,
                       K *restrict keys, int32_t *restrict places) {
  for (int64_t i = 0; i < n; i++)
    NAME(take)(NAME(key)(x[i * step]), i, first + (int32_t)i * stride, keys, places);
}

static void NAME(line)(const tf_pool_line *p, const void *x, int32_t first, void *keys,
                       int32_t *places) {
  const int64_t alone[2] = {0, 1};
  for (int64_t r = 0; r < p->k; r++) {
    const int64_t *reach = p->reach ? p->reach + 2 * r : alone;
    const int64_t o = reach[0], n = reach[1] - o, at = o * p->stride - p->pad + r * p->dil;
    const S *s = (const S *)x + at * p->step;
    const int64_t step = p->stride * p->step;
    const int32_t place = first + (int32_t)at, apart = (int32_t)p->stride;
    if (n <= 0) continue;
    if (step == 1) NAME(tap)(s, 1, place, apart, n, (K *)keys + o, places + o);
    else if (step == 2) NAME(tap)(s, 2, place, apart, n, (K *)keys + o, places + o);
    else NAME(tap)(s, step, place, apart, n, (K *)keys + o, places + o);
  }
}

INLINE S NAME(bits)(K key) {
  const S minus = (S)((KU)INF | (KU)1 << (8 * sizeof(S) - 1));
  S bits = key == LOWEST ? minus : (S)((KU)NAME(turn)(key) >> SHIFT);
  return key == HIGHEST ? (S)QUIET : bits;
}

static void NAME(end)(const void *keys, const int32_t *places, int64_t n, void *y,
                      int64_t *indices) {
  const K *k = keys;
  S *out = y;
  for (int64_t i = 0; i < n; i++) out[i] = NAME(bits)(k[i]);
  for (int64_t i = 0; i < n; i++) indices[i] = places[i];
}

typedef K NAME(vector) __attribute__((vector_size(TF_VBYTES)));
#define V NAME(vector)
#define LANES ((int)(TF_VBYTES / sizeof(K)))

INLINE V NAME(load)(const K *x, int64_t stride) {
  V v, w;
  memcpy(&v, x, sizeof v);
  if (stride == 1) return v;
  if (stride == 2) {
    memcpy(&w, x + LANES, sizeof w);
    return EVEN(v, w);
  }
  for (int e = 0; e < LANES; e++) v[e] = x[e * stride];
  return v;
}

/* Windows from i on, one in each lane. */
INLINE void NAME(some)(const tf_pool_line *p, const K *keys, int64_t length, const int32_t *firsts, int64_t lines,
                       int64_t i, int64_t stride, K *found, K *places) {
  V best = (V){0} + LOWEST, at = {0}, apart;
  for (int e = 0; e < LANES; e++) apart[e] = (K)((i + e) * stride - p->pad);
  for (int64_t b = 0; b < lines; b++)
    for (int64_t r = 0; r < p->k; r++) {
      const V key = NAME(load)(keys + b * length + i * stride + r * p->dil, stride);
      const V take = (key > best) | (key == HIGHEST);
      best = (key & take) | (best & ~take);
      at = ((apart + (K)(firsts[b] + r * p->dil)) & take) | (at & ~take);
    }
  memcpy(found, &best, sizeof best);
  memcpy(places, &at, sizeof at);
}

static void NAME(windows)(const tf_pool_line *p, const void *const *x, const int32_t *firsts, int64_t lines,
                          int64_t size, void *padded, int64_t length, void *y, int64_t *indices) {
  K found[TF_WHOLE], places[TF_WHOLE];
  S *out = y;
  for (int64_t b = 0; b < lines; b++) {
    const S *from = x[b];
    K *to = (K *)padded + b * length + p->pad;
    for (int64_t i = 0; i < size; i++) to[i] = NAME(key)(from[i]);
  }
  for (int64_t i = 0; i < p->n; i += TF_WHOLE) {
    const int m = p->n - i < TF_WHOLE ? (int)(p->n - i) : TF_WHOLE;
    for (int e = 0; e < TF_WHOLE; e += LANES) {
      if (p->stride == 1) NAME(some)(p, padded, length, firsts, lines, i + e, 1, found + e, places + e);
      else if (p->stride == 2) NAME(some)(p, padded, length, firsts, lines, i + e, 2, found + e, places + e);
      else NAME(some)(p, padded, length, firsts, lines, i + e, p->stride, found + e, places + e);
    }
    for (int e = 0; e < m; e++) out[i + e] = NAME(bits)(found[e]);
    for (int e = 0; e < m; e++) indices[i + e] = places[e];
  }
}

#undef V
#undef LANES
#undef LOWEST
#undef HIGHEST
#undef SHIFT
#else

static void NAME(begin)(void *acc, int64_t n) {
  T *a = acc;
  for (int64_t i = 0; i < n; i++) a[i] = -(T)0;
}

INLINE void NAME(add_tap)(const T *x, int64_t step, int64_t n, T *restrict acc) {
  for (int64_t i = 0; i < n; i++) acc[i] += x[i * step];
}

static void NAME(add)(const tf_pool_line *p, const void *x, void *acc) {
  const int64_t step = p->stride * p->step;
  for (int64_t r = 0; r < p->k; r++) {
    const int64_t o = p->reach[2 * r], n = p->reach[2 * r + 1] - o;
    const T *s = (const T *)x + (o * p->stride - p->pad + r * p->dil) * p->step;
    T *a = (T *)acc + o;
    if (n <= 0) continue;
    if (step == 1) NAME(add_tap)(s, 1, n, a);
    else if (step == 2) NAME(add_tap)(s, 2, n, a);
    else NAME(add_tap)(s, step, n, a);
  }
}

/* four windows at a time, since each addition of one waits for the one before */
static void NAME(wide)(const void *x, int64_t step, const int64_t *reach, int64_t n, void *acc) {
  enum { AT_ONCE = 4 };
  T *to = acc;
  for (int64_t o = 0; o < n; o += AT_ONCE, reach += 2 * AT_ONCE) {
    const T *from[AT_ONCE];
    T a[AT_ONCE];
    int64_t size[AT_ONCE], least = INT64_MAX;
    const int some = n - o < AT_ONCE ? (int)(n - o) : AT_ONCE;
    for (int k = 0; k < AT_ONCE; k++) {
      const int w = k < some ? k : 0;
      from[k] = (const T *)x + reach[2 * w] * step, size[k] = reach[2 * w + 1] - reach[2 * w];
      least = size[k] < least ? size[k] : least, a[k] = to[o + w];
    }
    for (int64_t i = 0; i < least; i++)
      for (int k = 0; k < AT_ONCE; k++) a[k] += from[k][i * step];
    for (int k = 0; k < some; k++) {
      for (int64_t i = least > 0 ? least : 0; i < size[k]; i++) a[k] += from[k][i * step];
      to[o + k] = a[k];
    }
  }
}

static void NAME(divide)(void *acc, const int64_t *counts, int64_t factor, int64_t n) {
  T *a = acc;
  for (int64_t i = 0; i < n; i++) a[i] /= (T)(factor * counts[i]);
}

/* falling taps: an element's windows come in rising order */
static void NAME(spread)(const tf_pool_line *p, const void *share, void *x) {
  const int64_t step = p->stride * p->step;
  if (!p->reach) {
    const T s = *(const T *)share;
    T *d = (T *)x - p->pad * p->step;
    for (int64_t r = 0; r < p->k; r++) d[r * p->step] += s;
    return;
  }
  for (int64_t r = p->k - 1; r >= 0; r--) {
    const int64_t o = p->reach[2 * r], last = p->reach[2 * r + 1];
    T *d = (T *)x + (o * p->stride - p->pad + r * p->dil) * p->step;
    const T *s = share;
    if (step == 1) for (int64_t i = o; i < last; i++, d++) *d += s[i];
    else for (int64_t i = o; i < last; i++, d += step) *d += s[i];
  }
}
#endif
