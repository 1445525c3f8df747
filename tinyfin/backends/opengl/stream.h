/* Commands on their way to the thread of an OpenGL context.
 *
 * A context belongs to one thread, so any thread may call a kernel, and one alone talks to the driver. Callers
 * hold the GIL while they put commands in, which orders them, and give it up while they wait; the context's
 * thread never needs it for a command. A driver that hangs is thus noticed, and the process lives.
 */
#ifndef TF_GL_STREAM_H
#define TF_GL_STREAM_H
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "commands.h"

#ifdef __APPLE__
#define TF_CLOCK CLOCK_REALTIME
#else
#define TF_CLOCK CLOCK_MONOTONIC
#endif
enum { TF_GL_RING = 256, TF_WAKE_AFTER = 16 };
enum { TF_LARGE = 256 << 10, TF_SPARE = 8 }; /* bytes of parts whose memory is kept, and how many */
enum { TF_NOTHING, TF_LAUNCH, TF_WRITE, TF_READ, TF_FINISH, TF_CALL, TF_STOP };

typedef struct {
  int kind;
  uint64_t handle;         /* of a dispatch */
  uint64_t address, bytes; /* of a transfer */
  void *host;              /* of a transfer, from stream_memory; given back after a write */
  tf_launch launch;
} tf_command;

typedef struct {
  tf_gl_context context;
  pthread_mutex_t lock; /* guards what follows, but for the commands between done and put */
  pthread_cond_t wake, moved;
  uint64_t put, done; /* numbers of commands */
  uint64_t held;      /* bytes that wait to be written */
  int spares;
  void *spare[TF_SPARE]; /* of TF_PART bytes: fresh memory costs more than a copy */
  int asleep, waiting;
  int32_t lost; /* the first error; commands after it are dropped */
  tf_command ring[TF_GL_RING];
} tf_gl_stream;

static void stream_init(tf_gl_stream *s) {
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
#ifndef __APPLE__
  pthread_condattr_setclock(&attr, TF_CLOCK);
#endif
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->wake, &attr);
  pthread_cond_init(&s->moved, &attr);
  pthread_condattr_destroy(&attr);
}

/* The child of a fork has no thread for the context. */
static void stream_orphaned(tf_gl_stream *s) {
  stream_init(s);
  s->lost = TF_FORKED;
}

/* Memory for a part of a transfer. */
static void *stream_memory(tf_gl_stream *s, uint64_t bytes) {
  void *found = 0;
  if (bytes < TF_LARGE) return malloc(bytes);
  pthread_mutex_lock(&s->lock);
  if (s->spares) found = s->spare[--s->spares];
  pthread_mutex_unlock(&s->lock);
  return found ? found : malloc(TF_PART);
}

static void stream_free(tf_gl_stream *s, void *memory, uint64_t bytes) {
  if (memory && bytes >= TF_LARGE) {
    pthread_mutex_lock(&s->lock);
    if (s->spares < TF_SPARE) {
      s->spare[s->spares++] = memory;
      memory = 0;
    }
    pthread_mutex_unlock(&s->lock);
  }
  free(memory);
}

/* The place of the next command, or 0 where the ring is full: stream_wait(s, s->put - TF_GL_RING + 1) then. */
static tf_command *stream_place(tf_gl_stream *s) {
  uint64_t done;
  pthread_mutex_lock(&s->lock);
  done = s->done;
  pthread_mutex_unlock(&s->lock);
  return s->put - done < TF_GL_RING ? &s->ring[s->put % TF_GL_RING] : 0;
}

/* The command in the place is complete. Dispatches wake the thread in groups. */
static void stream_put(tf_gl_stream *s) {
  int urgent = s->ring[s->put % TF_GL_RING].kind != TF_LAUNCH;
  pthread_mutex_lock(&s->lock);
  if (s->ring[s->put % TF_GL_RING].kind == TF_WRITE) s->held += s->ring[s->put % TF_GL_RING].bytes;
  s->put++;
  if (s->asleep && (urgent || s->put - s->done >= TF_WAKE_AFTER)) pthread_cond_signal(&s->wake);
  pthread_mutex_unlock(&s->lock);
}

/* Until so many commands are done; ends the stream where that takes longer than its time, 0: no limit. */
static int32_t stream_wait(tf_gl_stream *s, uint64_t number, uint64_t limit) {
  struct timespec end;
  int32_t rc = 0;
  if (s->lost == TF_FORKED) return TF_FORKED;
  clock_gettime(TF_CLOCK, &end);
  end.tv_sec += (time_t)(limit / 1000000000u);
  end.tv_nsec += (long)(limit % 1000000000u);
  if (end.tv_nsec >= 1000000000) { end.tv_sec++; end.tv_nsec -= 1000000000; }
  pthread_mutex_lock(&s->lock);
  s->waiting++;
  if (s->asleep) pthread_cond_signal(&s->wake);
  while (s->done < number && !rc) {
    if (!limit) pthread_cond_wait(&s->moved, &s->lock);
    else if (pthread_cond_timedwait(&s->moved, &s->lock, &end) == ETIMEDOUT && s->done < number) rc = TF_LATE;
  }
  s->waiting--;
  if (rc && !s->lost) s->lost = rc;
  if (s->lost) rc = s->lost;
  pthread_mutex_unlock(&s->lock);
  return rc;
}

static int32_t stream_execute(tf_gl_stream *s, tf_command *c) {
  tf_gl_context *g = &s->context;
  switch (c->kind) {
    case TF_LAUNCH: return context_launch(g, c->handle, &c->launch);
    case TF_WRITE: return context_write(g, c->address, c->bytes, c->host);
    case TF_READ: return context_read(g, c->address, c->bytes, c->host);
    case TF_FINISH: return context_finish(g);
    default: return 0;
  }
}

/* One more command is done. */
static void stream_advance(tf_gl_stream *s, int32_t rc) {
  tf_command *c = &s->ring[s->done % TF_GL_RING];
  if (c->kind == TF_WRITE) stream_free(s, c->host, c->bytes);
  pthread_mutex_lock(&s->lock);
  if (c->kind == TF_WRITE) s->held -= c->bytes;
  s->done++;
  if (rc && !s->lost) s->lost = rc;
  if (s->waiting) pthread_cond_broadcast(&s->moved);
  pthread_mutex_unlock(&s->lock);
}

/* The context's thread: runs commands until one is for its caller, TF_CALL or TF_STOP, which it advances over. */
static int stream_serve(tf_gl_stream *s) {
  for (;;) {
    int32_t lost, rc = 0;
    uint64_t put, next;
    pthread_mutex_lock(&s->lock);
    if (s->put == s->done && s->context.unflushed && !s->lost) { /* before it sleeps, what it has must start */
      pthread_mutex_unlock(&s->lock);
      s->context.fn.Flush();
      s->context.unflushed = 0;
      pthread_mutex_lock(&s->lock);
    }
    while (s->put == s->done) {
      s->asleep = 1;
      pthread_cond_wait(&s->wake, &s->lock);
      s->asleep = 0;
    }
    put = s->put;
    next = s->done;
    lost = s->lost;
    pthread_mutex_unlock(&s->lock);
    for (; next < put; next++) {
      tf_command *c = &s->ring[next % TF_GL_RING];
      if (c->kind == TF_CALL || c->kind == TF_STOP) return c->kind;
      rc = lost ? 0 : stream_execute(s, c);
      if (rc) lost = rc;
      stream_advance(s, rc);
    }
  }
}
#endif
