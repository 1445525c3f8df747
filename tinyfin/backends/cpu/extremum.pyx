"""Extrema over any axes, where they are, and any/all.

Inputs have any strides, results are row-major. Everything compares integer keys in the order of the
values: NaN wins, -0 lies below +0; `min` and `all` look for the greatest complement. The first of
equal elements counts, in row-major order of the reduced axes.
"""
from libc.stdint cimport INT32_MIN, INT64_MIN, int32_t, int64_t, uint8_t

from tinyfin.backends.cpu.copy cimport NO_ROOM, lies_across, straightened
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport copy_items, fill_items, offset
from tinyfin.backends.cpu.reduced cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    AMAX, AMIN, ANY, ALL, ARGMAX, ARGMIN, MAXDIM, MINDIM
    TASK = 1 << 15      # elements of a task
    CHUNK = 1 << 14     # rows of a task of columns; of fixed size, so that parts join in order
    CUT = 512           # columns of a task

cdef const tf_reduce_table *LOOPS = <const tf_reduce_table *>isa_table(b"reduce")


cdef struct Extrema:
    Reduced r
    int kind, dtype
    bint wide, places
    char *y
    int64_t *where
    int64_t chunks, group, cuts, outer
    int64_t *keys         # [chunks][outs] of parts, where a result has several tasks
    int64_t *at


cdef void row_extremum(const Extrema *s, int64_t base, int64_t first, int64_t n, int64_t *key,
                       int64_t *place) noexcept nogil:
    """The greatest key of n elements of a row, and the element where it is first met."""
    cdef char buffer[8 * TF_BLOCK]
    cdef int64_t b = first, m, k, where = first
    cdef const char *p
    key[0] = INT64_MIN
    while b < first + n:
        m = min(<int64_t>TF_BLOCK, first + n - b)
        p = row_block(&s.r, base, b, m, buffer)
        k = LOOPS.best[s.kind][s.dtype](p, m)
        if k > key[0]:
            key[0], where = k, b
            if s.kind >= TF_KEY_ANY and k:
                return
        b += TF_BLOCK
    if place != NULL:
        m = min(<int64_t>TF_BLOCK, first + n - where)
        p = row_block(&s.r, base, where, m, buffer)
        place[0] = where + LOOPS.find[s.kind][s.dtype](p, m, key[0])


cdef void finish(const Extrema *s, int64_t o, int64_t n, const int64_t *key,
                 const int64_t *place) noexcept nogil:
    if s.y != NULL:
        LOOPS.value[s.kind][s.dtype](s.y + o * (1 if s.kind >= TF_KEY_ANY else s.r.item), key, n)
    if s.where != NULL and s.where + o != place:
        copy_items(<char *>(s.where + o), 1, <const char *>place, 1, n, 8)


cdef void rows(int64_t t, void *ctx) noexcept nogil:
    cdef const Extrema *s = <const Extrema *>ctx
    cdef int64_t o, key, place
    for o in range(t * s.group, min(s.r.outs, (t + 1) * s.group)):
        row_extremum(s, offset(&s.r.kept, 0, o), 0, s.r.n, &key, &place if s.places else NULL)
        finish(s, o, 1, &key, &place)


cdef void row_chunks(int64_t t, void *ctx) noexcept nogil:
    """Part t % chunks of row t // chunks."""
    cdef const Extrema *s = <const Extrema *>ctx
    cdef int64_t o = t // s.chunks, c = t % s.chunks, first = c * TASK
    row_extremum(s, offset(&s.r.kept, 0, o), first, min(<int64_t>TASK, s.r.n - first),
                 s.keys + c * s.r.outs + o, s.at + c * s.r.outs + o if s.places else NULL)


cdef void join(const Extrema *s) noexcept nogil:
    """Parts in rising order: a later one wins only where it is greater."""
    cdef int64_t c, o, outs = s.r.outs
    cdef const int64_t *key
    for c in range(1, s.chunks):
        key = s.keys + c * outs
        for o in range(outs):
            if key[o] > s.keys[o]:
                s.keys[o] = key[o]
                if s.places:
                    s.at[o] = s.at[c * outs + o]
    finish(s, 0, outs, s.keys, s.at)


cdef void lift_rows(const Extrema *s, int64_t o, int64_t w, int64_t first, int64_t n, char *best,
                    char *where) noexcept nogil:
    """Keys of n rows of w columns into `best`, and the row number from `first` into `where`."""
    cdef const Axes *g = &s.r.gone
    cdef int64_t across = s.r.kept.s[0][s.r.kept.nd - 1], base = offset(&s.r.kept, 0, o), e
    cdef int64_t inner = g.shape[g.nd - 1], along = g.s[0][g.nd - 1]
    cdef const char *start = NULL
    cdef const char *p
    cdef char row[8 * CUT]
    cdef char keys[8 * CUT]
    for e in range(n):
        if e == 0 or (first + e) % inner == 0:
            start = s.r.x + (base + offset(g, 0, first + e)) * s.r.item
        p = start
        start += along * s.r.item
        if across != 1:
            copy_items(row, 1, p, across, w, s.r.item)
            p = row
        if where == NULL:
            LOOPS.lifted[s.kind][s.dtype](best, p, w)
            continue
        LOOPS.keys[s.kind][s.dtype](keys, p, w)
        LOOPS.lift[s.wide](best, where, keys, e, w)


cdef void columns(int64_t t, void *ctx) noexcept nogil:
    """Unit u is a chunk of rows of a cut of the last kept axis at a place of the others."""
    cdef const Extrema *s = <const Extrema *>ctx
    cdef int64_t last = s.r.kept.shape[s.r.kept.nd - 1], u, c, o, w, i, first
    cdef int64_t best[CUT]
    cdef int64_t where[CUT]
    cdef int64_t key[CUT]
    cdef int64_t place[CUT]
    for u in range(t * s.group, min(s.outer * s.cuts * s.chunks, (t + 1) * s.group)):
        c, i = u % s.chunks, u // s.chunks % s.cuts * CUT
        o, w = u // s.chunks // s.cuts * last + i, min(<int64_t>CUT, last - i)
        first = c * CHUNK
        for i in range(w):
            if s.wide:
                best[i], where[i] = INT64_MIN, 0
            else:
                (<int32_t *>best)[i], (<int32_t *>where)[i] = INT32_MIN, 0
        lift_rows(s, o, w, first, min(<int64_t>CHUNK, s.r.n - first), <char *>best,
                  <char *>where if s.places else NULL)
        for i in range(w):
            key[i] = best[i] if s.wide else (<int32_t *>best)[i]
            place[i] = first + (where[i] if s.wide else (<int32_t *>where)[i])
        if s.chunks == 1:
            finish(s, o, w, key, place)
        else:
            copy_items(<char *>(s.keys + c * s.r.outs + o), 1, <char *>key, 1, w, 8)
            if s.places:
                copy_items(<char *>(s.at + c * s.r.outs + o), 1, <char *>place, 1, w, 8)


cdef void start(const Extrema *s, bint beside) noexcept nogil:
    cdef double cost = 0.2 * <double>s.r.n * <double>s.r.outs + 20.0 * <double>s.r.outs
    cdef int64_t units
    if beside:
        units = s.outer * s.cuts * s.chunks
        parallel_for((units + s.group - 1) // s.group, cost, columns, <void *>s)
    elif s.chunks == 1:
        parallel_for((s.r.outs + s.group - 1) // s.group, cost, rows, <void *>s)
    else:
        parallel_for(s.r.outs * s.chunks, cost, row_chunks, <void *>s)
    if s.chunks > 1:
        join(s)


cdef int run(Extrema *s, tf_call *call) noexcept nogil:
    cdef bint beside = side_by_side(&s.r)
    cdef int64_t last, per = CHUNK if beside else TASK, bytes = 0
    s.chunks = (s.r.n + per - 1) // per
    if beside:
        last = s.r.kept.shape[s.r.kept.nd - 1]
        s.outer, s.cuts = s.r.outs // last, (last + CUT - 1) // CUT
        s.group = max(<int64_t>1, TASK // (min(last, <int64_t>CUT) * min(s.r.n, <int64_t>CHUNK)))
    else:
        s.group = max(<int64_t>1, TASK // s.r.n)
        if s.r.outs >= 64:
            s.chunks = 1         # rows enough for all threads
    if s.chunks > 1:
        bytes = 16 * s.chunks * s.r.outs
        s.keys = <int64_t *>scratch_push(bytes)
        if s.keys == NULL:
            call.detail[0] = bytes
            return TF_ENOMEM
        s.at = s.keys + s.chunks * s.r.outs
    start(s, beside)
    if bytes:
        scratch_pop(bytes)
    return TF_OK


cdef int reduce_extremum(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at,
                         tf_call *call) noexcept nogil:
    cdef int rc
    cdef const tf_view *x = inputs[0]
    cdef int what = <int><size_t>call.ctx
    cdef uint8_t none
    cdef Extrema s
    s.kind = (TF_KEY_ANY if what == ANY else TF_KEY_ALL if what == ALL else
              TF_KEY_MAX if what == AMAX or what == ARGMAX or what == MAXDIM else TF_KEY_MIN)
    s.dtype, s.wide = x.dtype, x.dtype == TF_I64 or x.dtype == TF_F64
    s.places = what >= ARGMAX
    s.where = NULL
    s.y = NULL if what == ARGMAX or what == ARGMIN else outputs[0].data
    if s.places:
        s.where = <int64_t *>(outputs[1].data if what >= MAXDIM else outputs[0].data)
        reduced(&s.r, x, mask_of_one(x, at.i[0]))
    else:
        reduced(&s.r, x, mask_of(x, at.i))
    if is_slow(&s.r) and lies_across(x):
        rc = straightened(reduce_extremum, inputs, n, 0, outputs, at, call)
        if rc != NO_ROOM:
            return rc
    if s.r.outs == 0:
        return TF_OK
    if s.r.n == 0:               # only any and all have a value then
        none = what == ALL
        fill_items(s.y, 1, <char *>&none, s.r.outs, 1)
        return TF_OK
    return run(&s, call)


KERNELS = {
    "reduce_amax": (kernel_capsule(reduce_extremum), AMAX),
    "reduce_amin": (kernel_capsule(reduce_extremum), AMIN),
    "reduce_any": (kernel_capsule(reduce_extremum), ANY),
    "reduce_all": (kernel_capsule(reduce_extremum), ALL),
    "argmax": (kernel_capsule(reduce_extremum), ARGMAX),
    "argmin": (kernel_capsule(reduce_extremum), ARGMIN),
    "max_dim": (kernel_capsule(reduce_extremum), MAXDIM),
    "min_dim": (kernel_capsule(reduce_extremum), MINDIM),
}
