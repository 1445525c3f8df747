"""Picking, placing and adding of single elements by index along one axis.

The index has the shape of the work; the axis is walked by index values, other axes in step. Indices
must lie in 0 .. size - 1 and are all checked first. Writes go line by line of the axis, in rising
order: lines have no destination in common, so they are what is split over threads.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.cast_loops cimport tf_cast_table
from tinyfin.backends.cpu.indexed cimport *
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.copy cimport copy_view
from tinyfin.backends.cpu.lines cimport Axes, offsets, push, span
from tinyfin.backends.cpu.reduced cimport TF_ACC_F32, TF_ACC_F64, TF_ACC_I64, tf_reduce_table
from tinyfin.backends.cpu.threads cimport parallel_for
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    PUT, ADD, EMBED
    TASK = 1 << 13      # elements of a task

cdef const tf_cast_table *MOVES = <const tf_cast_table *>isa_table(b"cast")
cdef const tf_reduce_table *CONVERT = <const tf_reduce_table *>isa_table(b"reduce")


cdef struct Along:
    Axes a                  # walked axes: index; x or result (0 along dim); source or result
    const tf_view *index
    const char *x
    char *y
    Target target
    int what, item, vdtype
    const char *v
    int64_t n               # length of a line
    int64_t size, istep, vstep   # strides along it: of what is indexed, of the index, of the source
    int64_t places, group
    bint lines              # the axis lies closest in memory


cdef inline void targets(int64_t *at, const int64_t *index, int64_t base, int64_t step,
                         int64_t size,
                         int64_t n) noexcept nogil:
    """Offsets of n elements: base + i step, moved by the index along the axis."""
    cdef int64_t i
    for i in range(n):
        at[i] = base + i * step + index[i] * size


# ---- gather

cdef void gather_task(int64_t t, void *ctx) noexcept nogil:
    """Elements of the result in row-major order, run by run of the last walked axis."""
    cdef const Along *g = <const Along *>ctx
    cdef int64_t at = t * TASK, end = min(g.places, (t + 1) * TASK), n, inner = 1, i0 = 0, i1 = 0
    cdef int64_t buffer[RUN]
    cdef int64_t off[3]
    cdef int last = g.a.nd - 1, kind = (g.item > 1) + (g.item > 2) + (g.item > 4)
    if last >= 0:
        inner, i0, i1 = g.a.shape[last], g.a.s[0][last], g.a.s[1][last]
    while at < end:
        n = min(min(<int64_t>RUN, end - at), inner - at % inner)
        offsets(&g.a, at, off)
        MOVES.pick[kind](g.y + at * g.item, g.x + off[1] * g.item, i1,
                         index_run(g.index, off[0], i0, n, buffer), g.size, n)
        at += n


cdef int gather(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                tf_call *call) noexcept nogil:
    """x, index; dim."""
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *index = inputs[1]
    cdef Along g
    cdef int k, dim = <int>at.i[0]
    if index.size == 0:
        return TF_OK
    k = check_index(index, 0, x.shape[dim] if x.ndim else 1, dim, call)
    if k:
        return k
    g.index, g.x, g.y, g.item, g.a.nd = index, x.data, outputs[0].data, tf_itemsize[x.dtype], 0
    g.size = x.strides[dim] if x.ndim else 0
    for k in range(index.ndim):
        push(&g.a, index.shape[k], index.strides[k], 0 if k == dim else x.strides[k], 0)
    g.places = index.size
    parallel_for((g.places + TASK - 1) // TASK, 2.0 * <double>g.places, gather_task, &g)
    return TF_OK


# ---- scatter

cdef void write_run(const Along *s, int64_t ioff, int64_t istep, int64_t yoff, int64_t ystep,
                    int64_t voff,
                    int64_t vstep, int64_t n) noexcept nogil:
    """n elements of the source to where their indices say."""
    cdef int64_t buffer[RUN]
    cdef int64_t raw[RUN]
    cdef int64_t wide[RUN]
    cdef int64_t to[RUN]
    cdef const char *v = s.v + voff * tf_itemsize[s.vdtype]
    cdef const int64_t *at = index_run(s.index, ioff, istep, n, buffer)
    cdef Target line = s.target
    if ystep != 0 or s.size != 1:       # else indices are offsets in the line
        targets(to, at, yoff, ystep, s.size, n)
        at, yoff = to, 0
    if s.what == PUT:
        place_at(s.y + yoff * s.item, at, v, vstep, n, s.item)
    else:
        line.y += yoff * tf_itemsize[line.dtype]
        add_at(&line, at, addends(&line, v, vstep, s.vdtype, 1.0, n, raw, wide), n)


cdef void scatter_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Along *s = <const Along *>ctx
    cdef int64_t p = t * s.group, end = min(s.places, (t + 1) * s.group), j, at, n, inner = 1
    cdef int64_t off[3]
    cdef int last = s.a.nd - 1
    if s.lines:
        for p in range(t * s.group, end):
            offsets(&s.a, p, off)
            j = 0
            while j < s.n:
                n = min(<int64_t>RUN, s.n - j)
                write_run(s, off[0] + j * s.istep, s.istep, off[1], 0, off[2] + j * s.vstep,
                          s.vstep, n)
                j += n
        return
    inner = s.a.shape[last]
    for j in range(s.n):
        at = p
        while at < end:
            n = min(min(<int64_t>RUN, end - at), inner - at % inner)
            offsets(&s.a, at, off)
            write_run(s, off[0] + j * s.istep, s.a.s[0][last], off[1], s.a.s[1][last],
                      off[2] + j * s.vstep, s.a.s[2][last], n)
            at += n


cdef void walk_scatter(Along *s, const tf_view *index, const tf_view *v, const tf_view *y,
                       int dim) noexcept nogil:
    """Lines of the index; the source's own strides, or 0 for a number."""
    cdef int k
    cdef bint number = v.ndim == 0
    s.index, s.v, s.y, s.a.nd = index, v.data, y.data, 0
    s.vdtype, s.item = v.dtype, tf_itemsize[y.dtype]
    s.n = index.shape[dim] if index.ndim else 1
    s.istep = index.strides[dim] if index.ndim else 0
    s.vstep = 0 if number else v.strides[dim]
    s.size = y.strides[dim] if y.ndim else 0
    for k in range(index.ndim):
        if k != dim:
            push(&s.a, index.shape[k], index.strides[k], y.strides[k], 0 if number
                 else v.strides[k])
    s.places = span(&s.a)
    s.lines = s.a.nd == 0 or s.size <= s.a.s[1][s.a.nd - 1]
    s.group = max(<int64_t>1 if s.lines else <int64_t>RUN, TASK // s.n)
    parallel_for((s.places + s.group - 1) // s.group, 3.0 * <double>index.size, scatter_task, s)


cdef int scatter(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                 tf_call *call) noexcept nogil:
    """x, index, src; dim. EMBED: src, index; shape, dim, into zeros."""
    cdef int what = <int><size_t>call.ctx
    cdef const tf_view *index = inputs[1]
    cdef tf_view *y = outputs[0]
    cdef tf_view v
    cdef Along s
    cdef int dim = <int>(at.i[9] if what == EMBED else at.i[0])
    cdef int64_t number, wide
    cdef int rc
    v = inputs[0 if what == EMBED else 2][0]
    rc = check_index(index, 0, y.shape[dim] if y.ndim else 1, dim, call)
    if rc:
        return rc
    if what == EMBED:
        memset(y.data, 0, y.size * tf_itemsize[y.dtype])
    else:
        copy_view(y, inputs[0])
    if index.size == 0:
        return TF_OK
    if what != EMBED and v.flags & TF_WRAPPED and v.dtype != y.dtype:
        CONVERT.load[TF_ACC_F64 if y.dtype == TF_F64
                     else (TF_ACC_F32 if y.dtype >= TF_F16 else TF_ACC_I64)][v.dtype](
            &wide, v.data, 1)
        CONVERT.store[y.dtype](&number, &wide, 1)
        v.data, v.dtype = <char *>&number, y.dtype
    s.what = PUT if what == PUT else ADD
    if s.what == ADD:
        rc = open_target(&s.target, y, call)
        if rc:
            return rc
    walk_scatter(&s, index, &v, y, dim)
    if s.what == ADD:
        close_target(&s.target)
    return TF_OK


KERNELS = {
    "gather": kernel_capsule(gather),
    "scatter": (kernel_capsule(scatter), PUT),
    "scatter_add": (kernel_capsule(scatter), ADD),
    "scatter_embed": (kernel_capsule(scatter), EMBED),
}
