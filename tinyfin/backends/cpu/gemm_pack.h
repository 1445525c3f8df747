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
  } else if (is == 1 && count <= L) {
    for (int64_t q = 0; q < k; q++) STORE_PART(dst + q * W, LOAD_PART(src + q * ks, (int)count), (int)count);
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
  const int64_t rows = tf_even_rows(p->m, MR);
  for (int64_t j = 0; j < p->n; j += NR) {
    const int cols = (int)(p->n - j < NR ? p->n - j : NR);
    const T *panel = b + j * p->bc;
    int64_t br = p->br;
    if (p->bc != 1) {
      NAME(pack_own)(NR, panel, p->bc, br, cols, p->k, p->panel);
      panel = p->panel, br = NR;
    }
    for (int64_t i = 0; i < p->m; i += rows)
      NAME(tile_direct)(p->k, a + i * p->ar, p->ar, p->ac, panel, br, (T *)p->c + i * p->ldc + j,
                        p->ldc,
                        (int)(p->m - i < rows ? p->m - i : rows), cols, p->load);
  }
}

static void NAME(narrow_rows)(int dtype, const void *acc, int64_t ld, int64_t rows, int64_t cols, void *dst,
                              int64_t ldc) {
  for (int64_t i = 0; i < rows; i++)
    NAME(narrow)(dtype, (const T *)acc + i * ld, cols, (char *)dst + i * ldc * tf_itemsize[dtype], 1);
}

static void NAME(add)(void *acc, const void *bias, int64_t stride, int64_t n) {
  T *y = acc;
  const T *x = bias;
  if (stride == 1) for (int64_t i = 0; i < n; i++) y[i] += x[i];
  else for (int64_t i = 0; i < n; i++) y[i] += x[i * stride];
}
