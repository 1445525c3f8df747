/* Which commands of a stream must wait for which: the byte ranges that were used since the last barrier. */
#ifndef TF_HAZARDS_H
#define TF_HAZARDS_H
#include "launch.h"

enum { TF_HAZARDS = 64 };

typedef struct {
  int nreads, nwrites;
  tf_range reads[TF_HAZARDS], writes[TF_HAZARDS];
} tf_hazards;

static int overlaps(const tf_range *list, int n, tf_range r) {
  for (int i = 0; i < n; i++)
    if (list[i].low < r.high && r.low < list[i].high) return 1;
  return 0;
}

/* Enters a command. 1 where a barrier must stand before it: it reads what was written, or writes what was
   used, since the last one. Barriers order all that was ever recorded, so the lists live on over submissions. */
static int hazards_enter(tf_hazards *h, const tf_range *reads, int nreads, const tf_range *writes, int nwrites) {
  int clash = h->nreads + nreads > TF_HAZARDS || h->nwrites + nwrites > TF_HAZARDS;
  for (int i = 0; i < nreads && !clash; i++) clash = overlaps(h->writes, h->nwrites, reads[i]);
  for (int i = 0; i < nwrites && !clash; i++)
    clash = overlaps(h->writes, h->nwrites, writes[i]) || overlaps(h->reads, h->nreads, writes[i]);
  if (clash) h->nreads = h->nwrites = 0;
  for (int i = 0; i < nreads; i++) h->reads[h->nreads++] = reads[i];
  for (int i = 0; i < nwrites; i++) h->writes[h->nwrites++] = writes[i];
  return clash;
}

static int hazards_enter_launch(tf_hazards *h, const tf_launch *l) {
  tf_range reads[TF_OPERANDS], writes[TF_OPERANDS];
  int nreads = 0, nwrites = 0;
  for (int k = 0; k < l->operands; k++)
    if (l->range[k].low != l->range[k].high) {
      if (l->written >> k & 1) writes[nwrites++] = l->range[k];
      else reads[nreads++] = l->range[k];
    }
  return hazards_enter(h, reads, nreads, writes, nwrites);
}
#endif
