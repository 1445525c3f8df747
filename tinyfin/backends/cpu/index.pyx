"""Slices by index: index_select, embedding, advanced indexing, their writing twins and their
adjoints.

One or several axes are indexed; the axes before and after them are walked. All indices are read,
checked and turned into offsets first. Reading is split over results, writing over the walked axes
only, so that additions to one destination come in rising order of the index.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.copy cimport copy_view
from tinyfin.backends.cpu.indexed cimport *
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport (
    Axes, copy_items, gather_run, offset, offsets, push)
from tinyfin.backends.cpu.reduced cimport (
    TF_ACC_F32, TF_ACC_F64, TF_ACC_I64, TF_KEY_ANY, tf_reduce_table)
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    SELECT, EMBEDDING, INDEX, ADD, COPY, EMBED, PUT, PUT_EMBED
    TASK = 1 << 14      # elements of a task

cdef const tf_reduce_table *CONVERT = <const tf_reduce_table *>isa_table(b"reduce")


cdef struct Slices:
    Axes before, after      # operand 0: the indexed tensor, 1: the other one
    Axes chosen             # the indices' own axes; operand 0: the other tensor
    int64_t *at             # offsets of the slices in the indexed tensor
    int64_t count, nb, na   # slices, places before, elements of a slice
    int64_t high, group
    char *x                 # indexed tensor
    char *y                 # the other: result of reading, source of writing
    int item, vdtype
    bint adding
    double alpha
    Target target


cdef int add_offsets(Slices *s, const tf_view *index, int64_t size, int64_t stride, bint wrap,
                     int dim,
                     tf_call *call) noexcept nogil:
    """Adds index times stride to all offsets."""
    cdef int64_t raw[RUN]
    cdef int64_t buffer[RUN]
    cdef tf_view run
    cdef Axes a
    cdef const int64_t *p
    cdef int64_t at = 0, n, i, v
    cdef int k
    k = check_index(index, -size if wrap else 0, size, dim, call)
    if k:
        return k
    a.nd = 0
    for k in range(index.ndim):
        push(&a, index.shape[k], index.strides[k], 0, 0)
    run.dtype, run.data = index.dtype, <char *>raw
    while at < s.count:
        n = min(<int64_t>RUN, s.count - at)
        gather_run(<char *>raw, index.data, &a, at, n, tf_itemsize[index.dtype])
        p = index_run(&run, 0, 1, n, buffer)
        for i in range(n):
            v = p[i]
            s.at[at + i] += (v + size if v < 0 else v) * stride
        at += n
    return TF_OK


# ---- reading

cdef void read_task(int64_t t, void *ctx) noexcept nogil:
    """Slices t * group ...; slice r is index r % count at place r // count of the axes before."""
    cdef const Slices *s = <const Slices *>ctx
    cdef int64_t r = t * s.group, end = min(s.nb * s.count, (t + 1) * s.group), b, i, n, k
    cdef int64_t off[3]
    cdef const char *x
    cdef char *y
    cdef bint dense = s.after.nd == 1 and s.after.s[0][0] == 1
    while r < end:
        b, i = r // s.count, r % s.count
        n = min(end - r, s.count - i)
        offsets(&s.before, b, off)
        x, y = s.x + off[0] * s.item, s.y + r * s.na * s.item
        if s.after.nd == 0:
            pick(y, 1, x, s.at + i, n, s.item)
        elif dense:
            for k in range(n):
                memcpy(y + k * s.na * s.item, x + s.at[i + k] * s.item, s.na * s.item)
        else:
            for k in range(n):
                gather_run(y + k * s.na * s.item, x + s.at[i + k] * s.item, &s.after, 0, s.na,
                           s.item)
        r += n


cdef void read_slices(Slices *s) noexcept nogil:
    """The result is dense: axes before, indices, axes after."""
    cdef int64_t slices = s.nb * s.count
    s.group = max(<int64_t>1, TASK // s.na)
    parallel_for((slices + s.group - 1) // s.group,
                 0.03 * s.item * <double>(slices * s.na) + 2.0 * <double>slices,
                 read_task, s)


# ---- writing

cdef void write_elements(Slices *s, int64_t xbase, int64_t vbase) noexcept nogil:
    """Slices of one element: many indices at a time."""
    cdef int64_t buffer[RUN]
    cdef int64_t raw[RUN]
    cdef int64_t wide[RUN]
    cdef int64_t i = 0, n, k
    while i < s.count:
        n = min(<int64_t>RUN, s.count - i)
        for k in range(n):
            buffer[k] = s.at[i + k] + xbase
        gather_run(<char *>raw, s.y + vbase * tf_itemsize[s.vdtype], &s.chosen, i, n,
                   tf_itemsize[s.vdtype])
        if s.adding:
            add_at(&s.target, buffer, addends(&s.target, <char *>raw, 1, s.vdtype, s.alpha, n, raw,
                                              wide), n)
        else:
            place_at(s.x, buffer, <char *>raw, 1, n, s.item)
        i += n


cdef void write_part(Slices *s, int64_t xbase, int64_t vbase, int64_t first,
                     int64_t n) noexcept nogil:
    """Elements first .. first + n - 1 (at most RUN, within the last axis) of all slices, index
    after index."""
    cdef int64_t raw[RUN]
    cdef int64_t wide[RUN]
    cdef int64_t off[3]
    cdef int64_t i, to, v
    cdef int last = s.after.nd - 1
    cdef int64_t xs = s.after.s[0][last], vs = s.after.s[1][last]
    offsets(&s.after, first, off)
    for i in range(s.count):
        to = xbase + s.at[i] + off[0]
        v = (vbase + offset(&s.chosen, 0, i) + off[1]) * tf_itemsize[s.vdtype]
        if s.adding:
            add_run(&s.target, to, xs, addends(&s.target, s.y + v, vs, s.vdtype, s.alpha, n, raw,
                                               wide), n)
        else:
            copy_items(s.x + to * s.item, xs, s.y + v, vs, n, s.item)


cdef void write_task(int64_t t, void *ctx) noexcept nogil:
    """Part t % parts of the slices at place t // parts of the axes before."""
    cdef Slices *s = <Slices *>ctx
    cdef int64_t parts, b, first, end, n, inner
    cdef int64_t off[3]
    if s.after.nd == 0:
        for b in range(t * s.group, min(s.nb, (t + 1) * s.group)):
            offsets(&s.before, b, off)
            write_elements(s, off[0], off[1])
        return
    parts = (s.na + s.group - 1) // s.group
    offsets(&s.before, t // parts, off)
    first = t % parts * s.group
    end, inner = min(s.na, first + s.group), s.after.shape[s.after.nd - 1]
    while first < end:
        n = min(min(<int64_t>RUN, end - first), inner - first % inner)
        write_part(s, off[0], off[1], first, n)
        first += n


cdef void write_slices(Slices *s) noexcept nogil:
    cdef double cost = <double>s.nb * <double>s.count * (<double>s.na + 10)
    if s.after.nd == 0:
        s.group = max(<int64_t>1, TASK // s.count)
        parallel_for((s.nb + s.group - 1) // s.group, cost, write_task, s)
    else:
        s.group = RUN
        parallel_for(s.nb * ((s.na + RUN - 1) // RUN), cost, write_task, s)


# ---- axes

cdef void split_axes(Slices *s, const tf_view *x, int64_t mask, const tf_view *v,
                     const tf_view *index) noexcept nogil:
    """Axes of x before and after the indices' place, with v's strides; v has the picked shape, or
    broadcasts to it."""
    cdef int k, first = -1, last = -1, found = 0, ndim, at
    for k in range(x.ndim):
        if mask >> k & 1:
            last, found = k, found + 1
            if first < 0:
                first = k
    if first < 0 or last - first + 1 != found:
        first = 0
    ndim = x.ndim - found + index.ndim
    at = 0
    s.before.nd = s.after.nd = s.chosen.nd = 0
    s.nb = s.na = 1
    for k in range(x.ndim):
        if mask >> k & 1:
            continue
        if at < first:
            push(&s.before, x.shape[k], x.strides[k], step_of(v, at, ndim), 0)
            s.nb *= x.shape[k]
        else:
            push(&s.after, x.shape[k], x.strides[k], step_of(v, at + index.ndim, ndim), 0)
            s.na *= x.shape[k]
        at += 1
    for k in range(index.ndim):
        push(&s.chosen, index.shape[k], step_of(v, first + k, ndim), 0, 0)
    s.count = index.size


cdef int64_t step_of(const tf_view *v, int k, int ndim) noexcept nogil:
    """Stride of v along axis k of a shape of ndim axes to which it broadcasts."""
    k -= ndim - v.ndim
    return 0 if k < 0 or v.shape[k] == 1 else v.strides[k]


cdef int offsets_of(Slices *s, const tf_view *x, const tf_view *const *indices, int64_t mask,
                    bint wrap,
                    tf_call *call) noexcept nogil:
    """Scratch for the offsets, filled; the caller gives it back with scratch_pop(8 * count)."""
    cdef int k, given = 0, rc = TF_OK
    s.at = <int64_t *>scratch_push(8 * s.count)
    if s.at == NULL:
        call.detail[0] = 8 * s.count
        return TF_ENOMEM
    memset(s.at, 0, 8 * s.count)
    if x.ndim == 0:
        rc = add_offsets(s, indices[0], 1, 0, wrap, 0, call)
    for k in range(x.ndim):
        if mask >> k & 1 and rc == TF_OK:
            rc = add_offsets(s, indices[given], x.shape[k], x.strides[k], wrap, k, call)
            given += 1
    if rc:
        scratch_pop(8 * s.count)
    return rc


cdef const tf_view *as_vector(tf_view *v, const tf_view *index) noexcept nogil:
    """A single index as a vector: the indexed axis stays, of size 1."""
    v[0] = index[0]
    v.ndim, v.shape[0], v.strides[0] = 1, 1, 1
    return v


cdef int read_kernel(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at,
                     tf_call *call) noexcept nogil:
    """SELECT: x, index; dim. EMBEDDING: index, w. INDEX: x, *indices; mask; negative indices
    wrap."""
    cdef int what = <int><size_t>call.ctx, rc
    cdef const tf_view *x = inputs[1 if what == EMBEDDING else 0]
    cdef const tf_view *const *indices = inputs if what == EMBEDDING else inputs + 1
    cdef int64_t mask = at.i[0] if what == INDEX else (1 if what == EMBEDDING
                                                       else <int64_t>1 << at.i[0])
    cdef const tf_view *one[1]
    cdef tf_view vector
    cdef Slices s
    if what == SELECT and indices[0].ndim == 0:
        one[0], indices = as_vector(&vector, indices[0]), one
    split_axes(&s, x, mask if x.ndim else 0, outputs[0], indices[0])
    s.x, s.y, s.item = x.data, outputs[0].data, tf_itemsize[x.dtype]
    if s.count == 0:
        return TF_OK
    rc = offsets_of(&s, x, indices, mask, what == INDEX, call)
    if rc:
        return rc
    if s.nb and s.na:
        read_slices(&s)
    scratch_pop(8 * s.count)
    return TF_OK


cdef void one_of(tf_view *v, int dtype, int64_t *room) noexcept nogil:
    """A number in the dtype of what it is written to."""
    cdef int64_t wide
    if v.dtype != dtype and v.ndim == 0:
        CONVERT.load[TF_ACC_F64 if dtype == TF_F64
                     else (TF_ACC_F32 if dtype >= TF_F16 else TF_ACC_I64)][v.dtype](
            &wide, v.data, 1)
        CONVERT.store[dtype](room, &wide, 1)
        v.data, v.dtype = <char *>room, dtype


cdef int write_all(Slices *s, tf_view *y, tf_call *call) noexcept nogil:
    """The writes, to the result or to what is rounded into it at the end."""
    cdef int rc = TF_OK
    if s.count == 0 or s.nb == 0 or s.na == 0:
        return TF_OK
    if s.adding:
        rc = open_target(&s.target, y, call)
    if rc == TF_OK:
        write_slices(s)
        if s.adding:
            close_target(&s.target)
    return rc


cdef int write_kernel(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at,
                      tf_call *call) noexcept nogil:
    """ADD: x, index, src; dim, alpha. COPY: the same without alpha. EMBED: v, index; shape, dim.
    PUT: x, v, *indices; mask, accumulate. PUT_EMBED: v, *indices; shape, mask.

    The embedding ones write into zeros.
    """
    cdef int what = <int><size_t>call.ctx, rc
    cdef tf_view *y = outputs[0]
    cdef tf_view v = inputs[2 if what == ADD or what == COPY else (1 if what == PUT else 0)][0]
    cdef const tf_view *const *indices = inputs + (2 if what == PUT else 1)
    cdef bint fresh = what == EMBED or what == PUT_EMBED, wrap = what == PUT or what == PUT_EMBED
    cdef int64_t mask = at.i[9 if fresh else 0], number
    cdef const tf_view *one[1]
    cdef tf_view vector
    cdef Slices s
    if not wrap:
        mask = <int64_t>1 << mask
        if indices[0].ndim == 0:
            one[0], indices = as_vector(&vector, indices[0]), one
    one_of(&v, y.dtype, &number)
    split_axes(&s, y, mask if y.ndim else 0, &v, indices[0])
    s.x, s.y, s.item, s.vdtype = y.data, v.data, tf_itemsize[y.dtype], v.dtype
    s.adding = fresh or what == ADD or (what == PUT and at.i[1] != 0)
    s.alpha = at.f[0] if what == ADD else 1.0
    if s.count:
        rc = offsets_of(&s, y, indices, mask, wrap, call)
        if rc:
            return rc
    if fresh:
        memset(y.data, 0, y.size * s.item)
    else:
        copy_view(y, inputs[0])
    rc = write_all(&s, y, call)
    if s.count:
        scratch_pop(8 * s.count)
    return rc


# ---- coordinates

cdef int nonzero(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                 tf_call *call) noexcept nogil:
    """Coordinates of the first elements that are not zero; rows beyond those found stay zero."""
    cdef const tf_view *x = inputs[0]
    cdef int64_t *y = <int64_t *>outputs[0].data
    cdef int64_t room = at.i[0], found = 0, place = 0, m, i, rest
    cdef int64_t raw[RUN]
    cdef uint8_t truth[8 * RUN]
    cdef uint8_t some[RUN]
    cdef Axes a
    cdef int k, wide = x.dtype == TF_I64 or x.dtype == TF_F64
    a.nd = 0
    for k in range(x.ndim):
        push(&a, x.shape[k], x.strides[k], 0, 0)
    while place < x.size and found < room:
        m = min(<int64_t>RUN, x.size - place)
        gather_run(<char *>raw, x.data, &a, place, m, tf_itemsize[x.dtype])
        CONVERT.keys[TF_KEY_ANY][x.dtype](truth, raw, m)
        for i in range(m):
            some[i] = truth[(8 if wide else 4) * i]
        for i in range(m):
            if some[i] and found < room:
                rest = place + i
                for k in range(x.ndim - 1, -1, -1):
                    y[found * x.ndim + k] = rest % x.shape[k]
                    rest //= x.shape[k]
                found += 1
        place += m
    memset(y + found * x.ndim, 0, (room - found) * x.ndim * 8)
    return TF_OK


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
