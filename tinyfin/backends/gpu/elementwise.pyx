"""Elementwise rows and copies: parameters from views, one dispatch or a few."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport collapse, dense_strides

from tinyfin.backends.gpu.modules import numbers, shader
from tinyfin.ops.row import TABLE

cdef enum:
    SCALAR = 16                      # added to a dtype: the operand is a number
    INNER = 4                        # axes that one dispatch walks
    GROUP = 256                      # invocations of a work group
    TILE = 32                        # elements along the sides of what a transposing group moves
    TRANSPOSED = 4096                # elements from which on tiles are worth their two steps
    DISPATCHES = 4096                # of one call, at most; what would take more falls back
    F32 = 0
    INT, LONG, DOUBLE                # kinds of numbers that modules compute with
    STRIDED = 0                      # layouts of operands
    DENSE, QUADS

cdef list NAMES = [r.name for r in TABLE.values() if r.expr is not None]
cdef int POSITIVE = NAMES.index("positive")
cdef int TRANSPOSE = shader("transpose")
cdef int MODULES[512][4]             # row, kind -> number of the module, or -1
cdef int ATTRIBUTES[512]             # of each row: numbers


cdef uint32_t[4] NEEDED = [0, 0, HAS_INT64, HAS_FLOAT64]      # features by kind


cdef int find_modules() except -1:
    cdef dict found = numbers()
    cdef int i, k
    if len(NAMES) > 512:
        raise AssertionError("more rows than MODULES has places for")
    for i in range(len(NAMES)):
        ATTRIBUTES[i] = len(TABLE[NAMES[i]].attrs)
        if ATTRIBUTES[i] > 3:
            raise AssertionError(f"{NAMES[i]} has more attributes than a call has places for")
        for k, end in enumerate(("f32", "int", "i64", "f64")):
            MODULES[i][k] = found.get(f"elementwise_{NAMES[i]}_{end}", -1)
    return 0

find_modules()

cdef struct Call:                    # one call: operand 0 is the output
    int nops, ndim, row, kind, compute, deterministic
    const tf_view *where
    tf_call *call
    uint64_t address[4]
    uint8_t dtype[4]                 # with SCALAR where it is a number
    int64_t shape[8]
    int64_t strides[4][8]
    tf_range range[4]
    double f[3]


cdef inline bint is_float(int dtype) noexcept nogil:
    return TF_F16 <= dtype <= TF_F32


cdef uint64_t number_of(const tf_view *v, int compute) noexcept nogil:
    """A Python number in the type that is computed in, as bits."""
    cdef double d
    cdef float f
    cdef int64_t i
    cdef uint64_t bits
    cdef uint32_t u
    if v.dtype == TF_F64:
        d = (<const double *>v.data)[0]
        i = <int64_t>d if -9e18 < d < 9e18 else 0
    elif v.dtype == TF_I64:
        i = (<const int64_t *>v.data)[0]
        d = i != 0
    else:
        i = v.data[0] != 0
        d = <double>i
    if compute == TF_F64:
        d = <double>i if v.dtype == TF_I64 else d
        memcpy(&bits, &d, 8)
        return bits
    if is_float(compute):
        f = <float>i if v.dtype == TF_I64 else <float>d     # rounded once
        memcpy(&u, &f, 4)
        return u
    if compute == TF_BOOL:
        return d != 0
    if compute == TF_I64:
        return <uint64_t>i
    if compute == TF_U8:
        return i & 0xff
    if compute == TF_I8:
        return <uint32_t><int32_t>((<int32_t>i << 24) >> 24)
    if compute == TF_I16:
        return <uint32_t><int32_t>((<int32_t>i << 16) >> 16)
    return <uint32_t>i


cdef void set_operand(Call *c, int k, const tf_view *v, const tf_view *out) noexcept nogil:
    """An operand with strides over the output's shape."""
    cdef int lead = out.ndim - v.ndim, d, item = tf_itemsize[v.dtype]
    cdef int64_t low = 0, high = 0, step
    for d in range(out.ndim):
        step = 0
        if d >= lead and not (v.shape[d - lead] == 1 and out.shape[d] != 1):
            step = v.strides[d - lead]
        c.strides[k][d] = step
        if step < 0:
            low += step * (out.shape[d] - 1)
        else:
            high += step * (out.shape[d] - 1)
    c.dtype[k] = v.dtype
    c.address[k] = address_of(v)
    c.range[k].low = c.address[k] + <uint64_t>(low * item)
    c.range[k].high = c.address[k] + <uint64_t>((high + 1) * item)


cdef int run(Call *c) noexcept:
    """Axes merged, then one dispatch, or one for each place of the axes that are too many."""
    cdef int64_t *strides[4]
    cdef int64_t dispatches = 1
    cdef int k, walked = 0
    for k in range(c.nops):
        strides[k] = c.strides[k]
    c.ndim = collapse(c.ndim, c.shape, strides, c.nops)
    if c.ndim == 0:
        c.ndim, c.shape[0] = 1, 1
        for k in range(c.nops):
            c.strides[k][0] = 1
    if MODULES[c.row][c.kind] < 0 or features(c.where) & NEEDED[c.kind] != NEEDED[c.kind]:
        return TF_EUNSUPPORTED
    while not fits(c, walked):       # before anything is recorded
        dispatches *= c.shape[walked]
        walked += 1
        if dispatches > DISPATCHES or walked == c.ndim:
            return TF_EUNSUPPORTED
    return dispatch(c, 0, walked, c.address)


cdef bint fits(Call *c, int first) noexcept nogil:
    """Whether one dispatch can walk the axes from `first` on with 32-bit numbers."""
    cdef int64_t n = 1, reach
    cdef int d, k
    if c.ndim - first > INNER:
        return False
    for d in range(first, c.ndim):
        if c.shape[d] >= <int64_t>1 << 31:
            return False
        n *= c.shape[d]
        if n > <int64_t>1 << 31:
            return False
    for k in range(c.nops):
        if c.dtype[k] & SCALAR:
            continue
        reach = 0
        for d in range(first, c.ndim):
            reach += (c.strides[k][d] if c.strides[k][d] > 0 else -c.strides[k][d]) * (c.shape[d] - 1)
        if reach >= <int64_t>1 << 31:
            return False
    return True


cdef int dispatch(Call *c, int first, int walked, const uint64_t *address) noexcept:
    """One dispatch, or one for each place of the axes from `first` to `walked`."""
    cdef uint64_t moved[4]
    cdef int64_t i
    cdef int k, rc
    if first == walked:
        return one(c, first, address)
    for i in range(c.shape[first]):
        for k in range(c.nops):
            moved[k] = address[k]
            if not c.dtype[k] & SCALAR:
                moved[k] += <uint64_t>(i * c.strides[k][first] * tf_itemsize[c.dtype[k]])
        rc = dispatch(c, first + 1, walked, moved)
        if rc != TF_OK:
            return rc
    return TF_OK


cdef int one(Call *c, int first, const uint64_t *address) noexcept:
    """One dispatch over the axes from `first` on."""
    cdef tf_launch l
    cdef int d, k, axes = c.ndim - first
    cdef int64_t n = 1
    cdef int layout = QUADS if c.kind < LONG else DENSE
    begin(&l, MODULES[c.row][c.kind], c.call)
    l.operands, l.words, l.written = c.nops, 20, 1
    for d in range(3):
        l.word[16 + d] = 1
    for d in range(axes):
        n *= c.shape[first + d]
        if d + INNER - axes > 0:
            l.word[16 + d + INNER - axes - 1] = <uint32_t>c.shape[first + d]
    for k in range(c.nops):
        l.at[k] = address[k]
        l.range[k] = c.range[k]
        for d in range(axes):
            l.word[4 * k + d + INNER - axes] = <uint32_t>c.strides[k][first + d]
        if not c.dtype[k] & SCALAR:
            if not (axes == 1 and (c.strides[k][first] == 1 or n == 1)):
                layout = STRIDED
            elif tf_itemsize[c.dtype[k]] == 4 and address[k] & 15 and layout == QUADS:
                layout = DENSE
        constant(&l, k, c.dtype[k])
    l.word[19] = <uint32_t>n
    if c.nops < 4:                   # rows of three inputs have no attributes
        for k in range(3):
            number_word(&l, c.f[k], c.kind == DOUBLE)
    constant(&l, 4, c.compute)
    constant(&l, 5, layout)
    spread(&l, ((n // 4 + (n & 3) if layout == QUADS else n) + GROUP - 1) // GROUP)
    return launch(&l, c.where, c.call)


cdef int elementwise(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call) noexcept with gil:
    cdef const tf_view *out = outputs[0]
    cdef Call c
    cdef int k
    cdef bint floats = is_float(call.compute) or call.compute == TF_F64
    call.detail[0] = call.compute
    if call.compute > TF_F64 or out.dtype > (max(TF_F32, call.compute) if floats else TF_I64):
        return TF_EUNSUPPORTED
    if out.size == 0:
        return TF_OK
    c.row, c.compute, c.nops, c.ndim = <int>(<size_t>call.ctx & 0xffff), call.compute, n + 1, out.ndim
    c.kind = DOUBLE if call.compute == TF_F64 else F32 if floats else LONG if call.compute == TF_I64 else INT
    c.where, c.call = out, call
    memcpy(c.shape, out.shape, sizeof(c.shape))
    set_operand(&c, 0, out, out)
    for k in range(n):
        set_operand(&c, k + 1, inputs[k], out)
        if inputs[k].flags & TF_WRAPPED:
            c.address[k + 1] = number_of(inputs[k], call.compute)
            c.dtype[k + 1] = (TF_F32 if floats else TF_I32) | SCALAR      # of the kind's own type
            c.range[k + 1].low = c.range[k + 1].high = 0
        elif inputs[k].dtype > (TF_F64 if floats else TF_I64):
            return TF_EUNSUPPORTED
        elif inputs[k].dtype == TF_I64 and not floats:
            c.kind = LONG            # conditions too
    memset(c.f, 0, sizeof(c.f))
    for k in range(ATTRIBUTES[c.row]):
        c.f[k] = at.f[k]
        if not floats and <float>at.f[k] != at.f[k]:     # an integer that float32 does not hold
            return TF_EUNSUPPORTED
    return run(&c)


cdef int transpose(Call *c, int item) noexcept:
    """Bits moved in tiles, where another axis is dense in x than in the output; else TF_EUNSUPPORTED."""
    cdef tf_launch l
    cdef int64_t *strides[2]
    cdef int64_t places = 1, reach[2]
    cdef int d, k, deep = -1, wide = -1
    for k in range(2):
        strides[k], reach[k] = c.strides[k], 0
    c.ndim = collapse(c.ndim, c.shape, strides, 2)
    if not 2 <= c.ndim <= INNER + 2:
        return TF_EUNSUPPORTED
    for d in range(c.ndim):
        if c.shape[d] >= TILE // 2:
            wide = d if c.strides[0][d] == 1 else wide
            deep = d if c.strides[1][d] == 1 else deep
        for k in range(2):
            reach[k] += abs(c.strides[k][d]) * (c.shape[d] - 1)
        places *= c.shape[d]
    if deep < 0 or wide < 0 or deep == wide or places < TRANSPOSED or max(places, max(reach[0], reach[1])) >= <int64_t>1 << 31:
        return TF_EUNSUPPORTED
    begin(&l, TRANSPOSE, c.call)
    for k in range(2):
        l.at[k], l.range[k] = c.address[k], c.range[k]
    l.operands, l.written = 2, 1
    word(&l, c.shape[deep])
    word(&l, c.shape[wide])
    word(&l, c.strides[1][wide])
    word(&l, c.strides[0][deep])
    word(&l, places // (c.shape[deep] * c.shape[wide]))
    l.words += 3 + 2 * INNER         # of the other axes, the inner ones last
    for k in range(3):
        l.word[5 + k] = 1
    k = INNER
    for d in range(c.ndim - 1, -1, -1):
        if d == deep or d == wide:
            continue
        k -= 1
        if k > 0:
            l.word[4 + k] = <uint32_t>c.shape[d]
        l.word[8 + k] = <uint32_t>c.strides[0][d]
        l.word[8 + INNER + k] = <uint32_t>c.strides[1][d]
    constant(&l, 0, item)
    constant(&l, 1, TILE)
    places //= c.shape[deep] * c.shape[wide]
    spread(&l, places * ((c.shape[deep] + TILE - 1) // TILE) * ((c.shape[wide] + TILE - 1) // TILE))
    return launch(&l, c.where, c.call)


cdef int copy(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call) noexcept with gil:
    """Broadcasts, casts and copies one tensor; the same dtype moves bits."""
    cdef const tf_view *out = outputs[0]
    cdef const tf_view *x = inputs[0]
    cdef Call c
    cdef int k, item
    call.detail[0] = x.dtype
    if out.size == 0:
        return TF_OK
    memset(c.f, 0, sizeof(c.f))
    c.row, c.nops, c.ndim, c.compute, c.kind = POSITIVE, 2, out.ndim, TF_I32, INT
    c.where, c.call = out, call
    memcpy(c.shape, out.shape, sizeof(c.shape))
    set_operand(&c, 0, out, out)
    set_operand(&c, 1, x, out)
    if x.flags & TF_WRAPPED:
        if out.dtype > TF_F64:
            return TF_EUNSUPPORTED
        c.compute = TF_F32 if is_float(out.dtype) else out.dtype
        c.kind = (DOUBLE if out.dtype == TF_F64 else F32 if is_float(out.dtype) else LONG if out.dtype == TF_I64
                  else INT)
        c.address[1] = number_of(x, c.compute)
        c.dtype[1] = (TF_F32 if out.dtype >= TF_F16 else TF_I32) | SCALAR
        c.range[1].low = c.range[1].high = 0
    elif x.dtype == out.dtype:
        item = tf_itemsize[x.dtype]
        k = transpose(&c, item)
        if k != TF_EUNSUPPORTED:
            return k
        if item == 8:                # two words for each element
            if c.ndim == 8:
                return TF_EUNSUPPORTED
            for k in range(2):
                for d in range(c.ndim):
                    c.strides[k][d] *= 2
                c.strides[k][c.ndim] = 1
            c.shape[c.ndim] = 2
            c.ndim += 1
            item = 4
        c.dtype[0] = c.dtype[1] = TF_U8 if item == 1 else TF_I16 if item == 2 else TF_I32
    elif x.dtype == TF_F64 and not is_float(out.dtype) or out.dtype == TF_F64 and TF_I32 <= x.dtype <= TF_I64:
        c.compute, c.kind = TF_F64, DOUBLE       # float32 between them would round
    elif is_float(x.dtype) or is_float(out.dtype) or out.dtype == TF_F64:
        c.compute, c.kind = TF_F32, F32
    else:
        c.compute = out.dtype
        c.kind = LONG if x.dtype == TF_I64 and out.dtype == TF_BOOL else INT
        if out.dtype == TF_I64:
            c.compute = TF_I32
    return run(&c)


cdef int dense(tf_view *v, list keep, tf_call *call) noexcept:
    """Makes a view row-major without gaps: as it is, or a copy of it, in memory that the caller keeps
    until its last dispatch."""
    cdef tf_view x = v[0]
    cdef const tf_view *source = &x
    cdef tf_attrs none
    cdef object block
    if v.flags & (TF_CONTIGUOUS | TF_ABSENT) or v.size == 0:
        return TF_OK
    try:
        block = scratch(v, <uint64_t>(v.size * tf_itemsize[v.dtype]))
        keep.append(block)
        v.block, v.offset = <void *><uint64_t>block.block, 0
    except BaseException as error:
        return failed(v, call, error)
    memset(&none, 0, sizeof(none))
    dense_strides(v)
    return copy(&source, 1, &v, &none, call)


KERNELS = {"elementwise": kernel_capsule(elementwise), "copy": kernel_capsule(copy)}
