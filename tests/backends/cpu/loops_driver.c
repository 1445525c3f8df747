/* Prints one hash per elementwise loop over fixed inputs: run natively and under an emulator, and compare. */
#include <stdio.h>
#include <string.h>
#include "loops.h"

enum { N = 4096 };
extern const tf_loop TF_NAME(tf_elementwise_f32)[][10], TF_NAME(tf_elementwise_f64)[][10], TF_NAME(tf_elementwise_int)[][10];
static uint64_t state = 88172645463325252ull;
static uint64_t next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }

static float a32(int i) {
  static const uint32_t special[] = {0, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 1, 0x3f800000u, 0xbf800000u};
  uint32_t u = (uint32_t)next();
  if (i < 8) u = special[i];
  else if (i % 3) u = (u & 0x83ffffffu) | 0x3c000000u; /* mostly moderate sizes */
  float f; memcpy(&f, &u, 4); return f;
}
static uint64_t hash(uint64_t h, uint64_t x) { return (h ^ x) * 1099511628211ull; }

static float x32[3][N], y32[N];
static double x64[3][N], y64[N];
static int64_t xi[3][N], yi[N];

int main(int argc, char **argv) {
  int rows = 0;
  sscanf(argv[argc - 1], "%d", &rows);
  const double f[8] = {0.3, 1.7, 0.9, 1.1, 0, 0, 0, 0};
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < N; i++) { x32[k][i] = a32((i + 3 * k) % N); x64[k][i] = x32[k][i] * 1.000000119; xi[k][i] = (int64_t)next(); }
  for (int r = 0; r < rows; r++) {
    uint64_t h = 14695981039346656037ull;
    const void *p32[] = {x32[0], x32[1], x32[2]}, *p64[] = {x64[0], x64[1], x64[2]}, *pi[] = {xi[0], xi[1], xi[2]};
    if (TF_NAME(tf_elementwise_f32)[r][TF_F32]) {
      memset(y32, 0, sizeof y32);
      TF_NAME(tf_elementwise_f32)[r][TF_F32](y32, p32, N, f);
      for (int i = 0; i < N; i++) { uint32_t u; memcpy(&u, &y32[i], 4); h = hash(h, (u & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : u); }
    }
    if (TF_NAME(tf_elementwise_f64)[r][TF_F64]) {
      memset(y64, 0, sizeof y64);
      TF_NAME(tf_elementwise_f64)[r][TF_F64](y64, p64, N, f);
      for (int i = 0; i < N; i++) { uint64_t u; memcpy(&u, &y64[i], 8); h = hash(h, (u << 1) > 0xffe0000000000000ull ? 1 : u); }
    }
    for (int d = 0; d < 6; d++)
      if (TF_NAME(tf_elementwise_int)[r][d]) {
        memset(yi, 0, sizeof yi);
        TF_NAME(tf_elementwise_int)[r][d](yi, pi, d ? N / 8 : 1, f);
        for (int i = 0; i < N / 8; i++) h = hash(h, (uint64_t)yi[i]);
      }
    printf("%d %016llx\n", r, (unsigned long long)h);
  }
  return 0;
}
