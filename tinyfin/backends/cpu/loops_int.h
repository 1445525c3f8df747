/* What the names in expressions mean for integers and bool: wrapping, never undefined. */
#define TF_INTEGER(T, U, S, LOW)                                                                  \
  static inline T TF_max_##S(T a, T b) { return a > b ? a : b; }                                  \
  static inline T TF_min_##S(T a, T b) { return a < b ? a : b; }                                  \
  static inline T TF_abs_##S(T a) { return a < 0 ? (T)(0 - (U)a) : a; }                           \
  static inline T TF_neg_##S(T a) { return (T)(0 - (U)a); }                                       \
  static inline T TF_wrap_add_##S(T a, T b) { return (T)((U)a + (U)b); }                          \
  static inline T TF_wrap_sub_##S(T a, T b) { return (T)((U)a - (U)b); }                          \
  static inline T TF_wrap_mul_##S(T a, T b) { return (T)((U)a * (U)b); }                          \
  static inline T TF_fmod_##S(T a, T b) { return b == 0 || (LOW && b == (T)-1) ? 0 : a % b; }     \
  static inline T TF_mod_##S(T a, T b) {                                                          \
    T m = TF_fmod_##S(a, b);                                                                      \
    return m != 0 && (m < 0) != (b < 0) ? (T)(m + b) : m;                                         \
  }                                                                                               \
  static inline T TF_truncdiv_##S(T a, T b) {                                                     \
    return b == 0 ? 0 : LOW && b == (T)-1 ? (T)(0 - (U)a) : a / b;                                \
  }                                                                                               \
  static inline T TF_floordiv_##S(T a, T b) {                                                     \
    T q = TF_truncdiv_##S(a, b);                                                                  \
    return b != 0 && TF_fmod_##S(a, b) != 0 && (a < 0) != (b < 0) ? (T)(q - 1) : q;               \
  }                                                                                               \
  static inline T TF_pow_##S(T a, T b) {                                                          \
    U r = 1, base = (U)a;                                                                         \
    if (b < 0) return a == 1 ? 1 : LOW && a == (T)-1 ? (b % 2 ? (T)-1 : 1) : 0;                   \
    for (; b; b >>= 1, base *= base) if (b & 1) r *= base;                                        \
    return (T)r;                                                                                  \
  }                                                                                               \
  static inline T TF_shl_##S(T a, T b) {                                                          \
    return b < 0 || (uint64_t)b >= 8 * sizeof(T) ? 0 : (T)((U)a << b);                            \
  }                                                                                               \
  static inline T TF_shr_##S(T a, T b) {                                                          \
    return b < 0 || (uint64_t)b >= 8 * sizeof(T) ? (a < 0 ? (T)-1 : 0) : (T)(a >> b);             \
  }                                                                                               \
  static inline T TF_floor_##S(T a) { return a; }                                                 \
  static inline T TF_ceil_##S(T a) { return a; }                                                  \
  static inline T TF_trunc_##S(T a) { return a; }                                                 \
  static inline T TF_round_##S(T a) { return a; }                                                 \
  static inline T TF_isnan_##S(T a) { (void)a; return 0; }                                        \
  static inline T TF_isinf_##S(T a) { (void)a; return 0; }                                        \
  static inline T TF_signbit_##S(T a) { return a < 0; }
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wtype-limits"
TF_INTEGER(uint8_t, uint32_t, bool, 0)
TF_INTEGER(uint8_t, uint32_t, u8, 0)
TF_INTEGER(int8_t, uint32_t, i8, 1)
TF_INTEGER(int16_t, uint32_t, i16, 1)
TF_INTEGER(int32_t, uint32_t, i32, 1)
TF_INTEGER(int64_t, uint64_t, i64, 1)
#define TF_bitnot_bool(x) (!(x))
#define TF_bitnot_u8(x) (~(x))
#define TF_bitnot_i8(x) (~(x))
#define TF_bitnot_i16(x) (~(x))
#define TF_bitnot_i32(x) (~(x))
#define TF_bitnot_i64(x) (~(x))

/* halves, whose signs are bits */
#define TF_neg_f16(x) ((x) ^ 0x8000)
#define TF_neg_bf16(x) ((x) ^ 0x8000)
#define TF_abs_f16(x) ((x) & 0x7fff)
#define TF_abs_bf16(x) ((x) & 0x7fff)
