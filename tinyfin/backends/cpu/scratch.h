#ifndef TF_SCRATCH_H
#define TF_SCRATCH_H
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* Scratch: a stack of chunks per thread. The first one stays with the thread while it is not huge, in a place where
   others may take it away between kernels; further chunks come and go. */
typedef struct tf_chunk { struct tf_chunk *below; size_t size, used; } tf_chunk;
#define TF_CHUNK_HEAD 64
#define TF_CHUNK_LEAST ((size_t)1 << 20)
#define TF_CHUNK_KEPT ((size_t)64 << 20)

/* What a thread keeps between kernels. Not in thread-local memory: the child of a fork still sees those of all threads. */
typedef struct tf_keeper {
  _Atomic(tf_chunk *) chunk;
  _Atomic size_t size;
  struct tf_keeper *next;
} tf_keeper;
static __thread tf_chunk *tf_top;
static __thread size_t tf_scratch_held;
static __thread tf_keeper *tf_own_keeper;
static size_t tf_scratch_limit = (size_t)1 << 30;
static tf_keeper *tf_keepers;
static pthread_mutex_t tf_keepers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t tf_scratch_key;
static pthread_once_t tf_scratch_once = PTHREAD_ONCE_INIT;

static tf_chunk *tf_take_kept(tf_keeper *k) {
  atomic_store_explicit(&k->size, 0, memory_order_relaxed);
  return atomic_exchange(&k->chunk, NULL);
}
static void tf_scratch_end(void *own) {        /* a thread that ends gives its chunk back */
  tf_keeper *k = own, **at = &tf_keepers;
  pthread_mutex_lock(&tf_keepers_lock);
  while (*at != k) at = &(*at)->next;
  *at = k->next;
  pthread_mutex_unlock(&tf_keepers_lock);
  free(tf_take_kept(k));
  free(k);
}
static void tf_scratch_begin(void) { pthread_key_create(&tf_scratch_key, tf_scratch_end); }
static int tf_keep(tf_chunk *c) {
  tf_keeper *k = tf_own_keeper;
  if (!k) {
    if (!(k = calloc(1, sizeof *k))) return 0;
    pthread_once(&tf_scratch_once, tf_scratch_begin);
    if (pthread_setspecific(tf_scratch_key, k)) { free(k); return 0; }
    pthread_mutex_lock(&tf_keepers_lock);
    k->next = tf_keepers;
    tf_own_keeper = tf_keepers = k;
    pthread_mutex_unlock(&tf_keepers_lock);
  }
  atomic_store_explicit(&k->size, c->size, memory_order_relaxed);
  atomic_store(&k->chunk, c);
  return 1;
}
static tf_chunk *tf_chunk_new(size_t bytes) {
  void *p = NULL;
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
static void tf_chunk_free(tf_chunk *c) { tf_scratch_held -= c->size; tf_top = c->below; free(c); }
/* What a request takes of a chunk; something even for nothing, so that a chunk in use is never one without use. */
static size_t tf_scratch_room(size_t bytes) { return bytes ? (bytes + 63) & ~(size_t)63 : 64; }
static void *tf_scratch_push(size_t bytes) {
  if (bytes > tf_scratch_limit) return NULL;
  bytes = tf_scratch_room(bytes);
  tf_chunk *c = tf_top;
  if (!c && tf_own_keeper) {
    tf_top = c = tf_take_kept(tf_own_keeper);
    tf_scratch_held = c ? c->size : 0;
  }
  if (!c || c->size - c->used < bytes) {
    if (c && !c->used) tf_chunk_free(c);       /* an unused first chunk that is too small */
    if (!(c = tf_chunk_new(bytes))) return NULL;
  }
  void *p = (char *)c + TF_CHUNK_HEAD + c->used;
  c->used += bytes;
  return p;
}
static void tf_scratch_pop(size_t bytes) {
  tf_chunk *c = tf_top;
  c->used -= tf_scratch_room(bytes);
  if (c->used) return;
  if (c->below || c->size > TF_CHUNK_KEPT || !tf_keep(c)) tf_chunk_free(c);
  else tf_top = NULL;
}
/* Gives back what all threads keep between kernels. */
static void tf_scratch_release(void) {
  pthread_mutex_lock(&tf_keepers_lock);
  for (tf_keeper *k = tf_keepers; k; k = k->next) free(tf_take_kept(k));
  pthread_mutex_unlock(&tf_keepers_lock);
}
/* How many bytes that is, and of how many threads. */
static size_t tf_scratch_kept(int *threads) {
  size_t total = 0;
  *threads = 0;
  pthread_mutex_lock(&tf_keepers_lock);
  for (tf_keeper *k = tf_keepers; k; k = k->next) {
    size_t size = atomic_load_explicit(&k->size, memory_order_relaxed);
    total += size;
    *threads += size != 0;
  }
  pthread_mutex_unlock(&tf_keepers_lock);
  return total;
}
/* The child of a fork has one thread, which holds no lock; what the others kept is released with the rest. */
static void tf_scratch_child(void) { pthread_mutex_init(&tf_keepers_lock, NULL); }

#endif
