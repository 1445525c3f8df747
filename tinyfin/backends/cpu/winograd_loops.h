/* Inner loops of Winograd's convolutions with kernels of 3 x 3: transforms of tiles, many at once, one in each lane.

   F(m x m): m x m results come from a tile of (m + 2) x (m + 2) source elements, which overlap. Tiles, kernels and
   results are transformed to (m + 2)^2 numbers each, whose products over channels are matrix products. */
#ifndef TF_WINOGRAD_LOOPS_H
#define TF_WINOGRAD_LOOPS_H
#include <stdint.h>

/* Tiles of a block that are neighbours in a row of tiles. */
typedef struct {
  int64_t count;
  int64_t first;          /* the first one's number in the block */
  int64_t image, z, y, x; /* its first result */
} tf_tile_segment;

/* Some tiles, of one channel at a time. */
typedef struct {
  const tf_tile_segment *segments;
  int64_t n, tiles; /* segments, and tiles of all of them */
  int64_t row;      /* elements from a row of transformed tiles to the next: whole vectors, and one more */
  int64_t size[3], step[4]; /* source: sheets, rows and columns; elements from image to image, and one of them to the next */
  int64_t pad[3];
  int64_t out[2], image;    /* results: rows and columns, dense; elements from image to image */
} tf_tile_block;

typedef struct {
  int32_t out, in; /* m and m + 2 */
  /* u[in * in], u_step apart, of k kernels, which lie w_step apart; taps: where their nine elements are */
  void (*kernels)(const void *w, int64_t w_step, const int64_t *taps, int64_t k, void *u, int64_t u_step);
  /* elements of room that `source` and `result` need */
  int64_t (*room)(const tf_tile_block *b);
  /* v[in * in] of a block, v_step apart; zeros follow the last tile up to the end of `row`, but for a vector */
  void (*source)(const tf_tile_block *b, const void *x, void *room, void *v, int64_t v_step);
  /* a block of y from p[in * in], p_step apart; bias: one, or NULL. 0 where a result is not finite */
  int (*result)(const tf_tile_block *b, const void *p, int64_t p_step, const void *bias, void *room, void *y);
  /* For the gradient of kernels: as `source`, v of the gradients of a block's results, and k kernels' gradients, dense
     each, w_step apart, from sums of products. 0 where one is not finite. */
  void (*gradient)(const tf_tile_block *b, const void *g, void *room, void *v, int64_t v_step);
  int (*weights)(const void *u, int64_t u_step, int64_t k, void *w, int64_t w_step);
} tf_winograd_kind;

enum { TF_WINOGRAD_2, TF_WINOGRAD_4, TF_NWINOGRAD };

typedef struct {
  tf_winograd_kind f32[TF_NWINOGRAD], f64[TF_NWINOGRAD];
} tf_winograd_table;

#endif
