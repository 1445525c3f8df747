/* Template: what convolutions need beside tiles, for one accumulator type; follows gemm_pack.h. */

/* B of a convolution: row q of the panel is a few runs of src + off[q], one after the other. Several rows at a time take
   the same run, whose lengths and masks are found once. Lanes past a run are written over by what follows, but past `end`. */
TF_INLINE void NAME(rows_of_runs)(const T *s, const int64_t *off, int rows, const int64_t *runs, int count, T *d,
                                  const T *end) {
  for (int r = 0; r < count; r++) {
    const T *p = s + runs[2 * r];
    const int64_t n = runs[2 * r + 1];
    int64_t i = 0;
    for (; n - i >= L; i += L) for (int q = 0; q < rows; q++) STORE(d + q * NR + i, LOAD(p + off[q] + i));
    const int left = (int)(n - i);
    if (left && d + i + L > end)
      for (int q = 0; q < rows; q++) STORE_PART(d + q * NR + i, LOAD_PART(p + off[q] + i, left), left);
    else if (left)
      for (int q = 0; q < rows; q++) STORE(d + q * NR + i, LOAD_PART(p + off[q] + i, left));
    d += n;
  }
}

static void NAME(pack_runs)(const void *src, const int64_t *off, int64_t k, const int64_t *runs,
                            int count, void *dst) {
#if TF_VBYTES == 64
  enum { ROWS_AT_ONCE = 16 };
#else /* a part of a vector is stored by elements there: once in a panel, not in each row */
  enum { ROWS_AT_ONCE = 1 };
#endif
  enum { AHEAD = 16, LINE = 64 / sizeof(T) }; /* planes are far apart, which no prefetcher sees */
  const T *s = src;
  T *d = dst;
  for (int64_t q = 0; q < k; q += ROWS_AT_ONCE, d += ROWS_AT_ONCE * NR) {
    const int rows = k - q < ROWS_AT_ONCE ? (int)(k - q) : ROWS_AT_ONCE;
    for (int r = 0; r < count; r++) {
      if (r && runs[2 * r] - runs[2 * r - 2] >= 0 && runs[2 * r] - runs[2 * r - 2] < LINE / 2) continue;
      for (int64_t i = q + AHEAD; i < q + AHEAD + rows && i < k; i++) __builtin_prefetch(s + off[i] + runs[2 * r]);
    }
    NAME(rows_of_runs)(s, off + q, rows, runs, count, d, rows > 1 ? d + NR : (T *)dst + k * NR);
  }
}

/* A of an input gradient: element (i, q) at src + i * is + off[q] */
static void NAME(pack_at)(const void *src, int64_t is, const int64_t *off, int64_t count, int64_t k,
                          void *dst) {
  T *d = dst;
  for (int64_t q = 0; q < k; q++, d += MR) {
    const T *s = (const T *)src + off[q];
    if (is == 1) {
      memcpy(d, s, MR * sizeof(T));
      continue;
    }
    for (int64_t i = 0; i < count; i++) d[i] = s[i * is];
    for (int64_t i = count; i < MR; i++) d[i] = 0;
  }
}

/* A of a few columns: element (i, q) at src + at[i] + off[q] */
static void NAME(pack_points)(const void *src, const int64_t *at, const int64_t *off, int64_t count,
                              int64_t k, void *dst) {
  T *d = dst;
  for (int64_t q = 0; q < k; q++, d += MR) {
    const T *s = (const T *)src + off[q];
    for (int64_t i = 0; i < count; i++) d[i] = s[at[i]];
  }
}

/* every second of 2 n - 1 elements */
static void NAME(halve)(const T *s, int64_t n, T *d) {
  for (int64_t i = 0; i < n; i += L) {
    const int64_t there = 2 * (n - i) - 1; /* elements that may be read */
    const V a = there < L ? LOAD_PART(s + 2 * i, (int)there) : LOAD(s + 2 * i);
    const V b = there >= 2 * L  ? LOAD(s + 2 * i + L)
                : there > L     ? LOAD_PART(s + 2 * i + L, (int)(there - L))
                                : (V){0};
    const V x = TF_JOIN(tf_even, T)(a, b);
    if (n - i < L) STORE_PART(d + i, x, (int)(n - i));
    else STORE(d + i, x);
  }
}

/* Pieces of a row of a padded copy. `over`: what lies behind may be written, up to a vector, since it is written again. */
TF_INLINE T *NAME(zeros)(T *d, int64_t n, int over) {
  int64_t i = 0;
  if (over) for (; i < n; i += L) STORE(d + i, (V){0});
  for (; i < n; i += L) STORE_PART(d + i, (V){0}, (int)(n - i < L ? n - i : L));
  return d + n;
}
/* x holds the last n elements, and then zeros */
TF_INLINE T *NAME(ending)(T *d, V x, int64_t n, int64_t after, int over) {
  if (!over) {
    if (n) STORE_PART(d, x, (int)n);
    return NAME(zeros)(d + n, after, 0);
  }
  STORE(d, x);
  if (n + after > L) NAME(zeros)(d + L, n + after - L, 1);
  return d + n + after;
}
/* whether the vector of the last n elements brings the zeros up to the next row's elements too */
TF_INLINE int NAME(covers)(const tf_fill *p, int64_t n) { return n + p->after + p->before <= L; }

/* rows of a padded copy */
static void NAME(fill)(const tf_fill *p, const void *src, int64_t rows, void *dst) {
  const int64_t size = tf_itemsize[p->dtype], all = p->before + p->n + p->after;
  const char *s = src;
  T *d = dst;
  if (p->dtype == OWN && p->step == 1) {
    const int64_t whole = p->n / L * L, rest = p->n - whole;
    int covered = 0;
    for (; rows > 0; rows--, s += p->row * sizeof(T)) {
      const int over = (rows - 1) * all >= L;
      d = covered ? d + p->before : NAME(zeros)(d, p->before, over);
      covered = over && NAME(covers)(p, rest);
      if (whole >= 16 * L) memcpy(d, s, whole * sizeof(T));
      else for (int64_t i = 0; i < whole; i += L) STORE(d + i, LOAD((const T *)s + i));
      d = NAME(ending)(d + whole, rest ? LOAD_PART((const T *)s + whole, (int)rest) : (V){0}, rest, p->after, over);
    }
    return;
  }
  for (; rows > 0; rows--, s += p->row * size) {
    for (int64_t i = 0; i < p->before; i++) *d++ = 0;
    if (p->dtype == OWN && p->step == 2) NAME(halve)((const T *)s, p->n, d);
    else NAME(widen)(p->dtype, s, p->step, p->n, d);
    d += p->n;
    for (int64_t i = 0; i < p->after; i++) *d++ = 0;
  }
}

/* the same for the two halves of lines, each with zeros of its own: even elements of src, then odd ones */
static void NAME(fill_halves)(const tf_fill *p, const tf_fill *q, const void *src, int64_t rows, void *even,
                              void *odd) {
  const T *s = src;
  T *d = even, *e = odd;
  const int64_t there = p->n > q->n ? 2 * p->n - 1 : 2 * q->n, whole = there / (2 * L) * L, rest = there - 2 * whole;
  const int low = rest < L ? (int)rest : L, all = (int)(p->before + p->n + p->after);
  int covered[2] = {0, 0};
  const int both = p->n == (there + 1) / 2 && q->n == there / 2; /* neither takes less than there is */
  if (!whole && both && NAME(covers)(p, p->n) && NAME(covers)(q, q->n) && (rows - 1) * all >= L) {
    /* short rows: a vector of each half is the whole row, and zeros up to the next one's elements */
    d = NAME(zeros)(d, p->before, 1), e = NAME(zeros)(e, q->before, 1);
    for (; (rows - 1) * all >= L; rows--, s += p->row, d += all, e += all) {
      const V a = LOAD_PART(s, low), b = rest > L ? LOAD_PART(s + L, (int)rest - L) : (V){0};
      STORE(d, TF_JOIN(tf_even, T)(a, b));
      STORE(e, TF_JOIN(tf_odd, T)(a, b));
    }
    d -= p->before, e -= q->before;
    covered[0] = covered[1] = 1;
  }
  for (; rows > 0; rows--, s += p->row) {
    const int over = (rows - 1) * all >= L;
    V a = {0}, b = {0};
    d = covered[0] ? d + p->before : NAME(zeros)(d, p->before, over);
    e = covered[1] ? e + q->before : NAME(zeros)(e, q->before, over);
    covered[0] = over && NAME(covers)(p, p->n - whole), covered[1] = over && NAME(covers)(q, q->n - whole);
    for (int64_t i = 0; i < whole; i += L, d += L, e += L) {
      a = LOAD(s + 2 * i), b = LOAD(s + 2 * i + L);
      STORE(d, TF_JOIN(tf_even, T)(a, b));
      STORE(e, TF_JOIN(tf_odd, T)(a, b));
    }
    a = rest ? LOAD_PART(s + 2 * whole, low) : (V){0};
    b = rest > L ? LOAD_PART(s + 2 * whole + L, (int)rest - L) : (V){0};
    d = NAME(ending)(d, TF_JOIN(tf_even, T)(a, b), p->n - whole, p->after, over);
    e = NAME(ending)(e, TF_JOIN(tf_odd, T)(a, b), q->n - whole, q->after, over);
  }
}

/* the first n lanes, two places apart; no other place is touched */
TF_INLINE void NAME(put_twos)(T *y, V x, int n) {
#if TF_VBYTES == 64
  const V low = TF_JOIN(tf_turns_low, T)(x, x), high = TF_JOIN(tf_turns_high, T)(x, x);
  const uint32_t m = 0x55555555u & (uint32_t)(((uint64_t)1 << 2 * n) - 1);
  if (sizeof(T) == 4) {
    _mm512_mask_storeu_epi32(y, (__mmask16)m, (__m512i)low);
    if (n > L / 2) _mm512_mask_storeu_epi32(y + L, (__mmask16)(m >> 16), (__m512i)high);
  } else {
    _mm512_mask_storeu_epi64(y, (__mmask8)m, (__m512i)low);
    if (n > L / 2) _mm512_mask_storeu_epi64(y + L, (__mmask8)(m >> 8), (__m512i)high);
  }
#else
  T t[L];
  STORE(t, x);
  for (int i = 0; i < n; i++) y[2 * i] = t[i];
#endif
}

/* the same run of all rows of a tile; y and acc at its first row */
TF_INLINE void NAME(put_run)(const tf_put *p, const T *acc, int64_t ld, int64_t rows, int64_t len, char *y) {
  const int64_t size = tf_itemsize[p->dtype], y_row = p->y_row * size;
  for (int64_t i = 0; i < len; i += L, acc += L, y += L * p->step * size) {
    const int some = len - i < L ? (int)(len - i) : L;
    for (int64_t r = 0; r < rows; r++) {
      char *to = y + r * y_row;
      V x = LOAD(acc + r * ld);
      if (p->bias) x += SPLAT(((const T *)p->bias)[r]);
      if (p->dtype == OWN && p->step == 1) {
        if (some == L) STORE((T *)to, x);
        else STORE_PART((T *)to, x, some);
      } else if (p->dtype == OWN && p->step == 2) {
        NAME(put_twos)((T *)to, x, some);
      } else {
        T t[L];
        STORE(t, x);
        NAME(narrow)(p->dtype, t, some, to, p->step);
      }
    }
  }
}

/* rows of a tile, whose columns are n runs, to their places in y; a row's bias is added before */
static void NAME(put)(const tf_put *p, const void *acc, int64_t ld, int64_t rows,
                      const int64_t *runs,
                      const int64_t *places, int n) {
  const T *a = acc;
  for (int k = 0; k < n; k++) {
    NAME(put_run)(p, a, ld, rows, runs[2 * k + 1], (char *)p->y + places[k] * tf_itemsize[p->dtype]);
    a += runs[2 * k + 1];
  }
}

/* tile_at for a B that lies far away, in no order that a prefetcher sees; off goes on for `more` */
static void NAME(tile_far)(int64_t k, int64_t more, const void *a, const void *b,
                           const int64_t *off, void *c,
                           int64_t ldc, int rows, int cols, int load) {
  enum { STEP = 32 };
  for (int64_t q = 0; q == 0 || q < k; q += STEP) {
    for (int64_t i = q + STEP; i < q + 2 * STEP && i < k + more; i++) {
      __builtin_prefetch((const T *)b + off[i]);
      __builtin_prefetch((const T *)b + off[i] + cols - 1);
    }
    NAME(tile_at)(k - q < STEP ? k - q : STEP, (const T *)a + q * MR, b, off + q, c, ldc, rows,
                  cols, load || q);
  }
}

/* one row of a line: four vectors, since two chains would wait for each other */
TF_INLINE void NAME(line_part)(const int nv, int64_t k, const T *a, const T *src,
                               const int64_t *off, T *c, int64_t cols) {
  V acc[4];
  const int last = (int)(cols - (nv - 1) * L);
  TF_EACH16(v, nv) acc[v] = (V){0};
  for (int64_t q = 0; q < k; q++) {
    const V x = SPLAT(a[q * MR]);
    const T *s = src + off[q];
    TF_EACH16(v, nv) acc[v] = FMA(x, LOAD(s + v * L), acc[v]);
  }
  TF_EACH16(v, nv) {
    if (v < nv - 1 || last == L) STORE(c + v * L, acc[v]);
    else STORE_PART(c + v * L, acc[v], last);
  }
}

static void NAME(line)(int64_t k, const T *a, const T *src, const int64_t *off, T *c, int64_t n) {
  for (int64_t j = 0; j < n; j += 4 * L) {
    const int64_t cols = n - j < 4 * L ? n - j : 4 * L;
    if (cols > 3 * L) NAME(line_part)(4, k, a, src + j, off, c + j, cols);
    else if (cols > 2 * L) NAME(line_part)(3, k, a, src + j, off, c + j, cols);
    else if (cols > L) NAME(line_part)(2, k, a, src + j, off, c + j, cols);
    else NAME(line_part)(1, k, a, src + j, off, c + j, cols);
  }
}

/* lines of n columns, read from the source itself; y has unit stride */
static void NAME(lines)(int64_t k, const void *panels, int64_t m, const void *src,
                        const int64_t *off, int64_t n, int64_t count, int64_t src_step, void *y,
                        int64_t y_row, int64_t y_step) {
  const int64_t rows = tf_even_rows(m, MR);
  for (int64_t t = 0; t < count; t++) {
    const T *s = (const T *)src + t * src_step;
    T *c = (T *)y + t * y_step;
    if (m == 1) {
      NAME(line)(k, panels, s, off, c, n);
      continue;
    }
    for (int64_t j = 0; j < n; j += NR) {
      const int cols = (int)(n - j < NR ? n - j : NR);
      for (int64_t i = 0; i < m; i += rows)
        NAME(tile_at)(k, (const T *)panels + i / rows * MR * k, s + j, off, c + i * y_row + j, y_row,
                      (int)(m - i < rows ? m - i : rows), cols, 0);
    }
  }
}

/* `t` times three neighbouring taps of the gradient of w, of nv vectors of channels of g */
TF_INLINE void NAME(threes)(const int t, const int nv, const T *g, int64_t width, const T *x, const int64_t *off,
                            const int64_t *runs, int64_t n, T *acc) {
  V sum[8][3][2], row[2];
  const T *p[8];
  TF_EACH16(i, t) TF_EACH16(r, 3) TF_EACH16(v, nv) sum[i][r][v] = LOAD(acc + (3 * i + r) * width + v * L);
  for (int64_t k = 0; k < n; k++) {
    TF_EACH16(i, t) p[i] = x + off[3 * i] + runs[2 * k];
    for (int64_t q = 0; q < runs[2 * k + 1]; q++, g += width) {
      TF_EACH16(v, nv) row[v] = LOAD(g + v * L);
      TF_EACH16(i, t) TF_EACH16(r, 3) {
        const V e = SPLAT(p[i][q + r]);
        TF_EACH16(v, nv) sum[i][r][v] = FMA(e, row[v], sum[i][r][v]);
      }
    }
  }
  TF_EACH16(i, t) TF_EACH16(r, 3) TF_EACH16(v, nv) STORE(acc + (3 * i + r) * width + v * L, sum[i][r][v]);
}

#if TF_VBYTES == 64
#define MANY 4 /* with two vectors; twice as many with one */
#else
#define MANY 2
#endif
static void NAME(tap_rows)(const void *g_, int64_t cols, const void *x, const int64_t *off, int64_t threes,
                           const int64_t *runs, int64_t n, void *acc_) {
  const int64_t width = NR;
  for (int64_t v = 0; v < cols; v += 2 * L) {
    const T *g = (const T *)g_ + v;
    T *acc = (T *)acc_ + v;
    int64_t t = 0;
    if (cols - v > L) {
      for (; t + MANY <= threes; t += MANY) NAME(threes)(MANY, 2, g, width, x, off + 3 * t, runs, n, acc + 3 * t * width);
      for (; t < threes; t++) NAME(threes)(1, 2, g, width, x, off + 3 * t, runs, n, acc + 3 * t * width);
    } else {
      for (; t + 2 * MANY <= threes; t += 2 * MANY)
        NAME(threes)(2 * MANY, 1, g, width, x, off + 3 * t, runs, n, acc + 3 * t * width);
      for (; t + 3 <= threes; t += 3) NAME(threes)(3, 1, g, width, x, off + 3 * t, runs, n, acc + 3 * t * width);
      for (; t < threes; t++) NAME(threes)(1, 1, g, width, x, off + 3 * t, runs, n, acc + 3 * t * width);
    }
  }
}
#undef MANY

/* some taps of the gradient of w, each lane a channel of its own */
TF_INLINE void NAME(taps)(const int taps, const T *g, const T *x, const int64_t *off,
                          const int64_t *runs, int64_t n,
                          T *out) {
  V acc[9];
  TF_EACH16(t, taps) acc[t] = LOAD(out + t * NR);
  for (int64_t r = 0; r < n; r++) {
    const T *p = x + runs[2 * r] * NR;
    for (int64_t q = 0; q < runs[2 * r + 1]; q++, g += NR, p += NR) {
      V v = LOAD(g);
      TF_EACH16(t, taps) acc[t] = FMA(v, LOAD(p + off[t] * NR), acc[t]);
    }
  }
  TF_EACH16(t, taps) STORE(out + t * NR, acc[t]);
}

static void NAME(channelwise)(const void *g_, const void *x_, const int64_t *off, int64_t taps,
                              const int64_t *runs,
                              int64_t n, void *acc_) {
  for (int h = 0; h < NR; h += L) {
    const T *g = (const T *)g_ + h, *x = (const T *)x_ + h;
    T *acc = (T *)acc_ + h;
    int64_t t = 0;
    for (; t + 9 <= taps; t += 9) NAME(taps)(9, g, x, off + t, runs, n, acc + t * NR);
    for (; t + 3 <= taps; t += 3) NAME(taps)(3, g, x, off + t, runs, n, acc + t * NR);
    for (; t < taps; t++) NAME(taps)(1, g, x, off + t, runs, n, acc + t * NR);
  }
}
