/* What float and float64 say with the same words. */
T tf_max(T a, T b) {
  TF_UINT m = tf_key(a) > tf_key(b) ? BITS(a) : BITS(b);
  m = tf_isnan(b) ? BITS(b) : m;
  return VALUE(tf_isnan(a) ? BITS(a) : m);
}
T tf_min(T a, T b) {
  TF_UINT m = tf_key(a) < tf_key(b) ? BITS(a) : BITS(b);
  m = tf_isnan(b) ? BITS(b) : m;
  return VALUE(tf_isnan(a) ? BITS(a) : m);
}
T tf_wrap_add(T a, T b) { return tf_add(a, b); }
T tf_wrap_sub(T a, T b) { return tf_sub(a, b); }
T tf_wrap_mul(T a, T b) { return tf_mul(a, b); }
T tf_truncdiv(T a, T b) { return tf_trunc(vm_div(a, b)); }
