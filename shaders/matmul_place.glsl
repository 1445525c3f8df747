/* What the bodies of matrix products share: which tile of which matrices of the batch a work group computes. */
struct Tile {
  uint row, col;  /* its first row and column */
  int a, b, y;    /* where the matrices of its batch entry begin */
  bool none;      /* past the last tile */
};
/* Tiles of sixteen rows of tiles follow each other down, then across: those that run together share their operands. */
Tile tf_tile(uint rows, uint cols) {
  uint down = (p_m + rows - 1u) / rows, across = (p_n + cols - 1u) / cols, each = down * across;
  uint entry = tf_group() / each, i = tf_group() % each, band = i / (16u * across) * 16u, high = min(16u, down - band);
  Tile t;
  t.none = entry >= p_batch;
  i -= band * across;
  t.row = (band + i % high) * rows;
  t.col = i / high * cols;
  ivec4 k = tf_unravel(entry, p_shape(0), p_shape(1), p_shape(2));
  t.a = tf_dot(k, p_step(0), p_step(1), p_step(2), p_step(3));
  t.b = tf_dot(k, p_step(4), p_step(5), p_step(6), p_step(7));
  t.y = int(entry * p_m * p_n);
  return t;
}
/* Whether numbers are added to the results. */
bool tf_biased() { return at_bias() != uvec2(0u); }
