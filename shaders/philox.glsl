/* Philox 4x32-10 with both halves of its 64-bit counters and key. */
uint tf_mulhi(uint a, uint b) {
  uint high, low;
  umulExtended(a, b, high, low);
  return high;
}
uvec2 tf_add64(uvec2 a, uvec2 b) {
  uint low = a.x + b.x;
  return uvec2(low, a.y + b.y + (low < a.x ? 1u : 0u));
}
/* Words 4 at .. 4 at + 3 of a draw. */
uvec4 tf_philox(uvec2 at, uvec2 draw, uvec2 seed) {
  uvec4 c = uvec4(at, draw);
  uvec2 k = seed;
  UNROLL for (int r = 0; r < 10; r++) {
    uint h0 = tf_mulhi(0xD2511F53u, c.x), h1 = tf_mulhi(0xCD9E8D57u, c.z);
    c = uvec4(h1 ^ c.y ^ k.x, 0xCD9E8D57u * c.z, h0 ^ c.w ^ k.y, 0xD2511F53u * c.x);
    k += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
