/* What the bodies of convolutions share: each is a product of a, rows by chains, and b, chains by columns.
 *
 * MODE 0, y: rows are channels of y, a chain has (channel of x, tap), columns are (image, place of y); a is w, b is x.
 * MODE 1, the gradient of x: rows are channels of x, a chain has (channel of y, tap), columns are (image, place of
 *   x); a is w, b the gradient of y. With a stride, places that the same taps may reach are a product of their own,
 *   a class. A tap that reaches nothing is no part of the chain.
 * MODE 2, the gradient of w: rows are channels of y, a chain has (image, place of y), columns are (channel of x,
 *   tap); a is the gradient of y, b is x.
 *
 * `rows` are those of one group, `chans` the channels of b in one group.
 */
struct Conv {
  uint cols, begin, depth;                      /* chains go from `begin` to before `depth` */
  int a, b, y;                                  /* where the operands of the group begin */
  ivec3 rest, first, taps, gap, step, from, count; /* of a class: places rest + t stride, taps first + i gap */
};
ivec3 tf_outs() { return ivec3(p_outs(0), p_outs(1), p_outs(2)); }
ivec3 tf_size() { return ivec3(p_size(0), p_size(1), p_size(2)); }
ivec3 tf_kernel() { return ivec3(p_kernel(0), p_kernel(1), p_kernel(2)); }
ivec3 tf_stride() { return ivec3(p_stride(0), p_stride(1), p_stride(2)); }
ivec3 tf_pad() { return ivec3(p_pad(0), p_pad(1), p_pad(2)); }
ivec3 tf_dil() { return ivec3(p_dil(0), p_dil(1), p_dil(2)); }
int tf_volume(ivec3 v) { return v.x * v.y * v.z; }
int tf_linear(ivec3 at, ivec3 size) { return (at.x * size.y + at.y) * size.z + at.z; }
ivec4 tf_places(uint i, ivec3 size) { return tf_unravel(i, uint(size.x), uint(size.y), uint(size.z)); }
/* Elements between rows of a and of the result; between images of the dense tensor that b is not. */
int tf_a_row() {
  if (MODE == 0u) return int(p_chans) * tf_volume(tf_kernel());
  return MODE == 1u ? tf_volume(tf_kernel()) : tf_volume(tf_outs());
}
int tf_y_row() {
  if (MODE == 2u) return int(p_chans) * tf_volume(tf_kernel());
  return MODE == 1u ? tf_volume(tf_size()) : tf_volume(tf_outs());
}
int tf_other_image() { return int(p_groups * p_rows) * tf_volume(MODE == 1u ? tf_size() : tf_outs()); }
/* Sizes that coordinates in b have to stay below. */
ivec3 tf_limits() { return MODE == 1u ? tf_outs() : tf_size(); }
ivec3 tf_classes() { return MODE == 1u ? min(tf_stride(), tf_size()) : ivec3(1); }
ivec3 tf_class_size(ivec3 rest) { return (tf_size() - rest + tf_stride() - 1) / tf_stride(); }
/* Columns of the largest class. */
uint tf_most_columns() {
  if (MODE == 0u) return p_images * uint(tf_volume(tf_outs()));
  if (MODE == 1u) return p_images * uint(tf_volume(tf_class_size(ivec3(0))));
  return p_chans * uint(tf_volume(tf_kernel()));
}

/* The product of one group and class. */
Conv tf_conv(uint group, uint number) {
  Conv c;
  int taps = tf_volume(tf_kernel());
  c.a = int(group * p_rows) * (MODE == 2u ? tf_volume(tf_outs()) : int(p_chans) * taps);
  c.b = int(group * p_chans) * p_b_channel;
  c.y = int(group * p_rows) * tf_y_row();
  c.cols = tf_most_columns();
  c.begin = 0u;
  c.depth = MODE == 2u ? p_images * uint(tf_volume(tf_outs())) : p_chans * uint(taps);
  c.rest = c.first = c.gap = c.step = c.from = ivec3(0);
  c.taps = tf_kernel();
  c.count = tf_outs();
  if (MODE == 1u) {
    c.rest = tf_places(number, tf_classes()).yzw;
    for (int d = 0; d < 3; d++) {
      int stride = p_stride(d), dil = p_dil(d), g = stride, h = dil, r = 0;
      while (h != 0) {
        int m = g % h;
        g = h;
        h = m;
      }
      c.gap[d] = stride / g;
      c.step[d] = dil / g;
      int tries = min(c.gap[d], p_kernel(d)), at = c.rest[d] + p_pad(d);
      while (r < tries && abs(at - r * dil) % stride != 0) r++;
      c.first[d] = r;
      c.taps[d] = r < tries ? (p_kernel(d) - 1 - r) / c.gap[d] + 1 : 0;
      at -= r * dil;
      c.from[d] = at < 0 ? -(-at / stride) : at / stride;
    }
    c.count = tf_class_size(c.rest);
    c.cols = p_images * uint(tf_volume(c.count));
    c.depth = p_chans * uint(tf_volume(c.taps));
  }
  return c;
}
