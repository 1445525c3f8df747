"""Joining, padding and triangles: copies into parts of a row-major result."""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.cast_loops cimport tf_cast_table
from tinyfin.backends.cpu.copy cimport NO_ROOM, copy, lies_across, straightened
from tinyfin.backends.cpu.elementwise cimport AROUND
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport (
    Axes, copy_items, offset, push)
from tinyfin.backends.cpu.reduced cimport TF_ACC_F32, TF_ACC_F64, TF_ACC_I64, tf_reduce_table
from tinyfin.backends.cpu.threads cimport parallel_for, team_size
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport narrow_padding

cdef extern from "few_bytes.h" nogil:
    void tf_copy_few(char *y, const char *x, size_t n)
    void tf_fill_few(char *y, const char *pattern, size_t n)

cdef enum:
    LOWER, UPPER
    PART = 512
    TASK = 1 << 14      # elements of a task
    FEW = 128           # bytes that take no call
    LONG = 1024         # bytes from which parts of rows go past the caches

cdef const tf_cast_table *MOVES = <const tf_cast_table *>isa_table(b"cast")
cdef const tf_reduce_table *CONVERT = <const tf_reduce_table *>isa_table(b"reduce")


cdef void part_of(tf_view *part, const tf_view *whole, const int64_t *first,
                  const int64_t *shape) noexcept nogil:
    """The window of a tensor that begins at `first`."""
    cdef int k
    cdef int64_t size = 1, dense = 1
    part[0] = whole[0]
    part.flags = TF_CONTIGUOUS
    for k in range(whole.ndim - 1, -1, -1):
        part.shape[k] = shape[k]
        part.data += first[k] * whole.strides[k] * tf_itemsize[whole.dtype]
        size *= shape[k]
        if shape[k] != 1 and whole.strides[k] != dense:
            part.flags = 0
        dense *= shape[k]
    part.size = size


cdef struct Rows:
    # inputs that are dense, of the result's dtype
    const tf_view *const *inputs
    int n
    char *y
    int64_t rows, each          # of the axes before the joined one; of a task
    int64_t row                 # bytes of one of the result
    int item
    bint around


cdef void rows_task(int64_t t, void *ctx) noexcept nogil:
    """Some rows of the result, from front to back: each input's part of a row after the one before."""
    cdef const Rows *s = <const Rows *>ctx
    cdef int64_t r, last = min((t + 1) * s.each, s.rows), bytes
    cdef char *y = s.y + t * s.each * s.row
    cdef int i
    for r in range(t * s.each, last):
        for i in range(s.n):
            bytes = s.inputs[i].size // s.rows * s.item
            if s.around:
                MOVES.stream(y, s.inputs[i].data + r * bytes, bytes)
            elif bytes > FEW:
                memcpy(y, s.inputs[i].data + r * bytes, bytes)
            else:
                tf_copy_few(y, s.inputs[i].data + r * bytes, bytes)
            y += bytes
    if s.around:
        MOVES.fence()


cdef bint by_rows(Rows *s, const tf_view *const *inputs, int n, tf_view *y, int dim) noexcept nogil:
    """Whether the result is made row by row, and how."""
    cdef int i
    for i in range(n):
        if inputs[i].size and not (inputs[i].flags & TF_CONTIGUOUS and inputs[i].dtype == y.dtype):
            return False
    s.inputs, s.n, s.y, s.rows, s.item = inputs, n, y.data, 1, tf_itemsize[y.dtype]
    for i in range(dim):
        s.rows *= y.shape[i]
    if s.rows == 1:
        return False            # large copies, which are shared among threads
    s.row = y.size // s.rows * s.item
    s.each = max(<int64_t>1, TASK * 4 // s.row)
    s.around = y.size * s.item >= AROUND * team_size() and s.row >= n * LONG
    if s.around:
        s.each *= 16
    return True


cdef int cat(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
             tf_call *call) noexcept nogil:
    """*xs; dim."""
    cdef tf_view *y = outputs[0]
    cdef tf_view part
    cdef int64_t first[8]
    cdef tf_view *to = &part
    cdef Rows rows
    cdef int i, k, rc, dim = <int>(at.i[0] + y.ndim if at.i[0] < 0 else at.i[0])
    if y.size == 0:
        return TF_OK
    if by_rows(&rows, inputs, n, y, dim):
        parallel_for((rows.rows + rows.each - 1) // rows.each, 0.06 * y.size * rows.item, rows_task, &rows)
        return TF_OK
    for k in range(8):
        first[k] = 0
    for i in range(n):
        if inputs[i].size:
            part_of(&part, y, first, inputs[i].shape)
            rc = copy(inputs + i, 1, &to, at, call)
            if rc:
                return rc
        if inputs[i].ndim == y.ndim:
            first[dim] += inputs[i].shape[dim]
    return TF_OK


# ---- padding

cdef struct Pad:
    # axes of the result, at least two, of which the last is as long as memory allows
    const char *x               # the first element that the result has
    char *y
    int64_t xs[9]               # steps of x
    int64_t size[9]             # of the result
    int64_t into[9]             # where the part of x begins in it
    int64_t inner[9]            # and its sizes
    int nd, item
    int64_t planes, rows, parts, group      # rows of a part of a plane, parts of a plane, parts of a task
    char pattern[16]            # the value, over and over


cdef void push_padded(Pad *s, int64_t size, int64_t into, int64_t inner, int64_t step) noexcept nogil:
    """Appends an axis inside the others, or merges it with the last where nothing lies beside it."""
    cdef int k = s.nd - 1
    if s.nd > 1 and into == 0 and inner == size and s.xs[k] == step * size:
        s.size[k] *= size
        s.into[k] *= size
        s.inner[k] *= size
    else:
        s.nd += 1
        k += 1
        s.size[k], s.into[k], s.inner[k] = size, into, inner
    s.xs[k] = step


cdef bint plane_of(const Pad *s, int64_t plane, int64_t *off) noexcept nogil:
    """Offset of what a plane of the result has of x; False where it is all border."""
    cdef int64_t i
    cdef int k
    cdef bint inside = True
    for k in range(s.nd - 3, -1, -1):
        i = plane % s.size[k] - s.into[k]
        plane //= s.size[k]
        inside = inside and 0 <= i < s.inner[k]
        off[0] += i * s.xs[k]
    return inside


cdef void pad_rows(const Pad *s, char *y, int64_t plane, int64_t first, int64_t last) noexcept nogil:
    """Rows of a plane; what lies between the elements of two rows is filled at once."""
    cdef int a = s.nd - 2, b = s.nd - 1
    cdef int64_t n = s.size[b], item = s.item, m = s.inner[b], beside = n - m, row
    cdef int64_t i0 = max(first, s.into[a]), i1 = min(last, s.into[a] + s.inner[a]), bytes, off = 0
    cdef const char *x
    if not plane_of(s, plane, &off) or i0 >= i1 or m == 0:
        tf_fill_few(y, s.pattern, (last - first) * n * item)
        return
    bytes = ((i0 - first) * n + s.into[b]) * item
    tf_fill_few(y, s.pattern, bytes)
    y += bytes
    x = s.x + (off + (i0 - s.into[a]) * s.xs[a]) * item
    for row in range(i0, i1):
        if s.xs[b] == 1:
            tf_copy_few(y, x, m * item)
        else:
            copy_items(y, 1, x, s.xs[b], m, s.item)
        y += m * item
        x += s.xs[a] * item
        bytes = beside * item
        if row == i1 - 1:
            bytes = (n - s.into[b] - m + (last - i1) * n) * item
        tf_fill_few(y, s.pattern, bytes)
        y += bytes


cdef void pad_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Pad *s = <const Pad *>ctx
    cdef int64_t u, plane, first, height = s.size[s.nd - 2]
    for u in range(t * s.group, min((t + 1) * s.group, s.planes * s.parts)):
        plane, first = u // s.parts, u % s.parts * s.rows
        pad_rows(s, s.y + (plane * height + first) * s.size[s.nd - 1] * s.item, plane, first,
                 min(first + s.rows, height))


cdef int pad_constant(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at,
                      tf_call *call) noexcept nogil:
    """pad: count, then before and after of the last axis, ...; value."""
    cdef int rc
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef Pad s
    cdef int64_t wide, value, before, after, inner
    cdef int k, d, acc = TF_ACC_F64 if y.dtype == TF_F64 else (TF_ACC_F32 if y.dtype >= TF_F16
                                                               else TF_ACC_I64)
    if y.size == 0:
        return TF_OK
    if lies_across(x):
        rc = straightened(pad_constant, inputs, n, 0, outputs, at, call)
        if rc != NO_ROOM:
            return rc
    s.x, s.y, s.item, s.nd, s.planes = x.data, y.data, tf_itemsize[y.dtype], 0, 1
    push_padded(&s, 1, 0, 1, 0)
    for d in range(x.ndim):
        k = x.ndim - 1 - d
        before = at.i[1 + 2 * k] if 2 * k < at.i[0] else 0
        after = at.i[2 + 2 * k] if 2 * k < at.i[0] else 0
        inner = max(x.shape[d] + min(before, 0) + min(after, 0), 0)
        if before < 0 and inner:
            s.x -= before * x.strides[d] * s.item
        push_padded(&s, y.shape[d], max(before, 0) if inner else 0, inner, x.strides[d])
    if s.nd == 1:
        push_padded(&s, 1, 0, 1, 1)
    CONVERT.load[acc][TF_F64](&wide, &at.f[0], 1)
    CONVERT.store[y.dtype](&value, &wide, 1)
    for k in range(16 // s.item):
        memcpy(s.pattern + k * s.item, &value, s.item)
    for k in range(s.nd - 2):
        s.planes *= s.size[k]
    s.rows = min(s.size[s.nd - 2], max(<int64_t>1, TASK // s.size[s.nd - 1]))
    s.parts = (s.size[s.nd - 2] + s.rows - 1) // s.rows
    s.group = max(<int64_t>1, TASK // (s.rows * s.size[s.nd - 1]))
    parallel_for((s.planes * s.parts + s.group - 1) // s.group, 0.03 * s.item * y.size, pad_task, &s)
    return TF_OK


cdef int narrow_embed(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                      tf_call *call) noexcept nogil:
    cdef tf_attrs pad
    narrow_padding(outputs[0], at, &pad)
    return pad_constant(inputs, n, outputs, &pad, call)


# ---- triangles

cdef struct Triangle:
    Axes a                  # all axes but the last
    const char *x
    char *y
    int64_t rows, cols, lines, xs, diagonal, group
    int item
    bint upper


cdef void triangle_task(int64_t t, void *ctx) noexcept nogil:
    cdef const Triangle *s = <const Triangle *>ctx
    cdef int64_t r, cut
    cdef const char *x
    cdef char *y
    for r in range(t * s.group, min(s.lines, (t + 1) * s.group)):
        cut = r % s.rows + s.diagonal + (0 if s.upper else 1)      # first column of the upper part
        cut = 0 if cut < 0 else min(cut, s.cols)
        x, y = s.x + offset(&s.a, 0, r) * s.item, s.y + r * s.cols * s.item
        if s.upper:
            memset(y, 0, cut * s.item)
            copy_items(y + cut * s.item, 1, x + cut * s.xs * s.item, s.xs, s.cols - cut, s.item)
        else:
            copy_items(y, 1, x, s.xs, cut, s.item)
            memset(y + cut * s.item, 0, (s.cols - cut) * s.item)


cdef int triangle(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                  tf_call *call) noexcept nogil:
    """x; diagonal."""
    cdef const tf_view *x = inputs[0]
    cdef Triangle s
    cdef int k
    if x.size == 0:
        return TF_OK
    s.a.nd, s.upper = 0, <int><size_t>call.ctx == UPPER
    s.rows, s.cols = x.shape[x.ndim - 2], x.shape[x.ndim - 1]
    s.lines = x.size // s.cols
    for k in range(x.ndim - 1):
        push(&s.a, x.shape[k], x.strides[k], 0, 0)
    s.x, s.y, s.item, s.xs = x.data, outputs[0].data, tf_itemsize[x.dtype], x.strides[x.ndim - 1]
    s.diagonal = min(max(at.i[0], -s.rows), s.cols)
    s.group = max(<int64_t>1, TASK // s.cols)
    parallel_for((s.lines + s.group - 1) // s.group, 0.1 * <double>x.size, triangle_task, &s)
    return TF_OK


KERNELS = {
    "cat": kernel_capsule(cat),
    "pad_constant": kernel_capsule(pad_constant),
    "narrow_embed": kernel_capsule(narrow_embed),
    "tril": (kernel_capsule(triangle), LOWER),
    "triu": (kernel_capsule(triangle), UPPER),
}
