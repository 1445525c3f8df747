"""Maxima of windows and elements at given places, over one, two or three axes: a task is a plane of the leading axes.

Missing axes come first, with size one. Windows of an output line are taken together, one line of
the input after the other, so each window's elements come in row-major order. Any strides.
"""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.copy cimport NO_ROOM, lies_across, straightened
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.pool_loops cimport *
from tinyfin.backends.cpu.pool_shape cimport *
from tinyfin.backends.cpu.spatial cimport *
from tinyfin.backends.cpu.threads cimport scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef const tf_pool_table *TABLE = <const tf_pool_table *>isa_table(b"pool")


# ---- max

cdef struct Padded:
    # the lines of the input that the windows of one output line reach
    int64_t length                    # of each, with what lies beside it
    const void **x
    int32_t *firsts
    char *keys


cdef void max_rows(const Pool *q, const tf_pool_max *m, const char *x, int64_t o0, int64_t o1, char *keys,
                   int32_t *places, char *y, int64_t *indices) noexcept nogil:
    """One output line: the lines of its windows, one after the other."""
    cdef tf_pool_line p
    cdef int64_t a, a1, b, b0, b1, o, first, n = q.y.size[2]
    cdef const char *row
    line_of(q, &p)
    window(q, 0, o0, &a, &a1)
    window(q, 1, o1, &b0, &b1)
    m.lowest(keys, n)
    memset(places, 0, n * 4)
    while a < a1:
        b = b0
        while b < b1:
            row = x + (a * q.x.step[0] + b * q.x.step[1]) * m.itemsize
            first = (a * q.x.size[1] + b) * q.x.size[2]
            for o in range(n if q.adaptive else 1):
                if q.adaptive:
                    one_window(q, o, &p)
                m.line(&p, row, <int32_t>first, keys + o * m.keysize, places + o)
            b += q.dil[1]
        a += q.dil[0]
    m.end(keys, places, n, y, indices)


cdef void max_padded(const Pool *q, const tf_pool_max *m, const char *x, int64_t o0, int64_t o1, Padded *d, char *y,
                     int64_t *indices) noexcept nogil:
    """One output line: the lines of its windows together."""
    cdef tf_pool_line p
    cdef int64_t a, a1, b, b0, b1, lines = 0
    line_of(q, &p)
    window(q, 0, o0, &a, &a1)
    window(q, 1, o1, &b0, &b1)
    while a < a1:
        b = b0
        while b < b1:
            d.x[lines] = x + (a * q.x.step[0] + b * q.x.step[1]) * m.itemsize
            d.firsts[lines] = <int32_t>((a * q.x.size[1] + b) * q.x.size[2])
            lines += 1
            b += q.dil[1]
        a += q.dil[0]
    m.windows(&p, d.x, d.firsts, lines, q.x.size[2], d.keys, d.length, y, indices)


cdef int64_t padded_length(const Pool *q) noexcept nogil:
    """Elements of a line of x with all that whole vectors of windows reach; 0 where that is much more than the line,
    or lines are many or not dense."""
    cdef int64_t whole = (q.y.size[2] + TF_WHOLE - 1) // TF_WHOLE * TF_WHOLE, line = q.pad[2] + q.x.size[2], reached
    if q.adaptive or q.x.step[2] != 1 or max(q.stride[2], q.dil[2]) > 1 << 20 or q.kernel[0] > 64 or q.kernel[1] > 64:
        return 0
    reached = whole * q.stride[2] + min(q.kernel[2], <int64_t>1 << 20) * q.dil[2]
    if reached > 4 * line + 256 or max(line, reached) * q.kernel[0] * q.kernel[1] > 1 << 16:
        return 0
    return max(line, reached)


cdef void max_task(int64_t plane, void *ctx) noexcept nogil:
    cdef Pool *q = <Pool *>ctx
    cdef const tf_pool_max *m = &TABLE.max[q.x.v.dtype - TF_F16]
    cdef int64_t n = q.y.size[2], o0, o1, at = plane * volume(q.y.size), lines = 0
    cdef Padded d
    cdef size_t bytes
    cdef char *keys
    cdef char *y
    cdef const char *x = plane_at(&q.x, plane)
    d.length = padded_length(q)
    if d.length:
        lines = q.kernel[0] * q.kernel[1]
    bytes = lines * (d.length * m.keysize + 12) if d.length else n * (m.keysize + 4)
    keys = <char *>scratch_push(bytes)
    if keys == NULL:
        q.failed = NO_MEMORY
        return
    if d.length:
        d.x, d.keys = <const void **>keys, keys + 8 * lines
        d.firsts = <int32_t *>(d.keys + lines * d.length * m.keysize)
        m.lowest(d.keys, lines * d.length)
    for o0 in range(q.y.size[0]):
        for o1 in range(q.y.size[1]):
            y = q.y.v.data + at * m.itemsize
            if d.length:
                max_padded(q, m, x, o0, o1, &d, y, q.places + at)
            else:
                max_rows(q, m, x, o0, o1, keys, <int32_t *>(keys + n * m.keysize), y, q.places + at)
            at += n
    scratch_pop(bytes)


# ---- elements at flat places

cdef inline int64_t given(const Planes *index, const char *first, int64_t i, int64_t j,
                          int64_t k) noexcept nogil:
    return (<const int64_t *>first)[i * index.step[0] + j * index.step[1] + k * index.step[2]]


cdef inline int64_t place_at(const Pool *q, const Planes *index, const char *first, int64_t i,
                             int64_t j, int64_t k) noexcept nogil:
    """A flat place, or -1 where it lies outside the plane."""
    cdef int64_t at = given(index, first, i, j, k)
    return at if 0 <= at < volume(q.x.size) else -1


cdef inline int64_t element(const Planes *p, int64_t flat) noexcept nogil:
    """Offset of the element at a flat place."""
    return (flat // (p.size[1] * p.size[2]) * p.step[0] + flat // p.size[2] % p.size[1] * p.step[1]
            + flat % p.size[2] * p.step[2])


cdef void copy_element(const char *x, char *y, int item) noexcept nogil:
    if item == 4:
        (<int32_t *>y)[0] = (<const int32_t *>x)[0]
    elif item == 8:
        (<int64_t *>y)[0] = (<const int64_t *>x)[0]
    else:
        y[0], y[1] = x[0], x[1]


cdef void gather_task(int64_t plane, void *ctx) noexcept nogil:
    cdef Pool *q = <Pool *>ctx
    cdef Planes index
    cdef int64_t i, j, k, at
    cdef int item = tf_itemsize[q.x.v.dtype]
    cdef const char *x = plane_at(&q.x, plane)
    cdef const char *first
    cdef char *y = result_at(&q.y, plane)
    planes_of(&index, q.indices, q.y.nd)
    first = plane_at(&index, plane)
    for i in range(q.y.size[0]):
        for j in range(q.y.size[1]):
            for k in range(q.y.size[2]):
                at = place_at(q, &index, first, i, j, k)
                if at < 0:
                    q.failed, q.bad = BAD_INDEX, given(&index, first, i, j, k)
                    return
                copy_element(x + element(&q.x, at) * item, y, item)
                y += item


cdef void scatter_task(int64_t plane, void *ctx) noexcept nogil:
    cdef Pool *q = <Pool *>ctx
    cdef Planes index
    cdef int64_t i, j, k, at, item = q.kind.itemsize, area = volume(q.x.size), n = q.y.size[2]
    cdef size_t bytes = n * item + (0 if own(q) else area * item)
    cdef char *line = <char *>scratch_push(bytes)
    cdef char *x = result_at(&q.x, plane) if own(q) else line + n * item
    cdef const char *g = plane_at(&q.y, plane)
    cdef const char *first
    if line == NULL:
        q.failed = NO_MEMORY
        return
    planes_of(&index, q.indices, q.y.nd)
    first = plane_at(&index, plane)
    memset(x, 0, area * item)
    for i in range(q.y.size[0]):
        for j in range(q.y.size[1]):
            q.kind.widen(q.y.v.dtype, g + (i * q.y.step[0] + j * q.y.step[1])
                         * tf_itemsize[q.y.v.dtype], q.y.step[2], n,
                         line)
            for k in range(n):
                at = place_at(q, &index, first, i, j, k)
                if at < 0:
                    q.failed, q.bad = BAD_INDEX, given(&index, first, i, j, k)
                    break
                if item == 4:
                    (<float *>x)[at] += (<float *>line)[k]
                else:
                    (<double *>x)[at] += (<double *>line)[k]
    if not own(q):
        q.kind.narrow(q.x.v.dtype, x, area, result_at(&q.x, plane), 1)
    scratch_pop(bytes)


# ---- families

cdef int run_max(Pool *q, const tf_view *x, tf_view *const *outputs, int nd,
                 tf_call *call) noexcept nogil:
    planes_of(&q.x, x, nd)
    flat(&q.y, outputs[0], nd)
    if q.adaptive:
        fit(q)
    q.places = <int64_t *>outputs[1].data
    if volume(q.x.size) >= <int64_t>1 << 31:      # places are 32 bits inside
        return TF_EUNSUPPORTED
    cut(q)
    return run(q, max_task, count(x, nd), count(x, nd), call)


cdef int max_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept nogil:
    """kernel, stride, padding, dilation, ceil_mode, nd."""
    cdef int rc
    cdef Pool q
    cdef int nd = <int>at.i[13]
    if not floats(inputs[0]) or outputs[0].size == 0:
        return TF_OK if floats(inputs[0]) else TF_EUNSUPPORTED
    if lies_across(inputs[0]):
        rc = straightened(max_pool, inputs, n, 0, outputs, at, call)
        if rc != NO_ROOM:
            return rc
    windows(&q, at, nd, inputs[0].dtype)
    three(&at.i[9], nd, 1, q.dil)
    return run_max(&q, inputs[0], outputs, nd, call)


cdef int adaptive_max_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                           const tf_attrs *at, tf_call *call) noexcept nogil:
    """size, nd."""
    cdef int rc
    cdef Pool q
    cdef int nd = <int>at.i[3]
    if not floats(inputs[0]) or outputs[0].size == 0:
        return TF_OK if floats(inputs[0]) else TF_EUNSUPPORTED
    if lies_across(inputs[0]):
        rc = straightened(adaptive_max_pool, inputs, n, 0, outputs, at, call)
        if rc != NO_ROOM:
            return rc
    plain(&q, inputs[0].dtype)
    q.adaptive = True
    return run_max(&q, inputs[0], outputs, nd, call)


cdef int pool_gather(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call) noexcept nogil:
    """x, indices; nd."""
    cdef Pool q
    cdef int nd = <int>at.i[0]
    if not floats(inputs[0]) or inputs[1].dtype != TF_I64:
        return TF_EUNSUPPORTED
    if outputs[0].size == 0:
        return TF_OK
    plain(&q, inputs[0].dtype)
    planes_of(&q.x, inputs[0], nd)
    flat(&q.y, outputs[0], nd)
    q.indices = inputs[1]
    return run(&q, gather_task, count(inputs[0], nd), count(inputs[0], nd), call)


cdef int pool_scatter(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept nogil:
    """g, indices; size, nd."""
    cdef Pool q
    cdef int nd = <int>at.i[3]
    if not floats(inputs[0]) or inputs[1].dtype != TF_I64:
        return TF_EUNSUPPORTED
    plain(&q, inputs[0].dtype)
    q.indices = inputs[1]
    if not sides(&q, inputs[0], outputs[0], nd, True):
        return TF_OK
    return run(&q, scatter_task, count(inputs[0], nd), count(inputs[0], nd), call)


KERNELS = {
    "max_pool": kernel_capsule(max_pool), "adaptive_max_pool": kernel_capsule(adaptive_max_pool),
    "pool_gather": kernel_capsule(pool_gather), "pool_scatter": kernel_capsule(pool_scatter),
}
