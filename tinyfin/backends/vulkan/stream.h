/* One queue of one Vulkan device: a ring of command buffers, a timeline, barriers where work depends on work.
 *
 * Needs no Vulkan headers: handles are numbers, and the few structures below are laid out as the
 * specification has them (https://registry.khronos.org/vulkan/specs/latest/html/vkspec.html). All
 * functions return a VkResult, negative for errors. Callers hold the GIL, which orders them.
 */
#ifndef TF_STREAM_H
#define TF_STREAM_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "hazards.h"

enum { TF_RING = 8, TF_FLUSH_AFTER = 64, TF_QUERIES = 2 * TF_FLUSH_AFTER + 2 }; /* queries: of a command buffer */

typedef struct { uint32_t type; const void *next; uint32_t flags; const void *inherited; } tf_vk_begin_info;
typedef struct { uint32_t type; const void *next; uint32_t source, target; } tf_vk_barrier;
typedef struct { uint64_t source, target, size; } tf_vk_copy;
typedef struct {
  uint32_t type; const void *next;
  uint32_t waits; const uint64_t *wait_values;
  uint32_t signals; const uint64_t *signal_values;
} tf_vk_timeline_info;
typedef struct {
  uint32_t type; const void *next;
  uint32_t waits; const uint64_t *wait_semaphores; const uint32_t *wait_stages;
  uint32_t buffers; void *const *command_buffers;
  uint32_t signals; const uint64_t *signal_semaphores;
} tf_vk_submit_info;
typedef struct {
  uint32_t type; const void *next; uint32_t flags, count;
  const uint64_t *semaphores; const uint64_t *values;
} tf_vk_wait_info;

typedef struct {
  int32_t (*BeginCommandBuffer)(void *, const tf_vk_begin_info *);
  int32_t (*EndCommandBuffer)(void *);
  void (*CmdBindPipeline)(void *, int, uint64_t);
  void (*CmdPushConstants)(void *, uint64_t, uint32_t, uint32_t, uint32_t, const void *);
  void (*CmdDispatch)(void *, uint32_t, uint32_t, uint32_t);
  void (*CmdPipelineBarrier)(void *, uint32_t, uint32_t, uint32_t, uint32_t, const tf_vk_barrier *, uint32_t,
                             const void *, uint32_t, const void *);
  void (*CmdCopyBuffer)(void *, uint64_t, uint64_t, uint32_t, const tf_vk_copy *);
  void (*CmdResetQueryPool)(void *, uint64_t, uint32_t, uint32_t);
  void (*CmdWriteTimestamp)(void *, uint32_t, uint64_t, uint32_t);
  int32_t (*GetQueryPoolResults)(void *, uint64_t, uint32_t, uint32_t, size_t, void *, uint64_t, uint32_t);
  int32_t (*QueueSubmit)(void *, uint32_t, const tf_vk_submit_info *, uint64_t);
  int32_t (*WaitSemaphores)(void *, const tf_vk_wait_info *, uint64_t);
  int32_t (*GetSemaphoreCounterValue)(void *, uint64_t, uint64_t *);
} tf_vk_functions;

typedef struct {
  tf_vk_functions fn;
  void *device, *queue;
  uint64_t semaphore;
  void *buffers[TF_RING];
  uint64_t signalled[TF_RING]; /* value of the timeline at which the buffer is free again */
  uint64_t value;              /* of the last submission */
  uint64_t pipeline;           /* bound in the open buffer */
  int64_t timeout;             /* nanoseconds that a wait may take */
  int current, open, work;     /* work: commands in the open buffer */
  int32_t lost;                /* the first error; the device is not used after it */
  tf_hazards hazards;
  int copied, loose;           /* since a barrier that all wait at: copies; barriers that only dispatches wait at */
  uint64_t launches;           /* dispatches so far */
  uint64_t queries;            /* pool of timestamps, two for each dispatch; 0: nobody asks for them */
  uint32_t stamped[TF_RING];   /* timestamps in each command buffer */
  uint64_t *ticks;             /* those that were read, in order */
  size_t read, room;
} tf_stream;

enum { DISPATCHES = 0x800, STAGES = 0x800 | 0x1000, HOST_STAGE = 0x4000 }; /* compute shader, transfer; host */
enum { BODY_WROTE = 0x40, BODY_USES = 0x20 | 0x40, WROTE = 0x40 | 0x1000, USES = 0x20 | 0x40 | 0x800 | 0x1000 };
enum { HOST_READ = 0x2000 };

static int32_t stream_wait(tf_stream *s, uint64_t value) {
  tf_vk_wait_info info = {1000207004, 0, 0, 1, &s->semaphore, &value};
  uint64_t now = 0;
  int32_t rc = s->lost;
  if (rc) return rc;
  rc = s->fn.GetSemaphoreCounterValue(s->device, s->semaphore, &now);
  if (!rc && now < value) rc = s->fn.WaitSemaphores(s->device, &info, (uint64_t)s->timeout);
  if (rc) s->lost = rc;
  return rc;
}

/* Takes the timestamps of a command buffer that is done. */
static int32_t stream_collect(tf_stream *s, int k) {
  size_t n = s->stamped[k], room = s->room ? s->room : 4096;
  s->stamped[k] = 0;
  if (!n) return 0;
  while (room < s->read + n) room *= 2;
  if (room != s->room) {
    uint64_t *more = (uint64_t *)realloc(s->ticks, room * sizeof(*more));
    if (!more) return -1;
    s->ticks = more;
    s->room = room;
  }
  int32_t rc = s->fn.GetQueryPoolResults(s->device, s->queries, (uint32_t)k * TF_QUERIES, (uint32_t)n, n * sizeof(*s->ticks),
                                         s->ticks + s->read, sizeof(*s->ticks), 1 | 2); /* 64 bits, wait */
  s->read += n;
  return rc;
}

/* The time at which all work before is done. */
static void stream_stamp(tf_stream *s) {
  int k = s->current;
  if (s->queries) s->fn.CmdWriteTimestamp(s->buffers[k], 0x2000, s->queries, (uint32_t)k * TF_QUERIES + s->stamped[k]++);
}

static int32_t stream_open(tf_stream *s) {
  tf_vk_begin_info info = {42, 0, 1, 0};
  int32_t rc = s->lost;
  if (rc || s->open) return rc;
  s->current = (s->current + 1) % TF_RING;
  rc = stream_wait(s, s->signalled[s->current]);
  if (!rc) rc = stream_collect(s, s->current);
  if (!rc) rc = s->fn.BeginCommandBuffer(s->buffers[s->current], &info);
  if (rc) { s->lost = rc; return rc; }
  if (s->queries)
    s->fn.CmdResetQueryPool(s->buffers[s->current], s->queries, (uint32_t)s->current * TF_QUERIES, TF_QUERIES);
  s->open = 1;
  s->work = 0;
  s->pipeline = 0;
  return 0;
}

static int32_t stream_flush(tf_stream *s) {
  tf_vk_barrier seen = {46, 0, WROTE, HOST_READ};
  int32_t rc = s->lost;
  if (rc || !s->open) return rc;
  void *buffer = s->buffers[s->current];
  uint64_t value = s->value + 1;
  tf_vk_timeline_info times = {1000207003, 0, 0, 0, 1, &value};
  tf_vk_submit_info info = {4, &times, 0, 0, 0, 1, &buffer, 1, &s->semaphore};
  s->fn.CmdPipelineBarrier(buffer, STAGES, HOST_STAGE, 0, 1, &seen, 0, 0, 0, 0);
  rc = s->fn.EndCommandBuffer(buffer);
  if (!rc) rc = s->fn.QueueSubmit(s->queue, 1, &info, 0);
  s->open = 0;
  if (rc) { s->lost = rc; return rc; }
  s->value = s->signalled[s->current] = value;
  return 0;
}

/* The next command, a copy or a dispatch, waits for all before it where it clashes with one. Between dispatches
   stands a barrier that only they wait at, which takes drivers less; the next copy then waits for all of them. */
static void stream_order(tf_stream *s, int clash, int copy) {
  int all = copy || s->copied;
  tf_vk_barrier barrier = {46, 0, all ? WROTE : BODY_WROTE, all ? USES : BODY_USES};
  uint32_t stages = all ? STAGES : DISPATCHES;
  if (clash || (copy && s->loose)) {
    s->fn.CmdPipelineBarrier(s->buffers[s->current], stages, stages, 0, 1, &barrier, 0, 0, 0, 0);
    s->copied = 0;
    s->loose = !all;
  }
  s->copied |= copy;
}

static int32_t stream_done(tf_stream *s) { return ++s->work >= TF_FLUSH_AFTER ? stream_flush(s) : 0; }

static int32_t stream_launch(tf_stream *s, uint64_t pipeline, uint64_t layout, const tf_launch *l) {
  uint32_t push[2 * TF_OPERANDS + TF_WORDS], bytes = 8u * l->operands + 4u * l->words;
  int32_t rc = stream_open(s);
  if (rc) return rc;
  void *buffer = s->buffers[s->current];
  memcpy(push, l->at, 8u * l->operands);
  memcpy(push + 2 * l->operands, l->word, 4u * l->words);
  stream_order(s, hazards_enter_launch(&s->hazards, l), 0);
  if (s->pipeline != pipeline) {
    s->fn.CmdBindPipeline(buffer, 1, pipeline);
    s->pipeline = pipeline;
  }
  s->fn.CmdPushConstants(buffer, layout, 0x20, 0, bytes, push);
  stream_stamp(s);
  s->fn.CmdDispatch(buffer, l->groups[0], l->groups[1], l->groups[2]);
  stream_stamp(s);
  s->launches++;
  return stream_done(s);
}

/* Timestamps on: `queries` is a pool of TF_RING * TF_QUERIES. The first one is of now. All work is done. */
static int32_t stream_time(tf_stream *s, uint64_t queries) {
  s->queries = queries;
  s->read = 0;
  int32_t rc = stream_open(s);
  if (!rc) stream_stamp(s);
  return rc ? rc : stream_flush(s);
}

/* Reads what is left when all work is done, oldest first, and switches timestamps off. */
static int32_t stream_untime(tf_stream *s) {
  int32_t rc = 0;
  for (int i = 1; i <= TF_RING && !rc; i++) rc = stream_collect(s, (s->current + i) % TF_RING);
  s->queries = 0;
  return rc;
}

static int32_t stream_copy(tf_stream *s, uint64_t source, uint64_t target, tf_vk_copy part, tf_range read,
                           tf_range write) {
  int32_t rc = stream_open(s);
  if (rc) return rc;
  stream_order(s, hazards_enter(&s->hazards, &read, 1, &write, 1), 1);
  s->fn.CmdCopyBuffer(s->buffers[s->current], source, target, 1, &part);
  return stream_done(s);
}
#endif
