/* Several callers at once give the team jobs of all kinds; each task must run once. */
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

int main(void) {
  pthread_t callers[4];
  for (intptr_t i = 0; i < 4; i++) pthread_create(&callers[i], NULL, caller, (void *)(i + 1));
  for (int i = 0; i < 4; i++) pthread_join(callers[i], NULL);
  puts("each task ran once");
  return 0;
}
