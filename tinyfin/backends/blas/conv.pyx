"""Convolutions and their two gradients by the library: products with blocks of columns.

A column holds what one position of y reads of x. Blocks of columns are gathered from padded copies
of x (or x itself, for kernels of one tap), so that the buffer stays small however large x is: whole
images where several fit, else a part of one. Groups, and what would not gain, are left to the CPU's
own kernels.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from tinyfin.backends.blas.cblas cimport *
from tinyfin.backends.cpu.conv_job cimport *
from tinyfin.backends.cpu.conv_shape cimport *
from tinyfin.backends.cpu.spatial cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.backends.cpu.winograd cimport winograd_pays
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.cpu import conv as own

cdef tf_kernel OWN_CONV = <tf_kernel>PyCapsule_GetPointer(own.KERNELS["conv"], "tf_kernel")
cdef tf_kernel OWN_INPUT = <tf_kernel>PyCapsule_GetPointer(own.KERNELS["conv_grad_input"],
                                                           "tf_kernel")
cdef tf_kernel OWN_WEIGHT = <tf_kernel>PyCapsule_GetPointer(own.KERNELS["conv_grad_weight"],
                                                            "tf_kernel")

cdef enum:
    PANEL = 1 << 18           # elements of a block of columns, as far as rows allow
    NARROW = 256              # columns of a block, at least
    BROAD = 4096              # and at most
    SLICE = 128               # rows of columns of a task of gw, at least
    LEAST = 1 << 20           # multiply-adds of a convolution below which a call does not pay
    THIN = 48                 # channels of y, or elements of a column, up to which our own kernels win

ctypedef fused real:
    float
    double


cdef struct Block:
    # columns of some whole images, or of a part of one
    const Shape *s
    int64_t k                         # rows of a column: channels of x times taps
    int64_t images, width             # of all blocks but the last: images, columns of a part
    int64_t parts                     # blocks of an image
    int64_t image, first, cols        # this one: its first image, its first position there, columns
    const char *src                   # where columns are read
    const int64_t *off                # of a row in src
    Columns columns
    int64_t *runs                     # (start, length) pairs in src
    int64_t *places
    int count
    char *panel                       # [k][cols]
    char *side                        # [channels of y, or of x][cols], where images are joined
    # planes that are joined or parted, and the gradient that panels are added to
    char *planes
    int64_t rows, row, step           # how many a row of `side` has; elements between rows, images
    const char *bias


cdef bint gains(const Shape *s) noexcept nogil:
    """Whether products by the library are faster than our own kernels, as measured with OpenBLAS."""
    return (s.c * s.taps > THIN and s.o > THIN and not winograd_pays(s, False)
            and s.n * s.o * s.places * s.c * s.taps >= LEAST)


cdef bint suits(const Shape *s) noexcept nogil:
    """Whether the library is to compute it."""
    return (s.own and s.groups == 1 and (gains(s) or eager())
            and countable(s.o, s.c * s.taps, max(s.places, s.area)))


cdef bint dense_planes(const tf_view *v) noexcept nogil:
    """Whether the places of a channel lie one after the other, and channels no nearer than that."""
    cdef int64_t size = 1
    cdef int d
    for d in range(2, v.ndim):
        size *= v.shape[d]
    return places_dense(v) and (v.strides[1] >= size or v.shape[1] == 1) and countable(v.strides[1], 0, 0)


cdef void cut(Block *b, const Shape *s, bint plain, int64_t images) noexcept nogil:
    """How many columns a block takes, of at most some images; whole planes where they are columns."""
    cdef int64_t width = max(<int64_t>NARROW, min(<int64_t>BROAD, PANEL // (s.c * s.taps)))
    b.s, b.k = s, s.c * s.taps
    if plain and s.places >= NARROW:
        b.images, b.parts, b.width = 1, 1, s.places
        return
    b.images = max(1, min(images, width // s.places))
    b.parts = (s.places + width - 1) // width
    b.width = min(s.places, ((s.places + b.parts - 1) // b.parts + 15) & ~15)
    b.parts = (s.places + b.width - 1) // b.width


cdef int64_t most(const Block *b) noexcept nogil:
    """Columns of the largest block."""
    return b.images * b.s.places if b.images > 1 else b.width


cdef int64_t blocks(const Block *b, int64_t images) noexcept nogil:
    return (images + b.images - 1) // b.images * b.parts


cdef void select(Block *b, int64_t t, int64_t images) noexcept nogil:
    """Block t of some images."""
    b.image, b.first = t // b.parts * b.images, t % b.parts * b.width
    if b.images > 1:
        b.cols = min(b.images, images - b.image) * b.s.places
    else:
        b.cols = min(b.width, b.s.places - b.first)


cdef bint joined(const Block *b) noexcept nogil:
    """Whether the block's planes of one channel lie in several images."""
    return b.cols > b.s.places


# Columns

cdef void row_task(int64_t q, void *ctx) noexcept nogil:
    """One row of the panel: what a tap of a channel reads for all columns."""
    cdef const Block *b = <const Block *>ctx
    cdef int64_t item = b.s.kind.itemsize, n
    cdef int r
    cdef const char *src = b.src + b.off[q] * item
    cdef char *to = b.panel + q * b.cols * item
    for r in range(b.count):
        n = b.runs[2 * r + 1] * item
        memcpy(to, src + b.runs[2 * r] * item, n)
        to += n


# Planes of a tensor as one matrix

cdef void join_task(int64_t c, void *ctx) noexcept nogil:
    """One channel's planes of all images of the block, side by side."""
    cdef const Block *b = <const Block *>ctx
    cdef int64_t item = b.s.kind.itemsize, size = b.s.places * item, i
    for i in range(b.cols // b.s.places):
        memcpy(b.side + c * b.cols * item + i * size, b.planes + (i * b.step + c * b.row) * item,
               size)


cdef void part_task(int64_t c, void *ctx) noexcept nogil:
    """The other way, with the bias."""
    cdef const Block *b = <const Block *>ctx
    cdef int64_t item = b.s.kind.itemsize, size = b.s.places * item, i
    cdef char *to
    for i in range(b.cols // b.s.places):
        to = b.planes + (i * b.step + c * b.row) * item
        memcpy(to, b.side + c * b.cols * item + i * size, size)
        if b.bias != NULL:
            b.s.kind.add(to, b.bias + c * item, 0, b.s.places)


cdef void bias_task(int64_t c, void *ctx) noexcept nogil:
    cdef const Block *b = <const Block *>ctx
    cdef int64_t item = b.s.kind.itemsize
    b.s.kind.add(b.planes + c * b.row * item, b.bias + c * item, 0, b.cols)


cdef void planes_at(Block *b, char *base, int64_t channels, int64_t row, int64_t step) noexcept nogil:
    """The block's part of a tensor whose channels lie `row` and images `step` elements apart."""
    b.planes = base + (b.image * step + b.first) * b.s.kind.itemsize
    b.rows, b.row, b.step = channels, row, step


cdef operand read_planes(Block *b) noexcept nogil:
    """The planes as a matrix [channels][cols], joined where they lie in several images."""
    cdef operand x
    x.at, x.turned, x.ld = b.planes, False, b.row if b.rows > 1 else b.cols
    if joined(b):
        parallel_for(b.rows, 0.15 * b.rows * b.cols, join_task, b)
        x.at, x.ld = b.side, b.cols
    return x


cdef void write_planes(Block *b, int dtype, int64_t k, const operand *a,
                       const operand *x) noexcept nogil:
    """planes = A X, and the bias."""
    cdef double cost = 0.3 * b.rows * b.cols
    if joined(b):
        product(dtype, b.rows, b.cols, k, a, x, b.side, b.cols, False)
        parallel_for(b.rows, cost, part_task, b)
        return
    product(dtype, b.rows, b.cols, k, a, x, b.planes, b.row if b.rows > 1 else b.cols, False)
    if b.bias != NULL:
        parallel_for(b.rows, cost, bias_task, b)


# Tasks: each has room of its own, on the scratch stack of its thread

cdef struct Work:
    Block block                       # what all tasks have in common
    operand w
    char *data                        # of the result
    char *g                           # of y's gradient
    int64_t images, row, step         # between channels and images of the gradient
    int64_t rows                      # of columns that a task takes
    bint onto                         # gw holds what the images before gave
    Reading reading
    Phases phases
    Room room
    int64_t steps[3]
    int64_t asked                     # bytes that a task did not get


cdef int64_t take_room(Block *b, Work *q, int64_t channels, bint panel) noexcept nogil:
    """Room for a block's runs, for its panel where it has one, and for planes that are joined; the bytes."""
    cdef int64_t cols = most(b), item = b.s.kind.itemsize
    cdef int64_t joint = channels * cols * item if b.images > 1 else 0
    cdef int64_t columns = b.k * cols * item if panel else 0
    cdef int64_t bytes = 3 * (cols + 2) * 8 + joint + columns + 5 * 64
    cdef char *next = <char *>scratch_push(bytes)
    if next == NULL:
        q.asked = bytes
        return 0
    b.runs = <int64_t *>carve(&next, 2 * (cols + 2) * 8)
    b.places = <int64_t *>carve(&next, (cols + 2) * 8)
    b.side = carve(&next, joint)
    b.panel = carve(&next, columns)
    return bytes


cdef int finished(const Work *q, tf_call *call) noexcept nogil:
    if q.asked:
        call.detail[0] = q.asked
        return TF_ENOMEM
    return TF_OK


# y, and the gradient of w

cdef int prepare(Work *q, const Shape *s, const tf_view *x, int64_t more,
                 tf_call *call) noexcept nogil:
    """Tables and copies for reading x; `more` elements are left to the caller."""
    cdef int64_t i
    cdef int64_t *off
    cdef Block *b = &q.block
    cdef Reading *r = &q.reading
    phases_of(s, &q.phases)
    plan(r, s, &q.phases, x, pointwise(s, &q.phases) and dense_planes(x), q.steps)
    cut(b, s, r.here, r.images)
    q.asked, b.bias = 0, NULL
    if enter(&q.room, b.k * 8 + r.bytes + more * s.kind.itemsize, call):
        return TF_ENOMEM
    b.off = off = <int64_t *>carve(&q.room.next, b.k * 8)
    for i in range(b.k):
        off[i] = i // s.taps * r.plane + (0 if r.here else tap_offset(s, &q.phases, i % s.taps))
    dense_steps(s.out, b.columns.dst + 1)
    b.columns.base = b.columns.dst[0] = 0
    columns(&b.columns, s.out, r.step)
    b.columns.src[0] = r.image
    return TF_OK


cdef operand columns_of(Block *b, const Reading *p) noexcept nogil:
    """The block's columns: x's own planes where they are that, else gathered."""
    cdef operand x
    if p.here and not joined(b):
        planes_at(b, <char *>b.src + b.off[0] * b.s.kind.itemsize, b.k, p.plane, p.image)
        return read_planes(b)
    b.count = runs_of(&b.columns, b.image * b.s.places + b.first, b.cols, b.runs, b.places)
    parallel_for(b.k, 0.15 * b.k * b.cols, row_task, b)
    x.at, x.turned, x.ld = b.panel, False, b.cols
    return x


cdef void read_images(Work *q, const tf_view *x, int64_t first) noexcept nogil:
    """The planes of the next images."""
    q.images = min(q.reading.images, q.block.s.n - first)
    q.block.columns.count[0] = q.images
    q.block.src = chunk(&q.reading, x, first, q.images, q.room.next)


cdef double cost_of(const Shape *s, int64_t images) noexcept nogil:
    return s.kind.fma_ns * images * s.o * s.places * s.c * s.taps


cdef void forward_task(int64_t t, void *ctx) noexcept nogil:
    """One block of y."""
    cdef Work *q = <Work *>ctx
    cdef Block b = q.block
    cdef const Shape *s = b.s
    cdef operand panel
    cdef int64_t bytes = take_room(&b, q, s.o, not q.reading.here or b.images > 1)
    if bytes == 0:
        return
    select(&b, t, q.images)
    panel = columns_of(&b, &q.reading)
    planes_at(&b, q.data, s.o, s.places, s.o * s.places)
    write_planes(&b, s.dtype, b.k, &q.w, &panel)
    scratch_pop(bytes)


cdef int conv(const tf_view *const *inputs, int n, tf_view *const *outputs,
              const tf_attrs *at, tf_call *call) noexcept nogil:
    """x, w, bias?"""
    cdef const tf_view *x = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef const tf_view *bias = inputs[2] if n > 2 and not inputs[2].flags & TF_ABSENT else NULL
    cdef tf_view *y = outputs[0]
    cdef Shape s
    if takes(x, w) and y.size and w.size:
        describe(&s, x.ndim - 2, x.dtype, &x.shape[2], &w.shape[2], &y.shape[2], at)
        channels(&s, x.shape[0], x.shape[1], w.shape[0])
        if suits(&s) and (bias == NULL or bias.strides[0] == 1):
            return forward(&s, x, w, bias, y, call)
    return OWN_CONV(inputs, n, outputs, at, call)


cdef int forward(const Shape *s, const tf_view *x, const tf_view *w, const tf_view *bias,
                 tf_view *y, tf_call *call) noexcept nogil:
    cdef int64_t i = 0, item = s.kind.itemsize, n
    cdef Work q
    if prepare(&q, s, x, 0 if w.flags & TF_CONTIGUOUS else w.size, call):
        return TF_ENOMEM
    q.w.at, q.w.turned, q.w.ld = w.data, False, q.block.k
    if not w.flags & TF_CONTIGUOUS:
        q.w.at = carve(&q.room.next, w.size * item)
        spread(w, s, <char *>q.w.at)
    if bias != NULL:
        q.block.bias = bias.data
    while i < s.n:
        read_images(&q, x, i)
        q.data = y.data + i * s.o * s.places * item
        n = blocks(&q.block, q.images)
        run_tasks(n, True, cost_of(s, q.images), forward_task, &q)
        i += q.images
    scratch_pop(q.room.bytes)
    return finished(&q, call)


cdef int conv_grad_weight(const tf_view *const *inputs, int n, tf_view *const *outputs,
                          const tf_attrs *at, tf_call *call) noexcept nogil:
    """g, x."""
    cdef const tf_view *g = inputs[0]
    cdef const tf_view *x = inputs[1]
    cdef tf_view *w = outputs[0]
    cdef Shape s
    if takes(g, x) and g.size and w.size:
        describe(&s, x.ndim - 2, x.dtype, &x.shape[2], &w.shape[2], &g.shape[2], at)
        channels(&s, x.shape[0], x.shape[1], g.shape[1])
        if suits(&s) and dense_planes(g):
            return weight(&s, g, x, w, call)
    return OWN_WEIGHT(inputs, n, outputs, at, call)


cdef void weight_task(int64_t t, void *ctx) noexcept nogil:
    """Some rows of columns: each block adds to gw what its positions of g make of them."""
    cdef Work *q = <Work *>ctx
    cdef Block b = q.block
    cdef const Shape *s = b.s
    cdef operand a, panel
    cdef int64_t i, bytes, all = b.k, first = t * q.rows
    b.k, b.off = min(q.rows, all - first), b.off + first
    bytes = take_room(&b, q, s.o, not q.reading.here or b.images > 1)
    if bytes == 0:
        return
    for i in range(blocks(&b, q.images)):
        select(&b, i, q.images)
        panel = columns_of(&b, &q.reading)
        panel.turned = True
        planes_at(&b, q.g, s.o, q.row, q.step)
        a = read_planes(&b)
        product(s.dtype, s.o, b.k, b.cols, &a, &panel, q.data + first * s.kind.itemsize, all,
                q.onto or i > 0)
    scratch_pop(bytes)


cdef int weight(const Shape *s, const tf_view *g, const tf_view *x, tf_view *w,
                tf_call *call) noexcept nogil:
    cdef int64_t i = 0
    cdef Work q
    if prepare(&q, s, x, 0, call):
        return TF_ENOMEM
    q.data, q.row, q.step = w.data, g.strides[1], g.strides[0]
    q.rows = max(<int64_t>SLICE, (q.block.k + 7) // 8) if splits() else q.block.k
    while i < s.n:
        read_images(&q, x, i)
        q.g = g.data + i * q.step * s.kind.itemsize
        q.onto = i > 0
        run_tasks((q.block.k + q.rows - 1) // q.rows, True, cost_of(s, q.images), weight_task, &q)
        i += q.images
    scratch_pop(q.room.bytes)
    return finished(&q, call)


# The gradient of x: columns of what each position of y gives back, added where they came from

cdef void give_row(const Block *b, real *to, const real *row, const int64_t *tap) noexcept nogil:
    """One tap's row of the panel, added to one channel of all images of the block."""
    cdef const Shape *s = b.s
    cdef int64_t j = 0, n, p, q0, q1, q2, x0, x1, x2, lo, hi, t, step = s.stride[2]
    cdef int64_t shift = tap[2] * s.dil[2] - s.pad[2]
    cdef real *x
    while j < b.cols:
        p = b.first + j
        q2 = p % s.out[2]
        q1 = p // s.out[2] % s.out[1]
        q0 = p // s.out[2] // s.out[1] % s.out[0]
        n = min(s.out[2] - q2, b.cols - j)
        x0 = q0 * s.stride[0] + tap[0] * s.dil[0] - s.pad[0]
        x1 = q1 * s.stride[1] + tap[1] * s.dil[1] - s.pad[1]
        if 0 <= x0 < s.size[0] and 0 <= x1 < s.size[1]:
            x2 = q2 * step + shift
            lo = (-x2 + step - 1) // step if x2 < 0 else 0
            hi = min(n, (s.size[2] - x2 + step - 1) // step) if x2 < s.size[2] else 0
            x = to + p // s.places * s.c * s.area + (x0 * s.size[1] + x1) * s.size[2] + x2
            if step == 1:
                for t in range(lo, hi):
                    x[t] += row[j + t]
            else:
                for t in range(lo, hi):
                    x[t * step] += row[j + t]
        j += n


cdef void give_task(int64_t c, void *ctx) noexcept nogil:
    """One channel of x: no other task writes there."""
    cdef const Block *b = <const Block *>ctx
    cdef const Shape *s = b.s
    cdef int64_t tap[3]
    cdef int64_t q = c * s.taps
    for tap[0] in range(s.kernel[0]):
        for tap[1] in range(s.kernel[1]):
            for tap[2] in range(s.kernel[2]):
                if s.dtype == TF_F32:
                    give_row(b, <float *>b.planes + c * s.area, <const float *>b.panel + q * b.cols,
                             tap)
                else:
                    give_row(b, <double *>b.planes + c * s.area,
                             <const double *>b.panel + q * b.cols, tap)
                q += 1


cdef int conv_grad_input(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call) noexcept nogil:
    """g, w."""
    cdef const tf_view *g = inputs[0]
    cdef const tf_view *w = inputs[1]
    cdef tf_view *x = outputs[0]
    cdef Shape s
    if takes(g, w) and g.size and x.size and w.flags & TF_CONTIGUOUS and dense_planes(g):
        describe(&s, x.ndim - 2, x.dtype, &x.shape[2], &w.shape[2], &g.shape[2], at)
        channels(&s, x.shape[0], x.shape[1], g.shape[1])
        if suits(&s):
            return backward(&s, g, w, x, call)
    return OWN_INPUT(inputs, n, outputs, at, call)


cdef void input_task(int64_t t, void *ctx) noexcept nogil:
    """The images of one block, or all parts of one image."""
    cdef Work *q = <Work *>ctx
    cdef Block b = q.block
    cdef const Shape *s = b.s
    cdef bint plain = pointwise(s, &q.phases)
    cdef operand planes
    cdef char *joint
    cdef int64_t i, bytes = take_room(&b, q, s.o, not plain or b.images > 1)
    if bytes == 0:
        return
    joint = b.side
    for i in range(b.parts):
        select(&b, t * b.parts + i, s.n)
        b.side = joint
        planes_at(&b, q.g, s.o, q.row, q.step)
        planes = read_planes(&b)
        if plain:
            b.side = b.panel
            planes_at(&b, q.data, s.c, s.area, s.c * s.area)
            write_planes(&b, s.dtype, s.o, &q.w, &planes)
        else:
            product(s.dtype, b.k, b.cols, s.o, &q.w, &planes, b.panel, b.cols, False)
            b.planes = q.data + b.image * s.c * s.area * s.kind.itemsize
            parallel_for(s.c, 0.5 * b.k * b.cols, give_task, &b)
    scratch_pop(bytes)


cdef int backward(const Shape *s, const tf_view *g, const tf_view *w, tf_view *x,
                  tf_call *call) noexcept nogil:
    cdef Work q
    phases_of(s, &q.phases)
    cut(&q.block, s, pointwise(s, &q.phases), s.n)
    q.asked, q.block.bias = 0, NULL
    q.w.at, q.w.turned, q.w.ld = w.data, True, q.block.k
    q.data, q.g, q.row, q.step = x.data, g.data, g.strides[1], g.strides[0]
    if not pointwise(s, &q.phases):
        memset(x.data, 0, x.size * s.kind.itemsize)
    run_tasks(blocks(&q.block, s.n) // q.block.parts, True, cost_of(s, s.n), input_task, &q)
    return finished(&q, call)


KERNELS = {
    "conv": kernel_capsule(conv), "conv_grad_input": kernel_capsule(conv_grad_input),
    "conv_grad_weight": kernel_capsule(conv_grad_weight),
}
