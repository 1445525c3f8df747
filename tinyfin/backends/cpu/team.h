/* A team of worker threads for one job at a time.

   The caller runs tasks itself and waits only for workers that are inside a task: a worker that the machine has
   not woken yet is not waited for. So a busy machine costs at most what one thread would have taken.

   Whether a job is shared depends on its size in time, which nothing but the tasks themselves can tell: the caller
   runs the first ones alone and looks at the clock. Tasks are the same however many threads run them.

   A small job is worth a worker that is awake, but not the waking. A series of small jobs, each close behind the one
   before, is worth it: workers are woken once, and each job finds them watching for the next.

   Tasks are dealt in as many parts as threads are wanted, and a thread takes the same part of each job where it can:
   what it read and wrote in the job before is near its core. One that is through with its part helps with the others. */
#ifndef TF_TEAM_H
#define TF_TEAM_H
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include "flush.h"

typedef void (*tf_job_fn)(int64_t i, void *ctx);

static struct {
  pthread_mutex_t gate;            /* held by the caller whose job it is */
  pthread_mutex_t lock;            /* guards what follows */
  pthread_cond_t wake, left;
  _Atomic uint64_t number;         /* rises with each job: sleeping and spinning workers watch it */
  int open;                        /* workers may enter */
  _Atomic int inside;              /* workers running tasks */
  int parts, workers;              /* how many threads may run tasks, the caller among them; how many workers exist */
  _Atomic int watching;            /* workers that would see a job without being woken */
  tf_job_fn fn;
  void *ctx;
  uint32_t csr;
} tf_team = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};

enum { TF_MOST = 1024 };           /* threads */

static struct {                    /* the tasks from next to end; a line of memory for each */
  _Alignas(64) _Atomic int64_t next;
  int64_t end, kept;               /* how many at its end others leave alone */
  _Atomic int taken;               /* by a worker, in this job */
} tf_part[TF_MOST];

enum {
  TF_LOOKS = 50,                   /* looks at a condition, a microsecond or so, between two yields */
  TF_WATCH = 50000,                /* nanoseconds that one watches before one sleeps: catches jobs that follow soon */
  TF_CLOSE = 30000,                /* between jobs of a series: surely less than a worker watches */
  TF_SERIES = 100000,              /* of small jobs that one thread ran in a series, for each worker to be woken */
  TF_DEAREST = 64 * TF_SERIES,
  TF_USES = 8,                     /* jobs that woken workers must have taken part in to have been worth it */
  TF_PROBED = 5,                   /* tasks from which on the first ones may be timed */
  TF_WAKE = 80000,                 /* nanoseconds of work that a sleeping worker is worth waking for */
  TF_JOIN = 10000                  /* and that one is worth having that is awake */
};

static struct {                    /* of small jobs; callers in several threads may mix theirs up, which costs time only */
  _Atomic int64_t end;             /* when the last one ended that had no help */
  _Atomic int64_t alone;           /* nanoseconds of those in the present series */
  _Atomic int64_t price;           /* nanoseconds alone that are worth a waking */
  _Atomic int used;                /* jobs that workers took part in since they were woken for a series */
} tf_series = {.price = TF_SERIES};

static __thread int tf_in_task;

#if defined(__x86_64__) || defined(__i386__)
#define tf_relax() __builtin_ia32_pause()
#else
#define tf_relax() ((void)0)
#endif

#define tf_get(x) atomic_load_explicit(&(x), memory_order_relaxed)
#define tf_put(x, value) atomic_store_explicit(&(x), value, memory_order_relaxed)

static int64_t tf_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits while a condition holds, but not for long; leaves the processor to others that want it, which may
   well be the caller who is waited for. */
#define TF_WATCH_WHILE(condition)                                      \
  for (int64_t until = tf_now() + TF_WATCH; (condition);) {            \
    for (int k = 0; k < TF_LOOKS && (condition); k++) tf_relax();      \
    if (!(condition) || tf_now() > until) break;                       \
    sched_yield();                                                     \
  }

/* Whether the small jobs before this one make workers worth waking that will then be awake for those after it. */
static int tf_series_due(int team) {
  return tf_get(tf_series.alone) >= tf_get(tf_series.price) * (team - 1) && tf_now() - tf_get(tf_series.end) < TF_CLOSE;
}

/* Counts a small job that one thread ran from `start` to `end`. */
static void tf_series_add(int64_t start, int64_t end) {
  int64_t before = start - tf_get(tf_series.end) < TF_CLOSE ? tf_get(tf_series.alone) : 0;
  tf_put(tf_series.alone, before + end - start);
  tf_put(tf_series.end, end);
}

/* Begins anew after a waking, which is dearer the next time unless the one before was of use: series may be too short
   for workers to arrive, or other programs keep the cores. */
static void tf_series_spent(void) {
  int64_t price = 2 * tf_get(tf_series.price);
  if (tf_get(tf_series.used) >= TF_USES) price = TF_SERIES;
  tf_put(tf_series.price, price < TF_DEAREST ? price : TF_DEAREST);
  tf_put(tf_series.alone, 0);
  tf_put(tf_series.used, 0);
}

/* Runs the first tasks, until those that are left are worth sharing or none are left; how many it ran, and how long
   the others will take. */
static int64_t tf_probe(int64_t n, tf_job_fn fn, void *ctx, double worth, double *left) {
  int64_t start = tf_now(), now;
  for (int64_t done = 0, look = 1; ; look *= 2) {
    for (; done < look && done < n; done++) fn(done, ctx);
    now = tf_now();
    *left = (double)(now - start) / (double)done * (double)(n - done);
    if (done < n && *left < worth) continue;
    if (done == n && now - start >= TF_JOIN) tf_series_add(start, now);
    return done;
  }
}

/* Runs the tasks of one's own part, then what others have not begun. The last quarter of a part that somebody is at
   work on is left to them: its numbers are near their core, and moving them costs more than it gains. */
static void tf_run_tasks(tf_job_fn fn, void *ctx, int mine, int parts) {
  tf_in_task = 1;
  for (int k = 0; k < parts; k++) {
    int p = mine + k < parts ? mine + k : mine + k - parts;
    int64_t end = tf_part[p].end;
    for (;;) {
      int theirs = k && tf_get(tf_part[p].taken);
      int64_t until = theirs ? end - tf_part[p].kept : end;
      if (tf_get(tf_part[p].next) >= until) break;
      int64_t i = atomic_fetch_add(&tf_part[p].next, 1);
      if (i < end) fn(i, ctx);
    }
  }
  tf_in_task = 0;
}

/* A part that no worker has in this job, one's own if that is free; 0 where all are taken. */
static int tf_seat(int own) {
  if (!tf_team.open) return 0;
  if (own < tf_team.parts && !tf_part[own].taken) return own;
  for (int p = 1; p < tf_team.parts; p++)
    if (!tf_part[p].taken) return p;
  return 0;
}

static void *tf_worker(void *number) {
  uint64_t seen = 0;
  for (int mine; ; ) {
    atomic_fetch_add(&tf_team.watching, 1);
    TF_WATCH_WHILE(tf_get(tf_team.number) == seen);
    atomic_fetch_sub(&tf_team.watching, 1);
    pthread_mutex_lock(&tf_team.lock);
    while (tf_team.number == seen || !(mine = tf_seat((int)(intptr_t)number))) {
      seen = tf_team.number;
      pthread_cond_wait(&tf_team.wake, &tf_team.lock);
    }
    seen = tf_team.number;
    tf_team.inside++;
    tf_part[mine].taken = 1;
    tf_job_fn fn = tf_team.fn;
    void *ctx = tf_team.ctx;
    int parts = tf_team.parts;
    uint32_t csr = tf_team.csr;
    pthread_mutex_unlock(&tf_team.lock);
    uint32_t before = tf_csr_get();
    tf_csr_set(csr);               /* workers compute in the caller's flush mode */
    tf_run_tasks(fn, ctx, mine, parts);
    tf_csr_set(before);
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
  tf_team.inside = tf_team.watching = 0;
  tf_in_task = 0;
}

static void tf_hire(int wanted) {
  pthread_attr_t attr;
  if (tf_team.workers >= wanted) return;
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, (size_t)4 << 20);
  for (pthread_t t; tf_team.workers < wanted; tf_team.workers++)
    if (pthread_create(&t, &attr, tf_worker, (void *)(intptr_t)(tf_team.workers + 1))) break;
  pthread_attr_destroy(&attr);
}

static void tf_run_alone(int64_t first, int64_t n, tf_job_fn fn, void *ctx) {
  for (; first < n; first++) fn(first, ctx);
}

/* fn(0..n-1) on up to `team` threads, or on this one where that is faster or the team is busy with another caller's
   job; `cost` is an estimate in nanoseconds, rather too low than too high. */
static void tf_team_run(int64_t n, double cost, tf_job_fn fn, void *ctx, int team) {
  if (team == 1 || n <= 1 || tf_in_task) {
    tf_run_alone(0, n, fn, ctx);
    return;
  }
  int64_t first = 0, start = 0;
  int watching = tf_get(tf_team.watching), due = !watching && tf_series_due(team);
  double worth = watching || due ? TF_JOIN : TF_WAKE;
  if (n >= TF_PROBED && cost < 2.5 * worth) {
    first = tf_probe(n, fn, ctx, worth, &cost);
  } else if (cost < worth) {
    if (cost >= TF_JOIN) start = tf_now();
    tf_run_alone(0, n, fn, ctx);
    if (start) tf_series_add(start, tf_now());
    return;
  }
  if (n - first <= 1 || pthread_mutex_trylock(&tf_team.gate)) {
    tf_run_alone(first, n, fn, ctx);
    return;
  }
  /* a small job goes to those who watch and leaves alone who sleeps */
  int wake = due || cost >= TF_WAKE, taken = 0;
  if (due) tf_series_spent();
  int parts = wake ? team : 1 + watching < team ? 1 + watching : team;
  if (parts > n - first) parts = (int)(n - first);
  pthread_mutex_lock(&tf_team.lock);
  if (wake) tf_hire(team - 1);
  tf_team.fn = fn; tf_team.ctx = ctx; tf_team.csr = tf_csr_get();
  for (int p = 0; p < parts; p++) {
    tf_part[p].next = first + (n - first) * p / parts;
    tf_part[p].end = first + (n - first) * (p + 1) / parts;
    tf_part[p].kept = 1 + (n - first) / parts / 4;
    tf_part[p].taken = 0;
  }
  tf_team.parts = parts;
  tf_team.open = 1;
  tf_team.number++;
  if (wake && parts > 2) pthread_cond_broadcast(&tf_team.wake);
  else if (wake) pthread_cond_signal(&tf_team.wake);
  pthread_mutex_unlock(&tf_team.lock);
  tf_run_tasks(fn, ctx, 0, parts);
  TF_WATCH_WHILE(tf_get(tf_team.inside));
  pthread_mutex_lock(&tf_team.lock);
  tf_team.open = 0;
  while (tf_team.inside) pthread_cond_wait(&tf_team.left, &tf_team.lock);
  for (int p = 1; p < parts; p++) taken |= tf_part[p].taken;
  pthread_mutex_unlock(&tf_team.lock);
  if (taken) tf_put(tf_series.used, tf_get(tf_series.used) + 1);
  pthread_mutex_unlock(&tf_team.gate);
}

#endif
