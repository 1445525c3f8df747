"""All steps of a recurrent layer in one direction: the weights are packed once, and each step's product
and gates are made tile by tile.

x is (steps, batch, gates x units), the state (batch, units), w (gates x units, units); any strides.
Rows of a batch know nothing of one another: they are shared among threads for all steps at once.
Where they are few, or the weights are too large for every thread to pass over them, the units of
each step are shared instead. The order of operations stands in ops/recurrent.py; neither
threads nor tiles show in it.
"""
from libc.stdint cimport int64_t

from tinyfin.backends.cpu.gemm cimport gemm_kind
from tinyfin.backends.cpu.gemm_loops cimport tf_gemm_kind, tf_product
from tinyfin.backends.cpu.isa cimport isa_table
from tinyfin.backends.cpu.recurrent_loops cimport *
from tinyfin.backends.cpu.threads cimport parallel_for, scratch_pop, scratch_push
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

cdef enum:
    ROWS = 32                # rows of a tile
    PANELS = 2               # panels of units that make up a block
    GROUP = 8                # rows of the batch that one task takes through all steps; half or twice as many
    NEAR_BYTES = 1 << 19     # packed weights that stay near a core while its rows pass
    TILES = 18               # tiles of one task: the gradient's, which are the most

cdef const tf_recurrent_table *TABLE = <const tf_recurrent_table *>isa_table(b"recurrent")
cdef int GATES[4]         # blocks of rows of the weights by mode
GATES[:] = [1, 1, 4, 3]


cdef struct Source:
    # numbers of all steps, or of one where `step` is 0: (steps, batch, blocks x units)
    const char *data
    int dtype, blocks
    bint given, direct       # direct: units lie side by side in the computing type
    int64_t step, row, unit


cdef struct Job:
    const tf_gemm_kind *kind
    const tf_recurrent_loops *loops
    int mode, gates, dtype
    bint back, reverse, own  # own: the tensors' type is the computing type
    int64_t steps, batch, units
    int64_t block, blocks    # units of a block, and how many there are
    int64_t size, item       # bytes of a number in the computing type, and in the tensors'
    int64_t now              # the step, where the units are shared
    int64_t group            # rows of one task, where rows are shared
    const tf_view *w
    bint packed, biased      # the weights lie packed; there is a bias
    char *panels             # of a block: parts x PANELS panels of `depth` rows
    int64_t parts, depth
    char *nothing            # one block of -0.0
    char *h                  # (batch, units) each: the state at the beginning ...
    char *c                  # ... and c, which moves on where it is not kept
    char *left
    char *bias
    char *states             # half precision: h, or the gradient of what w made of it, of two steps in turn
    Source x, g, g_cells, g_gates, y_in, cells_in, gates_in
    tf_view *y
    tf_view *cells
    tf_view *gates_out
    tf_view *gx
    tf_view *gown
    tf_view *gh
    size_t refused


# ---- geometry

cdef inline int64_t time_of(const Job *s, int64_t step) noexcept nogil:
    """Where in the sequence a step stands."""
    return s.steps - 1 - step if s.reverse else step


cdef inline int64_t up(int64_t n, int64_t step) noexcept nogil:
    return (n + step - 1) // step


cdef void set_source(Job *s, Source *o, const tf_view *v, int blocks) noexcept nogil:
    cdef int last = v.ndim - 1
    o.given, o.blocks, o.dtype, o.data = not v.flags & TF_ABSENT and v.size != 0, blocks, v.dtype, v.data
    if o.given:
        o.step, o.row, o.unit = v.strides[0], v.strides[last - 1], v.strides[last]
        o.direct = tf_itemsize[v.dtype] == s.size and (o.unit == 1 or v.shape[last] == 1)


cdef tf_part fetch(const Job *s, const Source *o, int64_t time, int64_t row, int64_t rows, int64_t unit,
                   int64_t n, char *buffer) noexcept nogil:
    """Numbers of a tile: where they lie, or in the computing type in `buffer`."""
    cdef tf_part part
    cdef int64_t r, item = tf_itemsize[o.dtype]
    cdef int b
    if not o.given:
        part.at, part.row, part.block = s.nothing, 0, 0
    elif o.direct:
        part.at = o.data + (time * o.step + row * o.row + unit) * s.size
        part.row, part.block = o.row, s.units
    else:
        part.at, part.row, part.block = buffer, o.blocks * s.block, s.block
        for r in range(rows):
            for b in range(o.blocks):
                s.kind.widen(o.dtype, o.data + (time * o.step + (row + r) * o.row +
                                                (b * s.units + unit) * o.unit) * item,
                             o.unit, n, buffer + (r * o.blocks + b) * s.block * s.size)
    return part


cdef inline tf_part dense(const char *at, int64_t row, int64_t block) noexcept nogil:
    cdef tf_part part
    part.at, part.row, part.block = at, row, block
    return part


cdef inline tf_place place_at(char *at, int64_t row, int64_t block) noexcept nogil:
    cdef tf_place place
    place.at, place.row, place.block = at, row, block
    return place


cdef void put(const Job *s, const tf_place *src, int64_t rows, int64_t n, int blocks, const tf_view *v, int64_t time,
              int64_t row, int64_t unit) noexcept nogil:
    """Numbers of a tile into a dense result of the tensors' type."""
    cdef int64_t r
    cdef int b
    for r in range(rows):
        for b in range(blocks):
            s.kind.narrow(s.dtype, <char *>src.at + (r * src.row + b * src.block) * s.size, n,
                          v.data + (((time * s.batch + row + r) * blocks + b) * s.units + unit) * s.item, 1)


# ---- products with the packed weights

cdef inline size_t block_bytes(const Job *s) noexcept nogil:
    """Bytes of the packed weights of one block of units."""
    return s.parts * s.block * s.depth * s.size


cdef void pack_part(const Job *s, int64_t block, int64_t part, char *panels) noexcept nogil:
    """The weights that one part of one block is made with."""
    cdef int64_t unit = block * s.block, n = min(s.block, s.units - unit)
    cdef int64_t first = s.w.strides[0], last = s.w.strides[1]
    cdef char *to = panels + part * s.block * s.depth * s.size
    if s.back:
        s.kind.pack(s.dtype, s.w.data + unit * last * s.item, last, first, n, s.depth, to, 1)
    else:
        s.kind.pack(s.dtype, s.w.data + (part * s.units + unit) * first * s.item, first, last, n, s.depth, to, 1)


cdef void pack_task(int64_t t, void *ctx) noexcept nogil:
    """One part of one block of all weights."""
    cdef const Job *s = <const Job *>ctx
    pack_part(s, t // s.parts, t % s.parts, s.panels + t // s.parts * block_bytes(s))


cdef void multiply(const Job *s, const char *a, int64_t row, int64_t rows, int64_t block, const char *panels,
                   char *acc) noexcept nogil:
    """acc[rows][parts][units of the block] = rows of a times the block's weights; `row`: from one row to the next."""
    cdef int64_t part, col, i, n = min(s.block, s.units - block * s.block), nr = s.kind.nr
    cdef int64_t some = up(rows, up(rows, s.kind.mr))      # tiles of equal height
    cdef tf_product p
    p.k, p.ar, p.ac, p.br, p.bc, p.load, p.panel = s.depth, row, 1, nr, 1, 0, NULL
    p.ldc = s.parts * s.block
    for part in range(s.parts):
        col = 0
        while col < n:
            p.n = min(nr, n - col)
            p.b = panels + (part * s.block + col) * s.depth * s.size
            i = 0
            while i < rows:
                p.m = min(some, rows - i)
                p.a = a + i * row * s.size
                p.c = acc + (i * p.ldc + part * s.block + col) * s.size
                s.kind.product(&p)
                i += some
            col += nr


# ---- the steps

cdef inline char *state_after(const Job *s, int64_t step) noexcept nogil:
    """h of all rows at the end of a step; before the first one for -1."""
    if step < 0:
        return s.h
    if s.own:
        return s.y.data + time_of(s, step) * s.batch * s.units * s.size
    return s.states + (step & 1) * s.batch * s.units * s.size


cdef void step_tile(const Job *s, int64_t step, int64_t row, int64_t rows, int64_t block, const char *panels,
                    char *tiles) noexcept nogil:
    """Tiles: four of products, four for x, four for gates that are not kept."""
    cdef tf_step a
    cdef int64_t tile = ROWS * s.block * s.size, unit = block * s.block, time = time_of(s, step)
    cdef int64_t at = (row * s.units + unit) * s.size, all_of_them = s.batch * s.units * s.size
    cdef char *begin = state_after(s, step - 1)
    multiply(s, begin + row * s.units * s.size, s.units, rows, block, panels, tiles)
    a.rows, a.n = rows, min(s.block, s.units - unit)
    a.acc = dense(tiles, s.gates * s.block, s.block)
    a.x = fetch(s, &s.x, time, row, rows, unit, a.n, tiles + 4 * tile)
    a.b = dense(s.bias + unit * s.size, 0, s.units) if s.biased else dense(s.nothing, 0, 0)
    a.h = dense(begin + at, s.units, 0)
    a.y = place_at(state_after(s, step) + at, s.units, 0)
    a.c = dense(s.c + at, s.units, 0)
    a.cells = place_at(s.c + at, s.units, 0)
    if s.mode == TF_LSTM and s.cells != NULL:
        a.cells.at = s.cells.data + time * all_of_them + at
        if step:
            a.c.at = s.cells.data + time_of(s, step - 1) * all_of_them + at
    a.gates = place_at(tiles + 8 * tile, 4 * s.block, s.block)
    if s.gates_out != NULL and s.mode >= TF_LSTM:
        a.gates = place_at(s.gates_out.data + ((time * s.batch + row) * 4 * s.units + unit) * s.size, 4 * s.units,
                           s.units)
    s.loops.step[s.mode](&a)
    if not s.own:
        put(s, &a.y, rows, a.n, 1, s.y, time, row, unit)


# ---- the gradient, from the last step to the first

cdef inline char *gradient_at(const Job *s, int64_t step) noexcept nogil:
    """That of what w made of the state, in a step."""
    cdef tf_view *v = s.gown if s.mode == TF_GRU else s.gx
    cdef int64_t which = time_of(s, step) if s.own else step & 1
    return (v.data if s.own else s.states) + which * s.batch * s.gates * s.units * s.size


cdef void back_product(const Job *s, int64_t step, int64_t row, int64_t rows, int64_t block, const char *panels,
                       char *acc) noexcept nogil:
    """What a step's gradient makes of that of the state where it began."""
    cdef int64_t wide = s.gates * s.units
    multiply(s, gradient_at(s, step) + row * wide * s.size, wide, rows, block, panels, acc)


cdef void back_tile(const Job *s, int64_t step, int64_t row, int64_t rows, int64_t block, const char *panels,
                    char *tiles) noexcept nogil:
    """Tiles: one of products, then as many as each argument has blocks."""
    cdef tf_step_grad a
    cdef int64_t tile = ROWS * s.block * s.size, unit = block * s.block, time = time_of(s, step), wide
    cdef int64_t at = (row * s.units + unit) * s.size, n = min(s.block, s.units - unit), former
    cdef char *gx
    a.acc = dense(s.nothing, 0, 0)
    if step + 1 < s.steps:
        back_product(s, step + 1, row, rows, block, panels, tiles)
        a.acc = dense(tiles, s.block, 0)
    a.rows, a.n = rows, n
    a.g = fetch(s, &s.g, time, row, rows, unit, n, tiles + tile)
    a.g_cells = fetch(s, &s.g_cells, time, row, rows, unit, n, tiles + 2 * tile)
    a.g_gates = fetch(s, &s.g_gates, time, row, rows, unit, n, tiles + 3 * tile)
    a.y = fetch(s, &s.y_in, time, row, rows, unit, n, tiles + 7 * tile)
    a.cells = fetch(s, &s.cells_in, time, row, rows, unit, n, tiles + 8 * tile)
    a.gates = fetch(s, &s.gates_in, time, row, rows, unit, n, tiles + 9 * tile)
    if step:
        former = time_of(s, step - 1)
        a.h = fetch(s, &s.y_in, former, row, rows, unit, n, tiles + 13 * tile)
        a.c = fetch(s, &s.cells_in, former, row, rows, unit, n, tiles + 14 * tile)
    else:
        a.h, a.c = dense(s.h + at, s.units, 0), dense(s.c + at, s.units, 0)
    a.left = place_at(s.left + at, s.units, 0)
    wide = s.gates * s.units
    a.own = place_at(gradient_at(s, step) + (row * wide + unit) * s.size, wide, s.units)
    a.gx = a.own
    if s.mode == TF_GRU:
        gx = s.gx.data + ((time * s.batch + row) * wide + unit) * s.size
        a.gx = place_at(gx, wide, s.units) if s.own else place_at(tiles + 15 * tile, 3 * s.block, s.block)
    s.loops.step_grad[s.mode](&a)
    if not s.own:
        put(s, &a.gx, rows, n, s.gates, s.gx, time, row, unit)
        if s.mode == TF_GRU:
            put(s, &a.own, rows, n, s.gates, s.gown, time, row, unit)


cdef void start_tile(const Job *s, int64_t row, int64_t rows, int64_t block, const char *panels,
                     char *tiles) noexcept nogil:
    """The gradient of the state with which the first step began."""
    cdef int64_t unit = block * s.block, n = min(s.block, s.units - unit), r
    cdef tf_place acc = place_at(tiles, s.block, 0)
    back_product(s, 0, row, rows, block, panels, tiles)
    for r in range(rows if s.mode == TF_GRU else 0):
        s.kind.add(tiles + r * s.block * s.size, s.left + ((row + r) * s.units + unit) * s.size, 1, n)
    put(s, &acc, rows, n, 1, s.gh, 0, row, unit)


# ---- all steps

cdef void block_of_rows(const Job *s, int64_t step, int64_t first, int64_t stop, int64_t block, const char *panels,
                        char *tiles) noexcept nogil:
    """One step of one block of units; on the way back, step -1 is where the sequence begins."""
    cdef int64_t some = up(stop - first, up(stop - first, ROWS)), rows
    while first < stop:
        rows = min(some, stop - first)
        if not s.back:
            step_tile(s, step, first, rows, block, panels, tiles)
        elif step < 0:
            start_tile(s, first, rows, block, panels, tiles)
        else:
            back_tile(s, step, first, rows, block, panels, tiles)
        first += some


cdef inline int64_t count_of(const Job *s) noexcept nogil:
    return s.steps + s.back


cdef inline int64_t step_of(const Job *s, int64_t k) noexcept nogil:
    """The steps in the order in which they are taken."""
    return s.steps - 1 - k if s.back else k


cdef char *push_tiles(Job *s, size_t bytes) noexcept nogil:
    cdef char *tiles = <char *>scratch_push(bytes)
    if tiles == NULL:
        s.refused = bytes
    return tiles


cdef void rows_task(int64_t t, void *ctx) noexcept nogil:
    """All steps of one group of rows."""
    cdef Job *s = <Job *>ctx
    cdef int64_t k, block, stop = min((t + 1) * s.group, s.batch)
    cdef size_t bytes = TILES * ROWS * s.block * s.size
    cdef char *tiles = push_tiles(s, bytes)
    if tiles == NULL:
        return
    for k in range(count_of(s)):
        for block in range(s.blocks):
            block_of_rows(s, step_of(s, k), t * s.group, stop, block, s.panels + block * block_bytes(s), tiles)
    scratch_pop(bytes)


cdef void units_task(int64_t block, void *ctx) noexcept nogil:
    """One block of units of all rows, one step."""
    cdef Job *s = <Job *>ctx
    cdef size_t bytes = TILES * ROWS * s.block * s.size, all_bytes = bytes + (0 if s.packed else block_bytes(s))
    cdef char *tiles = push_tiles(s, all_bytes)
    cdef char *panels
    cdef int64_t part
    if tiles == NULL:
        return
    if s.packed:
        panels = s.panels + block * block_bytes(s)
    else:
        panels = tiles + bytes
        for part in range(s.parts):
            pack_part(s, block, part, panels)
    block_of_rows(s, s.now, 0, s.batch, block, panels, tiles)
    scratch_pop(all_bytes)


cdef void run(Job *s) noexcept nogil:
    cdef double cost = s.batch * s.units * s.gates * (s.kind.fma_ns * s.units + 0.5)
    cdef int64_t k
    if s.packed:
        parallel_for(s.blocks * s.parts, 0.3 * s.gates * s.units * s.units, pack_task, s)
    if s.packed and (s.blocks == 1 or (s.batch > GROUP and s.blocks * block_bytes(s) <= NEAR_BYTES)):
        parallel_for(up(s.batch, s.group), cost * s.steps, rows_task, s)
        return
    for k in range(count_of(s)):
        s.now = step_of(s, k)
        parallel_for(s.blocks, cost, units_task, s)


# ---- the kernels

cdef void set_up(Job *s, const tf_view *h, const tf_view *w, const tf_attrs *at, int64_t steps, bint back) noexcept nogil:
    cdef int wide = w.dtype == TF_F64
    cdef int64_t some
    s.kind, s.loops = gemm_kind(w.dtype), &TABLE.of[wide]
    s.mode, s.reverse, s.dtype, s.w, s.refused = <int>at.i[0], at.i[1] != 0, w.dtype, w, 0
    s.gates, s.size, s.item = GATES[s.mode], s.kind.itemsize, tf_itemsize[w.dtype]
    s.own, s.back = s.size == s.item, back
    s.steps, s.batch, s.units = steps, h.shape[0], h.shape[1]
    s.block = PANELS * s.kind.nr
    s.blocks = up(s.units, s.block)
    s.parts, s.depth = 1 if back else s.gates, s.gates * s.units if back else s.units
    some = min(max(s.batch // 4, GROUP if s.batch > GROUP else GROUP // 2), 2 * GROUP)
    s.group = up(s.batch, up(s.batch, some))


cdef char *make_room(Job *s, size_t *bytes) noexcept nogil:
    """Scratch memory of a call: -0.0, three states, bias, h or gradients of two steps, packed weights; the weights
    only where there is room for all of them."""
    cdef int64_t state = s.batch * s.units
    cdef size_t panels = s.blocks * block_bytes(s)
    cdef size_t rest = s.size * (s.block + 3 * state + s.gates * s.units + (0 if s.own else 2 * state * s.gates))
    cdef char *room = <char *>scratch_push(rest + panels)
    s.packed, bytes[0] = room != NULL, rest + panels
    if room == NULL:
        bytes[0] = rest
        room = <char *>scratch_push(rest)
        if room == NULL:
            return NULL
    s.nothing = room
    s.h = room + s.block * s.size
    s.c = s.h + state * s.size
    s.left = s.c + state * s.size
    s.bias = s.left + state * s.size
    s.states = s.bias + s.gates * s.units * s.size
    s.panels = room + rest
    fill_nothing(s, s.nothing, s.block)
    fill_nothing(s, s.left, state)
    return room


cdef void fill_nothing(const Job *s, char *to, int64_t n) noexcept nogil:
    """n times -0.0."""
    cdef int64_t i
    for i in range(n):
        if s.size == 4:
            (<float *>to)[i] = -0.0
        else:
            (<double *>to)[i] = -0.0


cdef void state_from(const Job *s, const tf_view *v, char *to) noexcept nogil:
    """A state as dense numbers of the computing type; what is not there is left alone."""
    cdef int64_t r
    if not v.flags & TF_ABSENT:
        for r in range(s.batch):
            s.kind.widen(s.dtype, v.data + r * v.strides[0] * s.item, v.strides[1], s.units,
                         to + r * s.units * s.size)


cdef int steps(const tf_view *const *inputs, tf_view *y, tf_view *cells, tf_view *gates, tf_view *last_c,
               const tf_attrs *at, tf_call *call) noexcept nogil:
    """All steps; cells, gates: NULL where they are not kept; last_c: NULL, or c at the end."""
    cdef Job s
    cdef size_t bytes
    cdef tf_place end
    cdef const tf_view *b = inputs[4]
    if y.size == 0:
        return TF_OK
    set_up(&s, inputs[1], inputs[3], at, y.shape[0], False)
    if make_room(&s, &bytes) == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.y, s.cells, s.gates_out = y, cells, gates
    set_source(&s, &s.x, inputs[0], s.gates)
    state_from(&s, inputs[1], s.h)
    state_from(&s, inputs[2], s.c)
    s.biased = not b.flags & TF_ABSENT
    if s.biased:
        s.kind.widen(s.dtype, b.data, b.strides[0], s.gates * s.units, s.bias)
    run(&s)
    if last_c != NULL and s.mode == TF_LSTM:
        end = place_at(s.c, s.units, 0)
        put(&s, &end, s.batch, s.units, 1, last_c, 0, 0, 0)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


cdef int recurrence(const tf_view *const *inputs, int n, tf_view *const *outputs,
                    const tf_attrs *at, tf_call *call) noexcept nogil:
    """(x, h, c?, w, b? -> y, c at the end)"""
    return steps(inputs, outputs[0], NULL, NULL, outputs[1], at, call)


cdef int recurrence_steps(const tf_view *const *inputs, int n, tf_view *const *outputs,
                          const tf_attrs *at, tf_call *call) noexcept nogil:
    """(x, h, c?, w, b? -> y, c of each step, gates)"""
    return steps(inputs, outputs[0], outputs[1], outputs[2], NULL, at, call)


cdef int recurrence_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                         const tf_attrs *at, tf_call *call) noexcept nogil:
    """(g?, gradients of c and gates?, h, c?, w, y, c of each step, gates -> gx, that of what w made of h, gh, gc)"""
    cdef Job s
    cdef size_t bytes
    cdef tf_place end
    if inputs[6].size == 0:
        return TF_OK
    set_up(&s, inputs[3], inputs[5], at, inputs[6].shape[0], True)
    if make_room(&s, &bytes) == NULL:
        call.detail[0] = bytes
        return TF_ENOMEM
    s.gx, s.gown, s.gh = outputs[0], outputs[1], outputs[2]
    set_source(&s, &s.g, inputs[0], 1)
    set_source(&s, &s.g_cells, inputs[1], 1)
    set_source(&s, &s.g_gates, inputs[2], 4)
    set_source(&s, &s.y_in, inputs[6], 1)
    s.y_in.given = s.mode != TF_LSTM        # which does without
    set_source(&s, &s.cells_in, inputs[7], 1)
    set_source(&s, &s.gates_in, inputs[8], 4)
    state_from(&s, inputs[3], s.h)
    state_from(&s, inputs[4], s.c)
    run(&s)
    if s.mode == TF_LSTM:
        end = place_at(s.left, s.units, 0)
        put(&s, &end, s.batch, s.units, 1, outputs[3], 0, 0, 0)
    scratch_pop(bytes)
    if s.refused:
        call.detail[0] = s.refused
        return TF_ENOMEM
    return TF_OK


KERNELS = {
    "recurrence": kernel_capsule(recurrence),
    "recurrence_steps": kernel_capsule(recurrence_steps),
    "recurrence_grad": kernel_capsule(recurrence_grad),
}
