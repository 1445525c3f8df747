/* What the names in expressions mean for float: vmath's texts, and integer keys for order. */
#define VM_C
#ifndef __FMA__
#ifndef __aarch64__
#define VM_SOFTFMA
#endif
#endif
#include "vmath.inc"

#define TF_wrap_add_f32(a, b) ((a) + (b))
#define TF_wrap_sub_f32(a, b) ((a) - (b))
#define TF_wrap_mul_f32(a, b) ((a) * (b))
#define TF_truncdiv_f32(a, b) tf_trunc_f32((a) / (b))
#define TF_fma_f32 vm_fma
#define TF_exp_f32 vm_exp
#define TF_exp2_f32 vm_exp2
#define TF_expm1_f32 vm_expm1
#define TF_log_f32 vm_log
#define TF_log2_f32 vm_log2
#define TF_log10_f32 vm_log10
#define TF_log1p_f32 vm_log1p
#define TF_sin_f32 vm_sin
#define TF_cos_f32 vm_cos
#define TF_tan_f32 vm_tan
#define TF_asin_f32 vm_asin
#define TF_acos_f32 vm_acos
#define TF_atan_f32 vm_atan
#define TF_atan2_f32 vm_atan2
#define TF_sinh_f32 vm_sinh
#define TF_cosh_f32 vm_cosh
#define TF_tanh_f32 vm_tanh
#define TF_asinh_f32 vm_asinh
#define TF_acosh_f32 vm_acosh
#define TF_atanh_f32 vm_atanh
#define TF_sigmoid_f32 vm_sigmoid
#define TF_softplus_f32 vm_softplus
#define TF_erf_f32 vm_erf
#define TF_erfc_f32 vm_erfc
#define TF_normal_cdf_f32 vm_normal_cdf
#define TF_erfinv_f32 vm_erfinv
#define TF_lgamma_f32 vm_lgamma
#define TF_digamma_f32 vm_digamma
#define TF_pow_f32 vm_pow
#define TF_rsqrt_f32 vm_rsqrt
#define TF_sqrt_f32 __builtin_sqrtf
#define TF_floor_f32 tf_floor_f32
#define TF_ceil_f32(x) (-tf_floor_f32(-(x)))
#define TF_trunc_f32 tf_trunc_f32
#define TF_round_f32 tf_round_f32
#define TF_neg_f32(x) FB(UB(x) ^ 0x80000000u)
#define TF_abs_f32(x) FB(UB(x) & 0x7fffffffu)
#define TF_copysign_f32(x, s) FB((UB(x) & 0x7fffffffu) | (UB(s) & 0x80000000u))
#define TF_isnan_f32(x) ((UB(x) & 0x7fffffffu) > 0x7f800000u)
#define TF_isinf_f32(x) ((UB(x) & 0x7fffffffu) == 0x7f800000u)
#define TF_signbit_f32(x) (UB(x) >> 31)
#define TF_max_f32 tf_max_f32
#define TF_min_f32 tf_min_f32
#define TF_fmod_f32 tf_fmod_f32
#define TF_mod_f32 tf_mod_f32
#define TF_floordiv_f32 tf_floordiv_f32

/* Values from 2^23 on are whole; below, conversion to int and back is exact. The sign survives.
   Chosen by a mask: of ?: the compiler makes a jump here, and no vectors. */
FN float tf_trunc_f32(float x) {
  uint u = UB(x), small = -(uint)((u & 0x7fffffffu) < 0x4b000000u);
  uint t = UB((float)(int)FB(u & small)) | (u & 0x80000000u);
  return FB((t & small) | (u & ~small));
}
FN float tf_floor_f32(float x) {
  float t = tf_trunc_f32(x);
  float d = t - 1.0f;
  return t > x ? d : t;
}
/* Half to even, by the sum with 2^23 that leaves no fraction. */
FN float tf_round_f32(float x) {
  uint u = UB(x), a = u & 0x7fffffffu;
  float r = (FB(a) + 8388608.0f) - 8388608.0f;
  return FB(a < 0x4b000000u ? (UB(r) | (u & 0x80000000u)) : u);
}
/* NaN wins, -0 < +0: comparison of integer keys. */
FN int tf_key_f32(float x) { int i = (int)UB(x); return i ^ ((i >> 31) & 0x7fffffff); }
FN float tf_max_f32(float a, float b) {
  uint m = tf_key_f32(a) > tf_key_f32(b) ? UB(a) : UB(b);
  return __builtin_isunordered(a, b) ? a + b : FB(m);
}
FN float tf_min_f32(float a, float b) {
  uint m = tf_key_f32(a) < tf_key_f32(b) ? UB(a) : UB(b);
  return __builtin_isunordered(a, b) ? a + b : FB(m);
}
TF_REMAINDER(float, f32, __builtin_fmodf, tf_floor_f32)
