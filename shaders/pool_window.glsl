/* Windows of pools over dense planes: sizes, outs, kernel, stride, pad as words of three, ADAPTIVE as a constant,
   TF_DIL(a) what lies between a window's elements along axis a. */
/* Window o covers the elements [x, y) along axis a. */
ivec2 tf_window(int a, int o) {
  if (ADAPTIVE != 0u) {
    uint n = uint(p_size(a)), m = uint(p_outs(a));
    return ivec2(int(uint(o) * n / m), int((uint(o + 1) * n + m - 1u) / m));
  }
  int start = o * p_stride(a) - p_pad(a), last = min(start + TF_DIL(a) * (p_kernel(a) - 1) + 1, p_size(a));
  if (start < 0) start += (TF_DIL(a) - 1 - start) / TF_DIL(a) * TF_DIL(a);
  return ivec2(start, last);
}
