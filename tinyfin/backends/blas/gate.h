/* Who may be inside the library: calls together; a change of its thread count and a fork alone.

   OpenBLAS's own handler of fork ends its threads, which never returns where another thread is inside
   a product. Ours was entered later, so it runs first, and waits for the calls that are under way. */
#ifndef TF_GATE_H
#define TF_GATE_H
#include <pthread.h>

#ifdef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP /* those that wait alone go before new calls */
#define TF_GATE_NEW PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#else
#define TF_GATE_NEW PTHREAD_RWLOCK_INITIALIZER
#endif

static pthread_rwlock_t tf_gate = TF_GATE_NEW;

static void tf_gate_enter(int alone) {
  if (alone) pthread_rwlock_wrlock(&tf_gate);
  else pthread_rwlock_rdlock(&tf_gate);
}

static void tf_gate_leave(void) { pthread_rwlock_unlock(&tf_gate); }

static void tf_gate_alone(void) { tf_gate_enter(1); }

static void tf_gate_child(void) {
  static const pthread_rwlock_t fresh = TF_GATE_NEW;
  tf_gate = fresh;
}

/* Once, after the library was loaded; 0 where it worked. */
static int tf_gate_watch_forks(void) {
  return pthread_atfork(tf_gate_alone, tf_gate_leave, tf_gate_child);
}
#endif
