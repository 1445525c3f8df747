/* What the names in expressions mean for double. */
#include "vmath64.inc"

#define TF_SIGN 0x8000000000000000ull
#define TF_INFINITY 0x7ff0000000000000ull
static inline uint64_t tf_bits(double x) { union { double f; uint64_t u; } v = {x}; return v.u; }
static inline double tf_double(uint64_t u) { union { uint64_t u; double f; } v = {u}; return v.f; }

#define TF_wrap_add_f64(a, b) ((a) + (b))
#define TF_wrap_sub_f64(a, b) ((a) - (b))
#define TF_wrap_mul_f64(a, b) ((a) * (b))
#define TF_truncdiv_f64(a, b) tf_trunc_f64((a) / (b))
#define TF_fma_f64 vd_fma
#define TF_exp_f64 vd_exp
#define TF_exp2_f64 vd_exp2
#define TF_expm1_f64 vd_expm1
#define TF_log_f64 vd_log
#define TF_log2_f64 vd_log2
#define TF_log10_f64 vd_log10
#define TF_log1p_f64 vd_log1p
#define TF_sin_f64 vd_sin
#define TF_cos_f64 vd_cos
#define TF_tan_f64 vd_tan
#define TF_asin_f64 vd_asin
#define TF_acos_f64 vd_acos
#define TF_atan_f64 vd_atan
#define TF_atan2_f64 vd_atan2
#define TF_sinh_f64 vd_sinh
#define TF_cosh_f64 vd_cosh
#define TF_tanh_f64 vd_tanh
#define TF_asinh_f64 vd_asinh
#define TF_acosh_f64 vd_acosh
#define TF_atanh_f64 vd_atanh
#define TF_sigmoid_f64 vd_sigmoid
#define TF_softplus_f64 vd_softplus
#define TF_erf_f64 vd_erf
#define TF_erfc_f64 vd_erfc
#define TF_normal_cdf_f64 vd_normal_cdf
#define TF_erfinv_f64 vd_erfinv
#define TF_lgamma_f64 vd_lgamma
#define TF_digamma_f64 vd_digamma
#define TF_pow_f64 vd_pow
#define TF_rsqrt_f64 vd_rsqrt
#define TF_sqrt_f64 __builtin_sqrt
#define TF_floor_f64 tf_floor_f64
#define TF_ceil_f64(x) (-tf_floor_f64(-(x)))
#define TF_trunc_f64 tf_trunc_f64
#define TF_round_f64 tf_round_f64
#define TF_neg_f64(x) tf_double(tf_bits(x) ^ TF_SIGN)
#define TF_abs_f64(x) tf_double(tf_bits(x) & ~TF_SIGN)
#define TF_copysign_f64(x, s) tf_double((tf_bits(x) & ~TF_SIGN) | (tf_bits(s) & TF_SIGN))
#define TF_isnan_f64(x) ((tf_bits(x) & ~TF_SIGN) > TF_INFINITY)
#define TF_isinf_f64(x) ((tf_bits(x) & ~TF_SIGN) == TF_INFINITY)
#define TF_signbit_f64(x) (tf_bits(x) >> 63)
#define TF_max_f64 tf_max_f64
#define TF_min_f64 tf_min_f64
#define TF_fmod_f64 tf_fmod_f64
#define TF_mod_f64 tf_mod_f64
#define TF_floordiv_f64 tf_floordiv_f64


/* By sums with 2^52, which leave no fraction: SSE2 has no conversion of 64-bit integers. */
static inline double tf_round_f64(double x) {
  uint64_t u = tf_bits(x), a = u & ~TF_SIGN;
  double r = (tf_double(a) + 4503599627370496.0) - 4503599627370496.0;
  return tf_double(a < 0x4330000000000000ull ? (tf_bits(r) | (u & TF_SIGN)) : u);
}
static inline double tf_trunc_f64(double x) {
  double a = tf_double(tf_bits(x) & ~TF_SIGN), r = tf_round_f64(a);
  r = r > a ? r - 1.0 : r;
  return tf_double(tf_bits(r) | (tf_bits(x) & TF_SIGN));
}
static inline double tf_floor_f64(double x) {
  double r = tf_round_f64(x);
  return r > x ? r - 1.0 : r;
}
/* NaN wins, -0 < +0: comparison of integer keys. */
static inline int64_t tf_key_f64(double x) {
  int64_t i = (int64_t)tf_bits(x);
  return i ^ ((i >> 63) & 0x7fffffffffffffffll);
}
static inline double tf_max_f64(double a, double b) {
  double m = tf_key_f64(a) > tf_key_f64(b) ? a : b;
  return __builtin_isunordered(a, b) ? a + b : m;
}
static inline double tf_min_f64(double a, double b) {
  double m = tf_key_f64(a) < tf_key_f64(b) ? a : b;
  return __builtin_isunordered(a, b) ? a + b : m;
}
TF_REMAINDER(double, f64, __builtin_fmod, tf_floor_f64)
