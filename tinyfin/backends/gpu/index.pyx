"""Slices by index: index_select, embedding, advanced indexing, their writing twins and their adjoints.

Reading walks the result. Writing turns the indices into offsets in the result, sorts these with their places, and
gives every run of equal ones to one invocation for each element of a slice: additions to one destination come in
rising order of the index.
"""
from libc.stdint cimport int64_t, uint64_t

from tinyfin.backends.gpu.axes cimport *
from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.moves cimport *
from tinyfin.backends.gpu.sort cimport sorted_keys
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.gpu.modules import shader

cdef enum:
    SELECT, EMBEDDING, INDEX, ADD, COPY, EMBED, PUT, PUT_EMBED
    OFFSETS = 64            # instead of the dtype of indices
    PART = 8192             # elements that a work group looks through for those that are not zero

cdef int READ = shader("index_read")
cdef int ADD_OFFSETS = shader("index_offsets")
cdef int RUNS_F32 = shader("index_runs_f32")
cdef int RUNS_F64 = shader("index_runs_f64")
cdef int RUNS_INT = shader("index_runs_int")
cdef int NONZERO = shader("index_nonzero")


cdef inline int64_t size_word(int64_t size) noexcept nogil:
    """A size that indices must be below, in 31 bits: larger ones are sizes of tensors without elements."""
    return min(size, (<int64_t>1 << 31) - 1)


cdef int add_offsets(uint64_t offsets, const tf_view *index, const Axes *walk, int64_t size, int64_t step, bint wraps,
                     bint further, int operation, tf_call *call) noexcept:
    """Offsets from one tensor of indices, or these added to those of others."""
    cdef tf_launch l
    begin(&l, ADD_OFFSETS, call)
    bytes_of(&l, offsets, <uint64_t>(4 * walk.count), True)
    read(&l, index)
    fault(&l, index)
    word(&l, walk.count)
    shape_words(&l, walk)
    stride_words(&l, walk, 0)
    word(&l, size_word(size))
    word(&l, step)
    word(&l, operation)
    word(&l, wraps)
    word(&l, further)
    constant(&l, 0, index.dtype)
    spread(&l, groups_of(walk.count))
    return launch(&l, index, call)


# ---- axes

cdef struct Slices:
    Axes before, after          # operand 0: the indexed tensor, 1: the other one
    Axes chosen                 # the indices' own axes; operand 0: the other tensor
    Axes walk                   # the same axes; operand 0: the first tensor of indices
    int64_t count, nb, na       # slices, places before, elements of a slice
    const tf_view *const *indices
    int64_t mask
    bint wraps
    int operation


cdef int64_t step_of(const tf_view *v, int k, int ndim) noexcept nogil:
    """Stride of v along axis k of a shape of ndim axes to which it broadcasts."""
    k -= ndim - v.ndim
    return 0 if k < 0 or v.shape[k] == 1 else v.strides[k]


cdef void index_axes(Axes *a, const tf_view *index) noexcept nogil:
    cdef int k
    no_axes(a, 1)
    for k in range(index.ndim):
        axis(a, index.shape[k], index.strides[k])


cdef bint split_axes(Slices *s, const tf_view *x, const tf_view *v) noexcept nogil:
    """Axes of x before and after the indices' place, with v's strides; v has the picked shape, or broadcasts to it.
    False where they are more than a dispatch walks."""
    cdef const tf_view *index = s.indices[0]
    cdef int64_t mask = s.mask if x.ndim else 0
    cdef int k, first = -1, last = -1, found = 0, ndim, at = 0
    for k in range(x.ndim):
        if mask >> k & 1:
            last, found = k, found + 1
            if first < 0:
                first = k
    if first < 0 or last - first + 1 != found:
        first = 0
    ndim = x.ndim - found + index.ndim
    no_axes(&s.before, 2)
    no_axes(&s.after, 2)
    no_axes(&s.chosen, 1)
    for k in range(x.ndim):
        if mask >> k & 1:
            continue
        if at < first:
            axis(&s.before, x.shape[k], x.strides[k], step_of(v, at, ndim))
        else:
            axis(&s.after, x.shape[k], x.strides[k], step_of(v, at + index.ndim, ndim))
        at += 1
    for k in range(index.ndim):
        axis(&s.chosen, index.shape[k], step_of(v, first + k, ndim))
    s.nb, s.na, s.count = s.before.count, s.after.count, index.size
    if s.nb == 0 or s.na == 0 or s.count == 0:
        return True
    return merged(&s.before) and merged(&s.after) and s.count < <int64_t>1 << 31


cdef const tf_view *as_vector(tf_view *v, const tf_view *index) noexcept nogil:
    """A single index as a vector: the indexed axis stays, of size 1."""
    v[0] = index[0]
    v.ndim, v.shape[0], v.strides[0] = 1, 1, 1
    return v


cdef int offsets_of(const Slices *s, const tf_view *x, uint64_t offsets, int unit, tf_call *call) noexcept:
    """Offsets from all tensors of indices, in units of so many elements."""
    cdef Axes walk
    cdef int k, given = 0, rc = TF_OK
    if x.ndim == 0:
        index_axes(&walk, s.indices[0])
        merged(&walk)
        return add_offsets(offsets, s.indices[0], &walk, 1, 0, s.wraps, False, s.operation, call)
    for k in range(x.ndim):
        if s.mask >> k & 1 and rc == TF_OK:
            index_axes(&walk, s.indices[given])
            merged(&walk)
            rc = add_offsets(offsets, s.indices[given], &walk, x.shape[k], x.strides[k] // unit, s.wraps, given > 0,
                             s.operation, call)
            given += 1
    return rc


cdef bint can_index(const Slices *s) noexcept nogil:
    """Whether one dispatch each walks the tensors of indices."""
    cdef Axes walk
    cdef int k, given = 0
    for k in range(8):
        if s.mask >> k & 1:
            if s.indices[given].size:
                index_axes(&walk, s.indices[given])
                if not within_reach(s.indices[given]) or not merged(&walk):
                    return False
            given += 1
    return True


# ---- reading

cdef int unit_of_slices(Slices *s, const tf_view *x, const tf_view *y) noexcept nogil:
    """The widest unit of moves, in which strides and the innermost axis count then."""
    cdef int item = tf_itemsize[x.dtype], last = s.after.ndim - 1, unit, k
    cdef uint64_t bits
    if last < 0 or s.after.strides[0][last] != 1:
        return item
    bits = address_of(x) | address_of(y) | <uint64_t>(item * s.after.shape[last])
    bits |= steps_of(&s.after, 0, item)
    for k in range(s.before.ndim):
        bits |= <uint64_t>(item * s.before.strides[0][k])
    for k in range(x.ndim):
        if s.mask >> k & 1:
            bits |= <uint64_t>(item * x.strides[k])
    unit = unit_of(bits)
    widen(&s.before, unit // item, False)
    widen(&s.after, unit // item, True)
    s.na //= unit // item
    return unit


cdef int read_slices(Slices *s, const tf_view *x, const tf_view *y, tf_call *call) except -1:
    cdef tf_launch l
    cdef Axes walk
    cdef const tf_view *index = s.indices[0]
    cdef int64_t index_step = 0, size = 1, step = 0
    cdef int k, rc, item = tf_itemsize[x.dtype], unit = unit_of_slices(s, x, y), one = 0, source = OFFSETS
    cdef object offsets = None
    index_axes(&walk, index)
    merged(&walk)
    for k in range(x.ndim):
        one += s.mask >> k & 1
    if walk.ndim <= 1 and one <= 1 and y.size:      # indices are read where they are used
        source = index.dtype
        index_step = walk.strides[0][0] if walk.ndim else 0
        for k in range(x.ndim):
            if s.mask >> k & 1:
                size, step = x.shape[k], x.strides[k] // (unit // item)
    else:
        offsets = scratch(x, <uint64_t>(4 * s.count))
        rc = offsets_of(s, x, <uint64_t>offsets.block, unit // item, call)
        if rc or y.size == 0:
            return rc
    begin(&l, READ, call)
    write(&l, y)
    read(&l, x)
    if offsets is None:
        read(&l, index)
    else:
        bytes_of(&l, <uint64_t>offsets.block, <uint64_t>(4 * s.count), False)
    fault(&l, x)
    word(&l, s.nb * s.count * s.na)
    word(&l, s.count)
    word(&l, s.na)
    shape_words(&l, &s.before)
    stride_words(&l, &s.before, 0)
    shape_words(&l, &s.after)
    stride_words(&l, &s.after, 0)
    word(&l, index_step)
    word(&l, size_word(size))
    word(&l, step)
    word(&l, s.operation)
    word(&l, s.wraps)
    constant(&l, 0, unit)
    constant(&l, 1, source)
    constant(&l, 2, min(s.before.ndim, 2))
    constant(&l, 3, min(s.after.ndim, 2))
    spread(&l, groups_of(s.nb * s.count * s.na))
    return launch(&l, x, call)


cdef int read_kernel(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                     tf_call *call) noexcept with gil:
    """SELECT: x, index; dim. EMBEDDING: index, w. INDEX: x, *indices; mask; negative indices wrap."""
    cdef int what = <int><size_t>call.ctx
    cdef const tf_view *x = inputs[1 if what == EMBEDDING else 0]
    cdef const tf_view *one[1]
    cdef tf_view vector
    cdef Slices s
    call.detail[0] = x.dtype
    s.indices = inputs if what == EMBEDDING else inputs + 1
    s.mask = at.i[0] if what == INDEX else 1 if what == EMBEDDING else <int64_t>1 << at.i[0]
    s.wraps = what == INDEX
    s.operation = OF_INDEX if what == INDEX else OF_EMBEDDING if what == EMBEDDING else OF_SELECT
    if what == SELECT and s.indices[0].ndim == 0:
        one[0], s.indices = as_vector(&vector, s.indices[0]), one
    if not within_reach(x) or not within_reach(outputs[0]) or not can_index(&s) or not split_axes(&s, x, outputs[0]):
        return TF_EUNSUPPORTED
    if s.count == 0:
        return TF_OK
    try:
        return read_slices(&s, x, outputs[0], call)
    except BaseException as error:
        return failed(x, call, error)


# ---- writing

cdef int run_dtype(int dtype, bint adding) noexcept nogil:
    """What runs are loaded as: bits where they are only moved."""
    cdef int item = tf_itemsize[dtype]
    if adding:
        return dtype
    return TF_U8 if item == 1 else TF_I16 if item == 2 else TF_I32 if item == 4 else TF_I64


cdef int write_runs(Runs *r, const tf_view *y, const tf_view *v, uint64_t offsets, tf_call *call) except -1:
    """Slices of v, or a number, to where offsets point; y has had its first values."""
    cdef tf_launch l
    cdef uint64_t alpha = <uint64_t><int64_t>r.alpha
    cdef bint is_float = r.adding and y.dtype >= TF_F16
    cdef object pairs = None
    cdef int64_t lines = r.lines.count, indices = r.n if r.shared else lines * r.n
    if not r.apart:
        pairs = sorted_keys(y, offsets, 1 if r.shared else lines, r.n, call)
        if pairs is None:
            return TF_EDEVICE
    begin(&l, RUNS_INT if not is_float else RUNS_F64 if is_double(y) else RUNS_F32, call)
    write(&l, y)
    if r.apart:
        bytes_of(&l, offsets, <uint64_t>(4 * indices), False)
    else:
        bytes_of(&l, <uint64_t>pairs.block, <uint64_t>(8 * indices), False)
    if v.flags & TF_WRAPPED:
        number(&l, number_bits(v, y.dtype))
    else:
        read(&l, v)
    word(&l, lines * r.n * r.inner)
    word(&l, r.n)
    word(&l, r.inner)
    shape_words(&l, &r.lines)
    stride_words(&l, &r.lines, 0)
    stride_words(&l, &r.lines, 1)
    word(&l, r.step)
    word(&l, r.inner_step)
    shape_words(&l, &r.after)
    stride_words(&l, &r.after, 0)
    if is_float:
        number_word(&l, r.alpha, is_double(y))
        if not is_double(y):
            word(&l, 0)
    else:
        word(&l, <int64_t>(alpha & 0xffffffff))
        word(&l, <int64_t>(alpha >> 32))
    constant(&l, 0, run_dtype(y.dtype, r.adding))
    constant(&l, 1, tf_itemsize[y.dtype])
    constant(&l, 2, r.adding)
    constant(&l, 3, r.apart)
    constant(&l, 4, r.shared)
    constant(&l, 5, min(r.lines.ndim, 2))
    constant(&l, 6, min(r.after.ndim, 2))
    constant(&l, 7, r.alpha != 1)
    constant(&l, 8, v.flags & TF_WRAPPED != 0)
    spread(&l, groups_of(lines * r.n * r.inner))
    return launch(&l, y, call)


cdef bint is_even(const Slices *s, Axes *chosen, Axes *inner) noexcept nogil:
    """Whether slices of the source, and their elements, are evenly spaced: one axis each."""
    cdef int k
    chosen[0] = s.chosen
    no_axes(inner, 1)
    for k in range(s.after.ndim):
        axis(inner, s.after.shape[k], s.after.strides[1][k])
    return merged(chosen) and merged(inner) and chosen.ndim <= 1 and inner.ndim <= 1


cdef int write_slices(Slices *s, tf_view *y, const tf_view *given, bint fresh, bint adding, double alpha,
                      const tf_view *x, tf_call *call) except -1:
    """The source's slices in y, which begins as zeros or as x."""
    cdef tf_view v = given[0], whole
    cdef Runs r
    cdef Axes chosen, inner
    cdef object offsets = None, _dense = None
    cdef int rc = zeroed(y, call) if fresh else copied(x, y, call)
    if rc or s.count == 0:
        return rc
    offsets = scratch(y, <uint64_t>(4 * s.count))
    rc = offsets_of(s, y, <uint64_t>offsets.block, 1, call)
    if rc or s.nb == 0 or s.na == 0:
        return rc
    if not is_even(s, &chosen, &inner):
        spread_out(s, y, &v, &whole)
        _dense = temporary(&v, &whole, v.dtype)
        rc = copied(&whole, &v, call)
        if rc:
            return rc
        split_axes(s, y, &v)
        is_even(s, &chosen, &inner)
    r.lines, r.after = s.before, s.after
    r.n, r.inner = s.count, s.na
    r.step = chosen.strides[0][0] if chosen.ndim else 0
    r.inner_step = inner.strides[0][0] if inner.ndim else 0
    r.adding, r.shared, r.alpha = adding, True, alpha
    r.apart = s.count == 1 or (not adding and uniform(s, &v))
    return write_runs(&r, y, &v, <uint64_t>offsets.block, call)


cdef bint uniform(const Slices *s, const tf_view *v) noexcept nogil:
    """Whether all indices write the same."""
    cdef int k
    if not v.flags & TF_WRAPPED:
        for k in range(s.chosen.ndim):
            if s.chosen.strides[0][k] != 0 and s.chosen.shape[k] != 1:
                return False
    return True


cdef void spread_out(const Slices *s, const tf_view *y, const tf_view *v, tf_view *whole) noexcept nogil:
    """v broadcast to the shape that the indices pick."""
    cdef const tf_view *index = s.indices[0]
    cdef int k, d, at = 0, first = -1, last = -1, found = 0
    for k in range(y.ndim):
        if s.mask >> k & 1:
            last, found = k, found + 1
            if first < 0:
                first = k
    if first < 0 or last - first + 1 != found:
        first = 0
    whole[0] = v[0]
    whole.ndim, whole.flags, whole.size = y.ndim - found + index.ndim, 0, 1
    for k in range(y.ndim + 1):
        if at == first:
            for d in range(index.ndim):
                whole.shape[at] = index.shape[d]
                at += 1
            first = -1
        if k < y.ndim and not s.mask >> k & 1:
            whole.shape[at] = y.shape[k]
            at += 1
    for k in range(whole.ndim):
        whole.strides[k] = step_of(v, k, whole.ndim)
        whole.size *= whole.shape[k]


cdef int write_kernel(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                      tf_call *call) noexcept with gil:
    """ADD: x, index, src; dim, alpha. COPY: the same without alpha. EMBED: v, index; shape, dim.
    PUT: x, v, *indices; mask, accumulate. PUT_EMBED: v, *indices; shape, mask."""
    cdef int what = <int><size_t>call.ctx
    cdef tf_view *y = outputs[0]
    cdef const tf_view *v = inputs[2 if what == ADD or what == COPY else 1 if what == PUT else 0]
    cdef bint fresh = what == EMBED or what == PUT_EMBED
    cdef bint adding = fresh or what == ADD or (what == PUT and at.i[1] != 0)
    cdef const tf_view *one[1]
    cdef tf_view vector
    cdef Slices s
    s.indices = inputs + (2 if what == PUT else 1)
    s.wraps = what == PUT or what == PUT_EMBED
    s.mask = at.i[9 if fresh else 0]
    if not s.wraps:
        s.mask = <int64_t>1 << s.mask
        if s.indices[0].ndim == 0:
            one[0], s.indices = as_vector(&vector, s.indices[0]), one
    s.operation = OF_ADD if what == ADD else OF_PUT if what == PUT else OF_SELECT if what == EMBED else OF_INDEX
    if what == COPY:
        s.operation = OF_FILL if v.ndim == 0 and y.ndim else OF_COPY
    call.detail[0] = y.dtype
    if (adding and is_double(y) and not computes(y)) or (v.dtype != y.dtype and not v.flags & TF_WRAPPED):
        return TF_EUNSUPPORTED
    if not within_reach(y) or not within_reach(v) or not can_index(&s) or not split_axes(&s, y, v):
        return TF_EUNSUPPORTED
    if s.nb * s.na * s.count >= <int64_t>1 << 31:
        return TF_EUNSUPPORTED
    if y.size == 0 and s.count == 0:
        return TF_OK
    try:
        return write_slices(&s, y, v, fresh, adding, at.f[0] if what == ADD else 1.0, inputs[0], call)
    except BaseException as error:
        return failed(y, call, error)


# ---- coordinates

cdef int find_nonzero(const tf_view *x, tf_view *y, int64_t room, tf_call *call) except -1:
    cdef tf_launch l
    cdef int64_t parts = (x.size + PART - 1) // PART
    cdef int k, rc, counting
    rc = zeroed(y, call)
    if rc or x.size == 0:
        return rc
    counts = scratch(x, <uint64_t>(4 * parts))
    for counting in (1, 0):
        begin(&l, NONZERO, call)
        if counting:
            number(&l, 0)
        else:
            write(&l, y)
        bytes_of(&l, <uint64_t>counts.block, <uint64_t>(4 * parts), counting)
        read(&l, x)
        word(&l, x.size)
        word(&l, room)
        word(&l, x.ndim)
        for k in range(8):
            word(&l, x.shape[k] if k < x.ndim else 1)
        for k in range(8):
            word(&l, x.strides[k] if k < x.ndim else 0)
        constant(&l, 0, x.dtype)
        constant(&l, 1, counting)
        spread(&l, parts)
        rc = launch(&l, x, call)
        if rc:
            return rc
    return TF_OK


cdef int nonzero(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                 tf_call *call) noexcept with gil:
    """Coordinates of the first elements that are not zero; rows beyond those found stay zero."""
    call.detail[0] = inputs[0].dtype
    if not within_reach(inputs[0]) or not within_reach(outputs[0]):
        return TF_EUNSUPPORTED
    if outputs[0].size == 0:
        return TF_OK
    try:
        return find_nonzero(inputs[0], outputs[0], at.i[0], call)
    except BaseException as error:
        return failed(inputs[0], call, error)


KERNELS = {
    "index_select": (kernel_capsule(read_kernel), SELECT),
    "embedding": (kernel_capsule(read_kernel), EMBEDDING),
    "index": (kernel_capsule(read_kernel), INDEX),
    "index_add": (kernel_capsule(write_kernel), ADD),
    "index_copy": (kernel_capsule(write_kernel), COPY),
    "index_embed": (kernel_capsule(write_kernel), EMBED),
    "index_put": (kernel_capsule(write_kernel), PUT),
    "put_embed": (kernel_capsule(write_kernel), PUT_EMBED),
    "nonzero": kernel_capsule(nonzero),
}
