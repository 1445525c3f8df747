"""The contract of abi.h for cimport."""
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from "abi.h" nogil:
    enum:
        TF_ABI_VERSION
        TF_MAXDIM
        TF_MAXBACKEND
        TF_BOOL, TF_U8, TF_I8, TF_I16, TF_I32, TF_I64, TF_F16, TF_BF16, TF_F32, TF_F64
        TF_C64, TF_C128, TF_U16, TF_U32, TF_U64, TF_NDTYPE
        TF_CPU, TF_NULL, TF_VULKAN, TF_OPENGL
        TF_CONTIGUOUS, TF_WRAPPED, TF_READONLY, TF_ABSENT, TF_BATCHED
        TF_OK, TF_ENOMEM, TF_EINDEX, TF_EZERODIV, TF_EVALUE, TF_EUNSUPPORTED, TF_ENONDET, TF_EDEVICE
        TF_DETERMINISTIC

    ctypedef struct tf_view:
        char *data
        void *block
        int64_t offset
        int64_t size
        int64_t shape[8]
        int64_t strides[8]
        uint8_t ndim, dtype, backend, index, flags

    ctypedef struct tf_attrs:
        int64_t i[32]
        double f[8]

    ctypedef struct tf_call:
        const void *ctx
        uint32_t mode
        uint8_t compute
        uint8_t needs_copy
        int64_t detail[4]
        int64_t launched[2]

    ctypedef int (*tf_kernel)(const tf_view *const *inputs, int n, tf_view *const *outputs,
                              const tf_attrs *at, tf_call *call) noexcept nogil

    const uint8_t tf_itemsize[]
