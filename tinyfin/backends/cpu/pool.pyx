"""Pooling: one task per plane, windows in row-major order. One and two spatial axes count as three."""
from libc.stdint cimport INT64_MIN, int64_t

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef extern from "cast_loops.h" nogil:
    ctypedef void (*tf_cast)(const void *src, void *dst, int64_t n) noexcept nogil
    ctypedef void (*tf_move)(const char *src, int64_t sstep, char *dst, int64_t dstep, int64_t n) noexcept nogil
    ctypedef struct tf_cast_table:
        tf_cast cast[10][10]
        tf_move move[4]

cdef const tf_cast_table *C = <const tf_cast_table *>isa_table(b"cast")

ctypedef fused real:
    float
    double

ctypedef struct Pool:
    const tf_view *x             # what is read
    const tf_view *indices       # for gather and scatter
    tf_view *y
    tf_view *places              # second result of max_pool
    int nd, compute, item, failed
    int64_t xs[3]
    int64_t ys[3]
    int64_t k[3]
    int64_t s[3]
    int64_t p[3]
    int64_t d[3]
    int64_t divisor
    bint include_pad

ctypedef void (*plane_fn)(Pool *q, void *x, void *y, int64_t *index) noexcept nogil


cdef void three(const tf_view *v, int nd, int64_t *to) noexcept nogil:
    """The last nd sizes as the last of three."""
    cdef int i
    for i in range(3):
        to[i] = v.shape[v.ndim - 3 + i] if i >= 3 - nd else 1


cdef void spread(const int64_t *values, int nd, int64_t fill, int64_t *to) noexcept nogil:
    cdef int i
    for i in range(3):
        to[i] = values[i - (3 - nd)] if i >= 3 - nd else fill


cdef inline int64_t volume(const int64_t *v) noexcept nogil:
    return v[0] * v[1] * v[2]


cdef char *plane_of(const tf_view *v, int nd, int64_t plane) noexcept nogil:
    """First element of a plane of the leading axes."""
    cdef char *p = v.data
    cdef int i
    for i in range(v.ndim - nd - 1, -1, -1):
        p += (plane % v.shape[i]) * v.strides[i] * tf_itemsize[v.dtype]
        plane //= v.shape[i]
    return p


cdef int64_t planes(const tf_view *v, int nd) noexcept nogil:
    cdef int64_t n = 1
    cdef int i
    for i in range(v.ndim - nd):
        n *= v.shape[i]
    return n


cdef void load(const tf_view *v, int nd, int64_t plane, int dtype, char *raw, char *to) noexcept nogil:
    """A plane, dense and of the computing dtype."""
    cdef char *p = plane_of(v, nd, plane)
    cdef int item = tf_itemsize[v.dtype], log = 0
    cdef int64_t size[3]
    cdef int64_t step[3]
    cdef int64_t i, j
    cdef int k
    cdef char *out = to if v.dtype == dtype else raw
    three(v, nd, size)
    while 1 << log < item:
        log += 1
    for k in range(3):
        step[k] = v.strides[v.ndim - 3 + k] * item if k >= 3 - nd else 0
    for i in range(size[0]):
        for j in range(size[1]):
            C.move[log](p + i * step[0] + j * step[1], step[2], out + (i * size[1] + j) * size[2] * item, item, size[2])
    if v.dtype != dtype:
        C.cast[v.dtype][dtype](raw, to, volume(size))


# ---- one plane each

cdef inline void window(const Pool *q, int a, int64_t o, int64_t *first, int64_t *last) noexcept nogil:
    """Input places [first, last) that a window covers along axis a, step dilation."""
    cdef int64_t start = o * q.s[a] - q.p[a], stop = start + q.d[a] * (q.k[a] - 1) + 1
    if start < 0:
        start += (-start + q.d[a] - 1) // q.d[a] * q.d[a]
    first[0] = start
    last[0] = stop if stop < q.xs[a] else q.xs[a]


cdef void max_plane(Pool *q, const real *x, real *y, int64_t *index) noexcept nogil:
    cdef int64_t a0, a1, b0, b1, c0, c1, i, j, k, o0, o1, o2, at, best, n = 0
    cdef real v, top
    for o0 in range(q.ys[0]):
        window(q, 0, o0, &a0, &a1)
        for o1 in range(q.ys[1]):
            window(q, 1, o1, &b0, &b1)
            for o2 in range(q.ys[2]):
                window(q, 2, o2, &c0, &c1)
                best = -1
                top = 0
                i = a0
                while i < a1:
                    j = b0
                    while j < b1:
                        k = c0
                        at = (i * q.xs[1] + j) * q.xs[2]
                        while k < c1:
                            v = x[at + k]
                            if best < 0 or v > top or (v != v and top == top):
                                best, top = at + k, v
                            k += q.d[2]
                        j += q.d[1]
                    i += q.d[0]
                y[n] = top
                index[n] = best
                n += 1


cdef inline real mean_divisor(const Pool *q, int64_t o0, int64_t o1, int64_t o2, int64_t covered, real kind) noexcept nogil:
    """How many elements a window counts; padding counts up to the padded edge."""
    cdef int64_t n = 1, start, stop
    cdef int64_t o[3]
    cdef int a
    if q.divisor != INT64_MIN:
        return <real>q.divisor
    if not q.include_pad:
        return <real>covered
    o[0], o[1], o[2] = o0, o1, o2
    for a in range(3):
        start = o[a] * q.s[a] - q.p[a]
        stop = start + q.k[a]
        n *= (stop if stop < q.xs[a] + q.p[a] else q.xs[a] + q.p[a]) - start
    return <real>n


cdef void mean_plane(Pool *q, real *x, real *y, bint backward) noexcept nogil:
    """Forward: y are means of x. Backward: x gets y spread over its windows."""
    cdef int64_t a0, a1, b0, b1, c0, c1, i, j, k, o0, o1, o2, n = 0
    cdef real total, share
    for o0 in range(q.ys[0]):
        window(q, 0, o0, &a0, &a1)
        for o1 in range(q.ys[1]):
            window(q, 1, o1, &b0, &b1)
            for o2 in range(q.ys[2]):
                window(q, 2, o2, &c0, &c1)
                share = mean_divisor(q, o0, o1, o2, (a1 - a0) * (b1 - b0) * (c1 - c0), <real>0)
                spread_or_sum(q, x, &y[n], share, a0, a1, b0, b1, c0, c1, backward)
                n += 1


cdef inline void spread_or_sum(Pool *q, real *x, real *y, real share, int64_t a0, int64_t a1, int64_t b0, int64_t b1,
                               int64_t c0, int64_t c1, bint backward) noexcept nogil:
    cdef int64_t i, j, k
    cdef real total = 0
    if backward:
        total = y[0] / share
        for i in range(a0, a1):
            for j in range(b0, b1):
                for k in range(c0, c1):
                    x[(i * q.xs[1] + j) * q.xs[2] + k] += total
        return
    for i in range(a0, a1):
        for j in range(b0, b1):
            for k in range(c0, c1):
                total += x[(i * q.xs[1] + j) * q.xs[2] + k]
    y[0] = total / share


cdef void adaptive_plane(Pool *q, real *x, real *y, bint backward) noexcept nogil:
    """Window o covers floor(o n / m) up to ceil((o + 1) n / m)."""
    cdef int64_t o0, o1, o2, n = 0
    cdef int64_t lo[3]
    cdef int64_t hi[3]
    cdef real share
    for o0 in range(q.ys[0]):
        lo[0], hi[0] = o0 * q.xs[0] // q.ys[0], ((o0 + 1) * q.xs[0] + q.ys[0] - 1) // q.ys[0]
        for o1 in range(q.ys[1]):
            lo[1], hi[1] = o1 * q.xs[1] // q.ys[1], ((o1 + 1) * q.xs[1] + q.ys[1] - 1) // q.ys[1]
            for o2 in range(q.ys[2]):
                lo[2], hi[2] = o2 * q.xs[2] // q.ys[2], ((o2 + 1) * q.xs[2] + q.ys[2] - 1) // q.ys[2]
                share = <real>((hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]))
                spread_or_sum(q, x, &y[n], share, lo[0], hi[0], lo[1], hi[1], lo[2], hi[2], backward)
                n += 1


cdef void gather_plane(Pool *q, real *x, real *y, const int64_t *index, bint scatter) noexcept nogil:
    cdef int64_t i, n = volume(q.ys)
    if scatter:
        for i in range(n):
            x[index[i]] += y[i]
    else:
        for i in range(n):
            y[i] = x[index[i]]


# ---- whole tensors

cdef enum:
    MAX, MEAN, MEAN_GRAD, ADAPTIVE, ADAPTIVE_GRAD, GATHER, SCATTER

ctypedef struct Work:
    Pool q
    int what


cdef void run_plane(Work *w, int64_t plane, char *x, char *y, int64_t *index, real kind) noexcept nogil:
    cdef Pool *q = &w.q
    if w.what == MAX:
        max_plane(q, <const real *>x, <real *>y, index)
    elif w.what == MEAN or w.what == MEAN_GRAD:
        mean_plane(q, <real *>x, <real *>y, w.what == MEAN_GRAD)
    elif w.what == ADAPTIVE or w.what == ADAPTIVE_GRAD:
        adaptive_plane(q, <real *>x, <real *>y, w.what == ADAPTIVE_GRAD)
    else:
        gather_plane(q, <real *>x, <real *>y, index, w.what == SCATTER)


cdef void task(int64_t plane, void *ctx) noexcept nogil:
    """Loads a plane, pools it, stores the result: forward x to y, backward y to x."""
    cdef Work *w = <Work *>ctx
    cdef Pool *q = &w.q
    cdef bint backward = w.what == MEAN_GRAD or w.what == ADAPTIVE_GRAD or w.what == SCATTER
    cdef int64_t nx = volume(q.xs), ny = volume(q.ys), big = nx if nx > ny else ny, i
    cdef size_t bytes = big * 8 * 3 + ny * 8 + 256
    cdef char *block = <char *>scratch_push(bytes)
    cdef char *x = block
    cdef char *y = block + big * 8
    cdef char *raw = block + 2 * big * 8
    cdef int64_t *index = <int64_t *>(block + 3 * big * 8)
    cdef char *target
    if block == NULL:
        q.failed = <int>1
        return
    if backward:
        load(q.x, q.nd, plane, q.compute, raw, y)
        for i in range(nx * q.item):
            x[i] = 0
    else:
        load(q.x, q.nd, plane, q.compute, raw, x)
    if w.what == MAX:
        index = <int64_t *>q.places.data + plane * ny
    elif w.what == GATHER or w.what == SCATTER:
        load(q.indices, q.nd, plane, TF_I64, raw, <char *>index)
        for i in range(ny):
            if index[i] < 0 or index[i] >= nx:
                q.failed = 2
                scratch_pop(bytes)
                return
    if q.compute == TF_F64:
        run_plane(w, plane, x, y, index, <double>0)
    else:
        run_plane(w, plane, x, y, index, <float>0)
    target = q.y.data + plane * (nx if backward else ny) * tf_itemsize[q.y.dtype]
    C.cast[q.compute][q.y.dtype](x if backward else y, target, nx if backward else ny)
    scratch_pop(bytes)


cdef int go(Work *w, const tf_view *x, tf_view *y, int nd, tf_call *call) noexcept nogil:
    cdef Pool *q = &w.q
    cdef bint backward = w.what == MEAN_GRAD or w.what == ADAPTIVE_GRAD or w.what == SCATTER
    cdef int64_t n = planes(x, nd)
    if y.size == 0 and not (backward and x.size):
        return TF_OK
    q.x, q.y, q.nd, q.failed = x, y, nd, 0
    q.compute = TF_F64 if x.dtype == TF_F64 else TF_F32
    q.item = tf_itemsize[q.compute]
    three(y if backward else x, nd, q.xs)
    three(x if backward else y, nd, q.ys)
    parallel_for(n, <double>n * (volume(q.xs) + volume(q.ys) * volume(q.k)) * 1.0, task, w)
    if q.failed == 2:
        call.detail[0], call.detail[1], call.detail[2] = -1, volume(q.xs), x.ndim - 1
        return TF_EINDEX
    if q.failed:
        call.detail[0] = volume(q.xs) * 32
        return TF_ENOMEM
    return TF_OK


cdef void windows(Pool *q, const tf_attrs *at, int nd) noexcept nogil:
    spread(&at.i[0], nd, 1, q.k)
    spread(&at.i[3], nd, 1, q.s)
    spread(&at.i[6], nd, 0, q.p)
    q.d[0] = q.d[1] = q.d[2] = 1


cdef int max_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept nogil:
    """kernel, stride, padding, dilation, ceil_mode, nd."""
    cdef Work w
    cdef int nd = <int>at.i[13]
    w.what = MAX
    windows(&w.q, at, nd)
    spread(&at.i[9], nd, 1, w.q.d)
    w.q.places = outputs[1]
    return go(&w, inputs[0], outputs[0], nd, call)


cdef int mean(const tf_view *const *inputs, tf_view *const *outputs, const tf_attrs *at, tf_call *call,
              int what) noexcept nogil:
    """kernel, stride, padding, ceil_mode, count_include_pad, divisor, nd."""
    cdef Work w
    cdef int nd = <int>at.i[12]
    w.what = what
    windows(&w.q, at, nd)
    w.q.include_pad, w.q.divisor = at.i[10] != 0, at.i[11]
    return go(&w, inputs[0], outputs[0], nd, call)


cdef int avg_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept nogil:
    return mean(inputs, outputs, at, call, MEAN)


cdef int avg_pool_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call) noexcept nogil:
    return mean(inputs, outputs, at, call, MEAN_GRAD)


cdef int simple(const tf_view *const *inputs, tf_view *const *outputs, int nd, tf_call *call, int what,
                const tf_view *indices) noexcept nogil:
    cdef Work w
    w.what = what
    w.q.indices = indices
    w.q.k[0] = w.q.k[1] = w.q.k[2] = 1
    return go(&w, inputs[0], outputs[0], nd, call)


cdef int adaptive_avg_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                           const tf_attrs *at, tf_call *call) noexcept nogil:
    return simple(inputs, outputs, <int>at.i[3], call, ADAPTIVE, NULL)


cdef int adaptive_avg_pool_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                                const tf_attrs *at, tf_call *call) noexcept nogil:
    return simple(inputs, outputs, <int>at.i[3], call, ADAPTIVE_GRAD, NULL)


cdef int pool_gather(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call) noexcept nogil:
    return simple(inputs, outputs, <int>at.i[0], call, GATHER, inputs[1])


cdef int pool_scatter(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept nogil:
    return simple(inputs, outputs, <int>at.i[3], call, SCATTER, inputs[1])


KERNELS = {
    "max_pool": kernel_capsule(max_pool), "avg_pool": kernel_capsule(avg_pool),
    "avg_pool_grad": kernel_capsule(avg_pool_grad), "adaptive_avg_pool": kernel_capsule(adaptive_avg_pool),
    "adaptive_avg_pool_grad": kernel_capsule(adaptive_avg_pool_grad), "pool_gather": kernel_capsule(pool_gather),
    "pool_scatter": kernel_capsule(pool_scatter),
}
