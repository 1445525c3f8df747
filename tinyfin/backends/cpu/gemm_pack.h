/* Template: panels, thin products and runs for one accumulator type; follows gemm_tile.h. */

/* W values of each of k columns, from rows that are dense along k. A vector that is wider than
   what is left of a panel row spills into the next row, which is written after it. */
TF_INLINE void NAME(pack_square)(const int W, const T *const *p, int64_t count, int64_t q,
                                 int64_t k, T *dst) {
  const int blocks = (W + L - 1) / L, spill = W % L;
  const int some = k - q < L ? (int)(k - q) : L;
  if (spill) {
    V t[2][L];
    TF_EACH16(h, blocks) {
      TF_EACH16(i, L) t[h][i] = LOAD(p[h * L + i] + q);
      TRANSPOSE(t[h]);
    }
    TF_EACH16(i, L) {
      TF_EACH16(h, blocks) {
        T *d = dst + (q + i) * W + h * L;
        if (i >= some) continue;
        if ((k - q - i) * W - h * L >= L) STORE(d, t[h][i]);
        else STORE_PART(d, t[h][i], spill); /* nothing lies after the panel */
      }
    }
  } else {
    for (int h = 0; h < blocks && h * L < count; h++) {
      V t[L];
      TF_EACH16(i, L) t[i] = LOAD(p[h * L + i] + q);
      TRANSPOSE(t);
      TF_EACH16(i, L) if (i < some) STORE(dst + (q + i) * W + h * L, t[i]);
    }
  }
}

/* `beyond`: rows may be read up to a vector past their end */
TF_INLINE void NAME(pack_rows_w)(const int W, const T *const *rows, int64_t count, int64_t k,
                                 T *dst, int beyond) {
  const T *p[2 * MR > NR ? 2 * MR : NR];
  int64_t q = 0;
  for (int i = 0; i < (W + L - 1) / L * L; i++) p[i] = rows[i < count ? i : count - 1];
  for (; q + L <= k || (beyond && q < k); q += L) NAME(pack_square)(W, p, count, q, k, dst);
  for (; q < k; q++)
    for (int i = 0; i < W; i++) dst[q * W + i] = p[i][q];
}

static void NAME(pack_rows)(const void *const *rows, int64_t count, int64_t k, void *dst, int side,
                            int beyond) {
  if (side) NAME(pack_rows_w)(NR, (const T *const *)rows, count, k, dst, beyond);
  else NAME(pack_rows_w)(MR, (const T *const *)rows, count, k, dst, beyond);
}

TF_INLINE void NAME(pack_own)(const int W, const T *src, int64_t is, int64_t ks, int64_t count,
                              int64_t k, T *dst) {
  if (ks == 1 && count > 1) {
    const T *rows[NR > MR ? NR : MR];
    for (int64_t i = 0; i < count; i++) rows[i] = src + i * is;
    NAME(pack_rows_w)(W, rows, count, k, dst, 0);
  } else {
    for (int64_t q = 0; q < k; q++) {
      for (int64_t i = 0; i < count; i++) dst[q * W + i] = src[i * is + q * ks];
      for (int64_t i = count; i < W; i++) dst[q * W + i] = 0;
    }
  }
}

/* rows of k that are dense along i: read in order, over all panels */
TF_INLINE void NAME(pack_dense)(const int W, const T *src, int64_t ks, int64_t panels, int64_t k,
                                T *dst) {
  for (int64_t q = 0; q < k; q++)
    for (int64_t h = 0; h < panels; h++) memcpy(dst + (h * k + q) * W, src + q * ks + h * W,
                                                W * sizeof(T));
}

enum { NAME(STRIP) = 64 }; /* columns widened at a time */

static void NAME(pack_wider)(int dtype, const char *src, int64_t is, int64_t ks, int64_t count,
                             int64_t k, T *dst,
                             int side) {
  const int64_t size = tf_itemsize[dtype], w = side ? NR : MR;
  T strip[NR > MR ? NR : MR][NAME(STRIP)];
  const void *rows[NR > MR ? NR : MR];
  for (int64_t i = 0; i < count; i++) rows[i] = strip[i];
  for (int64_t q = 0; q < k; q += NAME(STRIP)) {
    int64_t some = k - q < NAME(STRIP) ? k - q : NAME(STRIP);
    for (int64_t i = 0; i < count; i++)
      NAME(widen)(dtype, src + (i * is + q * ks) * size, ks, some, strip[i]);
    NAME(pack_rows)(rows, count, some, dst + q * w, side, 0);
  }
}

static void NAME(pack)(int dtype, const void *src, int64_t is, int64_t ks, int64_t count, int64_t k,
                       void *dst,
                       int side) {
  const int64_t w = side ? NR : MR;
  const char *s = src;
  T *d = dst;
  if (dtype == OWN && is == 1 && ks != 1) {
    const int64_t whole = count / w;
    if (side) NAME(pack_dense)(NR, src, ks, whole, k, d);
    else NAME(pack_dense)(MR, src, ks, whole, k, d);
    s += whole * w * sizeof(T), d += whole * w * k, count -= whole * w;
  }
  for (; count > 0; count -= w, s += w * is * tf_itemsize[dtype], d += w * k) {
    const int64_t some = count < w ? count : w;
    if (dtype != OWN) NAME(pack_wider)(dtype, s, is, ks, some, k, d, side);
    else if (side) NAME(pack_own)(NR, (const T *)s, is, ks, some, k, d);
    else NAME(pack_own)(MR, (const T *)s, is, ks, some, k, d);
  }
}

static void NAME(product)(const tf_product *p) {
  const T *a = p->a, *b = p->b;
  for (int64_t j = 0; j < p->n; j += NR) {
    const int cols = (int)(p->n - j < NR ? p->n - j : NR);
    const T *panel = b + j * p->bc;
    int64_t br = p->br;
    if (p->bc != 1) {
      NAME(pack_own)(NR, panel, p->bc, br, cols, p->k, p->panel);
      panel = p->panel, br = NR;
    }
    for (int64_t i = 0; i < p->m; i += MR)
      NAME(tile_direct)(p->k, a + i * p->ar, p->ar, p->ac, panel, br, (T *)p->c + i * p->ldc + j,
                        p->ldc,
                        (int)(p->m - i < MR ? p->m - i : MR), cols, p->load);
  }
}

/* A few rows of B at a time pass over all of C, which stays in cache: B is read once, in order. */
TF_INLINE void NAME(rows_onto)(const int rows, const int one, const tf_product *p, int64_t q,
                               int load) {
  const T *a = (const T *)p->a + q * p->ac, *b = (const T *)p->b + q * p->br;
  V x[8] = {{0}};
  if (one) TF_EACH16(h, rows) x[h] = SPLAT(a[h * p->ac]);
  for (int64_t j = 0; j < p->n; j += L) {
    const int last = p->n - j < L ? (int)(p->n - j) : L;
    V row[8];
    T *c = (T *)p->c + j;
    TF_EACH16(h, rows) {
      const T *r = b + h * p->br + j;
      row[h] = last < L ? LOAD_PART(r, last) : LOAD(r);
    }
    for (int64_t i = 0; i < (one ? 1 : p->m); i++, c += p->ldc) {
      V acc = {0};
      if (load) acc = last < L ? LOAD_PART(c, last) : LOAD(c);
      if (one) TF_EACH16(h, rows) acc = FMA(x[h], row[h], acc);
      else TF_EACH16(h, rows) acc = FMA(SPLAT(a[i * p->ar + h * p->ac]), row[h], acc);
      if (last < L) STORE_PART(c, acc, last);
      else STORE(c, acc);
    }
  }
}

static void NAME(rows_n)(const tf_product *p) {
  int64_t q = 0;
  if (!p->k && !p->load)
    for (int64_t i = 0; i < p->m; i++) memset((T *)p->c + i * p->ldc, 0, p->n * sizeof(T));
  for (; q + 8 <= p->k; q += 8) {
    if (p->m == 1) NAME(rows_onto)(8, 1, p, q, p->load || q);
    else NAME(rows_onto)(8, 0, p, q, p->load || q);
  }
  for (; q < p->k; q++) NAME(rows_onto)(1, 0, p, q, p->load || q);
}

/* Columns of B dense along k: squares are transposed in registers, then added column by column. */
TF_INLINE V NAME(square)(const T *a, const T *const *cols, int64_t q, V acc) {
  V t[L];
  TF_EACH16(i, L) t[i] = LOAD(cols[i] + q);
  TRANSPOSE(t);
  TF_EACH16(i, L) acc = FMA(SPLAT(a[q + i]), t[i], acc);
  return acc;
}

/* Elements q to end of each column, one after the other. */
TF_INLINE void NAME(steps)(const int groups, const T *a, const T *const *cols, int64_t q, int64_t end, V *acc) {
  for (; q < end; q++) {
    for (int g = 0; g < groups; g++) {
      V t = {0};
      TF_EACH16(i, L) t[i] = cols[g * L + i][q];
      acc[g] = FMA(SPLAT(a[q]), t, acc[g]);
    }
  }
}

TF_INLINE void NAME(columns)(const int groups, const T *a, const T *const *cols, int64_t k,
                             V *acc) {
  /* a cache line is used up before the next is taken: what lies before the first one's start goes ahead, since
     columns a power of two apart share so few places in L1 that half a line is gone when its rest is wanted */
  enum { LINE = 64 / sizeof(T) };
  const int64_t ahead = (int64_t)(-((uintptr_t)cols[0] / sizeof(T)) & (LINE - 1));
  int64_t q = ahead < k ? ahead : k;
  NAME(steps)(groups, a, cols, 0, q, acc);
  for (; q + LINE <= k; q += LINE) {
    TF_EACH16(g, groups) {
      const T *const *c = cols + g * L;
      TF_EACH16(i, LINE / L) acc[g] = NAME(square)(a, c, q + i * L, acc[g]);
    }
  }
  NAME(steps)(groups, a, cols, q, k, acc);
}

static void NAME(row_t)(const tf_product *p) {
  enum { G = TF_VBYTES == 64 ? 1 : TF_VBYTES == 32 ? 2 : 4 }; /* 16 streams; more thrash L1 */
  const T *cols[G * L], *b = p->b;
  for (int64_t j = 0; j < p->n; j += G * L) {
    const int64_t left = p->n - j;
    V acc[G];
    T *c = (T *)p->c + j;
    TF_EACH16(g, G) {
      const int64_t part = left - g * L;
      acc[g] = (V){0};
      if (!p->load || part <= 0) continue;
      acc[g] = part < L ? LOAD_PART(c + g * L, (int)part) : LOAD(c + g * L);
    }
    for (int i = 0; i < G * L; i++) cols[i] = b + (i < left ? j + i : p->n - 1) * p->bc;
    if (left > L) NAME(columns)(G, p->a, cols, p->k, acc);
    else NAME(columns)(1, p->a, cols, p->k, acc);
    TF_EACH16(g, G) {
      const int64_t part = left - g * L;
      if (part >= L) STORE(c + g * L, acc[g]);
      else if (part > 0) STORE_PART(c + g * L, acc[g], (int)part);
    }
  }
}

static void NAME(add)(void *acc, const void *bias, int64_t stride, int64_t n) {
  T *y = acc;
  const T *x = bias;
  if (stride == 1) for (int64_t i = 0; i < n; i++) y[i] += x[i];
  else for (int64_t i = 0; i < n; i++) y[i] += x[i * stride];
}
