"""Convolutions in one, two and three dimensions, and their two gradients, as implicit products.

What a product is made of depends on the mode (conv_place.glsl). Which body computes it depends on the shape
alone, and each gives every element the same one chain. In normal mode the chains of gradients of weights, which
run over all places of all images, are cut into parts that are computed at once and added. float64 has neither the
largest tiles, whose operands take twice the shared memory, nor parts.
"""
from libc.stdint cimport int64_t, uint64_t

from tinyfin.backends.cpu.spatial cimport places_dense, three, volume
from tinyfin.backends.gpu.elementwise cimport dense
from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.reduce cimport join_parts
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.gpu.modules import shader

cdef int[2] DIRECT = [shader("conv_direct_f32"), shader("conv_direct_f64")]
cdef int[2] SMALL = [shader("conv_small_f32"), shader("conv_small_f64")]
cdef int TILES = shader("conv_f32")

cdef enum:
    GROUP = 256              # invocations of a work group
    FAR = 1 << 28            # sizes and steps up to which places are counted in 32 bits
    OUTPUT = 0               # modes
    INPUT_GRAD
    WEIGHT_GRAD
    FEW_ROWS = 4             # rows up to which each invocation computes a result by itself
    SMALL_ROWS = 24          # rows up to which a tile of 64 would be mostly empty
    MANY_TILES = 256         # tiles that occupy a large device, several at a time on each of its parts
    FEW_TILES = 40           # under which small tiles occupy more of a device
    MANY_CLASSES = 64        # of places that the same taps reach, above which tiles would be mostly empty
    SMALL_DEPTH = 64
    SMALL_BLOCK = 128        # places of a chain that a table holds at a time: the least of a part
    TILES_BLOCK = 256
    MANY_GROUPS = 512        # work groups up to which more parts help a large device
    MOST_PARTS = 256

cdef int ONLY_PARTS = 0


def only_parts(int parts=0):
    """Cuts chains into so many parts on every device, for measuring and testing; 0 chooses by the shape.

    parts: a power of two up to 256.
    """
    global ONLY_PARTS
    if not 0 <= parts <= MOST_PARTS or parts & (parts - 1):
        raise ValueError(f"only_parts: parts is {parts}, expected 0 or a power of two up to {MOST_PARTS}")
    ONLY_PARTS = parts


cdef struct Product:
    int mode
    int64_t images, groups, rows, chans      # channels of one group: of the result, and of what chains run over
    int64_t outs[3]
    int64_t size[3]
    int64_t kernel[3]
    int64_t stride[3]
    int64_t pad[3]
    int64_t dil[3]
    int64_t columns, classes                 # columns of the largest class
    tf_view a, b
    const tf_view *bias                      # NULL: none
    const tf_view *out
    tf_call *call


cdef bint taken(const tf_view *a, const tf_view *b) noexcept nogil:
    return computes(a) and a.dtype == b.dtype


cdef void describe(Product *q, int mode, const tf_view *x, const tf_view *w, const tf_view *y,
                   const tf_attrs *at) noexcept nogil:
    """Sizes and steps; a step that is never taken gets a value that leaves all places in reach."""
    cdef int d, nd = x.ndim - 2
    q.mode, q.bias = mode, NULL
    three(&x.shape[2], nd, 1, q.size)
    three(&w.shape[2], nd, 1, q.kernel)
    three(&y.shape[2], nd, 1, q.outs)
    three(&at.i[0], nd, 1, q.stride)
    three(&at.i[3], nd, 0, q.pad)
    three(&at.i[6], nd, 1, q.dil)
    q.images, q.groups = x.shape[0], at.i[9]
    q.rows = (x.shape[1] if mode == INPUT_GRAD else y.shape[1]) // q.groups
    q.chans = (y.shape[1] if mode == INPUT_GRAD else x.shape[1]) // q.groups
    for d in range(3):
        if q.kernel[d] == 1:
            q.dil[d] = 1
        if q.outs[d] == 1:
            q.stride[d] = min(q.stride[d], q.dil[d] * (q.kernel[d] - 1) + 1)


cdef bint countable(Product *q) noexcept nogil:
    """Whether 32 bits count all places; columns and classes."""
    cdef int d
    for d in range(3):
        if q.size[d] >= FAR or q.pad[d] >= FAR or q.size[d] + 2 * q.pad[d] >= FAR:
            return False
    q.classes = 1
    if q.mode == OUTPUT:
        q.columns = q.images * volume(q.outs)
    elif q.mode == WEIGHT_GRAD:
        q.columns = q.chans * volume(q.kernel)
    else:
        q.columns = q.images
        for d in range(3):
            q.columns *= (q.size[d] + q.stride[d] - 1) // q.stride[d]
            q.classes *= min(q.stride[d], q.size[d])
    return (within_reach(&q.a) and within_reach(&q.b) and within_reach(q.out)
            and not (q.a.size | q.b.size) >> 31 and q.groups * q.classes * (q.columns + 1) < <int64_t>1 << 40)


cdef bint holes(const Product *q) noexcept nogil:
    """Whether some taps reach nothing from some places of x that others of their class reach from."""
    cdef int d
    for d in range(3):
        if (q.kernel[d] > q.stride[d] or q.pad[d] or q.dil[d] != 1
                or (q.size[d] + q.stride[d] - 1) // q.stride[d] > q.outs[d]):
            return True
    return False


cdef bint wide(const Product *q) noexcept nogil:
    """Whether taps are too many for the bits of a word."""
    return q.kernel[0] + q.kernel[1] + q.kernel[2] > 31


cdef int64_t tiles(const Product *q, int64_t rows, int64_t cols) noexcept nogil:
    return q.groups * q.classes * ((q.rows + rows - 1) // rows) * ((q.columns + cols - 1) // cols)


cdef int64_t most_parts(const Product *q, int64_t block) noexcept nogil:
    """Into how many parts of at least two blocks chains may be cut."""
    cdef int64_t places = q.images * volume(q.outs), parts = 1
    if q.mode != WEIGHT_GRAD or q.call.mode & TF_DETERMINISTIC or features(q.out) & IS_SOFTWARE:
        return 1
    while parts < MOST_PARTS and places >= 4 * parts * block and parts * q.out.size < 1 << 23:
        parts *= 2
    return parts


cdef int64_t parts_of(const Product *q, int64_t tiles, int64_t block) noexcept nogil:
    """As many as occupy a large device."""
    cdef int64_t parts = 1, most = most_parts(q, block)
    if ONLY_PARTS and q.mode == WEIGHT_GRAD and not q.call.mode & TF_DETERMINISTIC:
        return ONLY_PARTS
    while parts < most and tiles * parts < MANY_GROUPS:
        parts *= 2
    return parts


cdef bint in_fours(const Product *q) noexcept nogil:
    """Whether four neighbouring columns have results that four words hold."""
    cdef int64_t each = q.columns
    if q.mode == OUTPUT:
        each = volume(q.outs)
    elif q.mode == INPUT_GRAD:
        each = volume(q.size) if q.classes == 1 else 1
    return each % 4 == 0 and not address_of(q.out) & 15


cdef int run(Product *q, tf_call *call) noexcept:
    cdef list keep = []
    cdef tf_launch l
    cdef int64_t groups, parts = 1
    cdef uint64_t held = 0
    cdef bint doubled = is_double(q.out)
    cdef int rc, k, a
    cdef int strips[2]
    cdef const int64_t *fields[6]
    q.call = call
    if not countable(q):
        return TF_EUNSUPPORTED
    rc = dense(&q.a, keep, call)
    if rc == TF_OK and not places_dense(&q.b):
        rc = dense(&q.b, keep, call)
    call.detail[0] = q.out.dtype
    if rc != TF_OK:
        return rc
    if q.mode != WEIGHT_GRAD and (q.rows <= FEW_ROWS or q.classes > MANY_CLASSES):
        groups = (q.out.size + GROUP - 1) // GROUP
        begin(&l, DIRECT[doubled], call)
        constant(&l, 3, q.stride[0] != 1 or q.stride[1] != 1 or q.stride[2] != 1)
    elif doubled or q.rows <= SMALL_ROWS or (tiles(q, 64, 64) * most_parts(q, TILES_BLOCK) < FEW_TILES
                                             and not features(q.out) & IS_SOFTWARE):
        groups = tiles(q, 16, 16)
        parts = 1 if doubled else parts_of(q, groups, SMALL_BLOCK)
        begin(&l, SMALL[doubled], call)
        constant(&l, 3, wide(q))
        constant(&l, 4, SMALL_DEPTH // 2 if doubled else SMALL_DEPTH)     # as many bytes of shared memory
        constant(&l, 5, parts)
    else:
        strips[0] = strips[1] = 1
        if tiles(q, 64, 128) * most_parts(q, TILES_BLOCK) >= MANY_TILES:
            strips[1] = 2
            if q.mode == OUTPUT and tiles(q, 128, 128) >= MANY_TILES and (q.rows - 1) // 64 % 2:
                strips[0] = 2
        groups = tiles(q, 64 * strips[0], 64 * strips[1])
        parts = parts_of(q, groups, TILES_BLOCK)
        begin(&l, TILES, call)
        constant(&l, 3, wide(q))
        constant(&l, 4, 16 if strips[1] == 1 and q.mode == WEIGHT_GRAD else 8)
        constant(&l, 5, parts)
        constant(&l, 6, strips[0])
        constant(&l, 7, strips[1])
        constant(&l, 8, q.mode == INPUT_GRAD and holes(q))
        constant(&l, 9, in_fours(q))
    constant(&l, 0, q.out.dtype)
    constant(&l, 1, q.mode)
    constant(&l, 2, q.bias != NULL)
    if parts > 1:
        try:
            keep.append(scratch(q.out, <uint64_t>(4 * parts * q.out.size)))
            held = <uint64_t>keep[len(keep) - 1].block
        except BaseException as error:
            return failed(q.out, call, error)
        bytes_of(&l, held, <uint64_t>(4 * parts * q.out.size), True)
    else:
        write(&l, q.out)
    read(&l, &q.a if q.a.size else q.out)       # what takes no part is read too, so something has to be there
    read(&l, &q.b if q.b.size else q.out)
    if q.bias != NULL:
        read(&l, q.bias)
    else:
        number(&l, 0)
    word(&l, q.images)
    word(&l, q.groups)
    word(&l, q.rows)
    word(&l, q.chans)
    fields[0], fields[1], fields[2] = q.outs, q.size, q.kernel
    fields[3], fields[4], fields[5] = q.stride, q.pad, q.dil
    for k in range(6):
        for a in range(3):
            word(&l, fields[k][a])
    word(&l, q.b.strides[0])
    word(&l, q.b.strides[1])
    spread(&l, groups * parts)
    rc = launch(&l, q.out, call)
    return rc if parts == 1 or rc != TF_OK else join_parts(held, parts, q.out, call)


cdef int conv(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call) noexcept with gil:
    """x, w, bias?"""
    cdef Product q
    cdef tf_view bias
    cdef list keep = []
    cdef int rc
    call.detail[0] = inputs[0].dtype
    if not taken(inputs[0], inputs[1]):
        return TF_EUNSUPPORTED
    if outputs[0].size == 0:
        return TF_OK
    describe(&q, OUTPUT, inputs[0], inputs[1], outputs[0], at)
    q.a, q.b, q.out = inputs[1][0], inputs[0][0], outputs[0]
    if n > 2 and not inputs[2].flags & TF_ABSENT:
        bias = inputs[2][0]
        rc = dense(&bias, keep, call)
        if rc != TF_OK:
            return rc
        q.bias = &bias
    return run(&q, call)


cdef int conv_grad_input(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call) noexcept with gil:
    """g, w."""
    cdef Product q
    call.detail[0] = inputs[0].dtype
    if not taken(inputs[0], inputs[1]):
        return TF_EUNSUPPORTED
    if outputs[0].size == 0:
        return TF_OK
    describe(&q, INPUT_GRAD, outputs[0], inputs[1], inputs[0], at)
    q.a, q.b, q.out = inputs[1][0], inputs[0][0], outputs[0]
    return run(&q, call)


cdef int conv_grad_weight(const tf_view *const *inputs, int n, tf_view *const *outputs,
                          const tf_attrs *at, tf_call *call) noexcept with gil:
    """g, x."""
    cdef Product q
    call.detail[0] = inputs[0].dtype
    if not taken(inputs[0], inputs[1]):
        return TF_EUNSUPPORTED
    if outputs[0].size == 0:
        return TF_OK
    describe(&q, WEIGHT_GRAD, inputs[1], outputs[0], inputs[0], at)
    q.a, q.b, q.out = inputs[0][0], inputs[1][0], outputs[0]
    return run(&q, call)


KERNELS = {
    "conv": kernel_capsule(conv), "conv_grad_input": kernel_capsule(conv_grad_input),
    "conv_grad_weight": kernel_capsule(conv_grad_weight),
}
