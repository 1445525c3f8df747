"""Sorting and the k greatest or least elements of each line of an axis, always stable; searching.

Inputs have any strides, results are row-major. Elements are compared by integer keys in the order
of the values (NaN greatest,
        -0 below +0); a descending order is the ascending order of the complements. A key of
32 bits is packed above the element's place into one 64-bit item: items differ, so any method is
stable. Wider keys travel beside their places.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.lines cimport (
    Axes, bits, copy_items, gather_run, offsets, push, span)
from tinyfin.backends.cpu.reduced cimport (
    TF_ACC_F64, TF_ACC_I64, TF_KEY_MAX, tf_reduce_table)
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    SORT, TOPK
    FEW = 96            # items that are sorted by insertion
    GRAIN = 1 << 12     # elements of a task
    PART = 512          # values looked for by a task

cdef const tf_reduce_table *LOOPS = <const tf_reduce_table *>isa_table(b"reduce")


cdef struct Item:       # a wide key and its element's place
    uint64_t key
    uint64_t at

ctypedef fused number:
    double
    int64_t

ctypedef fused item:
    uint64_t
    Item


cdef inline uint64_t key_of(item v) noexcept nogil:
    if item is uint64_t:
        return v
    else:
        return v.key


cdef void insertion(item *v, int64_t n) noexcept nogil:
    cdef int64_t i, j
    cdef item t
    for i in range(1, n):
        t = v[i]
        j = i
        while j > 0 and key_of(v[j - 1]) > key_of(t):
            v[j] = v[j - 1]
            j -= 1
        v[j] = t


cdef void count_digits(const item *v, int64_t n, int first, uint32_t *counts) noexcept nogil:
    """Histograms of bytes first .. 7 of the keys."""
    cdef int64_t i
    cdef int d
    cdef uint64_t k
    memset(counts + 256 * first, 0, (8 - first) * 256 * sizeof(uint32_t))
    for i in range(n):
        k = key_of(v[i]) >> 8 * first
        for d in range(first, 8):
            counts[256 * d + (k & 255)] += 1
            k >>= 8


cdef item *radix(item *v, item *spare, int64_t n, int first, uint32_t *counts) noexcept nogil:
    """Least significant byte first from byte `first`; bytes that all items share are skipped."""
    cdef int64_t i
    cdef uint32_t sum, c
    cdef uint32_t *count
    cdef int d, b
    cdef item *t
    count_digits(v, n, first, counts)
    for d in range(first, 8):
        count = counts + 256 * d
        if count[key_of(v[0]) >> 8 * d & 255] == n:
            continue
        sum = 0
        for b in range(256):
            c = count[b]
            count[b] = sum
            sum += c
        for i in range(n):
            b = <int>(key_of(v[i]) >> 8 * d & 255)
            spare[count[b]] = v[i]
            count[b] += 1
        t = v
        v = spare
        spare = t
    return v


cdef item *sorted_items(item *v, item *spare, int64_t n, int first,
                        uint32_t *counts) noexcept nogil:
    """The items in order, in one of the two arrays."""
    if n <= FEW:
        insertion(v, n)
        return v
    return radix(v, spare, n, first, counts)


# ---- lines

cdef struct Lines:
    Axes a                    # the other axes: x and the results
    const char *x
    char *y
    int64_t *where
    int what, dtype, item
    bint wide, down           # keys of 64 bits; greatest first
    int64_t n, k, lines, xs, ys, group
    bint failed


cdef struct Room:             # scratch of one task
    const char *raw           # a line side by side
    char *line                # where it is gathered if need be
    char *keys
    char *v
    char *spare
    uint32_t *counts


cdef int64_t room_bytes(const Lines *s) noexcept nogil:
    return s.n * (16 + (32 if s.wide else 16)) + 8 * 256 * sizeof(uint32_t)


cdef void load_line(const Lines *s, int64_t base, Room *r) noexcept nogil:
    """Keys of a line, as signed integers."""
    r.raw = s.x + base * s.item
    if s.xs != 1:
        copy_items(r.line, 1, r.raw, s.xs, s.n, s.item)
        r.raw = r.line
    LOOPS.keys[TF_KEY_MAX][s.dtype](r.keys, r.raw, s.n)


cdef inline uint32_t rank32(int32_t key, uint32_t flip) noexcept nogil:
    """Ascending as an unsigned number, after the sign bit and, for a falling order, all bits are
    turned."""
    return <uint32_t>key ^ flip


cdef void pack(const Lines *s, Room *r) noexcept nogil:
    cdef const int32_t *k32 = <const int32_t *>r.keys
    cdef const uint64_t *k64 = <const uint64_t *>r.keys
    cdef uint64_t *v = <uint64_t *>r.v
    cdef Item *w = <Item *>r.v
    cdef uint32_t flip = 0x7fffffff if s.down else 0x80000000
    cdef uint64_t flip64 = ~(<uint64_t>1 << 63) if s.down else <uint64_t>1 << 63
    cdef int64_t i
    if s.wide:
        for i in range(s.n):
            w[i].key, w[i].at = k64[i] ^ flip64, i
    else:
        for i in range(s.n):
            v[i] = <uint64_t>rank32(k32[i], flip) << 32 | <uint64_t>i


cdef void take(bits *y, int64_t ys, const bits *raw, const int64_t *where,
               int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        y[i * ys] = raw[where[i * ys]]


cdef void store_line(const Lines *s, int64_t base, const Room *r, const char *v,
                     int64_t n) noexcept nogil:
    """Places from the items, values from the line by place: bits are kept, NaN's too."""
    cdef int64_t *w = s.where + base
    cdef char *y = s.y + base * s.item
    cdef int64_t i
    if s.wide:
        for i in range(n):
            w[i * s.ys] = (<const Item *>v)[i].at
    else:
        for i in range(n):
            w[i * s.ys] = <uint32_t>(<const uint64_t *>v)[i]
    if s.item == 4:
        take(<uint32_t *>y, s.ys, <const uint32_t *>r.raw, w, n)
    elif s.item == 8:
        take(<uint64_t *>y, s.ys, <const uint64_t *>r.raw, w, n)
    elif s.item == 2:
        take(<uint16_t *>y, s.ys, <const uint16_t *>r.raw, w, n)
    else:
        take(<uint8_t *>y, s.ys, <const uint8_t *>r.raw, w, n)


cdef const char *sort_line(const Lines *s, Room *r) noexcept nogil:
    pack(s, r)
    if s.wide:
        return <const char *>sorted_items(<Item *>r.v, <Item *>r.spare, s.n, 0, r.counts)
    return <const char *>sorted_items(<uint64_t *>r.v, <uint64_t *>r.spare, s.n, 4, r.counts)


cdef const char *first_items(const Lines *s, Room *r) noexcept nogil:
    """The k first items: candidates below the worst kept so far, sorted whenever there are many.

    An element with the same key as the worst kept one lies further on in the line, so it does not
    count.
    """
    cdef const int32_t *key = <const int32_t *>r.keys
    cdef uint32_t flip = 0x7fffffff if s.down else 0x80000000, worst = 0xffffffff, u
    cdef int64_t i, have = 0, many = 2 * s.k + 16
    cdef uint64_t *v = <uint64_t *>r.v
    cdef uint64_t *sorted
    cdef bint full = False
    for i in range(s.n):
        u = rank32(key[i], flip)
        if u < worst or not full:
            v[have] = <uint64_t>u << 32 | <uint64_t>i
            have += 1
            if have == many:
                sorted = sorted_items(v, <uint64_t *>r.spare, have, 4, r.counts)
                if sorted != v:
                    memcpy(v, sorted, s.k * sizeof(uint64_t))
                have, full, worst = s.k, True, <uint32_t>(v[s.k - 1] >> 32)
    return <const char *>sorted_items(v, <uint64_t *>r.spare, have, 4, r.counts)


cdef void task(int64_t t, void *ctx) noexcept nogil:
    cdef Lines *s = <Lines *>ctx
    cdef int64_t line, size = s.n * (16 if s.wide else 8)
    cdef int64_t off[3]
    cdef size_t bytes = room_bytes(s)
    cdef Room r
    cdef const char *v
    r.line = <char *>scratch_push(bytes)
    if r.line == NULL:
        s.failed = True
        return
    r.keys, r.v, r.spare = r.line + 8 * s.n, r.line + 16 * s.n, r.line + 16 * s.n + size
    r.counts = <uint32_t *>(r.spare + size)
    for line in range(t * s.group, min(s.lines, (t + 1) * s.group)):
        offsets(&s.a, line, off)
        load_line(s, off[0], &r)
        if s.what == TOPK and not s.wide and 4 * s.k + 128 < s.n:
            v = first_items(s, &r)
        else:
            v = sort_line(s, &r)
        store_line(s, off[1], &r, v, s.k)
    scratch_pop(bytes)


cdef int sort_lines(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at,
                    tf_call *call) noexcept nogil:
    """sort: dim, descending, stable. topk: k, dim, largest, sorted."""
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef Lines s
    cdef int k, dim
    s.what = <int><size_t>call.ctx
    dim = <int>(at.i[1] if s.what == TOPK else at.i[0])
    s.down = at.i[2] != 0 if s.what == TOPK else at.i[1] != 0
    s.dtype, s.item = x.dtype, tf_itemsize[x.dtype]
    s.x, s.y, s.where = x.data, y.data, <int64_t *>outputs[1].data
    s.n = x.shape[dim] if x.ndim else 1
    s.k = y.shape[dim] if x.ndim else y.size
    s.xs = x.strides[dim] if x.ndim else 1
    s.ys = y.strides[dim] if x.ndim else 1
    s.wide = x.dtype == TF_I64 or x.dtype == TF_F64
    if s.n >> 32:               # places are counted in 32 bits
        return TF_EUNSUPPORTED
    s.a.nd, s.lines, s.failed = 0, 1, False
    for k in range(x.ndim):
        if k != dim:
            s.lines *= x.shape[k]
            push(&s.a, x.shape[k], x.strides[k], y.strides[k], 0)
    if s.lines == 0 or s.k == 0:
        return TF_OK
    s.group = max(<int64_t>1, GRAIN // s.n)
    parallel_for((s.lines + s.group - 1) // s.group, 10.0 * <double>x.size, task, &s)
    call.detail[0] = room_bytes(&s)
    return TF_ENOMEM if s.failed else TF_OK


# ---- places in sorted sequences

cdef struct Search:
    const char *seq           # sorted lines of n, as float64 or int64
    const char *a             # what is looked for, in lines of m
    int64_t *y
    Axes given
    int64_t n, m
    int dtype, acc
    bint right, one           # after equal elements; one sequence for all


cdef int64_t first_place(const number *line, int64_t n, number v, bint right) noexcept nogil:
    """How many elements are below v (or equal to it, on the right); NaN is greatest."""
    cdef int64_t low = 0, high = n, mid
    cdef bint below
    while low < high:
        mid = (low + high) >> 1
        if right:
            below = line[mid] <= v or v != v
        else:
            below = line[mid] < v or (v != v and line[mid] == line[mid])
        if below:
            low = mid + 1
        else:
            high = mid
    return low


cdef void search_task(int64_t t, void *ctx) noexcept nogil:
    """PART of the values."""
    cdef const Search *s = <const Search *>ctx
    cdef int64_t at = t * PART, n = min(<int64_t>PART, span(&s.given) - at), i
    cdef int64_t raw[PART]
    cdef int64_t wide[PART]
    cdef const char *line = s.seq
    gather_run(<char *>raw, s.a, &s.given, at, n, tf_itemsize[s.dtype])
    LOOPS.load[s.acc][s.dtype](wide, raw, n)
    for i in range(n):
        if not s.one:
            line = s.seq + (at + i) // s.m * s.n * 8
        if s.acc == TF_ACC_F64:
            s.y[at + i] = first_place(<const double *>line, s.n, (<double *>wide)[i], s.right)
        else:
            s.y[at + i] = first_place(<const int64_t *>line, s.n, wide[i], s.right)


cdef int searchsorted(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept nogil:
    """x, sorted along its last axis; a; right."""
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *a = inputs[1]
    cdef int64_t raw[PART]
    cdef int64_t done = 0, m
    cdef Axes seq
    cdef Search s
    cdef char *room = <char *>scratch_push(8 * x.size)
    cdef int k
    if room == NULL:
        call.detail[0] = 8 * x.size
        return TF_ENOMEM
    s.seq, s.a, s.y = room, a.data, <int64_t *>outputs[0].data
    s.dtype, s.right = a.dtype, at.i[0] != 0      # a number has a dtype of its own
    s.acc = TF_ACC_F64 if x.dtype >= TF_F16 or a.dtype >= TF_F16 else TF_ACC_I64
    s.one, s.n = x.ndim == 1, x.shape[x.ndim - 1]
    s.m = a.shape[a.ndim - 1] if a.ndim else 1
    seq.nd = s.given.nd = 0
    for k in range(x.ndim):
        push(&seq, x.shape[k], x.strides[k], 0, 0)
    for k in range(a.ndim):
        push(&s.given, a.shape[k], a.strides[k], 0, 0)
    while done < x.size:
        m = min(<int64_t>PART, x.size - done)
        gather_run(<char *>raw, x.data, &seq, done, m, tf_itemsize[x.dtype])
        LOOPS.load[s.acc][x.dtype](room + 8 * done, raw, m)
        done += m
    parallel_for((a.size + PART - 1) // PART, 30.0 * <double>a.size, search_task, &s)
    scratch_pop(8 * x.size)
    return TF_OK


KERNELS = {
    "sort": (kernel_capsule(sort_lines), SORT),
    "topk": (kernel_capsule(sort_lines), TOPK),
    "searchsorted": kernel_capsule(searchsorted),
}
