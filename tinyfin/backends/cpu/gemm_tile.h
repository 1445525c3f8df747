/* Template: tiles of C for one accumulator type. Before inclusion: T, MR (rows), NV (vectors). */
#define V TF_JOIN(tf_v, T)
#define L TF_LANES(T)
#define NR (NV * L)
#define NAME(x) TF_JOIN(x, T)
#define FMA TF_JOIN(tf_fma, T)
#define SPLAT TF_JOIN(tf_splat, T)
#define LOAD TF_JOIN(tf_load, T)
#define STORE TF_JOIN(tf_store, T)
#define LOAD_PART TF_JOIN(tf_load_part, T)
#define STORE_PART TF_JOIN(tf_store_part, T)
#define TRANSPOSE TF_JOIN(tf_transpose, T)

/* mr rows by nv vectors. Rows of A are reached as three offsets from every third row's pointer,
   which keeps the addresses in registers. `part`: the last vector of B and C has fewer lanes. */
TF_INLINE void NAME(tile)(const int mr, const int nv, const int part, int64_t k, const T *a,
                          int64_t ar,
                        int64_t ac, const T *b, int64_t br, const int64_t *off, T *c, int64_t ldc,
                        int cols, int load) {
  V acc[MR][NV], row[NV];
  const T *p[(MR + 2) / 3];
  const int last = cols - (nv - 1) * L;
  TF_EACH16(i, (mr + 2) / 3) p[i] = a + 3 * i * ar;
  TF_EACH16(i, mr) TF_EACH16(v, nv) acc[i][v] = (V){0};
  if (load) {
    TF_EACH16(i, mr) TF_EACH16(v, nv) {
      const T *q = c + i * ldc + v * L;
      acc[i][v] = v < nv - 1 || last == L ? LOAD(q) : LOAD_PART(q, last);
    }
  }
  for (int64_t q = 0; q < k; q++) {
    const T *r = off ? b + off[q] : b;
    TF_EACH16(v, nv) row[v] = part && v == nv - 1 ? LOAD_PART(r + v * L, last) : LOAD(r + v * L);
    TF_EACH16(i, mr) {
      V x = SPLAT(p[i / 3][i % 3 * ar]);
      TF_EACH16(v, nv) acc[i][v] = FMA(x, row[v], acc[i][v]);
    }
    TF_EACH16(i, (mr + 2) / 3) p[i] += ac;
    b += br;
  }
  TF_EACH16(i, mr) TF_EACH16(v, nv) {
    T *q = c + i * ldc + v * L;
    if (v < nv - 1 || last == L) STORE(q, acc[i][v]);
    else STORE_PART(q, acc[i][v], last);
  }
}

/* one case per number of rows, so that edges cost what they hold */
#define ROWS8(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define ROWS14(X) ROWS8(X) X(9) X(10) X(11) X(12) X(13) X(14)
#undef ROWS
#if MR == 14
#define ROWS(X) ROWS14(X)
#elif MR == 8
#define ROWS(X) ROWS8(X)
#elif MR == 6
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
#define ROWS(X) X(1) X(2) X(3) X(4)
#endif

#define TILE_ARGS(m, nv, part) \
  m, nv, part, k, (const T *)a, TILE_A, (const T *)b, TILE_B, (T *)c, ldc, cols, load
#define CASE_ONE(m) case m: NAME(tile)(TILE_ARGS(m, 1, 0)); break;
#define CASE_ALL(m) case m: NAME(tile)(TILE_ARGS(m, NV, 0)); break;
#define CASE_ONE_PART(m) case m: NAME(tile)(TILE_ARGS(m, 1, 1)); break;
#define CASE_ALL_PART(m) case m: NAME(tile)(TILE_ARGS(m, NV, 1)); break;

#define TILE_A 1, MR
#define TILE_B NR, 0
static void NAME(tile_packed)(int64_t k, const void *a, const void *b, void *c, int64_t ldc,
                              int rows, int cols,
                            int load) {
  if (cols > NR - L) switch (rows) { ROWS(CASE_ALL) }
  else switch (rows) { ROWS(CASE_ONE) }
}
#undef TILE_B
#define TILE_B 0, off
static void NAME(tile_at)(int64_t k, const void *a, const void *b, const int64_t *off, void *c,
                          int64_t ldc,
                        int rows, int cols, int load) {
  if (cols > NR - L) switch (rows) { ROWS(CASE_ALL) }
  else switch (rows) { ROWS(CASE_ONE) }
}
#undef TILE_A
#undef TILE_B
#define TILE_A ar, ac
#define TILE_B br, 0
static void NAME(tile_direct)(int64_t k, const void *a, int64_t ar, int64_t ac, const void *b, int64_t br, void *c,
                              int64_t ldc, int rows, int cols, int load) {
#if TF_VBYTES < 64 /* masks cost nothing there */
  if (cols == NR) switch (rows) { ROWS(CASE_ALL) }
  else if (cols == L) switch (rows) { ROWS(CASE_ONE) }
  else
#endif
  if (cols > L) switch (rows) { ROWS(CASE_ALL_PART) }
  else switch (rows) { ROWS(CASE_ONE_PART) }
}
#undef TILE_A
#undef TILE_B
