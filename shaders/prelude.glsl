/* The only text that knows Vulkan from OpenGL: how memory is reached, and how parameters come in.
 *
 * A body says TF_BUFFERS(n) and reads or writes operand k through tf_u8(k, i), tf_set_u8(k, i, v) and so on,
 * where i is the element's index from the operand's address.
 */
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
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer B8 { uint8_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer B16 { uint16_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer B32 { uint v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer B64 { uvec2 v[]; };
#endif
