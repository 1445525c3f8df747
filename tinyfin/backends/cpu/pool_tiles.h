/* Template: planes side by side, as rows of TF_PLANES numbers T. A chain of additions waits for each one;
   so those of many planes go on together, each in its own order. */
typedef TF_JOIN(tf_v, T) NAME(v);
#define V NAME(v)
#define W ((int)(TF_VBYTES / sizeof(T)))
#define PARTS (TF_PLANES / W) /* vectors of a row */
#define LOAD TF_JOIN(tf_load, T)
#define STORE TF_JOIN(tf_store, T)
#define LOAD_PART TF_JOIN(tf_load_part, T)
#define STORE_PART TF_JOIN(tf_store_part, T)
#define TURN TF_JOIN(tf_transpose, T)

static void NAME(lift)(void *tile, const char *const *x, int64_t at, int64_t step, int64_t n) {
  T *to = tile;
  int beside = 1;
  for (int c = 1; c < TF_PLANES; c++) beside &= x[c] == x[0] + c * (int64_t)sizeof(T);
  if (beside) {
    const T *from = (const T *)(x[0] + at);
    for (int64_t i = 0; i < n; i++)
      TF_EACH(k, PARTS) STORE(to + i * TF_PLANES + k * W, LOAD(from + i * step + k * W));
  } else if (step == 1) {
    for (int c = 0; c < TF_PLANES; c += W) {
      int64_t i = 0;
      V r[W];
      for (; i + W <= n; i += W) {
        TF_EACH(k, W) r[k] = LOAD((const T *)(x[c + k] + at) + i);
        TURN(r);
        TF_EACH(k, W) STORE(to + (i + k) * TF_PLANES + c, r[k]);
      }
      if (i == n) continue;
      TF_EACH(k, W) r[k] = LOAD_PART((const T *)(x[c + k] + at) + i, (int)(n - i));
      TURN(r);
      TF_EACH(k, W) if (i + k < n) STORE(to + (i + k) * TF_PLANES + c, r[k]);
    }
  } else {
    for (int c = 0; c < TF_PLANES; c++)
      for (int64_t i = 0; i < n; i++) to[i * TF_PLANES + c] = ((const T *)(x[c] + at))[i * step];
  }
}

static void NAME(lower)(char *const *y, int64_t at, int count, const void *tile, int64_t n) {
  const T *from = tile;
  for (int c = 0; c < count; c += W) {
    const int some = count - c < W ? count - c : W;
    for (int64_t i = 0; i < n; i += W) {
      const int m = n - i < W ? (int)(n - i) : W;
      V r[W];
      TF_EACH(k, W) r[k] = LOAD(from + (i + (k < m ? k : 0)) * TF_PLANES + c);
      TURN(r);
      if (m == W && some == W) {
        TF_EACH(k, W) STORE((T *)(y[c + k] + at) + i, r[k]);
      } else {
        TF_EACH(k, W) if (k < some) STORE_PART((T *)(y[c + k] + at) + i, r[k], m);
      }
    }
  }
}

static void NAME(join)(void *acc, const void *const *rows, int64_t lines, const int64_t *reach, int64_t n) {
  T *to = acc;
  for (int64_t o = 0; o < n; o++, to += TF_PLANES) {
    const int64_t first = reach[2 * o] * TF_PLANES, last = reach[2 * o + 1] * TF_PLANES;
    V a[PARTS];
    TF_EACH(k, PARTS) a[k] = LOAD(to + k * W);
    for (int64_t l = 0; l < lines; l++) {
      const T *row = rows[l];
      for (int64_t i = first; i < last; i += TF_PLANES) TF_EACH(k, PARTS) a[k] += LOAD(row + i + k * W);
    }
    TF_EACH(k, PARTS) STORE(to + k * W, a[k]);
  }
}

static void NAME(share)(void *acc, const int64_t *counts, int64_t factor, int64_t n) {
  T *a = acc;
  for (int64_t o = 0; o < n; o++, a += TF_PLANES) {
    const T by = (T)(factor * counts[o]);
    for (int k = 0; k < TF_PLANES; k++) a[k] /= by;
  }
}

#undef V
#undef W
#undef PARTS
#undef LOAD
#undef STORE
#undef LOAD_PART
#undef STORE_PART
#undef TURN
