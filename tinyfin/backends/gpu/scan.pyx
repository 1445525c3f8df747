"""Running sums, products, extremes and linear recurrences along one axis, in rising order on all devices."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tinyfin.backends.gpu.axes cimport Axes, WALKED, shape_words, stride_words
from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport collapse

from tinyfin.backends.gpu.modules import shader

cdef enum:
    SUM, PROD, LINEAR, MAX, MIN
    DISPATCHES = 4096                # of one call, at most

cdef uint32_t REAL = shader("scan_f32")
cdef uint32_t WHOLE = shader("scan_whole_f32")
cdef uint32_t DOUBLE = shader("scan_f64")
cdef uint32_t EXTREMUM = shader("scan_extremum")


cdef struct Scan:
    const tf_view *x
    const tf_view *f                 # factors of a recurrence, or NULL
    const tf_view *y
    const tf_view *places            # second result of extremes, or NULL
    Axes a                           # the other axes: of x, y, f
    int what, outer                  # axes of `a` that dispatches go over
    int64_t n, lines                 # elements of a line, lines of a dispatch
    int64_t xstep, ystep, fstep
    uint32_t module, width, along, out_along


cdef int64_t distance(int64_t stride) noexcept nogil:
    return stride if stride >= 0 else -stride


cdef void describe(Scan *s, int dim) noexcept nogil:
    """Axes and steps from the views."""
    cdef const tf_view *x = s.x
    cdef int64_t *strides[3]
    cdef int k, last
    s.n = x.shape[dim] if x.ndim else 1
    s.xstep = x.strides[dim] if x.ndim else 1
    s.ystep = s.y.strides[dim] if x.ndim else 1
    s.fstep = s.f.strides[dim] if s.f != NULL and x.ndim else 1
    s.a.ndim, s.a.nops = 0, 3
    for k in range(x.ndim):
        if k != dim:
            s.a.shape[s.a.ndim] = x.shape[k]
            s.a.strides[0][s.a.ndim], s.a.strides[1][s.a.ndim] = x.strides[k], s.y.strides[k]
            s.a.strides[2][s.a.ndim] = s.f.strides[k] if s.f != NULL else 0
            s.a.ndim += 1
    for k in range(3):
        strides[k] = s.a.strides[k]
    s.a.ndim = collapse(s.a.ndim, s.a.shape, strides, 3)
    last = s.a.ndim - 1
    s.along = last < 0 or distance(s.xstep) <= distance(s.a.strides[0][last])
    s.out_along = last < 0 or distance(s.ystep) <= distance(s.a.strides[1][last])
    s.outer = max(0, s.a.ndim - WALKED)
    s.lines = 1
    for k in range(s.outer, s.a.ndim):
        s.lines *= s.a.shape[k]
    # few lines: longer parts of each, many work groups
    s.width = 32 if s.lines >= 2048 else 8 if s.lines >= 256 or (s.lines > 1 and not (s.along and s.out_along)) else 1


cdef int dispatch(const Scan *s, int64_t place, tf_call *call) noexcept:
    """The lines at one place of the outer axes."""
    cdef tf_launch l
    cdef Axes inner
    cdef int64_t moved[3]
    cdef int k, d
    moved[0] = moved[1] = moved[2] = 0
    for d in range(s.outer - 1, -1, -1):
        for k in range(3):
            moved[k] += place % s.a.shape[d] * s.a.strides[k][d]
        place //= s.a.shape[d]
    inner.ndim = s.a.ndim - s.outer
    for d in range(inner.ndim):
        inner.shape[d] = s.a.shape[d + s.outer]
        for k in range(3):
            inner.strides[k][d] = s.a.strides[k][d + s.outer]
    begin(&l, s.module, call)
    write(&l, s.y)
    read(&l, s.x)
    if s.places != NULL:
        write(&l, s.places)
    elif s.f != NULL:
        read(&l, s.f)
    elif s.module != WHOLE:
        number(&l, 0)
    l.at[0] += <uint64_t>(moved[1] * tf_itemsize[s.y.dtype])
    l.at[1] += <uint64_t>(moved[0] * tf_itemsize[s.x.dtype])
    if s.places != NULL:
        l.at[2] += <uint64_t>(moved[1] * 8)
    elif s.f != NULL:
        l.at[2] += <uint64_t>(moved[2] * tf_itemsize[s.f.dtype])
    for k in range(3):
        stride_words(&l, &inner, k)
    shape_words(&l, &inner)
    word(&l, s.lines)
    word(&l, s.n)
    word(&l, s.xstep)
    word(&l, s.ystep)
    word(&l, s.fstep)
    constant(&l, 0, s.what == MIN if s.places != NULL else s.y.dtype)
    constant(&l, 1, s.x.dtype)
    constant(&l, 2, s.width)
    constant(&l, 3, s.along)
    constant(&l, 4, s.out_along)
    constant(&l, 5, (s.x.dtype == TF_I64 or s.x.dtype == TF_F64) if s.places != NULL else s.what == PROD)
    constant(&l, 6, s.what == LINEAR)
    spread(&l, (s.lines + s.width - 1) // s.width)
    return launch(&l, s.x, call)


cdef int scan(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
              tf_call *call) noexcept with gil:
    cdef Scan s
    cdef int64_t dispatches = 1, place
    cdef int k, rc
    s.what = <int><size_t>call.ctx
    s.x, s.y = inputs[n - 1], outputs[0]
    s.f = inputs[0] if s.what == LINEAR else NULL
    s.places = outputs[1] if s.what >= MAX else NULL
    call.detail[0] = max(s.x.dtype, s.y.dtype)
    s.module = (EXTREMUM if s.what >= MAX else WHOLE if s.y.dtype <= TF_I64 else
                REAL if s.y.dtype <= TF_F32 else DOUBLE)
    if s.x.dtype > TF_F64 or (s.what < MAX and s.x.dtype == TF_F64 and s.y.dtype != TF_F64):
        return TF_EUNSUPPORTED
    if s.module == DOUBLE and not features(s.x) & HAS_FLOAT64:
        return TF_EUNSUPPORTED
    if not within_reach(s.x) or not within_reach(s.y) or (s.f != NULL and not within_reach(s.f)):
        return TF_EUNSUPPORTED
    if s.x.size == 0:
        return TF_OK
    describe(&s, <int>at.i[0])
    for k in range(s.outer):
        dispatches *= s.a.shape[k]
    if dispatches > DISPATCHES:
        return TF_EUNSUPPORTED
    for place in range(dispatches):
        rc = dispatch(&s, place, call)
        if rc != TF_OK:
            return rc
    return TF_OK


KERNELS = {
    "cumsum": (kernel_capsule(scan), SUM),
    "cumprod": (kernel_capsule(scan), PROD),
    "linear_scan": (kernel_capsule(scan), LINEAR),
    "cummax": (kernel_capsule(scan), MAX),
    "cummin": (kernel_capsule(scan), MIN),
}
