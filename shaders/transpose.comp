/* A tensor copied into another order of axes: neighbours of the one lie apart in the other, so squares of TILE x TILE
 * elements go through shared memory, which both sides reach line by line.
 *
 * x lies without gaps along its `deep` axis, out along its `wide` one; what other axes there are is walked.
 *
 * operands: out x
 * words: uint deep; uint wide; int x_wide; int out_deep; uint count; uint shape[3]; int out_step[4]; int x_step[4]
 * constants: UNIT=4 TILE=32
 * group: 256
 */
#define LINE (TILE + 1u) /* keeps the places of a column in banks of their own */
#define STEP (TF_GROUP / TILE)
shared uint tf_low[TILE * LINE];
shared uint tf_high[UNIT == 8u ? TILE * LINE : 1u];

void tf_keep(uint at, int i) {
  if (UNIT == 8u) {
    uvec2 w = word64_x(i);
    tf_low[at] = w.x;
    tf_high[at] = w.y;
  } else {
    tf_low[at] = UNIT == 4u ? word32_x(i) : UNIT == 2u ? word16_x(i) : word8_x(i);
  }
}
void tf_put(uint at, int i) {
  if (UNIT == 8u) set_word64_out(i, uvec2(tf_low[at], tf_high[at]));
  else if (UNIT == 4u) set_word32_out(i, tf_low[at]);
  else if (UNIT == 2u) set_word16_out(i, tf_low[at]);
  else set_word8_out(i, tf_low[at]);
}

void main() {
  uint tiles = (p_deep + TILE - 1u) / TILE, tile = tf_group(), lines = (p_wide + TILE - 1u) / TILE;
  uint deep = tile % tiles * TILE, wide = tile / tiles % lines * TILE, place = tile / tiles / lines;
  if (place >= p_count) return;
  ivec4 k = tf_unravel(place, p_shape(0), p_shape(1), p_shape(2));
  int from = tf_dot(k, p_x_step(0), p_x_step(1), p_x_step(2), p_x_step(3));
  int to = tf_dot(k, p_out_step(0), p_out_step(1), p_out_step(2), p_out_step(3));
  uint near = gl_LocalInvocationIndex % TILE, far = gl_LocalInvocationIndex / TILE;
  UNROLL for (uint s = 0u; s < TILE; s += STEP)
    if (deep + near < p_deep && wide + far + s < p_wide)
      tf_keep((far + s) * LINE + near, from + int(deep + near) + int(wide + far + s) * p_x_wide);
  barrier();
  UNROLL for (uint s = 0u; s < TILE; s += STEP)
    if (wide + near < p_wide && deep + far + s < p_deep)
      tf_put(near * LINE + far + s, to + int(wide + near) + int(deep + far + s) * p_out_deep);
}
