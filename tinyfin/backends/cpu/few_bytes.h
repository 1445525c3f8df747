/* Copies and fills of some bytes, for which the call of memcpy would take longer than they do. */
#ifndef TF_FEW_BYTES_H
#define TF_FEW_BYTES_H
#include <stddef.h>
#include <string.h>

#define TF_MOVE_BOTH(n, size) /* size bytes from either end, which may overlap */                  \
  do {                                                                                             \
    char a[size], b[size];                                                                         \
    memcpy(a, x, size);                                                                            \
    memcpy(b, x + (n) - (size), size);                                                             \
    memcpy(y, a, size);                                                                            \
    memcpy(y + (n) - (size), b, size);                                                             \
  } while (0)

static inline void tf_copy_few(char *y, const char *x, size_t n) {
  if (n > 128) memcpy(y, x, n);
  else if (n > 64) TF_MOVE_BOTH(n, 64);
  else if (n > 32) TF_MOVE_BOTH(n, 32);
  else if (n > 16) TF_MOVE_BOTH(n, 16);
  else if (n >= 8) TF_MOVE_BOTH(n, 8);
  else if (n >= 4) TF_MOVE_BOTH(n, 4);
  else for (size_t i = 0; i < n; i++) y[i] = x[i];
}

/* `pattern` is an element over and over, 16 bytes; n is a multiple of the element's size. */
static inline void tf_fill_few(char *y, const char *pattern, size_t n) {
  if (n >= 16) {
    for (size_t i = 0; i + 16 <= n; i += 16) memcpy(y + i, pattern, 16);
    memcpy(y + n - 16, pattern, 16);
  } else if (n >= 8) {
    memcpy(y, pattern, 8);
    memcpy(y + n - 8, pattern, 8);
  } else if (n >= 4) {
    memcpy(y, pattern, 4);
    memcpy(y + n - 4, pattern, 4);
  } else {
    for (size_t i = 0; i < n; i++) y[i] = pattern[i];
  }
}

#endif
