/* Several callers at once give the team jobs of all kinds; each task must run once. With an argument: small jobs one by
   one wake nobody, in a series they do, and who was woken takes part. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include "team.h"

typedef struct {
  _Atomic int *runs;
  int turns;
} Job;

static void task(int64_t i, void *ctx) {
  Job *job = ctx;
  atomic_fetch_add(&job->runs[i], 1);
  for (volatile int k = 0; k < job->turns; k++) {}
}

static void *caller(void *number) {
  unsigned seed = (unsigned)(intptr_t)number;
  static const double costs[] = {5e3, 1e5, 1e6};
  for (int round = 0; round < 2000; round++) {
    int64_t n = 1 + rand_r(&seed) % 40;
    int team = 1 + rand_r(&seed) % 9;
    double cost = costs[rand_r(&seed) % 3];
    Job job = {calloc((size_t)n, sizeof(int)), rand_r(&seed) % 3000};
    tf_team_run(n, cost, task, &job, team);
    for (int64_t i = 0; i < n; i++)
      if (job.runs[i] != 1) {
        printf("task %d of %d ran %d times\n", (int)i, (int)n, job.runs[i]);
        exit(1);
      }
    free((void *)job.runs);
  }
  return NULL;
}

static void ten_us(int64_t i, void *ctx) {
  (void)i, (void)ctx;
  for (int64_t end = tf_now() + 10000; tf_now() < end;) {}
}

/* Gives small jobs, each some nanoseconds after the one before, until a condition holds or 20 s are over. */
#define UNTIL(condition, gap, jobs)                                                  \
  for (int64_t n = 0, last = tf_now() + 20000000000; !(condition) && n < (jobs) && tf_now() < last; n++) { \
    for (int64_t next = tf_now() + (gap); tf_now() < next;) {}                       \
    tf_team_run(4, 4e4, ten_us, NULL, 2);                                            \
  }

static int series(int several) {
  UNTIL(tf_team.workers, 1000000, 50)
  if (tf_team.workers) return puts("a lone small job woke a worker"), 1;
  UNTIL(tf_team.workers, 0, INT64_MAX)
  if (!tf_team.workers) return puts("a series of small jobs woke nobody"), 1;
  UNTIL(tf_get(tf_series.used) || !several, 0, INT64_MAX)
  if (several && !tf_get(tf_series.used)) return puts("who was woken took part in no job"), 1;
  puts("woken by a series");
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return series(atoi(argv[1]) > 1);
  pthread_t callers[4];
  for (intptr_t i = 0; i < 4; i++) pthread_create(&callers[i], NULL, caller, (void *)(i + 1));
  for (int i = 0; i < 4; i++) pthread_join(callers[i], NULL);
  puts("each task ran once");
  return 0;
}
