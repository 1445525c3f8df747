"""Joining, padding and triangles: copies into parts of a dense result."""
from libc.stdint cimport int64_t, uint64_t

from tinyfin.backends.gpu.axes cimport *
from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.moves cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport narrow_padding

from tinyfin.backends.gpu.modules import shader

cdef enum:
    LOWER, UPPER

cdef int MOVE = shader("join_move")
cdef int PAD = shader("join_pad")
cdef int TRIANGLE = shader("join_triangle")


cdef void part_of(tf_view *part, const tf_view *whole, const int64_t *first, const int64_t *shape) noexcept nogil:
    """The window of a tensor that begins at `first`."""
    cdef int k
    part[0] = whole[0]
    part.flags, part.size = 0, 1
    for k in range(whole.ndim):
        part.shape[k] = shape[k]
        part.offset += first[k] * whole.strides[k]
        part.size *= shape[k]


cdef int moved(const tf_view *x, const tf_view *part, tf_call *call) noexcept:
    """x in a part of the result, in units as wide as both allow; TF_EUNSUPPORTED where none are wider than elements."""
    cdef tf_launch l
    cdef Axes a
    cdef int k, item = tf_itemsize[x.dtype], unit
    cdef uint64_t bits = address_of(x) | address_of(part)
    no_axes(&a, 2)
    for k in range(x.ndim):
        axis(&a, x.shape[k], part.strides[k], x.strides[k])
    if not within_reach(x) or not within_reach(part) or not merged(&a) or a.ndim == 0:
        return TF_EUNSUPPORTED
    k = a.ndim - 1
    unit = unit_of(bits | <uint64_t>(item * a.shape[k]) | steps_of(&a, 0, item) | steps_of(&a, 1, item))
    if a.strides[0][k] != 1 or a.strides[1][k] != 1 or unit == item:
        return TF_EUNSUPPORTED
    widen(&a, unit // item, True)
    begin(&l, MOVE, call)
    write(&l, part)
    read(&l, x)
    word(&l, x.size * item // unit)
    shape_words(&l, &a)
    stride_words(&l, &a, 0)
    stride_words(&l, &a, 1)
    constant(&l, 0, unit)
    spread(&l, groups_of(x.size * item // unit))
    return launch(&l, x, call)


cdef int cat(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
             tf_call *call) noexcept with gil:
    """*xs; dim. A copy for each."""
    cdef tf_view *y = outputs[0]
    cdef tf_view part
    cdef int64_t first[8]
    cdef int i, k, rc, dim = <int>(at.i[0] + y.ndim if at.i[0] < 0 else at.i[0])
    call.detail[0] = y.dtype
    for i in range(n):
        if inputs[i].size and is_double(y) and TF_I32 <= inputs[i].dtype <= TF_I64 and not computes(y):
            return TF_EUNSUPPORTED           # float32 between them would round
    for k in range(8):
        first[k] = 0
    for i in range(n):
        if inputs[i].size:
            part_of(&part, y, first, inputs[i].shape)
            rc = moved(inputs[i], &part, call) if inputs[i].dtype == y.dtype else TF_EUNSUPPORTED
            if rc == TF_EUNSUPPORTED:
                rc = copied(inputs[i], &part, call)
            if rc:
                return rc
        if inputs[i].ndim == y.ndim:
            first[dim] += inputs[i].shape[dim]
    return TF_OK


# ---- padding

cdef struct Window:                 # axes of the result, those without a border merged with the ones before
    int ndim
    int64_t shape[8]
    int64_t before[8]
    int64_t window[8]
    int64_t strides[8]              # of x


cdef void push(Window *w, int64_t size, int64_t before, int64_t window, int64_t stride) noexcept nogil:
    cdef int k = w.ndim - 1
    if size == 1 and window == 1:
        return
    if k >= 0 and window == size and w.strides[k] == stride * size:
        w.shape[k] *= size
        w.before[k] *= size
        w.window[k] *= size
    else:
        w.ndim += 1
        k += 1
        w.shape[k], w.before[k], w.window[k] = size, before, window
    w.strides[k] = stride


cdef int widest(Window *w, const tf_view *x, const tf_view *y) noexcept nogil:
    """The unit of moves; the innermost axis and the strides of the others count it then."""
    cdef int item = tf_itemsize[y.dtype], last = w.ndim - 1, unit, k
    cdef uint64_t bits
    if last < 0 or w.strides[last] != 1:
        return item
    bits = address_of(x) | address_of(y) | <uint64_t>(item * (w.shape[last] | w.before[last] | w.window[last]))
    for k in range(last):
        bits |= <uint64_t>(item * w.strides[k])
    unit = unit_of(bits)
    for k in range(last):
        w.strides[k] //= unit // item
    w.shape[last] //= unit // item
    w.before[last] //= unit // item
    w.window[last] //= unit // item
    return unit


cdef int pad_constant(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                      tf_call *call) noexcept with gil:
    """pad: count, then before and after of the last axis, ...; value."""
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *y = outputs[0]
    cdef tf_view source, value
    cdef tf_launch l
    cdef Window w
    cdef int64_t begin[8]
    cdef int64_t into[8]
    cdef int64_t shape[8]
    cdef int64_t before, after
    cdef int k, d, unit
    call.detail[0] = x.dtype
    if not within_reach(x) or not within_reach(y):
        return TF_EUNSUPPORTED
    if y.size == 0:
        return TF_OK
    w.ndim = 0
    for d in range(x.ndim):
        k = x.ndim - 1 - d
        before = at.i[1 + 2 * k] if 2 * k < at.i[0] else 0
        after = at.i[2 + 2 * k] if 2 * k < at.i[0] else 0
        begin[d], into[d] = max(-before, 0), max(before, 0)
        shape[d] = max(x.shape[d] + min(before, 0) + min(after, 0), 0)
        if shape[d] == 0:           # cropped to nothing: all border
            begin[d] = into[d] = 0
        push(&w, y.shape[d], into[d], shape[d], x.strides[d])
    if w.ndim > WALKED:
        return TF_EUNSUPPORTED
    part_of(&source, x, begin, shape)
    value.dtype, value.data = TF_F64, <char *>&at.f[0]
    unit = widest(&w, &source, y)
    begin_words(&l, &w, y, &source, unit, number_bits(&value, y.dtype), call)
    return launch(&l, y, call)


cdef int narrow_embed(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                      tf_call *call) noexcept with gil:
    cdef tf_attrs pad
    narrow_padding(outputs[0], at, &pad)
    return pad_constant(inputs, n, outputs, &pad, call)


cdef void begin_words(tf_launch *l, const Window *w, const tf_view *y, const tf_view *x, int unit, uint64_t value,
                      tf_call *call) noexcept nogil:
    """The dispatch, axes outermost first."""
    cdef int k, missing = WALKED - w.ndim
    cdef int64_t count = 1
    for k in range(w.ndim):
        count *= w.shape[k]
    begin(l, PAD, call)
    write(l, y)
    read(l, x)
    number(l, value)
    word(l, count)
    for k in range(1, WALKED):
        word(l, w.shape[k - missing] if k >= missing else 1)
    for k in range(WALKED):
        word(l, w.before[k - missing] if k >= missing else 0)
    for k in range(WALKED):
        word(l, w.window[k - missing] if k >= missing else 1)
    for k in range(WALKED):
        word(l, w.strides[k - missing] if k >= missing else 0)
    constant(l, 0, unit)
    spread(l, groups_of(count))


# ---- triangles

cdef int triangle(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                  tf_call *call) noexcept with gil:
    """x; diagonal."""
    cdef const tf_view *x = inputs[0]
    cdef tf_launch l
    cdef Axes a
    cdef int k
    cdef bint upper = <int><size_t>call.ctx == UPPER
    call.detail[0] = x.dtype
    if x.size == 0:
        return TF_OK
    no_axes(&a, 1)
    for k in range(x.ndim - 2):
        axis(&a, x.shape[k], x.strides[k])
    if not within_reach(x) or not merged(&a) or a.ndim > WALKED - 2:
        return TF_EUNSUPPORTED
    for k in range(x.ndim - 2, x.ndim):
        axis(&a, x.shape[k], x.strides[k])
    begin(&l, TRIANGLE, call)
    write(&l, outputs[0])
    read(&l, x)
    word(&l, x.size)
    shape_words(&l, &a)
    stride_words(&l, &a, 0)
    word(&l, min(max(at.i[0], -x.shape[x.ndim - 2]), x.shape[x.ndim - 1]))
    constant(&l, 0, tf_itemsize[x.dtype])
    constant(&l, 1, upper)
    spread(&l, groups_of(x.size))
    return launch(&l, x, call)


KERNELS = {
    "cat": kernel_capsule(cat),
    "pad_constant": kernel_capsule(pad_constant),
    "narrow_embed": kernel_capsule(narrow_embed),
    "tril": (kernel_capsule(triangle), LOWER),
    "triu": (kernel_capsule(triangle), UPPER),
}
