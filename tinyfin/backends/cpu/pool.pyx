"""Pooling over one, two or three axes: a task is a plane of the leading axes.

Missing axes come first, with size one. Windows of an output line are taken together, one line of
the input after the other, so each window's elements come in row-major order. Any strides.
"""
from libc.stdint cimport INT64_MIN, int32_t, int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.gemm cimport gemm_kind
from tinyfin.backends.cpu.gemm_loops cimport tf_gemm_kind
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.pool_loops cimport *
from tinyfin.backends.cpu.pool_shape cimport *
from tinyfin.backends.cpu.spatial cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push, tf_task
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef const tf_pool_table *TABLE = <const tf_pool_table *>isa_table(b"pool")

cdef enum:
    LARGE = 64               # elements of a window from which planes are summed side by side
    NO_MEMORY = 1
    BAD_INDEX = 2


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


# ---- means and their gradients

cdef void dense(const tf_gemm_kind *kind, const Planes *p, const char *x, char *to) noexcept nogil:
    """A plane as dense accumulators."""
    cdef int64_t i, j
    for i in range(p.size[0]):
        for j in range(p.size[1]):
            kind.widen(p.v.dtype, x + (i * p.step[0] + j * p.step[1]) * tf_itemsize[p.v.dtype],
                       p.step[2], p.size[2],
                       to + (i * p.size[1] + j) * p.size[2] * kind.itemsize)


cdef bint own(const Pool *q) noexcept nogil:
    return q.x.v.dtype == TF_F32 or q.x.v.dtype == TF_F64


cdef int64_t counted(const Pool *q, int a, int64_t o) noexcept nogil:
    """How many places along axis a count for the mean of window o."""
    cdef int64_t first, last, start
    if q.adaptive or not q.include_pad:
        window(q, a, o, &first, &last)
        return last - first
    start = o * q.stride[a] - q.pad[a]
    return min(start + q.kernel[a], q.x.size[a] + q.pad[a]) - start


cdef void counts_of(const Pool *q, int64_t *counts) noexcept nogil:
    """Along the last axis."""
    cdef int64_t o
    for o in range(q.y.size[2]):
        counts[o] = 1 if q.divisor != INT64_MIN else counted(q, 2, o)


cdef int64_t factor(const Pool *q, int64_t o0, int64_t o1) noexcept nogil:
    if q.divisor != INT64_MIN:
        return q.divisor
    return counted(q, 0, o0) * counted(q, 1, o1)


cdef void sum_rows(const Pool *q, char *x, int64_t o0, int64_t o1, char *line,
                   bint spread) noexcept nogil:
    """Sums of one output line's windows, or its shares onto elements of x. Copies are dense."""
    cdef tf_pool_line p
    cdef int64_t a0, a1, b0, b1, a, b, o, item = q.kind.itemsize
    cdef int64_t s0 = q.x.step[0], s1 = q.x.step[1]
    line_of(q, &p)
    if not own(q):
        s0, s1, p.step = q.x.size[1] * q.x.size[2], q.x.size[2], 1
    window(q, 0, o0, &a0, &a1)
    window(q, 1, o1, &b0, &b1)
    for a in range(a0, a1):
        for b in range(b0, b1):
            for o in range(q.y.size[2] if q.adaptive else 1):
                if q.adaptive:
                    one_window(q, o, &p)
                if spread:
                    q.sum.spread(&p, line + o * item, x + (a * s0 + b * s1) * item)
                else:
                    q.sum.add(&p, x + (a * s0 + b * s1) * item, line + o * item)


cdef void mean_task(int64_t plane, void *ctx) noexcept nogil:
    cdef Pool *q = <Pool *>ctx
    cdef const tf_gemm_kind *kind = q.kind
    cdef int64_t n = q.y.size[2], o0, o1, item = kind.itemsize, size = tf_itemsize[q.y.v.dtype]
    cdef size_t bytes = n * (item + 8) + (0 if own(q) else volume(q.x.size) * item)
    cdef int64_t *counts = <int64_t *>scratch_push(bytes)
    cdef char *line = <char *>(counts + n)
    cdef char *x = plane_at(&q.x, plane)
    cdef char *y = result_at(&q.y, plane)
    if counts == NULL:
        q.failed = NO_MEMORY
        return
    counts_of(q, counts)
    if not own(q):
        dense(kind, &q.x, x, line + n * item)
        x = line + n * item
    for o0 in range(q.y.size[0]):
        for o1 in range(q.y.size[1]):
            q.sum.begin(line, n)
            sum_rows(q, x, o0, o1, line, False)
            q.sum.divide(line, counts, factor(q, o0, o1), n)
            kind.narrow(q.y.v.dtype, line, n, y, 1)
            y += n * size
    scratch_pop(bytes)


# Large windows: a chain of additions per plane would wait for each one, so nr planes are summed
# side by side, each in its own order.

cdef bint far(const Pool *q) noexcept nogil:
    """Whether windows are large, and planes evenly spaced."""
    cdef const tf_view *v = q.x.v
    cdef int64_t area = volume(q.x.size), i
    if area < LARGE * volume(q.y.size):
        return False
    for i in range(v.ndim - q.x.nd - 1):
        if v.strides[i] != v.shape[i + 1] * v.strides[i + 1]:
            return False
    return v.ndim > q.x.nd


cdef void far_window(const Pool *q, const char *x, int64_t some, int64_t o0, int64_t o1, int64_t o2,
                     char *acc,
                     char *lines) noexcept nogil:
    """acc[lane] += the window's elements of the lane's plane."""
    cdef const tf_gemm_kind *kind = q.kind
    cdef int64_t a0, a1, b0, b1, c0, c1, a, b, c, plane = q.x.v.strides[q.x.v.ndim - q.x.nd - 1]
    window(q, 0, o0, &a0, &a1)
    window(q, 1, o1, &b0, &b1)
    window(q, 2, o2, &c0, &c1)
    for a in range(a0, a1):
        for b in range(b0, b1):
            kind.pack(q.x.v.dtype, x + (a * q.x.step[0] + b * q.x.step[1] + c0 * q.x.step[2])
                      * tf_itemsize[q.x.v.dtype],
                      plane, q.x.step[2], some, c1 - c0, lines, 1)
            for c in range(c1 - c0):
                kind.add(acc, lines + c * kind.nr * kind.itemsize, 1, kind.nr)


cdef void far_task(int64_t t, void *ctx) noexcept nogil:
    cdef Pool *q = <Pool *>ctx
    cdef const tf_gemm_kind *kind = q.kind
    cdef int64_t first = t * kind.nr, some = min(<int64_t>kind.nr, q.planes - first), o0, o1, o2
    cdef int64_t at = 0, i
    cdef int64_t ny = volume(q.y.size), line = kind.nr * kind.itemsize
    cdef size_t bytes = line * (q.x.size[2] + 1) + kind.nr * 8
    cdef char *acc = <char *>scratch_push(bytes)
    cdef int64_t *counts = <int64_t *>(acc + line * (q.x.size[2] + 1))
    cdef int64_t last
    if acc == NULL:
        q.failed = NO_MEMORY
        return
    for o0 in range(q.y.size[0]):
        for o1 in range(q.y.size[1]):
            for o2 in range(q.y.size[2]):
                last = 1 if q.divisor != INT64_MIN else counted(q, 2, o2)
                for i in range(kind.nr):
                    counts[i] = last
                q.sum.begin(acc, kind.nr)
                far_window(q, plane_at(&q.x, first), some, o0, o1, o2, acc, acc + line)
                q.sum.divide(acc, counts, factor(q, o0, o1), kind.nr)
                kind.narrow(q.y.v.dtype, acc, some,
                            q.y.v.data + (first * ny + at) * tf_itemsize[q.y.v.dtype], ny)
                at += 1
    scratch_pop(bytes)


cdef void share_task(int64_t plane, void *ctx) noexcept nogil:
    """The gradient: every element sums the shares of its windows, in rising order."""
    cdef Pool *q = <Pool *>ctx
    cdef const tf_gemm_kind *kind = q.kind
    cdef int64_t n = q.y.size[2], o0, o1, item = kind.itemsize, area = volume(q.x.size)
    cdef size_t bytes = n * (item + 8) + (0 if own(q) else area * item)
    cdef int64_t *counts = <int64_t *>scratch_push(bytes)
    cdef char *line = <char *>(counts + n)
    cdef char *x = result_at(&q.x, plane)
    cdef const char *g = plane_at(&q.y, plane)
    if counts == NULL:
        q.failed = NO_MEMORY
        return
    counts_of(q, counts)
    if not own(q):
        x = line + n * item
    memset(x, 0, area * item)
    for o0 in range(q.y.size[0]):
        for o1 in range(q.y.size[1]):
            kind.widen(q.y.v.dtype, g + (o0 * q.y.step[0] + o1 * q.y.step[1])
                       * tf_itemsize[q.y.v.dtype], q.y.step[2], n,
                       line)
            q.sum.divide(line, counts, factor(q, o0, o1), n)
            sum_rows(q, x, o0, o1, line, True)
    if not own(q):
        kind.narrow(q.x.v.dtype, x, area, result_at(&q.x, plane), 1)
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

cdef int run(Pool *q, tf_task task, int64_t planes, tf_call *call) noexcept nogil:
    cdef int64_t bytes
    cdef double cost
    cut(q)
    bytes, q.failed = q.kernel[2] * 16, 0
    cost = 1.0 * planes * (volume(q.x.size) + volume(q.y.size) * volume(q.kernel))
    q.reach = <int64_t *>scratch_push(bytes)
    if q.reach == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    set_reach(q, q.reach)
    if task == mean_task and far(q):
        q.planes = planes
        parallel_for((planes + q.kind.nr - 1) // q.kind.nr, cost, far_task, q)
    else:
        parallel_for(planes, cost, task, q)
    scratch_pop(bytes)
    if q.failed == BAD_INDEX:
        call.detail[0], call.detail[1] = q.bad, volume(q.x.size)
        call.detail[2] = q.x.v.ndim - q.x.nd
        return TF_EINDEX
    if q.failed:
        call.detail[0] = volume(q.x.size) * 8
        return TF_ENOMEM
    return TF_OK


cdef void plain(Pool *q, int dtype) noexcept nogil:
    """Windows of one element."""
    cdef int a
    for a in range(3):
        q.kernel[a] = q.stride[a] = q.dil[a] = 1
        q.pad[a] = 0
    q.kind = gemm_kind(dtype)
    q.sum = &TABLE.sum[dtype == TF_F64]
    q.divisor, q.include_pad, q.adaptive = INT64_MIN, False, False


cdef bint floats(const tf_view *v) noexcept nogil:
    return TF_F16 <= v.dtype <= TF_F64


cdef void cut(Pool *q) noexcept nogil:
    """Taps that reach nothing go, and a stride that is never taken: it may be any."""
    cdef int a
    for a in range(3):
        q.kernel[a] = max(min(q.kernel[a], (q.x.size[a] + 2 * q.pad[a] - 1) // q.dil[a] + 1), 1)
        if q.y.size[a] == 1:
            q.stride[a] = 1


cdef void windows(Pool *q, const tf_attrs *at, int nd, int dtype) noexcept nogil:
    """kernel, stride, padding."""
    plain(q, dtype)
    three(&at.i[0], nd, 1, q.kernel)
    three(&at.i[3], nd, 1, q.stride)
    three(&at.i[6], nd, 0, q.pad)


cdef void fit(Pool *q) noexcept nogil:
    """Adaptive windows; where sizes divide they are ordinary ones."""
    cdef int a
    q.adaptive = False
    for a in range(3):
        q.adaptive = q.adaptive or q.x.size[a] % q.y.size[a] != 0
    if not q.adaptive:
        for a in range(3):
            q.kernel[a] = q.stride[a] = q.x.size[a] // q.y.size[a]


cdef int run_max(Pool *q, const tf_view *x, tf_view *const *outputs, int nd,
                 tf_call *call) noexcept nogil:
    planes_of(&q.x, x, nd)
    flat(&q.y, outputs[0], nd)
    if q.adaptive:
        fit(q)
    q.places = <int64_t *>outputs[1].data
    if volume(q.x.size) >= <int64_t>1 << 31:      # places are 32 bits inside
        return TF_EUNSUPPORTED
    return run(q, max_task, count(x, nd), call)


cdef int max_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept nogil:
    """kernel, stride, padding, dilation, ceil_mode, nd."""
    cdef Pool q
    cdef int nd = <int>at.i[13]
    if not floats(inputs[0]) or outputs[0].size == 0:
        return TF_OK if floats(inputs[0]) else TF_EUNSUPPORTED
    windows(&q, at, nd, inputs[0].dtype)
    three(&at.i[9], nd, 1, q.dil)
    return run_max(&q, inputs[0], outputs, nd, call)


cdef int adaptive_max_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                           const tf_attrs *at, tf_call *call) noexcept nogil:
    """size, nd."""
    cdef Pool q
    cdef int nd = <int>at.i[3]
    if not floats(inputs[0]) or outputs[0].size == 0:
        return TF_OK if floats(inputs[0]) else TF_EUNSUPPORTED
    plain(&q, inputs[0].dtype)
    q.adaptive = True
    return run_max(&q, inputs[0], outputs, nd, call)


cdef bint sides(Pool *q, const tf_view *x, tf_view *y, int nd, bint grad) noexcept nogil:
    """Both sides' planes; x is what is read. False where the result is empty or zero already."""
    if y.size == 0:
        return False
    if x.size == 0:
        memset(y.data, 0, y.size * tf_itemsize[y.dtype])
        return False
    planes_of(&q.y if grad else &q.x, x, nd)
    flat(&q.x if grad else &q.y, y, nd)
    return True


cdef int avg(const tf_view *const *inputs, tf_view *const *outputs, const tf_attrs *at,
             tf_call *call,
             bint grad) noexcept nogil:
    """kernel, stride, padding, ceil_mode, count_include_pad, divisor, nd."""
    cdef Pool q
    cdef int nd = <int>at.i[12]
    if not floats(inputs[0]):
        return TF_EUNSUPPORTED
    windows(&q, at, nd, inputs[0].dtype)
    q.include_pad, q.divisor = at.i[10] != 0, at.i[11]
    if not sides(&q, inputs[0], outputs[0], nd, grad):
        return TF_OK
    return run(&q, share_task if grad else mean_task, count(inputs[0], nd), call)


cdef int avg_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept nogil:
    return avg(inputs, outputs, at, call, False)


cdef int avg_pool_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call) noexcept nogil:
    return avg(inputs, outputs, at, call, True)


cdef int adaptive_avg(const tf_view *const *inputs, tf_view *const *outputs, const tf_attrs *at,
                      tf_call *call,
                      bint grad) noexcept nogil:
    """size, nd."""
    cdef Pool q
    cdef int nd = <int>at.i[3]
    if not floats(inputs[0]):
        return TF_EUNSUPPORTED
    plain(&q, inputs[0].dtype)
    if not sides(&q, inputs[0], outputs[0], nd, grad):
        return TF_OK
    fit(&q)
    return run(&q, share_task if grad else mean_task, count(inputs[0], nd), call)


cdef int adaptive_avg_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                           const tf_attrs *at, tf_call *call) noexcept nogil:
    return adaptive_avg(inputs, outputs, at, call, False)


cdef int adaptive_avg_pool_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                                const tf_attrs *at, tf_call *call) noexcept nogil:
    return adaptive_avg(inputs, outputs, at, call, True)


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
    return run(&q, gather_task, count(inputs[0], nd), call)


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
    return run(&q, scatter_task, count(inputs[0], nd), call)


KERNELS = {
    "max_pool": kernel_capsule(max_pool), "adaptive_max_pool": kernel_capsule(adaptive_max_pool),
    "avg_pool": kernel_capsule(avg_pool), "avg_pool_grad": kernel_capsule(avg_pool_grad),
    "adaptive_avg_pool": kernel_capsule(adaptive_avg_pool),
    "adaptive_avg_pool_grad": kernel_capsule(adaptive_avg_pool_grad),
    "pool_gather": kernel_capsule(pool_gather), "pool_scatter": kernel_capsule(pool_scatter),
}
