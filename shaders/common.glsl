/* What every body may use: dtypes, and its place among the work groups. */
#define TF_BOOL 0u
#define TF_U8 1u
#define TF_I8 2u
#define TF_I16 3u
#define TF_I32 4u
#define TF_I64 5u
#define TF_F16 6u
#define TF_BF16 7u
#define TF_F32 8u
#define TF_F64 9u
#define TF_SCALAR 16u /* added to a dtype: the operand's address is the value itself, in the body's type */
#define TF_FLUSHES ((FLUSH & 3u) != 0u) /* subnormal numbers become zeros */
#ifdef TF_BITS
#define FB(x) uintBitsToFloat(x)
#define UB(x) floatBitsToUint(x)
#endif

/* Number of the work group, where many of them are spread over x and y; those past the last have nothing to do. */
uint tf_group() { return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x; }
/* Number of the invocation among all. */
uint tf_thread() { return tf_group() * TF_GROUP + gl_LocalInvocationIndex; }
/* Place i of up to four axes, of which the three inner ones have these sizes; and its element, by strides. */
ivec4 tf_unravel(uint i, uint s0, uint s1, uint s2) {
  ivec4 k;
  k.w = int(i % s2);
  i /= s2;
  k.z = int(i % s1);
  i /= s1;
  k.y = int(i % s0);
  k.x = int(i / s0);
  return k;
}
int tf_dot(ivec4 k, int a, int b, int c, int d) { return k.x * a + k.y * b + k.z * c + k.w * d; }
