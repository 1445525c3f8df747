/* What attention's bodies share. The order of operations is that of backends/cpu/attention_loops.h: keys in blocks of
 * 64, blocks rising.
 *
 * `aux` begins with a table: number of axes n, number of query heads, how many of them share a key head, sizes of the
 * axes that batches and key heads are walked by, then for each of q k v mask g out lse its n strides, then for each its stride from one query head
 * to the next that shares a key head. Rows of queries are numbered head by head. */
#define Q 0u
#define K 1u
#define V 2u
#define MASKS 3u
#define G 4u
#define RESULT 5u
#define LSE 6u
#define TABLE 64 /* words of the table; the gradients keep shift and delta of each row behind it */
#ifdef TF_DOUBLE
#define KEPT(i) packDouble2x32(word64_aux(TABLE / 2 + int(i)))
#define KEEP_NUMBER(i, v) set_word64_aux(TABLE / 2 + int(i), unpackDouble2x32(v))
#else
#define KEPT(i) FB(word32_aux(TABLE + int(i)))
#define KEEP_NUMBER(i, v) set_word32_aux(TABLE + int(i), UB(v))
#endif
#define NONE TF_BELOW
#define NO_MASK 255u

uint heads() { return word32_aux(1); }
uint group() { return word32_aux(2); }
/* Where an operand's matrix begins: `sub` counts the query heads of one key head. */
int origin(uint o, uint place, uint sub) {
  int n = int(word32_aux(0)), at = int(sub) * int(word32_aux(3 + 8 * n + int(o)));
  for (int d = n - 1; d >= 0; d--) {
    uint size = word32_aux(3 + d);
    at += int(place % size) * int(word32_aux(3 + n * int(o + 1u) + d));
    place /= size;
  }
  return at;
}
