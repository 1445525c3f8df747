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

static void NAME(begin)(void *keys, int32_t *places, int64_t n) {
  K *k = keys;
  for (int64_t i = 0; i < n; i++) k[i] = LOWEST, places[i] = 0;
}

INLINE void NAME(tap)(const S *x, int64_t step, int32_t first, int32_t stride, int64_t n,
                       K *restrict keys, int32_t *restrict places) {
  for (int64_t i = 0; i < n; i++) {
    K key = NAME(key)(x[i * step]);
    int take = (key > keys[i]) | (key == HIGHEST);
    keys[i] = take ? key : keys[i];
    places[i] = take ? first + (int32_t)i * stride : places[i];
  }
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

static void NAME(end)(const void *keys, const int32_t *places, int64_t n, void *y,
                      int64_t *indices) {
  const K *k = keys;
  S *out = y;
  for (int64_t i = 0; i < n; i++) {
    const S minus = (S)((KU)INF | (KU)1 << (8 * sizeof(S) - 1));
    S bits = k[i] == LOWEST ? minus : (S)((KU)NAME(turn)(k[i]) >> SHIFT);
    out[i] = k[i] == HIGHEST ? (S)QUIET : bits;
  }
  for (int64_t i = 0; i < n; i++) indices[i] = places[i];
}

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
  if (!p->reach) { /* one window, all inside */
    const T *s = (const T *)x - p->pad * p->step;
    T a = *(T *)acc;
    for (int64_t r = 0; r < p->k; r++) a += s[r * p->step];
    *(T *)acc = a;
    return;
  }
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
