"""Elementwise rows and copies on Vulkan: parameters from views, pipelines by key, one dispatch or a few."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.vulkan.record cimport Stream, stream_launch, stream_of, tf_range
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport collapse

from tinyfin.core.errors import FAILED
from tinyfin.ops.row import TABLE

cdef enum:
    SCALAR = 16                      # added to a dtype: the operand is a number
    INNER = 4                        # axes that one dispatch walks
    GROUP = 256                      # invocations of a work group
    DISPATCHES = 4096                # of one call, at most; what would take more falls back

cdef int POSITIVE = [r.name for r in TABLE.values() if r.expr is not None].index("positive")

cdef packed struct Parameters:       # as in shaders/elementwise.comp
    uint64_t at[4]
    int32_t strides[4][4]
    uint32_t shape[3]
    uint32_t count
    float f[3]

cdef struct Call:                    # one call: operand 0 is the output
    int nops, ndim, nattrs
    uint64_t address[4]
    uint8_t dtype[4]                 # with SCALAR where it is a number
    int64_t shape[8]
    int64_t strides[4][8]
    tf_range range[4]
    int row, compute
    float f[3]


cdef inline uint64_t address_of(const tf_view *v) noexcept nogil:
    return <uint64_t>v.block + <uint64_t>(v.offset * tf_itemsize[v.dtype])


cdef inline bint is_float(int dtype) noexcept nogil:
    return TF_F16 <= dtype <= TF_F32


cdef inline bint is_narrow(int dtype) noexcept nogil:
    """Whether the integer module reads and writes the dtype."""
    return dtype <= TF_I32


cdef uint64_t number_of(const tf_view *v, int compute) noexcept nogil:
    """A Python number in the type that is computed in, as bits."""
    cdef double d
    cdef float f
    cdef int64_t i
    cdef uint32_t u
    if v.dtype == TF_F64:
        d = (<const double *>v.data)[0]
        i = <int64_t>d if -9e18 < d < 9e18 else 0
    elif v.dtype == TF_I64:
        i = (<const int64_t *>v.data)[0]
        d = i != 0
    else:
        i = v.data[0] != 0
        d = <double>i
    if is_float(compute):
        f = <float>i if v.dtype == TF_I64 else <float>d     # rounded once
        memcpy(&u, &f, 4)
        return u
    if compute == TF_BOOL:
        return d != 0
    if compute == TF_U8:
        return i & 0xff
    if compute == TF_I8:
        return <uint32_t><int32_t>((<int32_t>i << 24) >> 24)
    if compute == TF_I16:
        return <uint32_t><int32_t>((<int32_t>i << 16) >> 16)
    return <uint32_t>i


cdef void set_operand(Call *c, int k, const tf_view *v, const tf_view *out) noexcept nogil:
    """An operand with strides over the output's shape."""
    cdef int lead = out.ndim - v.ndim, d, item = tf_itemsize[v.dtype]
    cdef int64_t low = 0, high = 0, step
    for d in range(out.ndim):
        step = 0
        if d >= lead and not (v.shape[d - lead] == 1 and out.shape[d] != 1):
            step = v.strides[d - lead]
        c.strides[k][d] = step
        if step < 0:
            low += step * (out.shape[d] - 1)
        else:
            high += step * (out.shape[d] - 1)
    c.dtype[k] = v.dtype
    c.address[k] = address_of(v)
    c.range[k].low = c.address[k] + <uint64_t>(low * item)
    c.range[k].high = c.address[k] + <uint64_t>((high + 1) * item)


cdef int run(Call *c, int index) except -1:
    """Axes merged, then one dispatch, or one for each place of the axes that are too many."""
    cdef int64_t *strides[4]
    cdef int k
    for k in range(c.nops):
        strides[k] = c.strides[k]
    c.ndim = collapse(c.ndim, c.shape, strides, c.nops)
    if c.ndim == 0:
        c.ndim, c.shape[0] = 1, 1
        for k in range(c.nops):
            c.strides[k][0] = 1
    need_few(c)
    return dispatch(c, stream_of(index), 0, c.address)


cdef int need_few(Call *c) except -1:
    """Refuses, before anything is recorded, what would take too many dispatches."""
    cdef int64_t dispatches = 1
    cdef int first = 0
    while not fits(c, first):
        dispatches *= c.shape[first]
        first += 1
        if dispatches > DISPATCHES or first == c.ndim:
            raise NotImplementedError
    return 0


cdef bint fits(Call *c, int first) noexcept nogil:
    """Whether one dispatch can walk the axes from `first` on with 32-bit numbers."""
    cdef int64_t n = 1, reach
    cdef int d, k
    if c.ndim - first > INNER:
        return False
    for d in range(first, c.ndim):
        if c.shape[d] >= <int64_t>1 << 31 or n > (<int64_t>1 << 31) // c.shape[d]:
            return False
        n *= c.shape[d]
    for k in range(c.nops):
        reach = 0
        for d in range(first, c.ndim):
            reach += (c.strides[k][d] if c.strides[k][d] > 0 else -c.strides[k][d]) * (c.shape[d] - 1)
        if reach >= <int64_t>1 << 31 and not c.dtype[k] & SCALAR:
            return False
    return True


cdef int dispatch(Call *c, Stream stream, int first, const uint64_t *address) except -1:
    cdef uint64_t moved[4]
    cdef int64_t i
    cdef int k
    if fits(c, first):
        return launch(c, stream, first, address)
    for i in range(c.shape[first]):
        for k in range(c.nops):
            moved[k] = address[k]
            if not c.dtype[k] & SCALAR:
                moved[k] += <uint64_t>(i * c.strides[k][first] * tf_itemsize[c.dtype[k]])
        dispatch(c, stream, first + 1, moved)
    return 0


cdef int launch(Call *c, Stream stream, int first, const uint64_t *address) except -1:
    cdef Parameters p
    cdef int d, k, axes = c.ndim - first
    cdef int64_t n = 1
    cdef bint dense = True
    cdef uint64_t key
    cdef uint32_t groups, rows = 1
    memset(&p, 0, sizeof(p))
    for d in range(3):
        p.shape[d] = 1
    for d in range(axes):
        n *= c.shape[first + d]
        if d + INNER - axes > 0:
            p.shape[d + INNER - axes - 1] = <uint32_t>c.shape[first + d]
    for k in range(c.nops):
        p.at[k] = address[k]
        for d in range(axes):
            p.strides[k][d + INNER - axes] = <int32_t>c.strides[k][first + d]
        if not c.dtype[k] & SCALAR and not (axes == 1 and (c.strides[k][first] == 1 or n == 1)):
            dense = False
    p.count = <uint32_t>n
    memcpy(p.f, c.f, sizeof(p.f))
    key = <uint64_t>c.row | <uint64_t>c.compute << 16 | <uint64_t>dense << 20 | <uint64_t>c.nops << 21
    for k in range(c.nops):
        key |= <uint64_t>c.dtype[k] << (24 + 5 * k)
    groups = <uint32_t>((n + GROUP - 1) // GROUP)
    if groups > 32768:
        rows = (groups + 32767) // 32768
        groups = 32768
    stream.check(stream_launch(&stream.s, stream.pipelines[key], stream.pipelines.layout, &p, sizeof(p), groups, rows,
                               1, &c.range[1], c.nops - 1, &c.range[0], 1))
    return 0


cdef int elementwise(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call) noexcept with gil:
    cdef const tf_view *out = outputs[0]
    cdef Call c
    cdef int k
    cdef bint floats = is_float(call.compute)
    call.detail[0] = call.compute
    if not (floats or is_narrow(call.compute)) or not (is_narrow(out.dtype) or (floats and is_float(out.dtype))):
        return TF_EUNSUPPORTED
    if out.size == 0:
        return TF_OK
    c.row, c.compute, c.nops, c.ndim = <int>(<size_t>call.ctx & 0xffff), call.compute, n + 1, out.ndim
    memcpy(c.shape, out.shape, sizeof(c.shape))
    set_operand(&c, 0, out, out)
    for k in range(n):
        set_operand(&c, k + 1, inputs[k], out)
        if inputs[k].flags & TF_WRAPPED:
            c.address[k + 1] = number_of(inputs[k], call.compute)
            c.dtype[k + 1] = (TF_F32 if floats else TF_I32) | SCALAR
            c.range[k + 1].low = c.range[k + 1].high = 0
        elif not (is_narrow(inputs[k].dtype) or (floats and is_float(inputs[k].dtype))):
            return TF_EUNSUPPORTED
    for k in range(3):
        c.f[k] = <float>at.f[k]
    return finish(&c, out.index, call)


cdef int copy(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call) noexcept with gil:
    """Broadcasts, casts and copies one tensor; the same dtype moves bits."""
    cdef const tf_view *out = outputs[0]
    cdef const tf_view *x = inputs[0]
    cdef Call c
    cdef int k, item
    call.detail[0] = x.dtype
    if out.size == 0:
        return TF_OK
    memset(c.f, 0, sizeof(c.f))
    c.row, c.nops, c.ndim, c.compute = POSITIVE, 2, out.ndim, TF_I32
    memcpy(c.shape, out.shape, sizeof(c.shape))
    set_operand(&c, 0, out, out)
    set_operand(&c, 1, x, out)
    if x.flags & TF_WRAPPED:
        if not is_narrow(out.dtype) and not is_float(out.dtype):
            return TF_EUNSUPPORTED
        c.compute = TF_F32 if is_float(out.dtype) else out.dtype
        c.address[1] = number_of(x, c.compute)
        c.dtype[1] = (TF_F32 if is_float(out.dtype) else TF_I32) | SCALAR
        c.range[1].low = c.range[1].high = 0
    elif x.dtype == out.dtype:
        item = tf_itemsize[x.dtype]
        if item == 8:                # two words for each element
            if c.ndim == 8:
                return TF_EUNSUPPORTED
            for k in range(2):
                for d in range(c.ndim):
                    c.strides[k][d] *= 2
                c.strides[k][c.ndim] = 1
            c.shape[c.ndim] = 2
            c.ndim += 1
            item = 4
        c.dtype[0] = c.dtype[1] = TF_U8 if item == 1 else TF_I16 if item == 2 else TF_I32
    elif is_float(x.dtype) or is_float(out.dtype):
        if not (is_float(x.dtype) or is_narrow(x.dtype)) or not (is_float(out.dtype) or is_narrow(out.dtype)):
            return TF_EUNSUPPORTED
        c.compute = TF_F32
    elif is_narrow(x.dtype) and is_narrow(out.dtype):
        c.compute = out.dtype
    else:
        return TF_EUNSUPPORTED
    return finish(&c, out.index, call)


cdef int finish(Call *c, int index, tf_call *call) noexcept:
    """Kernels give no exceptions: the caller asks the backend for what failed."""
    try:
        run(c, index)
    except NotImplementedError:
        return TF_EUNSUPPORTED
    except Exception as error:
        FAILED[TF_VULKAN, index] = error
        call.detail[0], call.detail[1] = TF_VULKAN, index
        return TF_EDEVICE
    return TF_OK


KERNELS = {"elementwise": kernel_capsule(elementwise), "copy": kernel_capsule(copy)}
