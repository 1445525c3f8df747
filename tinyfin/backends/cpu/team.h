/* A team of worker threads for one job at a time.

   The caller runs tasks itself and waits only for workers that are inside a task: a worker that the machine has
   not woken yet is not waited for. So a busy machine costs at most what one thread would have taken. */
#ifndef TF_TEAM_H
#define TF_TEAM_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include "flush.h"

typedef void (*tf_job_fn)(int64_t i, void *ctx);

static struct {
  pthread_mutex_t gate;            /* held by the caller whose job it is */
  pthread_mutex_t lock;            /* guards what follows */
  pthread_cond_t wake, left;
  _Atomic uint64_t number;         /* rises with each job: sleeping and spinning workers watch it */
  int open;                        /* workers may enter */
  _Atomic int inside;              /* workers running tasks */
  int seats, workers;              /* how many may enter; how many exist */
  tf_job_fn fn;
  void *ctx;
  int64_t n;
  uint32_t csr;
  _Atomic int64_t next;
} tf_team = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};

static __thread int tf_in_task;

#if defined(__x86_64__) || defined(__i386__)
#define tf_relax() __builtin_ia32_pause()
#else
#define tf_relax() ((void)0)
#endif
enum { TF_SPINS = 2000 };          /* some tens of microseconds: catches jobs that follow at once */

static void tf_run_tasks(tf_job_fn fn, void *ctx, int64_t n) {
  tf_in_task = 1;
  for (int64_t i; (i = atomic_fetch_add(&tf_team.next, 1)) < n; ) fn(i, ctx);
  tf_in_task = 0;
}

static void *tf_worker(void *unused) {
  uint64_t seen = 0;
  (void)unused;
  for (;;) {
    for (int k = 0; k < TF_SPINS && atomic_load_explicit(&tf_team.number, memory_order_relaxed) == seen; k++) tf_relax();
    pthread_mutex_lock(&tf_team.lock);
    while (tf_team.number == seen || !tf_team.open || tf_team.inside >= tf_team.seats) {
      seen = tf_team.number;
      pthread_cond_wait(&tf_team.wake, &tf_team.lock);
    }
    seen = tf_team.number;
    tf_team.inside++;
    tf_job_fn fn = tf_team.fn;
    void *ctx = tf_team.ctx;
    int64_t n = tf_team.n;
    uint32_t csr = tf_team.csr;
    pthread_mutex_unlock(&tf_team.lock);
    uint32_t mine = tf_csr_get();
    tf_csr_set(csr);               /* workers compute in the caller's flush mode */
    tf_run_tasks(fn, ctx, n);
    tf_csr_set(mine);
    pthread_mutex_lock(&tf_team.lock);
    if (--tf_team.inside == 0) pthread_cond_signal(&tf_team.left);
    pthread_mutex_unlock(&tf_team.lock);
  }
  return NULL;
}

/* The child of a fork has no workers; it starts its own when it first needs them. */
static void tf_team_child(void) {
  pthread_mutex_init(&tf_team.gate, NULL);
  pthread_mutex_init(&tf_team.lock, NULL);
  pthread_cond_init(&tf_team.wake, NULL);
  pthread_cond_init(&tf_team.left, NULL);
  tf_team.open = tf_team.workers = 0;
  tf_team.inside = 0;
  tf_in_task = 0;
}

static void tf_hire(int wanted) {
  pthread_attr_t attr;
  if (tf_team.workers >= wanted) return;
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, (size_t)4 << 20);
  for (pthread_t t; tf_team.workers < wanted && !pthread_create(&t, &attr, tf_worker, NULL); ) tf_team.workers++;
  pthread_attr_destroy(&attr);
}

/* fn(0..n-1) on up to `team` threads, or on this one where the team is busy with another caller's job. */
static void tf_team_run(int64_t n, tf_job_fn fn, void *ctx, int team) {
  if (tf_in_task || pthread_mutex_trylock(&tf_team.gate)) {
    for (int64_t i = 0; i < n; i++) fn(i, ctx);
    return;
  }
  pthread_mutex_lock(&tf_team.lock);
  tf_hire(team - 1);
  tf_team.fn = fn; tf_team.ctx = ctx; tf_team.n = n; tf_team.csr = tf_csr_get();
  tf_team.next = 0;
  tf_team.seats = team - 1 < n - 1 ? team - 1 : (int)(n - 1);
  tf_team.open = 1;
  tf_team.number++;
  if (tf_team.seats > 1) pthread_cond_broadcast(&tf_team.wake);
  else pthread_cond_signal(&tf_team.wake);
  pthread_mutex_unlock(&tf_team.lock);
  tf_run_tasks(fn, ctx, n);
  for (int k = 0; k < TF_SPINS && atomic_load_explicit(&tf_team.inside, memory_order_relaxed); k++) tf_relax();
  pthread_mutex_lock(&tf_team.lock);
  tf_team.open = 0;
  while (tf_team.inside) pthread_cond_wait(&tf_team.left, &tf_team.lock);
  pthread_mutex_unlock(&tf_team.lock);
  pthread_mutex_unlock(&tf_team.gate);
}

#endif
