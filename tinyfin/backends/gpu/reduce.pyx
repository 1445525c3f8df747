"""Sums, products, means and variances over axes, in the canonical order; how the dispatches of all reductions go.

A row is cut into blocks of 2,048 elements. One work group joins up to 16 blocks of a row; where there are more,
or results lie side by side, blocks give parts, and the parts are rows of the next dispatch.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport mask_of

from tinyfin.backends.gpu.modules import shader

cdef enum:
    SUM, PROD, MEAN, VAR, STD, COUNT        # what a row asks of this family
    GROUP = 256                             # invocations of a work group
    WIDE = 32                               # results of a work group side by side
    TEAMS = 16                              # blocks of a work group
    DIVIDED = 1                             # what becomes of a result
    ROOT

cdef int REAL = shader("reduce_f32")
cdef int WHOLE = shader("reduce_whole_f32")
cdef int DOUBLE = shader("reduce_f64")


# ---- any reduction

cdef void push(Reduced *r, int first, int64_t size, int64_t stride) noexcept nogil:
    """One more axis inside the others from `first` on, or merged with the last of them."""
    cdef int k = r.axes - 1
    if size == 1:
        return
    if k >= first and r.strides[k] == size * stride:
        r.shape[k] *= size
        r.strides[k] = stride
    else:
        r.shape[r.axes], r.strides[r.axes] = size, stride
        r.axes += 1


cdef bint reduced(Reduced *r, const tf_view *x, unsigned int mask) noexcept nogil:
    """Splits the axes of x by the mask; False where 32 bits do not count its elements."""
    cdef int k
    r.axes, r.outs, r.n = 0, 1, 1
    for k in range(x.ndim):
        if mask >> k & 1:
            r.n *= x.shape[k]
        else:
            r.outs *= x.shape[k]
    if x.size:
        for k in range(x.ndim):
            if not mask >> k & 1:
                push(r, 0, x.shape[k], x.strides[k])
        r.kept = r.axes
        for k in range(x.ndim):
            if mask >> k & 1:
                push(r, r.kept, x.shape[k], x.strides[k])
    else:
        r.kept = 0
    plan(r, tf_itemsize[x.dtype], address_of(x))
    return within_reach(x) and r.outs < <int64_t>1 << 31


cdef int64_t distance(int64_t stride) noexcept nogil:
    return stride if stride >= 0 else -stride


cdef bint in_fours(const Reduced *r, int axis, int item, uint64_t address) noexcept nogil:
    """Whether four neighbours along an axis are one access, wherever the other axes are."""
    cdef int k
    if r.strides[axis] != 1 or address & <uint64_t>(4 * item - 1 if item < 4 else 15):
        return False
    for k in range(r.axes):
        if k != axis and r.strides[k] & 3:
            return False
    return True


cdef inline bint beside(const Reduced *r) noexcept nogil:
    """Whether a work group takes results side by side, a block of each."""
    return r.layout == COLUMNS or r.layout == ACROSS


cdef void across(Reduced *r, const tf_view *x) noexcept nogil:
    """Takes four results of COLUMNS at a time, where they lie so; bodies say that they can."""
    cdef int last = r.kept - 1
    if r.layout == COLUMNS and r.shape[last] % 4 == 0 and in_fours(r, last, tf_itemsize[x.dtype], address_of(x)):
        r.layout = ACROSS


cdef void plan(Reduced *r, int item, uint64_t address) noexcept nogil:
    """Layout, blocks and work groups."""
    cdef int inner = r.axes - 1
    r.blocks, r.teams = max(<int64_t>1, (r.n + BLOCK - 1) // BLOCK), 1
    if r.n <= JOINED or r.axes == 0:
        r.layout = FEW
        return
    if r.kept and r.shape[r.kept - 1] >= 8 and distance(r.strides[r.kept - 1]) < distance(r.strides[inner]):
        r.layout = COLUMNS
        return
    while r.teams < r.blocks and r.teams < TEAMS:
        r.teams *= 2
    if r.blocks > TEAMS:
        r.teams = 1
    r.layout = QUADS if in_fours(r, inner, item, address) else ROWS
    if r.axes - r.kept > 1 and r.shape[inner] & 3:
        r.layout = ROWS


cdef bint at_once(const Reduced *r) noexcept nogil:
    """Whether one dispatch gives the results."""
    return r.blocks == 1 or (not beside(r) and r.blocks <= JOINED)


cdef int64_t groups_of(const Reduced *r) noexcept nogil:
    if r.layout == FEW:
        return (r.outs + GROUP - 1) // GROUP
    if beside(r):
        return (r.outs + WIDE - 1) // WIDE * r.blocks
    return (r.outs * (r.teams if r.blocks <= JOINED else r.blocks) + TEAMS - 1) // TEAMS


cdef void words_of(tf_launch *l, const Reduced *r) noexcept nogil:
    """The words that every body begins with."""
    cdef int k
    for k in range(8):
        word(l, r.strides[k] if k < r.axes else 0)
    for k in range(8):
        word(l, r.shape[k] if k < r.axes else 1)
    word(l, r.kept)
    word(l, r.axes)
    word(l, r.outs)
    word(l, r.n)
    word(l, r.blocks)
    word(l, r.teams)


cdef void parts_of(Reduced *next, const Reduced *r, int item) noexcept nogil:
    """The rows of parts that a dispatch has left."""
    next.kept, next.axes, next.outs, next.n = 1, 2, r.outs, r.blocks
    next.shape[0], next.shape[1] = r.outs, r.blocks
    next.strides[0], next.strides[1] = r.blocks, 1
    if beside(r):
        next.strides[0], next.strides[1] = 1, r.outs
    plan(next, item, 0)


cdef int run_levels(Reduced *r, const tf_view *x, uint32_t module, int item, pack_fn pack, const void *of,
                    tf_call *call) noexcept:
    """Dispatches until every row has one value; parts take `item` bytes. The packer gives operands, constants
    and the words after ours."""
    cdef tf_launch l
    cdef Memory source, target
    cdef Reduced next
    cdef list held = []                          # memory of parts, until the last dispatch
    cdef int rc
    source.address = source.nbytes = 0
    while True:
        target.address = target.nbytes = 0
        if not at_once(r):
            target.nbytes = <uint64_t>(r.outs * r.blocks * item)
            try:
                held.append(scratch(x, target.nbytes))
                target.address = <uint64_t>held[-1].block
            except BaseException as error:
                return failed(x, call, error)
        begin(&l, module, call)
        words_of(&l, r)
        pack(&l, of, r, source, target)
        constant(&l, 2, r.layout + (WALKS if r.axes - r.kept > 1 else 0))
        spread(&l, groups_of(r))
        rc = launch(&l, x, call)
        if rc != TF_OK or at_once(r):
            return rc
        parts_of(&next, r, item)
        r[0] = next
        source = target


# ---- sums and their like

cdef struct Lanes:
    const tf_view *x
    const tf_view *y
    int what, narrow
    int acc                             # dtype that lanes add in: int64, float32 or float64
    bint truth
    bint first, second                  # pass of a variance in two
    uint64_t means
    double by
    int64_t n, outs


cdef void pack(tf_launch *l, const void *of, const Reduced *r, Memory source, Memory target) noexcept:
    cdef const Lanes *s = <const Lanes *>of
    cdef bint last = target.address == 0, start = source.address == 0
    cdef bint spread_ = s.what == VAR or s.what == STD
    cdef double by = <double>s.n if s.first else s.by
    cdef uint64_t means = <uint64_t>(s.outs * tf_itemsize[s.acc])
    if not last:
        bytes_of(l, target.address, target.nbytes, True)
    elif s.first:
        bytes_of(l, s.means, means, True)
    else:
        write(l, s.y)
    if start:
        read(l, s.x)
    else:
        bytes_of(l, source.address, source.nbytes, False)
    constant(l, 0, s.y.dtype if last and not s.first else s.acc)
    constant(l, 1, s.x.dtype if start else s.acc)
    constant(l, 3, 2 if spread_ and not s.first and not s.second else 1)
    constant(l, 4, s.what == PROD)
    if s.acc == TF_I64:
        constant(l, 5, s.truth and start)
        return
    if s.second and start:
        bytes_of(l, s.means, means, False)
    else:
        number(l, 0)
    constant(l, 5, s.narrow if start else 0)
    constant(l, 6, s.second and start)
    if last:
        constant(l, 7, DIVIDED if s.what == MEAN or s.what == VAR or s.first else ROOT if s.what == STD else 0)
    number_word(l, by, s.acc == TF_F64)


cdef int two_passes(Reduced *r, Lanes *s, uint32_t module, tf_call *call) noexcept:
    """A variance whose rows do not fit in one work group: the means first."""
    cdef Reduced again = r[0]
    cdef object means
    cdef int item = tf_itemsize[s.acc], rc
    try:
        means = scratch(s.x, <uint64_t>(item * r.outs))
        s.means = <uint64_t>means.block
    except BaseException as error:
        return failed(s.x, call, error)
    s.first = True
    rc = run_levels(r, s.x, module, item, pack, s, call)
    s.first, s.second = False, True
    if rc == TF_OK:
        rc = run_levels(&again, s.x, module, item, pack, s, call)
    return rc


cdef int reduce_lanes(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                      tf_call *call) noexcept with gil:
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *y = outputs[0]
    cdef Reduced r
    cdef Lanes s
    cdef uint32_t module
    s.x, s.y, s.what = x, y, <int><size_t>call.ctx
    s.acc = TF_I64 if y.dtype <= TF_I64 else TF_F32 if y.dtype <= TF_F32 else TF_F64
    s.truth = s.what == COUNT or y.dtype == TF_BOOL
    s.narrow = y.dtype if (y.dtype == TF_F16 or y.dtype == TF_BF16) and x.dtype != y.dtype else 0
    s.first = s.second = False
    s.means = 0
    call.detail[0] = max(x.dtype, y.dtype)
    if s.acc == TF_F64 and not features(x) & HAS_FLOAT64:
        return TF_EUNSUPPORTED
    if x.dtype == TF_F64 and s.acc != TF_F64 and not s.truth:
        return TF_EUNSUPPORTED
    if not reduced(&r, x, mask_of(x, at.i)):
        return TF_EUNSUPPORTED
    if r.outs == 0:
        return TF_OK
    module = WHOLE if s.acc == TF_I64 else REAL if s.acc == TF_F32 else DOUBLE
    s.n, s.outs = r.n, r.outs
    s.by = <double>r.n if s.what == MEAN else max(<double>r.n - at.f[0], 0.0)
    if s.what != VAR and s.what != STD:
        across(&r, x)
    elif not at_once(&r):
        return two_passes(&r, &s, module, call)
    return run_levels(&r, x, module, tf_itemsize[s.acc], pack, &s, call)


cdef int join_parts(uint64_t address, int64_t parts, const tf_view *out, tf_call *call) noexcept:
    """Sums of parts, each as large as a dense result, one behind the other, in the result; of float64 for one of
    float64, else of float32."""
    cdef tf_view held = out[0]
    cdef Reduced r
    cdef Lanes s
    cdef int acc = TF_F64 if out.dtype == TF_F64 else TF_F32
    held.block, held.offset, held.dtype, held.flags = <void *>address, 0, acc, TF_CONTIGUOUS
    held.ndim, held.size = 2, parts * out.size
    held.shape[0], held.shape[1], held.strides[0], held.strides[1] = parts, out.size, out.size, 1
    if not reduced(&r, &held, 1):
        return TF_EUNSUPPORTED
    s.x, s.y, s.what, s.acc, s.n, s.outs = &held, out, SUM, acc, parts, out.size
    s.truth = s.first = s.second = False
    s.narrow, s.means, s.by = 0, 0, 1
    across(&r, &held)
    return run_levels(&r, &held, DOUBLE if acc == TF_F64 else REAL, tf_itemsize[acc], pack, &s, call)


KERNELS = {
    "reduce_sum": (kernel_capsule(reduce_lanes), SUM),
    "reduce_prod": (kernel_capsule(reduce_lanes), PROD),
    "reduce_mean": (kernel_capsule(reduce_lanes), MEAN),
    "reduce_var": (kernel_capsule(reduce_lanes), VAR),
    "reduce_std": (kernel_capsule(reduce_lanes), STD),
    "reduce_count_nonzero": (kernel_capsule(reduce_lanes), COUNT),
}
