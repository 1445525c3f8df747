/* The elementwise part of batch norm and of its gradient: places of y in row-major order, (outer, channels, inner).
 *
 * GRAD 0: ((x - mean) rstd) w + b, of which WTYPE and BTYPE are 255 where there is none;
 *      1: ((g - share(0)) - xhat share(1)) share(2), `share` having a row of channels for each number
 * FOUR: all is dense, and four neighbours have the same channel.
 *
 * operands: y x g mean rstd w b share
 * words: uint count; uint channels; uint inner; int x_step[3]; int g_step[3]
 * constants: GRAD OUT IN GIN MTYPE WTYPE BTYPE FOUR
 * group: 256
 * numbers: float double
 */
#include "four.glsl"
TF_FOUR(y)
TF_FOUR(x)
TF_FOUR(g)

T tf_value(int channel, T x, T g, T m, T rs) {
  precise T h = tf_mul(tf_sub(x, m), rs);
  if (GRAD != 0u) {
    int n = int(p_channels);
    h = tf_sub(tf_sub(g, load_share(TF_OWN, channel)), tf_mul(h, load_share(TF_OWN, n + channel)));
    return tf_mul(h, load_share(TF_OWN, 2 * n + channel));
  }
  if (WTYPE != 255u) h = tf_mul(h, load_w(WTYPE, channel));
  if (BTYPE != 255u) h = tf_add(h, load_b(BTYPE, channel));
  return h;
}

void main() {
  uint i = tf_thread();
  if (i >= (FOUR != 0u ? p_count / 4u : p_count)) return;
  uint at = FOUR != 0u ? 4u * i : i, row = at / p_inner;
  int inner = int(at % p_inner), channel = int(row % p_channels), outer = int(row / p_channels);
  precise T m = load_mean(MTYPE, channel), rs = load_rstd(TF_OWN, channel);
  if (FOUR != 0u) {
    precise T x[4], g[4], v[4];
    load4_x(IN, int(i), x);
    if (GRAD != 0u) load4_g(GIN, int(i), g);
    else g = x;
    UNROLL for (int k = 0; k < 4; k++) v[k] = tf_value(channel, x[k], g[k], m, rs);
    store4_y(OUT, int(i), v);
    return;
  }
  precise T x = load_x(IN, outer * p_x_step(0) + channel * p_x_step(1) + inner * p_x_step(2)), g = x;
  if (GRAD != 0u) g = load_g(GIN, outer * p_g_step(0) + channel * p_g_step(1) + inner * p_g_step(2));
  store_y(OUT, int(at), tf_value(channel, x, g, m, rs));
}
