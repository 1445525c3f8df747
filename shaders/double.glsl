/* float64 where a device has it, for bodies whose module computes in float. Outside the promise of equal bits in
   deterministic mode, which is the CPU's for float64. */
double tf_double(uvec2 w) { return packDouble2x32(w); }
/* An element of any type, by the same roundings as on the CPU. */
#define TF_LOAD_DOUBLE(NAME)                                                                            \
  double double_##NAME(uint dtype, int i) {                                                             \
    if (dtype == TF_F64) return tf_double(word64_##NAME(i));                                            \
    if (dtype == TF_I64) {                                                                              \
      uvec2 w = word64_##NAME(i);                                                                       \
      precise double high = double(int(w.y)) * 4294967296.0lf, r = high + double(w.x);                  \
      return r;                                                                                         \
    }                                                                                                   \
    if (dtype < TF_I64) return double(int(word_##NAME(dtype, i)));                                      \
    return tf_double(tf_f32_to_f64(UB(tf_flushed(load_##NAME(dtype, i)))));                             \
  }
double tf_double_add(double a, double b) { precise double r = a + b; return r; }
double tf_double_sub(double a, double b) { precise double r = a - b; return r; }
double tf_double_mul(double a, double b) { precise double r = a * b; return r; }
