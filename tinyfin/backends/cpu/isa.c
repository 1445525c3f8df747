/* Chooses one instruction set per process and hands out its tables by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "isa_choice.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* TF_TABLES(ISA) names every table: X(ISA, elementwise_f32) X(ISA, gemm) ... (from meson.build) */
#define X(isa, name) extern const char tf_##name##_##isa[];
#ifdef TF_HAVE_GENERIC
TF_TABLES(generic)
#endif
#ifdef TF_HAVE_SSE2
TF_TABLES(sse2)
#endif
#ifdef TF_HAVE_AVX2
TF_TABLES(avx2)
#endif
#ifdef TF_HAVE_AVX512
TF_TABLES(avx512)
#endif
#ifdef TF_HAVE_NEON
TF_TABLES(neon)
#endif
#undef X

typedef struct { const char *name; const void *table; } entry;
#define X(isa, name) {#name, tf_##name##_##isa},
#define LIST(isa) static const entry entries_##isa[] = {TF_TABLES(isa) {0, 0}};
#ifdef TF_HAVE_GENERIC
LIST(generic)
#endif
#ifdef TF_HAVE_SSE2
LIST(sse2)
#endif
#ifdef TF_HAVE_AVX2
LIST(avx2)
#endif
#ifdef TF_HAVE_AVX512
LIST(avx512)
#endif
#ifdef TF_HAVE_NEON
LIST(neon)
#endif

static int always(void) { return 1; }
#if defined(__x86_64__)
static int has_f16c(void) { /* older compilers have no name for it */
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
static int has_avx2(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}
static int has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

/* Best first. */
static const struct { const char *name; const entry *entries; int (*supported)(void); } sets[] = {
#ifdef TF_HAVE_AVX512
  {"avx512", entries_avx512, has_avx512},
#endif
#ifdef TF_HAVE_AVX2
  {"avx2", entries_avx2, has_avx2},
#endif
#ifdef TF_HAVE_SSE2
  {"sse2", entries_sse2, always},
#endif
#ifdef TF_HAVE_NEON
  {"neon", entries_neon, always},
#endif
#ifdef TF_HAVE_GENERIC
  {"generic", entries_generic, always},
#endif
};
enum { COUNT = sizeof sets / sizeof sets[0] };
static int chosen = -1;

int tf_isa_count(void) { return COUNT; }
const char *tf_isa_name(int k) { return sets[k].name; }
int tf_isa_supported(int k) { return sets[k].supported(); }
int tf_isa_chosen(void) { return chosen; }

int tf_isa_choose(const char *wanted) {
  for (int k = 0; k < COUNT; k++)
    if (sets[k].supported() && (!wanted || !strcmp(wanted, sets[k].name))) return chosen = k, 1;
  return 0;
}

const void *tf_isa_table(const char *name) {
  for (const entry *e = sets[chosen].entries; e->name; e++)
    if (!strcmp(e->name, name)) return e->table;
  return NULL;
}
