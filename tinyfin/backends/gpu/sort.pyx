"""Sorting and the k greatest or least elements of each line of an axis, always stable; searching.

Parts of 2,048 items are sorted in a work group's own memory. Longer lines are merged from them, two runs to one at a
time; where few items of each line are asked for, only so many of each part are kept and sorted again.
"""
from libc.stdint cimport int64_t, uint64_t

from tinyfin.backends.gpu.axes cimport *
from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.moves cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.gpu.modules import shader

cdef enum:
    SORT, TOPK
    PART = 2048                 # items that a work group sorts
    PART_BITS = 11
    KEYS = 64                   # sources besides dtypes
    PAIRS = 65

cdef int BLOCK = shader("sort_block")
cdef int MERGE = shader("sort_merge")
cdef int EMIT = shader("sort_emit")
cdef int SEARCH = shader("sort_search")


cdef struct Lines:
    Axes a                      # which line; operand 0: what is sorted
    int64_t lines, n, step      # number of lines, length of each, distance of its elements
    int64_t keep                # items wanted of each line
    int64_t kept                # items that each line has when it is sorted, at least those
    int source, wide, down
    uint64_t at, low, high      # address of the first element, and the bytes that are read
    const tf_view *where


cdef int sort_parts(Lines *s, uint64_t items, uint64_t nbytes, int64_t keep, tf_call *call) noexcept:
    """Parts sorted, and the first of them kept."""
    cdef tf_launch l
    cdef int64_t parts = (s.n + PART - 1) // PART, groups
    cdef int bits = 0
    while bits < PART_BITS and (<int64_t>1 << bits) < s.n:
        bits += 1
    groups = s.lines * parts if parts > 1 else (s.lines + (PART >> bits) - 1) // (PART >> bits)
    begin(&l, BLOCK, call)
    bytes_of(&l, items, nbytes, True)
    bytes_of(&l, s.at, 0, False)
    l.range[1].low, l.range[1].high = s.low, s.high
    word(&l, s.lines)
    word(&l, s.n)
    word(&l, parts)
    word(&l, bits)
    word(&l, keep)
    word(&l, s.kept)
    shape_words(&l, &s.a)
    stride_words(&l, &s.a, 0)
    word(&l, s.step)
    word(&l, s.down)
    constant(&l, 0, s.source)
    constant(&l, 1, s.wide)
    spread(&l, groups)
    return launch(&l, s.where, call)


cdef int merge(Lines *s, uint64_t merged, uint64_t items, uint64_t nbytes, int64_t width, tf_call *call) noexcept:
    cdef tf_launch l
    begin(&l, MERGE, call)
    bytes_of(&l, merged, nbytes, True)
    bytes_of(&l, items, nbytes, False)
    word(&l, s.lines * s.n)
    word(&l, s.n)
    word(&l, width)
    constant(&l, 0, s.wide)
    spread(&l, groups_of(s.lines * s.n))
    return launch(&l, s.where, call)


cdef object sorted_lines(Lines *s, tf_call *call):
    """Scratch with the items of each line in order, dense; None where a dispatch failed."""
    cdef int64_t keep, width = PART, parts
    cdef uint64_t nbytes
    cdef object items, other
    while True:
        parts = (s.n + PART - 1) // PART
        keep = s.keep if parts == 1 or 2 * s.keep <= PART else PART
        s.kept = (parts - 1) * keep + min(keep, s.n - (parts - 1) * PART)
        nbytes = <uint64_t>(s.lines * s.kept * (16 if s.wide else 8))
        items = scratch(s.where, nbytes)
        if sort_parts(s, <uint64_t>items.block, nbytes, keep, call):
            return None
        if parts == 1 or keep == PART:
            break
        no_axes(&s.a, 1)                     # the candidates of all parts are lines of their own
        axis(&s.a, s.lines, s.kept)
        s.n, s.step, s.source = s.kept, 1, PAIRS
        s.at = s.low = <uint64_t>items.block
        s.high = s.at + nbytes
        _previous = items                    # lives until its reader is recorded
    if parts == 1:
        return items
    other = scratch(s.where, nbytes)
    while width < s.n:
        if merge(s, <uint64_t>other.block, <uint64_t>items.block, nbytes, width, call):
            return None
        items, other = other, items
        width *= 2
    return items


cdef object sorted_keys(const tf_view *where, uint64_t keys, int64_t lines, int64_t n, tf_call *call):
    """Scratch with (key, place) of all keys of each line in order, equal ones by place; None where it failed."""
    cdef Lines s
    no_axes(&s.a, 1)
    axis(&s.a, lines, n)
    s.lines, s.n, s.step, s.keep, s.where = lines, n, 1, n, where
    s.source, s.wide, s.down = KEYS, 0, 0
    s.at = s.low = keys
    s.high = keys + <uint64_t>(4 * lines * n)
    return sorted_lines(&s, call)


cdef int emit(const Lines *s, const Axes *a, const tf_view *x, int64_t step, const tf_view *values,
              const tf_view *places, uint64_t items, int64_t k, int64_t inner, tf_call *call) noexcept:
    """Results from items."""
    cdef tf_launch l
    begin(&l, EMIT, call)
    write(&l, values)
    write(&l, places)
    bytes_of(&l, items, <uint64_t>(s.lines * s.kept * (16 if s.wide else 8)), False)
    read(&l, x)
    word(&l, values.size)
    word(&l, k)
    word(&l, inner)
    word(&l, s.kept)
    shape_words(&l, a)
    stride_words(&l, a, 0)
    word(&l, step)
    constant(&l, 0, tf_itemsize[x.dtype])
    constant(&l, 1, s.wide)
    spread(&l, groups_of(values.size))
    return launch(&l, x, call)


cdef int sort_all(const tf_view *const *inputs, tf_view *const *outputs, const tf_attrs *at, tf_call *call) except -1:
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef tf_launch l
    cdef Lines s
    cdef Axes a
    cdef int64_t k, step, inner
    cdef int what = <int><size_t>call.ctx, d, dim
    dim = <int>(at.i[1] if what == TOPK else at.i[0])
    if not within_reach(x) or not within_reach(y):
        return TF_EUNSUPPORTED
    s.down = at.i[2] != 0 if what == TOPK else at.i[1] != 0
    s.n = x.shape[dim] if x.ndim else 1
    k = y.shape[dim] if x.ndim else y.size
    step = x.strides[dim] if x.ndim else 0
    inner = y.strides[dim] if x.ndim else 1
    s.lines = 1
    no_axes(&a, 1)
    for d in range(x.ndim):
        if d != dim:
            s.lines *= x.shape[d]
            axis(&a, x.shape[d], x.strides[d])
    if s.lines == 0 or k == 0:
        return TF_OK
    if not merged(&a) or s.lines * s.n >= <int64_t>1 << 31:
        return TF_EUNSUPPORTED
    begin(&l, BLOCK, call)                   # for the bytes that x has
    read(&l, x)
    s.a, s.step, s.keep, s.where, s.source = a, step, k, x, x.dtype
    s.wide = x.dtype == TF_I64 or x.dtype == TF_F64
    s.at, s.low, s.high = l.at[0], l.range[0].low, l.range[0].high
    items = sorted_lines(&s, call)
    if items is None:
        return TF_EDEVICE
    return emit(&s, &a, x, step, y, outputs[1], <uint64_t>items.block, k, inner, call)


cdef int sort_lines(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                    tf_call *call) noexcept with gil:
    """sort: dim, descending, stable. topk: k, dim, largest, sorted."""
    call.detail[0] = inputs[0].dtype
    try:
        return sort_all(inputs, outputs, at, call)
    except BaseException as error:
        return failed(inputs[0], call, error)


# ---- places in sorted sequences

cdef int searchsorted(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                      tf_call *call) noexcept with gil:
    """x, sorted along its last axis; a; right."""
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *a = inputs[1]
    cdef tf_launch l
    cdef Axes lines, values
    cdef int k, dtype = a.dtype
    cdef bint is_number = a.flags & TF_WRAPPED != 0
    call.detail[0] = x.dtype
    if outputs[0].size == 0:
        return TF_OK
    no_axes(&lines, 1)
    no_axes(&values, 1)
    for k in range(x.ndim - 1):
        axis(&lines, x.shape[k], x.strides[k])
    for k in range(a.ndim):
        axis(&values, a.shape[k], a.strides[k])
    if not within_reach(x) or not within_reach(a) or not merged(&lines) or not merged(&values):
        return TF_EUNSUPPORTED
    begin(&l, SEARCH, call)
    write(&l, outputs[0])
    read(&l, x)
    if is_number and a.dtype == TF_BOOL:
        dtype = TF_I64
        number(&l, a.data[0] != 0)
    elif is_number:
        number(&l, (<const uint64_t *>a.data)[0])
    else:
        read(&l, a)
    word(&l, outputs[0].size)
    word(&l, x.shape[x.ndim - 1])
    word(&l, a.shape[a.ndim - 1] if a.ndim else 1)
    shape_words(&l, &lines)
    stride_words(&l, &lines, 0)
    word(&l, x.strides[x.ndim - 1])
    shape_words(&l, &values)
    stride_words(&l, &values, 0)
    word(&l, at.i[0] != 0)
    word(&l, x.ndim == 1)
    constant(&l, 0, x.dtype)
    constant(&l, 1, dtype)
    constant(&l, 2, x.dtype >= TF_F16 or dtype >= TF_F16)
    constant(&l, 3, is_number)
    spread(&l, groups_of(outputs[0].size))
    return launch(&l, x, call)


KERNELS = {
    "sort": (kernel_capsule(sort_lines), SORT),
    "topk": (kernel_capsule(sort_lines), TOPK),
    "searchsorted": kernel_capsule(searchsorted),
}
