/* Template: products of few rows, for which B is read once, where it lies. E is an element of B,
   and of A too in dots; words of PER elements are what squares transpose. Follows gemm_tile.h; THIN_HALF before: 0 for
   elements that are accumulators, 16 for float16, 1 for bfloat16, both of float; and THIN_ROWS, rows at a time where
   columns of B are transposed. */

#if THIN_HALF
#define E uint16_t
#define PER 2
#define WORDS tf_v_uint32_t
#define WORD uint32_t
#if THIN_HALF == 16
#define THIN(x) TF_JOIN(x, f16)
#define WIDE(p) wide_of_f16(*(const half_lanes_at *)(p))
#define WIDE_PART(p, n) wide_of_f16(half_part(p, n))
#define ONE(x) vm_h2f(x)
#define FIRST(w) FIRST_F16(w)
#define SECOND(w) SECOND_F16(w)
#else
#define THIN(x) TF_JOIN(x, bf16)
#define WIDE(p) wide_of_bf16(*(const half_lanes_at *)(p))
#define WIDE_PART(p, n) wide_of_bf16(half_part(p, n))
#define ONE(x) FB((uint32_t)(x) << 16)
#define FIRST(w) FIRST_BF16(w)
#define SECOND(w) SECOND_BF16(w)
#endif
#else
#define THIN(x) NAME(x)
#define E T
#define PER 1
#define WORDS V
#define WORD T
#define WIDE(p) LOAD(p)
#define WIDE_PART(p, n) LOAD_PART(p, n)
#define ONE(x) (x)
#define FIRST(w) (w)
#define SECOND(w) (w)
#endif
#define SQUARE(rows, q, t) TF_JOIN(tf_square, WORD)(rows, (q) * (int64_t)sizeof(E), t)
#define ELEMENTS(p) ((const E *)(p))

/* A few rows of B at a time pass over all of C, which stays in cache: B is read once, in order. */
TF_INLINE void THIN(rows_onto)(const int rows, const int one, const tf_product *p, int64_t q, int load) {
  const T *a = (const T *)p->a + q * p->ac;
  const E *b = (const E *)p->b + q * p->br;
  V x[8] = {{0}};
  if (one) TF_EACH16(h, rows) x[h] = SPLAT(a[h * p->ac]);
  for (int64_t j = 0; j < p->n; j += L) {
    const int last = p->n - j < L ? (int)(p->n - j) : L;
    V row[8];
    T *c = (T *)p->c + j;
    TF_EACH16(h, rows) {
      const E *r = b + h * p->br + j;
      row[h] = last < L ? WIDE_PART(r, last) : WIDE(r);
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

static void THIN(rows_n)(const tf_product *p) {
  int64_t q = 0;
  if (!p->k && !p->load)
    for (int64_t i = 0; i < p->m; i++) memset((T *)p->c + i * p->ldc, 0, p->n * sizeof(T));
  for (; q + 8 <= p->k; q += 8) {
    if (p->m == 1) THIN(rows_onto)(8, 1, p, q, p->load || q);
    else THIN(rows_onto)(8, 0, p, q, p->load || q);
  }
  for (; q < p->k; q++) THIN(rows_onto)(1, 0, p, q, p->load || q);
}

/* Columns of B dense along k: squares are transposed in registers, then added column by column to each row's sums. */
TF_INLINE void THIN(square)(const int rows, const T *const *a, const char *const *cols, int64_t q, V *acc) {
  WORDS t[L];
  SQUARE(cols, q, t);
  TF_EACH16(i, L) {
    TF_EACH16(r, rows) acc[r] = FMA(SPLAT(a[r][q + PER * i]), FIRST(t[i]), acc[r]);
    if (PER == 2) TF_EACH16(r, rows) acc[r] = FMA(SPLAT(a[r][q + PER * i + 1]), SECOND(t[i]), acc[r]);
  }
}

/* Elements q to end of each column, one after the other. */
TF_INLINE void THIN(steps)(const int groups, const int rows, const T *const *a, const char *const *cols, int64_t q,
                           int64_t end, V *acc) {
  for (; q < end; q++) {
    for (int g = 0; g < groups; g++) {
      V t = {0};
      TF_EACH16(i, L) t[i] = ONE(ELEMENTS(cols[g * L + i])[q]);
      TF_EACH16(r, rows) acc[g * rows + r] = FMA(SPLAT(a[r][q]), t, acc[g * rows + r]);
    }
  }
}

TF_INLINE void THIN(columns)(const int groups, const int rows, const T *const *a, const char *const *cols, int64_t k,
                             V *acc) {
  /* a cache line is used up before the next is taken: what lies before the first one's start goes ahead, since
     columns a power of two apart share so few places in L1 that half a line is gone when its rest is wanted */
  enum { LINE = 64 / sizeof(E) };
  const int64_t ahead = (int64_t)(-((uintptr_t)cols[0] / sizeof(E)) & (LINE - 1));
  int64_t q = ahead < k ? ahead : k;
  THIN(steps)(groups, rows, a, cols, 0, q, acc);
  for (; q + LINE <= k; q += LINE) {
    TF_EACH16(g, groups) {
      for (int i = 0; i < LINE; i += PER * L) THIN(square)(rows, a, cols + g * L, q + i, acc + g * rows);
    }
  }
  THIN(steps)(groups, rows, a, cols, q, k, acc);
}

TF_INLINE void THIN(some_rows)(const int G, const int rows, const tf_product *p, int64_t i) {
  const T *a[THIN_ROWS];
  const char *cols[THIN_GROUPS * L]; /* of elements E: squares read them as they come */
  const E *b = p->b;
  TF_EACH16(r, rows) a[r] = (const T *)p->a + (i + r < p->m ? i + r : p->m - 1) * p->ar;
  for (int64_t j = 0; j < p->n; j += G * L) {
    const int64_t left = p->n - j;
    V acc[THIN_GROUPS * THIN_ROWS];
    T *c = (T *)p->c + i * p->ldc + j;
    TF_EACH16(g, G) TF_EACH16(r, rows) {
      const int64_t part = left - g * L;
      const T *at = c + r * p->ldc + g * L;
      acc[g * rows + r] = (V){0};
      if (!p->load || part <= 0 || i + r >= p->m) continue;
      acc[g * rows + r] = part < L ? LOAD_PART(at, (int)part) : LOAD(at);
    }
    for (int h = 0; h < G * L; h++) cols[h] = (const char *)(b + (h < left ? j + h : p->n - 1) * p->bc);
    if (left > L) THIN(columns)(G, rows, a, cols, p->k, acc);
    else THIN(columns)(1, rows, a, cols, p->k, acc);
    TF_EACH16(g, G) TF_EACH16(r, rows) {
      const int64_t part = left - g * L;
      T *at = c + r * p->ldc + g * L;
      if (part <= 0 || i + r >= p->m) continue;
      if (part >= L) STORE(at, acc[g * rows + r]);
      else STORE_PART(at, acc[g * rows + r], (int)part);
    }
  }
}

static void THIN(rows_t)(const tf_product *p) {
  /* columns that share their places in L1 are better few; chains of several rows hide each other's latency */
  const int crowded = PER == 1 && p->bc * sizeof(E) % 4096 == 0;
  if (p->m == 1 && !crowded) THIN(some_rows)(THIN_GROUPS, 1, p, 0);
  else if (p->m == 1) THIN(some_rows)(THIN_GROUPS / 2, 1, p, 0);
  else for (int64_t i = 0; i < p->m; i += THIN_ROWS) THIN(some_rows)(THIN_ROWS > 1 ? 1 : THIN_GROUPS, THIN_ROWS, p, i);
}

/* One product of a row and a column in each lane; both are dense along k, and transposed. */
static void THIN(dots)(const char *const *a, const char *const *b, int64_t k, void *c) {
  V acc = {0};
  int64_t q = 0;
  for (; q + PER * L <= k; q += PER * L) {
    WORDS s[L], t[L];
    SQUARE(a, q, s);
    SQUARE(b, q, t);
    TF_EACH16(i, L) {
      acc = FMA(FIRST(s[i]), FIRST(t[i]), acc);
      if (PER == 2) acc = FMA(SECOND(s[i]), SECOND(t[i]), acc);
    }
  }
  for (; q < k; q++) {
    V x = {0}, y = {0};
    TF_EACH16(i, L) x[i] = ONE(ELEMENTS(a[i])[q]), y[i] = ONE(ELEMENTS(b[i])[q]);
    acc = FMA(x, y, acc);
  }
  STORE(c, acc);
}

#undef E
#undef PER
#undef WORDS
#undef WORD
#undef SQUARE
#undef ELEMENTS
#undef WIDE
#undef WIDE_PART
#undef ONE
#undef FIRST
#undef SECOND
#undef THIN
#undef THIN_HALF
#undef THIN_ROWS
