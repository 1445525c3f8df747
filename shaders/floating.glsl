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
/* a < b by their bits, for a choice between the two: drivers make a minimum or maximum of one by a float comparison, and
   lose NaN and the sign of zero. */
bool tf_before(T a, T b) {
  T x = tf_flushed(a), y = tf_flushed(b);
  if (tf_isnan(x) || tf_isnan(y)) return false;
  return (tf_key(x) == -1 ? 0 : tf_key(x)) < (tf_key(y) == -1 ? 0 : tf_key(y)); /* -1: of -0 */
}
T tf_wrap_add(T a, T b) { return tf_add(a, b); }
T tf_wrap_sub(T a, T b) { return tf_sub(a, b); }
T tf_wrap_mul(T a, T b) { return tf_mul(a, b); }
T tf_truncdiv(T a, T b) { return tf_trunc(vm_div(a, b)); }
