/* What the thread of an OpenGL context runs: dispatches, bytes in and out, fences.
 *
 * Needs no OpenGL headers: objects are numbers, functions are given by address, constants are those of the
 * specification (https://registry.khronos.org/OpenGL/specs/gl/glspec46.core.pdf). A device address is the
 * number of a buffer above the bytes from its start.
 */
#ifndef TF_COMMANDS_H
#define TF_COMMANDS_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "hazards.h"

#ifdef _WIN32
#define TF_GL __stdcall
#else
#define TF_GL
#endif

typedef struct {
  void (TF_GL *UseProgram)(uint32_t);
  void (TF_GL *ProgramUniform1uiv)(uint32_t, int32_t, int32_t, const uint32_t *);
  void (TF_GL *ProgramUniform2uiv)(uint32_t, int32_t, int32_t, const uint32_t *);
  void (TF_GL *BindBufferBase)(uint32_t, uint32_t, uint32_t);
  void (TF_GL *DispatchCompute)(uint32_t, uint32_t, uint32_t);
  void (TF_GL *MemoryBarrier)(uint32_t);
  void (TF_GL *BindBuffer)(uint32_t, uint32_t);
  void (TF_GL *BufferSubData)(uint32_t, intptr_t, intptr_t, const void *);
  void (TF_GL *GetBufferSubData)(uint32_t, intptr_t, intptr_t, void *);
  void (TF_GL *CopyBufferSubData)(uint32_t, uint32_t, intptr_t, intptr_t, intptr_t);
  void *(TF_GL *FenceSync)(uint32_t, uint32_t);
  uint32_t (TF_GL *ClientWaitSync)(void *, uint32_t, uint64_t);
  void (TF_GL *DeleteSync)(void *);
  void (TF_GL *Flush)(void);
  void (TF_GL *GenQueries)(int32_t, uint32_t *);
  void (TF_GL *DeleteQueries)(int32_t, const uint32_t *);
  void (TF_GL *QueryCounter)(uint32_t, uint32_t);
  void (TF_GL *GetQueryObjectui64v)(uint32_t, uint32_t, uint64_t *);
  uint32_t (TF_GL *GetError)(void);
  uint32_t (TF_GL *GetGraphicsResetStatus)(void); /* 0 where the context has none */
} tf_gl_functions;

enum { TF_ADDRESS_SHIFT = 40, TF_FENCES = 8, TF_FENCE_AFTER = 64 };
enum { TF_PART = 4 << 20, TF_SIDE = 2 * TF_PART }; /* bytes of a transfer's parts, and of each side of the ring for writes */
enum { STORAGE_BUFFER = 0x90D2, COPY_READ = 0x8F36, COPY_WRITE = 0x8F37 };
enum { STORAGE_BARRIER = 0x2000, UPDATE_BARRIER = 0x200 };
enum { TIMESTAMP = 0x8E28, QUERY_RESULT = 0x8866, TF_QUERIES = 1024 };
enum { COMMANDS_COMPLETE = 0x9117, FLUSH_COMMANDS = 1, TIMEOUT_EXPIRED = 0x911B, WAIT_FAILED = 0x911D };
/* What ends a stream besides OpenGL's own errors, which start at 0x500. */
enum { TF_LATE = 1, TF_WAIT_FAILED, TF_RESET, TF_CLOSED, TF_FORKED, TF_NO_MEMORY };

/* Buffers that the host sees while the device uses them. Bytes go through these: a driver that is given or asked
   for a few bytes of a large buffer moves all of it, 64 MiB in five milliseconds. */
typedef struct {
  uint32_t write, read;      /* buffers of 2 TF_SIDE and TF_PART bytes; 0: the driver has none, bytes go directly */
  char *to_write, *to_read;  /* the same for the host */
  int side;                  /* of the ring for writes that is filled, */
  int64_t used;              /* so many bytes of it */
  void *passed[2];           /* fences behind what was read from its sides */
} tf_gl_staging;

/* The state of the context, for its thread alone. */
typedef struct {
  tf_gl_functions fn;
  uint32_t program, bound[TF_OPERANDS], fault; /* fault: the buffer of the records of bad indices */
  tf_hazards hazards;
  tf_gl_staging staging;
  void *fences[TF_FENCES];
  int current, work; /* work: dispatches since the last fence */
  int unflushed;
  uint64_t timeout; /* nanoseconds */
  int64_t launches; /* dispatches so far */
  int timed;        /* whether each dispatch has its times taken, in */
  uint32_t *queries; /* so many timestamps, of which some are taken */
  int32_t made, stamped;
} tf_gl_context;

/* Nothing of what the context has bound is known any more. */
static void context_forget(tf_gl_context *g) {
  g->program = 0;
  memset(g->bound, 0, sizeof(g->bound));
}

static void context_barrier(tf_gl_context *g, uint32_t bits) {
  g->fn.MemoryBarrier(bits);
  g->hazards.nreads = g->hazards.nwrites = 0;
}

static int32_t context_error(tf_gl_context *g) {
  uint32_t reset = g->fn.GetGraphicsResetStatus ? g->fn.GetGraphicsResetStatus() : 0;
  return reset ? TF_RESET : (int32_t)g->fn.GetError();
}

static int32_t context_await(tf_gl_context *g, void **fence) {
  uint32_t found;
  if (!*fence) return 0;
  found = g->fn.ClientWaitSync(*fence, FLUSH_COMMANDS, g->timeout);
  g->fn.DeleteSync(*fence);
  *fence = 0;
  return found == TIMEOUT_EXPIRED ? TF_LATE : found == WAIT_FAILED ? TF_WAIT_FAILED : 0;
}

/* A fence behind the last dispatches, and a wait for those that are eight fences old: work never piles up. */
static int32_t context_fence(tf_gl_context *g) {
  int32_t rc = context_error(g);
  g->current = (g->current + 1) % TF_FENCES;
  if (!rc) rc = context_await(g, &g->fences[g->current]);
  if (rc) return rc;
  g->fences[g->current] = g->fn.FenceSync(COMMANDS_COMPLETE, 0);
  g->fn.Flush();
  g->work = g->unflushed = 0;
  return 0;
}

static int32_t context_finish(tf_gl_context *g) {
  int32_t rc = context_fence(g);
  for (int i = 1; i <= TF_FENCES && !rc; i++) rc = context_await(g, &g->fences[(g->current + i) % TF_FENCES]);
  return rc ? rc : context_error(g);
}

/* The time at which all work before is done. */
static int32_t context_stamp(tf_gl_context *g) {
  if (!g->timed) return 0;
  if (g->stamped == g->made) {
    uint32_t *more = (uint32_t *)realloc(g->queries, (g->made + TF_QUERIES) * sizeof(*more));
    if (!more) return TF_NO_MEMORY;
    g->queries = more;
    g->fn.GenQueries(TF_QUERIES, more + g->made);
    g->made += TF_QUERIES;
  }
  g->fn.QueryCounter(g->queries[g->stamped++], TIMESTAMP);
  return 0;
}

/* Timestamps on; the first one is of now. */
static int32_t context_time(tf_gl_context *g) {
  int32_t rc = context_finish(g);
  g->timed = 1;
  g->stamped = 0;
  if (!rc) rc = context_stamp(g);
  return rc ? rc : context_finish(g);
}

/* Timestamp i, in nanoseconds of the device. All work is done. */
static uint64_t context_tick(tf_gl_context *g, int32_t i) {
  uint64_t found = 0;
  g->fn.GetQueryObjectui64v(g->queries[i], QUERY_RESULT, &found);
  return found;
}

static void context_untime(tf_gl_context *g) {
  if (g->made) g->fn.DeleteQueries(g->made, g->queries);
  free(g->queries);
  g->queries = 0;
  g->timed = g->made = g->stamped = 0;
}

static void context_bind(tf_gl_context *g, int k, uint32_t buffer) {
  if (g->bound[k] == buffer) return;
  g->fn.BindBufferBase(STORAGE_BUFFER, (uint32_t)k, buffer);
  g->bound[k] = buffer;
}

/* The handle of a program is its number below the places of its two uniforms, 16 bits each. */
static int32_t context_launch(tf_gl_context *g, uint64_t handle, const tf_launch *l) {
  uint32_t program = (uint32_t)handle, at[2 * TF_OPERANDS];
  int32_t at_place = (int16_t)(handle >> 32), word_place = (int16_t)(handle >> 48);
  for (int k = 0; k < l->operands; k++) {
    at[2 * k] = (uint32_t)l->at[k];
    at[2 * k + 1] = (uint32_t)(l->at[k] >> 32);
    if (l->written >> (TF_FAULT_BIT + k) & 1) {
      context_bind(g, k, g->fault);
      at[2 * k + 1] = 0; /* below it is where the record lies in the buffer */
    } else if (l->range[k].low != l->range[k].high) {
      context_bind(g, k, (uint32_t)(l->range[k].low >> TF_ADDRESS_SHIFT));
      at[2 * k + 1] = 1; /* not 0: bodies take an address of zeros for an absent operand */
    }
  }
  if (hazards_enter_launch(&g->hazards, l)) g->fn.MemoryBarrier(STORAGE_BARRIER);
  if (g->program != program) g->fn.UseProgram(g->program = program);
  if (l->operands && at_place >= 0) g->fn.ProgramUniform2uiv(program, at_place, l->operands, at);
  if (l->words && word_place >= 0) g->fn.ProgramUniform1uiv(program, word_place, l->words, l->word);
  int32_t rc = context_stamp(g);
  g->fn.DispatchCompute(l->groups[0], l->groups[1], l->groups[2]);
  if (!rc) rc = context_stamp(g);
  if (rc) return rc;
  g->launches++;
  g->unflushed = 1;
  return ++g->work >= TF_FENCE_AFTER ? context_fence(g) : 0;
}

static intptr_t context_offset(uint64_t address) { return (intptr_t)(address & (((uint64_t)1 << TF_ADDRESS_SHIFT) - 1)); }

/* Room in the ring for a part: 0, and its place. */
static int32_t context_room(tf_gl_context *g, int64_t n, int64_t *at) {
  tf_gl_staging *s = &g->staging;
  n = (n + 63) & ~(int64_t)63;
  if (s->used + n > TF_SIDE) { /* the other side, as soon as the device has read what is there */
    s->passed[s->side] = g->fn.FenceSync(COMMANDS_COMPLETE, 0);
    s->side = 1 - s->side;
    s->used = 0;
    int32_t rc = context_await(g, &s->passed[s->side]);
    if (rc) return rc;
  }
  *at = s->side * (int64_t)TF_SIDE + s->used;
  s->used += n;
  return 0;
}

static int32_t context_write(tf_gl_context *g, uint64_t address, uint64_t n, const void *host) {
  context_barrier(g, STORAGE_BARRIER | UPDATE_BARRIER);
  g->fn.BindBuffer(COPY_WRITE, (uint32_t)(address >> TF_ADDRESS_SHIFT));
  g->unflushed = 1;
  if (!g->staging.write) {
    g->fn.BufferSubData(COPY_WRITE, context_offset(address), (intptr_t)n, host);
    return 0;
  }
  int64_t at;
  int32_t rc = context_room(g, (int64_t)n, &at);
  if (rc) return rc;
  memcpy(g->staging.to_write + at, host, n);
  g->fn.BindBuffer(COPY_READ, g->staging.write);
  g->fn.CopyBufferSubData(COPY_READ, COPY_WRITE, at, context_offset(address), (intptr_t)n);
  return 0;
}

/* Waits for all work first, which may be late, so that the copy itself is not. */
static int32_t context_read(tf_gl_context *g, uint64_t address, uint64_t n, void *host) {
  int32_t rc = context_finish(g);
  if (rc) return rc;
  context_barrier(g, STORAGE_BARRIER | UPDATE_BARRIER);
  g->fn.BindBuffer(COPY_READ, (uint32_t)(address >> TF_ADDRESS_SHIFT));
  if (!g->staging.read) {
    g->fn.GetBufferSubData(COPY_READ, context_offset(address), (intptr_t)n, host);
    return context_error(g);
  }
  g->fn.BindBuffer(COPY_WRITE, g->staging.read);
  g->fn.CopyBufferSubData(COPY_READ, COPY_WRITE, context_offset(address), 0, (intptr_t)n);
  rc = context_finish(g);
  if (!rc) memcpy(host, g->staging.to_read, n);
  return rc;
}
#endif
