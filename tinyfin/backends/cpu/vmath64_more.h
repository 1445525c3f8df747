/* vmath64, continued: circular, inverse hyperbolic, error and gamma functions, under the rules of
 * vmath64.h, which includes this file.
 */
/* ---- circular functions */
/* Row e of the table: 2 / pi without the bits that make multiples of 4 for |x| >= 2^(32 e), times
   2^(32 e), as a sum of four numbers. */
static const double vd_twopi[128] = {
  0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55, -0x1.6447e493ad4cep-109, 0x1.e21c820ff28b2p-163,
  0x1.45f306dc9c883p+31, -0x1.6b01ec5417056p-23, -0x1.6447e493ad4cep-77, 0x1.e21c820ff28b2p-131,
  0x1.cc1b727220a95p+53, -0x1.ec54170565912p-7, 0x1.b6c52b3278872p-65, 0x1.07f9458eaf7afp-122,
  0x1.054a7f09d5f48p+50, -0x1.596447e493ad5p-5, 0x1.93c439041fe51p-60, 0x1.8eaf7aef1586ep-114,
  0x1.3abe8fa9a6ee0p+53, 0x1.b6c52b3278872p-1, 0x1.07f9458eaf7afp-58, -0x1.d4f246dc8e2dfp-115,
  0x1.a6ee06db14acdp+53, -0x1.8778df7c035d4p-1, 0x1.d5ef5de2b0db9p-55, 0x1.1b8e909374b80p-110,
  0x1.14acc9e21c821p+53, -0x1.ae9c5421443aap-8, 0x1.b7246e3a424ddp-64, 0x1.700324977504fp-119,
  0x1.c820ff28b1d5fp+49, -0x1.443a9e48db91cp-8, -0x1.6f6c8b47fe6dbp-62, -0x1.115f62e6de302p-116,
  0x1.163abdebbc562p+52, -0x1.236e4716f6c8bp-2, -0x1.1ff9b6d115f63p-56, 0x1.921cfe1deb1cbp-112,
  0x1.de2b0db92371dp+53, 0x1.09374b801924cp-2, -0x1.15f62e6de301ep-56, -0x1.0a71a76b2c609p-111,
  0x1.2371d2126e970p+53, 0x1.924bba8274648p-6, 0x1.cfe1deb1cb12ap-60, -0x1.63045df7282b4p-114,
  0x1.ba5c00c925dd4p+51, 0x1.3a32439fc3bd6p-5, 0x1.cb129a73ee882p-60, 0x1.afa975da24275p-115,
  0x1.25dd413a3243ap+51, -0x1.e214e34ed658cp-8, -0x1.177dca0ad144cp-64, 0x1.213a671c09ad1p-118,
  0x1.1921cfe1deb1dp+52, -0x1.3b5963045df73p-2, 0x1.f52ebb4484e9ap-56, -0x1.c7eca5d040df6p-111,
  0x1.deb1cb129a73fp+52, -0x1.77dca0ad144bbp-4, -0x1.ec598e3f652e8p-58, -0x1.037d8cdc538d0p-113,
  0x1.4d39f74411afbp+53, -0x1.a28976f62cc72p-1, 0x1.35a2fbf209cc9p-59, -0x1.4e33e566305b2p-115,
  0x1.1afa975da2427p+49, 0x1.338e04d68befdp-5, -0x1.f633714e33e56p-59, -0x1.8c16c6f740e88p-113,
  0x1.da24274ce3813p+53, 0x1.68befc827323bp-1, -0x1.c67cacc60b638p-56, 0x1.17e2ef7e4a0ecp-110,
  0x1.c7026b45f7e41p+52, 0x1.cc8eb1cc1a99dp-3, -0x1.6c6f740e8840ep-61, 0x1.41d8ffc4bffefp-115,
  0x1.f7e413991d63ap+52, -0x1.f2b3182d8dee8p-2, -0x1.d1081b5f13802p-58, 0x1.2fffbc0b301fep-113,
  0x1.1d639835339f5p+52, -0x1.8dee81d1081b6p-2, 0x1.d8ffc4bffef03p-59, -0x1.9fc04343b9d29p-114,
  0x1.339f49c845f8cp+52, -0x1.081b5f13801dap-2, -0x1.0fd33f8086877p-67, -0x1.d297d64b824b2p-122,
  0x1.17e2ef7e4a0ecp+50, 0x1.ff897ffde0598p-4, 0x1.fde5e2316b415p-61, -0x1.2e092c98130d8p-116,
  0x1.c941d8ffc4c00p+53, -0x1.0fd33f8086877p-3, -0x1.d297d64b824b2p-58, -0x1.8130d834f648bp-112,
  0x1.c4bffef02cc08p+53, -0x1.0d0ee74a5f593p-4, 0x1.f6d367ecf27cbp-60, 0x1.36e9e8c7ecd3dp-117,
  0x1.6603fbcbc462dp+50, 0x1.a0a6d1f6d367fp-4, -0x1.86c1a7b24585dp-59, 0x1.fb34f2ff516bbp-115,
  0x1.788c5ad053690p+53, -0x1.25930261b069fp-1, 0x1.b74f463f669e6p-56, -0x1.5d28ad8453814p-116,
  0x1.4da3eda6cfd9ep+51, 0x1.3e584dba7a320p-3, -0x1.32c3402ba515bp-57, -0x1.14e050683a131p-114,
  0x1.b3f6793e584dcp+53, -0x1.61738132c3403p-1, 0x1.16ba93dd63f5fp-55, 0x1.7c5ecf41ce7dep-110,
  0x1.6136e9e8c7ecdp+51, 0x1.e5fea2d7527bbp-4, -0x1.c0a0d0742617cp-59, -0x1.8c10eb5ada2b3p-113,
  0x1.8fd9a797fa8b6p+50, -0x1.5b08a7028341dp-5, -0x1.30be31821d6b6p-62, 0x1.2ea6bfb5fb120p-116,
  0x1.fea2d7527bac8p+52, -0x1.41a0e84c2f8c6p-4, -0x1.0eb5ada2b2809p-61, -0x1.0277039517bd5p-115,
};
/* |x| = q pi/2 + h + l, |h| <= pi/4, q modulo 4, for any x: x times 212 bits of 2 / pi, every part
   exact and reduced modulo 4, then added (Payne and Hanek). */
VD vd_red vd_trig(vd_u ax) {
  vd_u e = vd_clamp(vd_atleast(ax >> 52, 1023u), 2046u) - 1023u, row = e >> 5;
  double x = vd_d(vd_clamp(ax, 0x7fefffffffffffffu) - (row << 57));
  double t0 = vd_twopi[4 * row], t1 = vd_twopi[4 * row + 1], t2 = vd_twopi[4 * row + 2];
  double p0 = x * t0, e0 = vd_fma(x, t0, -p0), p1 = x * t1, e1 = vd_fma(x, t1, -p1);
  double p2 = x * t2, e2 = vd_fma(x, t2, -p2);
  p0 = p0 - ((p0 + 0x1.8p88) - 0x1.8p88);
  p0 = p0 - ((p0 + 0x1.8p54) - 0x1.8p54);
  e0 = e0 - ((e0 + 0x1.8p54) - 0x1.8p54);
  p1 = p1 - ((p1 + 0x1.8p54) - 0x1.8p54);
  vd_ff a = vd_two(p0, e0), b = vd_two(a.h, p1), r = vd_two(a.l, b.l), c = vd_two(e1, p2);
  vd_ff d = vd_two(r.h, c.h);
  double t = vd_near(b.h);
  vd_ff g = vd_two(b.h - (t - 0x1.8p52), d.h);
  double w = vd_fma(x, vd_twopi[4 * row + 3], ((g.l + d.l) + (r.l + c.l)) + e2), u = g.h + w;
  double ul = (g.h - u) + w;
  double h = u * 0x1.921fb54442d18p+0, l = vd_fma(u, 0x1.921fb54442d18p+0, -h);
  l = vd_fma(ul, 0x1.921fb54442d18p+0, vd_fma(u, 0x1.1a62633145c07p-54, l));
  double y = h + l;
  l = (h - y) + l;
  bool small = VD_LT(ax, 0x3fe921fb54442d19u); /* pi/4 */
  return (vd_red){vd_seld(small, vd_d(ax), y), vd_d(vd_sel(small, 0u, vd_b(l))),
      vd_sel(small, 0u, vd_int(t))};
}
/* sin(h + l) - h, |h| <= pi/4. */
VD double vd_sinr(double h, double l) {
  double z = h * h;
  double p = VD_P7(z, -7.404272222249279e-13, 1.6054595212706714e-10, -2.5052072963940724e-08,
      2.755731908075555e-06, -0.0001984126984097256, 0.008333333333333047, -0.16666666666666666);
  return vd_fma(p * z, h, l);
}
/* cos(h + l) as a sum of two numbers, |h| <= pi/4. */
VD vd_ff vd_cosr(double h, double l) {
  double z = h * h, y = 0.5 * z, w = 1.0 - y, e = (1.0 - w) - y;
  double p = VD_P7(z, 4.5970832437640296e-14, -1.146695713609982e-11, 2.087672280744002e-09,
      -2.755731906388869e-07, 2.4801587301186923e-05, -0.0013888888888888393, 0.041666666666666664);
  return (vd_ff){w, vd_fma(z * z, p, vd_fma(-h, l, e))};
}
/* sin(x); 0.9 ulp. */
VD double vd_sin(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  vd_red a = vd_trig(ax);
  vd_ff k = vd_cosr(a.h, a.l);
  double s = a.h + vd_sinr(a.h, a.l), c = k.h + k.l;
  vd_u r = vd_sel((a.q & 1u) != 0u, vd_b(c), vd_b(s)) ^ ((a.q & 2u) << 62) ^ (ix & VD_SIGN);
  r = vd_sel(VD_LT(ax, VD_MIN), ix & VD_SIGN, r);
  return vd_upto(ax, 0x7fefffffffffffffu, r);
}
/* cos(x); 0.9 ulp. */
VD double vd_cos(double x) {
  vd_u ax = vd_b(x) & VD_ABS;
  vd_red a = vd_trig(ax);
  vd_ff k = vd_cosr(a.h, a.l);
  double s = a.h + vd_sinr(a.h, a.l), c = k.h + k.l;
  vd_u r = vd_sel((a.q & 1u) != 0u, vd_b(s), vd_b(c)) ^ (((a.q + 1u) & 2u) << 62);
  r = vd_sel(VD_LT(ax, VD_MIN), VD_ONE, r);
  return vd_upto(ax, 0x7fefffffffffffffu, r);
}
/* tan(x) = sin / cos or -cos / sin, both in two parts; 1.2 ulp. */
VD double vd_tan(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  vd_red a = vd_trig(vd_atleast(ax, 0x3e40000000000000u));
  vd_ff k = vd_cosr(a.h, a.l);
  double t = vd_sinr(a.h, a.l), s = a.h + t, sl = (a.h - s) + t;
  double c = k.h + k.l, cl = (k.h - c) + k.l;
  bool odd = (a.q & 1u) != 0u;
  double d = vd_seld(odd, s, c), dl = vd_seld(odd, sl, cl), n = vd_seld(odd, -c, s);
  double nl = vd_seld(odd, -cl, sl), y = 1.0 / d, q = n * y;
  q = vd_fma(vd_fma(-q, d, n) + vd_fma(-q, dl, nl), y, q);
  vd_u r = vd_b(q) ^ (ix & VD_SIGN);
  r = vd_sel(VD_LT(ax, 0x3e40000000000000u), ix, r);
  r = vd_sel(VD_LT(ax, VD_MIN), ix & VD_SIGN, r);
  return vd_upto(ax, 0x7fefffffffffffffu, r);
}
/* sin(pi f) and cos(pi f) as h and l, f in [0, 1/2]; relative error 2^-52. */
VD vd_ff vd_sincospi(double f) {
  bool far = VD_LT(0x3fd0000000000000u, vd_b(f)); /* 1/4 */
  double g = vd_seld(far, 0.5 - f, f), z = g * g;
  double s = VD_P8(z, 0.00015374629911401545, 0.00042724730731763413, -0.007367003281651509,
      0.08214573646284674, -0.5992645259099739, 2.550164039839797, -5.1677127800498095,
      3.141592653589793) * g;
  double c = VD_P8(z, -2.1364631857087056e-05, -9.819080345394031e-05, 0.001928916375624115,
      -0.025806856475758828, 0.23533062933622725, -1.3352627688384742, 4.058712126416647,
      -4.934802200544679);
  c = vd_fma(c, z, 1.0);
  return (vd_ff){vd_seld(far, c, s), vd_seld(far, s, c)};
}
/* asin(x) / x - 1 for z = x^2 <= 1/4. */
VD double vd_asinr(double z) {
  double p = VD_P4(z, 0.032604177220686766, -0.020959633140270204, 0.021679370315907134,
      0.003718020524491973);
  p = VD_N4(p, z, 0.010777166114588559, 0.011399463341056876, 0.013980753483934981,
      0.017351617539268494);
  p = VD_N4(p, z, 0.022372214687718984, 0.03038194271793188, 0.04464285717441888,
      0.07499999999970966);
  return vd_fma(p, z, 0.1666666666666676) * z;
}
/* asin(x), above 1/2 as pi/2 - 2 asin(sqrt((1 - |x|) / 2)); 1.2 ulp. */
VD double vd_asin(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  double a = vd_d(vd_clamp(ax, VD_ONE));
  bool low = VD_LT(ax, 0x3fe0000000000000u);
  double zh = vd_fma(-0.5, a, 0.5), s = vd_seld(low, a, __builtin_sqrt(zh));
  double p = vd_asinr(vd_seld(low, a * a, zh)), w = vd_fma(p, s, s), d = s + s;
  double u = 0x1.921fb54442d18p+0 - d, e = (0x1.921fb54442d18p+0 - u) - d;
  u = u + (e - vd_fma(p, d, -0x1.1a62633145c07p-54));
  vd_u r = vd_sel(low, vd_b(w), vd_b(u));
  r = vd_sel(VD_LT(ax, VD_MIN), 0u, r) | (ix & VD_SIGN);
  return vd_upto(ax, VD_ONE, r);
}
/* acos(x), above 1/2 as 2 asin(sqrt((1 - |x|) / 2)); 1.2 ulp. */
VD double vd_acos(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  bool low = VD_LT(ax, 0x3fe0000000000000u);
  double a = vd_d(vd_clamp(ax, VD_ONE)), zh = vd_fma(-0.5, a, 0.5);
  double s = vd_seld(low, vd_d(vd_sel(VD_LT(ax, VD_MIN), 0u, ix)), __builtin_sqrt(zh));
  double w = vd_fma(vd_asinr(vd_seld(low, a * a, zh)), s, s);
  double m = 0x1.921fb54442d18p+0 - (w - 0x1.1a62633145c07p-54);
  double n = 0x1.921fb54442d18p+1 - vd_fma(2.0, w, -0x1.1a62633145c07p-53);
  vd_u r = vd_sel(VD_LT(ix, 0), vd_b(n), vd_b(w + w));
  return vd_upto(ax, VD_ONE, vd_sel(low, vd_b(m), r));
}
/* atan(n / d) for n >= 0, d > 0 whose quotient is 0 or within 2^-70 and 2^70: c + atan(t), t one of
   n / d, (n - d) / (n + d), -d / n in two parts; 0.8 ulp. */
VD double vd_atanq(double n, double d) {
  double lo = 0.4142 * d, up = 2.4142 * d;
  bool mid = !VD_LT(vd_b(n), vd_b(lo)), far = VD_LT(vd_b(up), vd_b(n)), one = mid && !far;
  double nm = n - d, dm = n + d, b = nm - n, nl = (n - (nm - b)) - (d + b), c = dm - n;
  double dl = (n - (dm - c)) + (d - c);
  nl = vd_d(vd_sel(one, vd_b(nl), 0u));
  dl = vd_d(vd_sel(one, vd_b(dl), 0u));
  double u = vd_seld(far, -d, vd_seld(mid, nm, n)), v = vd_seld(far, n, vd_seld(mid, dm, d));
  double y = 1.0 / v, t = u * y, e = (vd_fma(-t, v, u) + vd_fma(-t, dl, nl)) * y, z = t * t;
  double p = VD_P4(z, 0.015111607910528986, -0.03338596133765574, 0.04499439501045938,
      -0.05217305122776825);
  p = VD_N4(p, z, 0.05876834788874683, -0.06666205670369768, 0.0769228116603333,
      -0.09090908064987113);
  p = VD_N4(p, z, 0.11111111085648223, -0.14285714285340445, 0.19999999999997212,
      -0.33333333333333326) * z;
  vd_u k = vd_sel(far, 0x3c91a62633145c07u, vd_sel(mid, 0x3c81a62633145c07u, 0u));
  p = vd_fma(p, t, vd_d(k)) + vd_fma(-z, e, e); /* k: low part of pi/2, pi/4 */
  double o = vd_d(vd_sel(far, 0x3ff921fb54442d18u, 0x3fe921fb54442d18u)), s = o + t;
  return vd_seld(mid, s + (((o - s) + t) + p), t + p);
}
/* atan(x); 0.8 ulp. */
VD double vd_atan(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  double y = vd_atanq(vd_d(vd_clamp(ax, 0x4410000000000000u)), 1.0); /* 2^66 */
  vd_u r = vd_sel(VD_LT(ax, 0x3e40000000000000u), ax, vd_b(y));
  r = vd_sel(VD_LT(ax, VD_MIN), 0u, r);
  return vd_upto(ax, VD_INF, r | (ix & VD_SIGN));
}
/* Angle of the point (x, y): atan(|y / x|), or pi minus it where x < 0; 1 ulp. */
VD double vd_atan2(double y, double x) {
  vd_u ix = vd_b(x), iy = vd_b(y), ax = ix & VD_ABS, ay = iy & VD_ABS;
  vd_u d = (ay >> 52) - (ax >> 52);
  vd_u c = vd_sel(VD_LT(d, -64), (vd_u)-64, vd_sel(VD_LT(64, d), 64u, d));
  vd_u dn = vd_sel(VD_LT(c, 0), c, 0u), up = c - dn;
  double n = vd_d((ay & 0xfffffffffffffu) | ((1023u + dn) << 52));
  double m = vd_d((ax & 0xfffffffffffffu) | ((1023u - up) << 52));
  vd_u a = vd_scale(vd_atanq(n, m), d - vd_sel(VD_LT(d, -64), (vd_u)-64, d));
  a = vd_sel(VD_LT(ay, VD_MIN), 0u, a);
  a = vd_sel(VD_LT(ax, VD_MIN) && !VD_LT(ay, VD_MIN), 0x3ff921fb54442d18u, a);
  a = vd_sel(ay == VD_INF, 0x3ff921fb54442d18u, a);
  a = vd_sel(ax == VD_INF, vd_sel(ay == VD_INF, 0x3fe921fb54442d18u, 0u), a);
  double b = 0x1.921fb54442d18p+1 - (vd_d(a) - 0x1.1a62633145c07p-53);
  vd_u r = vd_sel(VD_LT(ix, 0), vd_b(b), a) | (iy & VD_SIGN);
  return vd_d(vd_sel(VD_LT(VD_INF, ax) || VD_LT(VD_INF, ay), VD_NAN, r));
}
/* ---- inverse hyperbolic functions */
/* asinh(x) = log1p(|x| + (sqrt(x^2 + 1) - 1)), the root with its residual; 1.2 ulp. */
VD double vd_asinh(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  bool big = VD_LT(0x41b0000000000000u, ax); /* 2^28: log(2 |x|) */
  double b = vd_d(vd_clamp(ax, 0x7fefffffffffffffu)) - 1.0;
  double a = vd_d(vd_clamp(ax, 0x41b0000000000000u)), p = a * a, s = p + 1.0, t = s - p;
  double pl = vd_fma(a, a, -p) + ((p - (s - t)) + (1.0 - t)), g = __builtin_sqrt(s);
  double gl = (0.5 / g) * (vd_fma(-g, g, s) + pl), h = g - 1.0, f = a + h, l = ((a - f) + h) + gl;
  double y = vd_log1pq(vd_seld(big, b, f), vd_seld(big, -0.0, l), vd_seld(big, 1.0, 0.0));
  vd_u r = vd_sel(VD_LT(ax, 0x3e40000000000000u), ax, vd_b(y));
  r = vd_sel(VD_LT(ax, VD_MIN), 0u, r);
  r = vd_sel(ax == VD_INF, ax, r);
  return vd_upto(ax, VD_INF, r | (ix & VD_SIGN));
}
/* acosh(x) = log1p((x - 1) + sqrt(x^2 - 1)), the root with its residual; 1.2 ulp. */
VD double vd_acosh(double x) {
  vd_u ix = vd_b(x);
  bool big = VD_LT(0x41b0000000000000u, ix); /* 2^28: log(2 x) */
  double b = vd_d(vd_clamp(ix, 0x7fefffffffffffffu)) - 1.0;
  double a = vd_d(vd_clamp(vd_atleast(ix, 0x3ff0000000000001u), 0x41b0000000000000u));
  double p = a * a, s = p - 1.0, pl = vd_fma(a, a, -p) + ((p - s) - 1.0), g = __builtin_sqrt(s);
  double gl = (0.5 / g) * (vd_fma(-g, g, s) + pl), h = a - 1.0, f = g + h, l = ((g - f) + h) + gl;
  double y = vd_log1pq(vd_seld(big, b, f), vd_seld(big, -0.0, l), vd_seld(big, 1.0, 0.0));
  vd_u r = vd_sel(ix == VD_ONE, 0u, vd_b(y));
  r = vd_sel(ix == VD_INF, ix, r);
  return vd_d(vd_sel(VD_LT(ix, VD_ONE) || VD_LT(VD_INF, ix), VD_NAN, r));
}
/* atanh(x) = log1p(2 |x| / (1 - |x|)) / 2, the quotient with its residual; 1.2 ulp. */
VD double vd_atanh(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  double a = vd_d(vd_clamp(ax, 0x3fefffffffffffffu)), d = 1.0 - a, dl = (1.0 - d) - a, n = a + a;
  double y = 1.0 / d, q = n * y, e = vd_fma(-q, dl, vd_fma(-q, d, n)) * y;
  vd_u r = vd_sel(VD_LT(ax, 0x3e40000000000000u), ax, vd_b(0.5 * vd_log1pq(q, e, -0.0)));
  r = vd_sel(VD_LT(ax, VD_MIN), 0u, r);
  r = vd_sel(ax == VD_ONE, VD_INF, r);
  return vd_upto(ax, VD_ONE, r | (ix & VD_SIGN));
}
/* ---- error and gamma functions */
/* erf(x) / x - 1 at t = x^2, |x| < 0.875. */
VD double vd_erfp(double t) {
  double p = VD_P4(t, -1.1419980309529095e-09, 1.5302049877016265e-08, -1.6507755737469693e-07,
      1.6479544741441264e-06);
  p = VD_N4(p, t, -1.4926886882033752e-05, 0.00012055387804836155, -0.000854832856789901,
      0.00522397765252509);
  return VD_N4(p, t, -0.026866170647918363, 0.11283791670970068, -0.37612638903184076,
      0.1283791670955126);
}
/* exp(a^2) erfc(a) = P((a - 3) / (a + 3)) / (1 + 2 a) as a sum of two numbers, 1/2 <= a <= 27.3. */
VD vd_ff vd_erfcx(double a) {
  double t = (a - 3.0) / (a + 3.0);
  double p = VD_P6(t, -1.1916306112007753e-08, 1.9322758128687022e-08, 1.0248398644614288e-07,
      -1.1184825394937087e-07, -6.193163779711035e-07, 3.332868803235927e-07);
  p = VD_N4(p, t, 3.474909550515579e-06, -7.194919244491033e-07, -2.01017860555412e-05,
      4.945413483264553e-06);
  p = VD_N4(p, t, 0.00012509970430595708, -0.00010515888359053215, -0.0007798323332944854,
      0.0018886902256146747);
  p = VD_N4(p, t, 0.0025293918221946272, -0.023770514906753318, 0.06830802734366515,
      -0.11927366341588377);
  p = VD_N4(p, t, 0.12964515870276655, -0.04756229435343899, -0.13562110612458117,
      1.2530080582697296);
  double d = vd_fma(2.0, a, 1.0), dl = vd_fma(2.0, a, 1.0 - d), i = 1.0 / d, q = p * i;
  return (vd_ff){q, vd_fma(-q, dl, vd_fma(-q, d, p)) * i};
}
/* Bits of erfc(a), 1/2 <= a <= 27.3. */
VD vd_u vd_erfct(double a) {
  double z = a * a, zl = vd_fma(a, a, -z), t = vd_expq(-z);
  vd_ff y = vd_expff(-z, zl, t - 0x1.8p52), g = vd_erfcx(a);
  double m = y.h * g.h, ml = vd_fma(y.h, g.l, vd_fma(y.l, g.h, vd_fma(y.h, g.h, -m)));
  return vd_scale(m + ml, vd_int(t));
}
/* erf(x), an odd polynomial below 0.875, or 1 - erfc(|x|); 0.9 ulp. */
VD double vd_erf(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  double a = vd_d(vd_clamp(ax, 0x4018000000000000u)), lo = vd_fma(vd_erfp(a * a), a, a); /* 6 */
  double hi = 1.0 - vd_d(vd_erfct(vd_d(vd_atleast(vd_b(a), 0x3fe0000000000000u))));
  vd_u r = vd_sel(VD_LT(ax, 0x3fec000000000000u), vd_b(lo), vd_b(hi));
  r = vd_sel(VD_LT(ax, VD_MIN), 0u, r);
  return vd_upto(ax, VD_INF, r | (ix & VD_SIGN));
}
/* 1 - erf(x); 2.1 ulp. */
VD double vd_erfc(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  vd_u t = vd_clamp(ax, 0x3fe0000000000000u) | (ix & VD_SIGN);
  double b = vd_d(vd_sel(VD_LT(ax, VD_MIN), 0u, t));
  double u = 1.0 - b, mid = u + vd_fma(-vd_erfp(b * b), b, (1.0 - u) - b);
  vd_u c = vd_clamp(vd_atleast(ax, 0x3fe0000000000000u), 0x403b400000000000u); /* 1/2, 27.25 */
  vd_u r = vd_erfct(vd_d(c));
  r = vd_sel(VD_LT(ix, 0), vd_b(2.0 - vd_d(r)), r);
  r = vd_sel(VD_LT(ax, 0x3fe0000000000000u), vd_b(mid), r);
  return vd_upto(ax, VD_INF, r);
}
/* Inverse of erf: x P(log(1 - x^2)), from 0.7 on a rough one and a step of Halley; 1.6 ulp. */
VD double vd_erfinv(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  bool low = VD_LT(ax, 0x3fe6666666666666u); /* 0.7 */
  double a = vd_d(vd_sel(VD_LT(ax, VD_MIN), 0u, vd_clamp(ax, 0x3fefffffffffffffu))), c = 1.0 - a;
  vd_ff g = vd_log_2d(vd_seld(low, vd_fma(-a, a, 1.0), vd_fma(c, a, c)));
  double t = g.h + g.l, w = vd_seld(low, t, -0.75);
  double p = VD_P6(w, 6.523231675546624e-09, 2.9938858490709085e-08, 5.887401062690783e-08,
      4.3301521418861765e-08, 1.0456914110989853e-08, 1.0353911969269705e-06);
  p = VD_N4(p, w, 2.027295905279231e-06, -4.660989473623333e-05, -0.00012804308562358021,
      0.00233510165840818);
  p = vd_fma(vd_fma(vd_fma(p, w, 0.011549342038983406), w, -0.23201366653464217), w,
      0.886226925452758);
  double s = __builtin_sqrt(vd_d(vd_b(t) & VD_ABS)) - 4.25, u = t + 1.0;
  double m = VD_P8(u, 6.05659189e-10, 1.75809749e-8, 1.89824135e-7, 6.38534914e-7, -4.3254845e-6,
      -3.83511651e-5, 0.000100114208, 0.0023764451);
  m = vd_fma(vd_fma(vd_fma(m, u, 0.00425067497), u, -0.247832879), u, 1.12737441);
  double n = VD_P8(s, 4.812522615275294e-07, 4.62167887134514e-07, -8.396000495728672e-06,
      1.1543147614694212e-05, 1.752610662765199e-06, 1.1188873216592486e-05,
      -7.771443885208623e-05, 0.00022054274840959602);
  n = VD_N4(n, s, -0.0006014860460404585, 0.0007105009033701452, 1.0099773780233783,
      4.092223515715684);
  bool tail = VD_LT(0x4018c00000000000u, vd_b(t) & VD_ABS); /* t < -6.1875 */
  double y = vd_d(vd_atleast(vd_b(vd_seld(tail, n, m) * a), 0x3fe0000000000000u));
  double z = y * y, zl = vd_fma(y, y, -z), k = vd_expq(z);
  vd_ff e = vd_expff(z, -zl, k - 0x1.8p52), f = vd_erfcx(y);
  double q = c * vd_d((vd_int(k) + 1023u) << 52), h = q * e.h;
  double r = (h - f.h) + (vd_fma(q, e.l, vd_fma(q, e.h, -h)) - f.l);
  r = r * 0x1.c5bf891b4ef6bp-1; /* sqrt(pi) / 2 */
  y = y - vd_fma(-r * r, y, r);
  double v = p * vd_d((ax & 0xfffffffffffffu) | VD_ONE);
  vd_u o = vd_sel(low, vd_scale(v, (ax >> 52) - 1023u), vd_b(y));
  o = vd_sel(VD_LT(ax, VD_MIN), 0u, o);
  o = vd_sel(ax == VD_ONE, VD_INF, o);
  return vd_upto(ax, VD_ONE, o | (ix & VD_SIGN));
}
/* log |gamma(x)|: Stirling's series from 7.5 on, a polynomial around 2 and the logarithm of a
   product below, reflection for x < 0; 1.8 ulp for x > 0, error 2e-15 max(1, |y|) for x < 0. */
VD double vd_lgamma(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  bool big = !VD_LT(ax, 0x401e000000000000u), neg = VD_LT(ix, 0); /* 7.5 */
  double a = vd_d(vd_clamp(vd_atleast(ax, VD_MIN), 0x7fefffffffffffffu));
  double c = vd_d(vd_clamp(vd_b(a), 0x401e000000000000u)), kt = vd_near(c), t = c - (kt - 0x1.8p52);
  vd_u n = vd_int(kt);
  double m = vd_seld(n == 0u, vd_fma(c, c, c), vd_seld(n == 1u, c, 1.0));
  m = m * vd_seld(VD_LT(2, n), c - 1.0, 1.0) * vd_seld(VD_LT(3, n), c - 2.0, 1.0);
  m = m * vd_seld(VD_LT(4, n), c - 3.0, 1.0) * vd_seld(VD_LT(5, n), c - 4.0, 1.0);
  m = m * vd_seld(VD_LT(6, n), c - 5.0, 1.0);
  vd_ff g = vd_log_2d(vd_seld(big, a, m));
  double q = VD_P6(t, -1.4241764172618977e-07, 2.753283578155733e-07, -4.2137391966226287e-07,
      9.238188689264591e-07, -2.0489351519045716e-06, 4.382980147180569e-06);
  q = VD_N4(q, t, -9.43750489163631e-06, 2.05060138420368e-05, -4.492648020335473e-05,
      9.945761360843896e-05);
  q = VD_N4(q, t, -0.00022315474086803067, 0.0005096695203284866, -0.0011927539123951828,
      0.0028905103308135937);
  q = VD_N4(q, t, -0.0073855510286615755, 0.020580808427785074, -0.06735230105319816,
      0.3224670334241132);
  double p = t * 0.42278433509846713, pl = vd_fma(t, 0.42278433509846713, -p);
  pl = vd_fma(t * t, q, vd_fma(t, 4.942915152430645e-18, pl));
  double gh = g.h + g.l, gl = (g.h - gh) + g.l;
  vd_u sg = vd_sel(VD_LT(n, 2), VD_SIGN, 0u);
  vd_ff w = vd_two(vd_d(vd_b(gh) ^ sg), p);
  double low = w.h + (w.l + (vd_d(vd_b(gl) ^ sg) + pl));
  double u = gh - 1.0, ul = (gh - (u + 1.0)) + gl, b = a - 0.5, bl = (a - b) - 0.5;
  double h = b * u, l = vd_fma(bl, u, vd_fma(b, ul, vd_fma(b, u, -h)));
  double v = 1.0 / vd_d(vd_clamp(vd_b(a), 0x4630000000000000u)), z = v * v;
  double s = VD_P8(z, -0.011520378011942493, 0.005595676270667165, -0.0018988564737121454,
      0.000841516199391376, -0.000595236463048913, 0.000793650787710889, -0.0027777777777681072,
      0.08333333333333333);
  double e = h + (l + vd_fma(s, v, 0x1.acfe390c97d69p-2));
  vd_u y = vd_sel(big, vd_sel(vd_b(h) == VD_INF, VD_INF, vd_b(e)), vd_b(low));
  double f = vd_d(vd_clamp(vd_b(a), 0x4320000000000000u)); /* 2^51 */
  f = f - (vd_near(f) - 0x1.8p52);
  f = vd_d(vd_sel(VD_LT(0x431fffffffffffffu, ax), vd_sel(vd_b(a - 0.5) == vd_b(a)
      || VD_LT(0x432fffffffffffffu, ax) || (ax & 1u) == 0u, 0u, 0x3fe0000000000000u), vd_b(f)));
  vd_ff sc = vd_sincospi(vd_d(vd_b(f) & VD_ABS));
  w = vd_log_2d(vd_d(vd_atleast(vd_b(sc.h), 0x3800000000000000u))
      * vd_d(vd_atleast(vd_b(a), 0x3800000000000000u)));
  double r = ((0x1.250d048e7a1bdp+0 - vd_d(y)) - w.h) - w.l; /* log pi */
  vd_u o = vd_sel(neg && VD_LT(0x3c80000000000000u, ax), vd_b(r), y);
  o = vd_sel(neg && (vd_b(f) & VD_ABS) == 0u, VD_INF, o);
  o = vd_sel(VD_LT(ax, VD_MIN) || ax == VD_INF, VD_INF, o);
  return vd_upto(ax, VD_INF, o);
}
/* Derivative of log gamma: upward recurrence to 6, then the asymptotic series, and reflection for
   x < 0; error 2e-15 max(1, |y|) for x > 0, 1.2e-14 max(1, |y|) for x < 0. */
VD double vd_digamma(double x) {
  vd_u ix = vd_b(x), ax = ix & VD_ABS;
  bool neg = VD_LT(ix, 0), m;
  double a = vd_d(vd_clamp(vd_atleast(ax, 0x3800000000000000u), 0x7fefffffffffffffu)), c = a;
  m = VD_LT(vd_b(c), 0x4018000000000000u);
  double n = vd_seld(m, 1.0, 0.0), d = vd_seld(m, c, 1.0);
  c = vd_seld(m, c + 1.0, c);
#define VD_STEP \
  m = VD_LT(vd_b(c), 0x4018000000000000u); \
  n = vd_seld(m, vd_fma(n, c, d), n); \
  d = vd_seld(m, d * c, d); \
  c = vd_seld(m, c + 1.0, c);
  VD_STEP VD_STEP VD_STEP VD_STEP VD_STEP
#undef VD_STEP
  vd_ff g = vd_log_2d(c);
  double v = 1.0 / vd_d(vd_clamp(vd_b(c), 0x4630000000000000u)), z = v * v;
  double p = VD_P8(z, 0.21473302237111302, -0.07357271031278098, 0.02084664250096014,
      -0.007572017545355624, 0.004166632935406819, -0.003968253798224129, 0.008333333332916196,
      -0.08333333333333298);
  double y = (g.h - n / d) + vd_fma(p, z, vd_fma(-0.5, v, g.l));
  double f = vd_d(vd_clamp(vd_b(a), 0x4320000000000000u)); /* 2^51 */
  f = f - (vd_near(f) - 0x1.8p52);
  f = vd_d(vd_sel(VD_LT(0x431fffffffffffffu, ax), 0u, vd_b(f)));
  vd_ff sc = vd_sincospi(vd_d(vd_b(f) & VD_ABS));
  double t = (0x1.921fb54442d18p+1 * sc.l) / vd_d(vd_atleast(vd_b(sc.h), 0x3800000000000000u));
  t = vd_d(vd_b(t) ^ (vd_b(f) & VD_SIGN)) + 1.0 / a;
  vd_u o = vd_sel(neg, vd_b(y + t), vd_b(y));
  bool half = !VD_LT(ax, 0x4320000000000000u) && VD_LT(ax, 0x4330000000000000u) && (ax & 1u) != 0u;
  o = vd_sel(neg && (vd_b(f) & VD_ABS) == 0u, vd_sel(half, vd_b(y), VD_NAN), o);
  vd_u i = vd_b(1.0 / vd_d(vd_clamp(vd_atleast(ax, VD_MIN), 0x3c80000000000000u))) ^ VD_SIGN;
  o = vd_sel(VD_LT(ax, 0x3c80000000000000u), i ^ (ix & VD_SIGN), o);
  o = vd_sel(VD_LT(ax, VD_MIN), 0xfff0000000000000u ^ (ix & VD_SIGN), o);
  o = vd_sel(ax == VD_INF, vd_sel(neg, VD_NAN, ax), o);
  return vd_upto(ax, VD_INF, o);
}
