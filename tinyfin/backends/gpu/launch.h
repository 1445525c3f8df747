/* One dispatch of one shader, as every GPU backend takes it, and the table of pipelines it is found in. */
#ifndef TF_LAUNCH_H
#define TF_LAUNCH_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TF_OPERANDS = 8, TF_WORDS = 28, TF_CONSTANTS = 14, TF_FAULT_BIT = 16 };

typedef struct { uint64_t low, high; } tf_range; /* device addresses, high not included; empty: no memory */

typedef struct {
  uint32_t shader;                  /* number in the index of modules */
  uint32_t constants[TF_CONSTANTS]; /* specialization constants in order; the first are FLUSH and BEHIND */
} tf_key;

typedef struct {
  tf_key key;
  int32_t operands, words;
  uint32_t written;            /* bit k: operand k is written too; bit TF_FAULT_BIT + k: it is the record of bad indices */
  uint32_t deterministic;      /* whether subnormal numbers are flushed on every device */
  uint64_t at[TF_OPERANDS];    /* address of the first element; or a number's bits */
  tf_range range[TF_OPERANDS]; /* the bytes that are touched */
  uint32_t word[TF_WORDS];
  uint32_t groups[3];
} tf_launch;

/* Bit k: operand k has elements before its first one. */
static uint32_t behind(const tf_launch *l) {
  uint32_t mask = 0;
  for (int k = 0; k < l->operands; k++)
    if (l->range[k].low != l->range[k].high && l->range[k].low < l->at[k]) mask |= 1u << k;
  return mask;
}

/* key -> handle, open addressing; handles are never 0, and nothing is removed but all at once. */
typedef struct { tf_key key; uint64_t handle; } tf_entry;
typedef struct { tf_entry *entries; uint32_t room, used; } tf_table;

static uint32_t tf_hash(const tf_key *key) {
  uint64_t w[(sizeof(tf_key) + 7) / 8] = {0}, h = 0x9e3779b97f4a7c15u;
  memcpy(w, key, sizeof(tf_key));
  for (unsigned i = 0; i < sizeof(w) / 8; i++) h = (h ^ w[i]) * 0xff51afd7ed558ccdu;
  return (uint32_t)(h ^ h >> 32);
}
static uint64_t table_find(const tf_table *t, const tf_key *key) {
  if (!t->room) return 0;
  for (uint32_t i = tf_hash(key) & (t->room - 1);; i = (i + 1) & (t->room - 1)) {
    if (!t->entries[i].handle) return 0;
    if (!memcmp(&t->entries[i].key, key, sizeof(tf_key))) return t->entries[i].handle;
  }
}
static void table_put(tf_table *t, const tf_key *key, uint64_t handle) {
  uint32_t i = tf_hash(key) & (t->room - 1);
  while (t->entries[i].handle) i = (i + 1) & (t->room - 1);
  t->entries[i].key = *key;
  t->entries[i].handle = handle;
  t->used++;
}
/* 0 where there is no memory. */
static int table_add(tf_table *t, const tf_key *key, uint64_t handle) {
  if (2 * (t->used + 1) > t->room) {
    tf_table grown = {0, t->room ? 2 * t->room : 256, 0};
    grown.entries = (tf_entry *)calloc(grown.room, sizeof(tf_entry));
    if (!grown.entries) return 0;
    for (uint32_t i = 0; i < t->room; i++)
      if (t->entries[i].handle) table_put(&grown, &t->entries[i].key, t->entries[i].handle);
    free(t->entries);
    *t = grown;
  }
  table_put(t, key, handle);
  return 1;
}
static void table_clear(tf_table *t) {
  free(t->entries);
  memset(t, 0, sizeof(*t));
}
#endif
