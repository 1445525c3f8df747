/* What an API must switch on before anything is declared. */
#ifdef TF_VULKAN
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_control_flow_attributes : require
#define UNROLL [[unroll]]
#if defined(TF_LONG) || defined(TF_DOUBLE)
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer B8 { uint8_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer B16 { uint16_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer B32 { uint v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer B64 { uvec2 v[]; };
#ifdef VM_SOFTFMA
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer BPair { double v[]; };
#endif
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer B128 { uvec4 v[]; };
/* Address of element i of 2^shift bytes. A negative index into `v` is not defined, and lost on NVIDIA's driver. */
uvec2 tf_far(uvec2 at, int i, int shift) {
  uint low = uint(i) << shift, high = uint(shift == 0 ? i >> 31 : i >> (32 - shift)), sum = at.x + low;
  return uvec2(sum, at.y + high + (sum < low ? 1u : 0u));
}
#else
#if defined(VM_SOFTFMA) || defined(TF_DOUBLE)
#extension GL_ARB_gpu_shader_fp64 : require
#endif
#if defined(TF_LONG) || defined(TF_DOUBLE)
#extension GL_ARB_gpu_shader_int64 : require
#endif
#endif
