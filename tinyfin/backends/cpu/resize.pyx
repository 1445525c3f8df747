"""Slices between two neighbours of an axis, and the adjoint: a task has some planes of the axis and those inside it.

Any strides; planes that are not dense are gathered first. float32 and float64.
"""
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.indexed cimport check_index
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport Axes, gather_run, offset, push
from tinyfin.backends.cpu.resize_loops cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    GRAIN = 1 << 14     # numbers of a task

cdef const tf_resize_table *TABLE = <const tf_resize_table *>isa_table(b"resize")


cdef struct Between:
    const tf_resize_loops *loops
    tf_between at
    Axes outer                  # what is read: planes, and their places
    Axes plane
    const char *x
    char *y
    int64_t n, m, inner         # elements of the axis that is read and of the result's; numbers of each
    int64_t planes, group
    int size
    bint back, dense
    size_t refused


cdef void forward(const Between *s, const char *x, char *y) noexcept nogil:
    cdef int64_t j, step = s.inner * s.size
    if s.inner == 1:
        s.loops.line(&s.at, x, y)
        return
    for j in range(s.m):
        s.loops.row(&s.at, j, x + s.at.low[j] * step, x + s.at.high[j] * step, y + j * step, s.inner)


cdef void backward(const Between *s, const char *g, char *y, char *rest) noexcept nogil:
    cdef int64_t j, step = s.inner * s.size
    memset(y, 0, s.m * step)
    memset(rest, 0, s.m * step)
    if s.inner == 1:
        s.loops.line_back(&s.at, g, y, rest)
    else:
        for j in range(s.n):
            s.loops.row_back(&s.at, j, g + j * step, y + s.at.low[j] * step, rest + s.at.high[j] * step, s.inner)
    s.loops.add(y, rest, s.m * s.inner)


cdef void between_task(int64_t t, void *ctx) noexcept nogil:
    cdef Between *s = <Between *>ctx
    cdef int64_t p, read = s.n * s.inner * s.size, written = s.m * s.inner * s.size
    cdef size_t bytes = (0 if s.dense else read) + (written if s.back else 0)
    cdef char *rest = <char *>scratch_push(bytes)
    cdef char *buffer = rest + (written if s.back else 0)
    cdef const char *x
    if rest == NULL:
        s.refused = bytes
        return
    for p in range(t * s.group, min((t + 1) * s.group, s.planes)):
        x = s.x + offset(&s.outer, 0, p) * s.size
        if not s.dense:
            gather_run(buffer, x, &s.plane, 0, s.n * s.inner, s.size)
            x = buffer
        if s.back:
            backward(s, x, s.y + p * written, rest)
        else:
            forward(s, x, s.y + p * written)
    scratch_pop(bytes)


cdef bint neighbours(Between *s, const tf_view *low, const tf_view *high, const tf_view *part, int32_t *room,
                     int64_t size, tf_call *call) noexcept nogil:
    """Indices as int32, and both weights, side by side; False where an index is none of `size` elements."""
    cdef int64_t j, n = s.at.n
    cdef char *second = <char *>(room + 2 * n)
    cdef const tf_view *v
    cdef int k
    for k in range(2):
        v = high if k else low
        if check_index(v, 0, size, 0, call) != TF_OK:
            return False
        for j in range(n):
            room[k * n + j] = <int32_t>(<const int64_t *>v.data)[j * v.strides[0]]
    for j in range(n):
        if s.size == 4:
            (<float *>second)[j] = (<const float *>part.data)[j * part.strides[0]]
        else:
            (<double *>second)[j] = (<const double *>part.data)[j * part.strides[0]]
    s.loops.weights(second + n * s.size, second, n)
    s.at.low, s.at.high, s.at.second, s.at.first = room, room + n, second, second + n * s.size
    return True


cdef int between(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                 tf_call *call) noexcept nogil:
    """variant 0: (x, low, high, part -> y); dim. 1: (g, low, high, part -> gx); shape, dim."""
    cdef Between s
    cdef const tf_view *x = inputs[0]
    cdef int k, dim
    cdef int64_t bytes
    cdef int32_t *room
    s.back = call.ctx != NULL
    dim = <int>at.i[9 if s.back else 0]
    if (x.dtype != TF_F32 and x.dtype != TF_F64) or outputs[0].shape[dim] > INT32_MAX or x.shape[dim] > INT32_MAX:
        return TF_EUNSUPPORTED
    s.loops, s.size, s.refused = &TABLE.of[x.dtype == TF_F64], tf_itemsize[x.dtype], 0
    s.x, s.y, s.n, s.m, s.inner, s.planes = x.data, outputs[0].data, x.shape[dim], outputs[0].shape[dim], 1, 1
    s.outer.nd = s.plane.nd = 0
    for k in range(x.ndim):
        if k < dim:
            s.planes *= x.shape[k]
            push(&s.outer, x.shape[k], x.strides[k], 0, 0)
        else:
            s.inner *= x.shape[k] if k > dim else 1
            push(&s.plane, x.shape[k], x.strides[k], 0, 0)
    s.dense = s.plane.nd == 0 or (s.plane.nd == 1 and s.plane.s[0][0] == 1)
    s.at.n = inputs[1].size
    bytes = s.at.n * (8 + 2 * s.size)
    room = <int32_t *>scratch_push(bytes)
    if room == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    if not neighbours(&s, inputs[1], inputs[2], inputs[3], room, s.m if s.back else s.n, call):
        scratch_pop(bytes)
        return TF_EINDEX
    s.group = max(<int64_t>1, GRAIN // max(s.inner * max(s.n, s.m), 1))
    parallel_for((s.planes + s.group - 1) // s.group, 0.4 * s.planes * s.inner * max(s.n, s.m), between_task, &s)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


cdef object BETWEEN = kernel_capsule(between)
KERNELS = {"select_between": (BETWEEN, 0), "between_embed": (BETWEEN, 1)}
