/* Every row with an expression: up to three inputs, any strides, any storage types.
 *
 * Constants: which expression, the dtypes of inputs and output, the dtype that is computed in, whether all
 * operands are dense. An operand that is a number has its value in place of its address.
 */
layout(constant_id = 0) const uint ROW = 0u;
layout(constant_id = 1) const uint IN0 = TF_F32;
layout(constant_id = 2) const uint IN1 = TF_F32;
layout(constant_id = 3) const uint IN2 = TF_F32;
layout(constant_id = 4) const uint OUT = TF_F32;
layout(constant_id = 5) const uint COMPUTE = TF_F32;
layout(constant_id = 6) const uint DENSE = 0u;
layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Parameters {
  uvec2 at[4];      /* output, inputs */
  ivec4 strides[4]; /* of each operand, in elements, outermost first */
  uvec3 shape;      /* of the three inner axes */
  uint count;
  float f[3];       /* attributes */
} p;

uint tf_width() { return COMPUTE == TF_I16 ? 16u : COMPUTE == TF_I32 ? 32u : 8u; }
TF_ARITHMETIC
TF_EXPRESSIONS

#ifndef TF_FLOAT
/* The value as the type that is computed in has it. */
int tf_cut(int v) {
  if (COMPUTE == TF_BOOL) return v != 0 ? 1 : 0;
  if (COMPUTE == TF_U8) return v & 0xff;
  if (COMPUTE == TF_I8) return v << 24 >> 24;
  if (COMPUTE == TF_I16) return v << 16 >> 16;
  return v;
}
#else
#define tf_cut(v) v
#endif

void main() {
  uint i = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * 256u);
  if (i >= p.count) return;
  ivec4 k = ivec4(0, 0, 0, int(i));
  if (DENSE == 0u) {
    uint rest = i;
    k.w = int(rest % p.shape.z);
    rest /= p.shape.z;
    k.z = int(rest % p.shape.y);
    rest /= p.shape.y;
    k.y = int(rest % p.shape.x);
    k.x = int(rest / p.shape.x);
  }
#define TF_AT(n) (DENSE != 0u ? int(i) : k.x * p.strides[n].x + k.y * p.strides[n].y + k.z * p.strides[n].z + k.w * p.strides[n].w)
  T a = tf_load(p.at[1], IN0, TF_AT(1));
  T b = TF_INPUTS > 1 ? tf_load(p.at[2], IN1, TF_AT(2)) : T(0);
  T c = TF_INPUTS > 2 ? tf_load(p.at[3], IN2, TF_AT(3)) : T(0);
  tf_store(p.at[0], OUT, TF_AT(0), tf_cut(tf_row(a, b, c)));
}
