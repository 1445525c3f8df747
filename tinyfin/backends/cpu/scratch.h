#ifndef TF_SCRATCH_H
#define TF_SCRATCH_H
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

/* Scratch: a stack of chunks per thread; the first one stays while it is not huge, others come and go. */
typedef struct tf_chunk { struct tf_chunk *below; size_t size, used; } tf_chunk;
#define TF_CHUNK_HEAD 64
#define TF_CHUNK_LEAST ((size_t)1 << 20)
#define TF_CHUNK_KEPT ((size_t)64 << 20)
static __thread tf_chunk *tf_top;
static __thread size_t tf_scratch_held;
static size_t tf_scratch_limit = (size_t)1 << 30;
static pthread_key_t tf_scratch_key;
static pthread_once_t tf_scratch_once = PTHREAD_ONCE_INIT;
static void tf_scratch_end(void *unused) {     /* a thread that ends gives its chunks back */
  for (tf_chunk *c; (c = tf_top); ) { tf_top = c->below; free(c); }
}
static void tf_scratch_begin(void) { pthread_key_create(&tf_scratch_key, tf_scratch_end); }
static tf_chunk *tf_chunk_new(size_t bytes) {
  void *p = NULL;
  if (!tf_top) {
    pthread_once(&tf_scratch_once, tf_scratch_begin);
    pthread_setspecific(tf_scratch_key, &tf_top);
  }
  size_t least = tf_scratch_limit < TF_CHUNK_LEAST ? tf_scratch_limit : TF_CHUNK_LEAST;
  size_t size = bytes < least ? least : bytes;
  if (size > tf_scratch_limit - (tf_scratch_held < tf_scratch_limit ? tf_scratch_held : tf_scratch_limit))
    return NULL;
  if (posix_memalign(&p, 64, size + TF_CHUNK_HEAD)) return NULL;
  tf_chunk *c = p;
  c->below = tf_top; c->size = size; c->used = 0;
  tf_scratch_held += size;
  return tf_top = c;
}
static void *tf_scratch_push(size_t bytes) {
  if (bytes > tf_scratch_limit) return NULL;
  bytes = (bytes + 63) & ~(size_t)63;
  tf_chunk *c = tf_top;
  if (!c || c->size - c->used < bytes) {
    if (c && !c->used) {              /* an unused first chunk that is too small */
      tf_scratch_held -= c->size; tf_top = c->below; free(c);
    }
    if (!(c = tf_chunk_new(bytes))) return NULL;
  }
  void *p = (char *)c + TF_CHUNK_HEAD + c->used;
  c->used += bytes;
  return p;
}
static void tf_scratch_pop(size_t bytes) {
  tf_chunk *c = tf_top;
  c->used -= (bytes + 63) & ~(size_t)63;
  if (!c->used && (c->below || c->size > TF_CHUNK_KEPT)) { tf_scratch_held -= c->size; tf_top = c->below; free(c); }
}
/* Gives back what the calling thread keeps between kernels. */
static void tf_scratch_release(void) {
  tf_chunk *c = tf_top;
  if (c && !c->used) { tf_scratch_held -= c->size; tf_top = c->below; free(c); }
}

#endif
