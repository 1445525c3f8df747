"""The call: gather views, infer, allocate, run, record; copies. Part of tensor.pyx."""

cdef int wrap_number(object o, tf_view *v, int64_t *slot) except -1:
    """A Python number as a 0-d view over `slot`; 0 when it is not a number."""
    memset(v, 0, sizeof(tf_view))
    v.data, v.size, v.flags = <char *>slot, 1, TF_WRAPPED | TF_CONTIGUOUS
    if PyFloat_Check(o):
        (<double *>slot)[0] = o
        v.dtype = TF_F64
    elif o is True or o is False:
        (<uint8_t *>slot)[0] = o is True
        v.dtype = TF_BOOL
    elif PyLong_Check(o) or (PyIndex_Check(o) and not isinstance(o, Tensor) and not hasattr(o, "__len__")):
        slot[0] = whole_number(o)
        v.dtype = TF_I64
    elif type(o).__name__ in ("bool_", "bool"):
        (<uint8_t *>slot)[0] = bool(o)
        v.dtype = TF_BOOL
    elif hasattr(type(o), "__float__") and not hasattr(o, "__len__"):
        (<double *>slot)[0] = float(o)
        v.dtype = TF_F64
    else:
        return 0
    return 1


cdef int64_t whole_number(object o) except? -1:
    try:
        return o if PyLong_Check(o) else o.__index__()
    except OverflowError:
        raise OverflowError(f"the number {o} does not fit 64 bits, the most that tensors hold; write it as a float"
                            ) from None


cdef object bad_argument(Op op, int i, object o):
    names = op.public_names
    name = names[i] if i < len(names) else (names[-1] if names else "argument")
    wanted = "a Tensor or a number" if op.scalars else "a Tensor"
    return TypeError(f"{op.name}: {name} is {o!r} of type {type(o).__name__}, expected {wanted}")


cdef object invoke(Op op, PyObject **args, int n, tf_attrs *at):
    """Runs an operation on tensors, numbers and None; the one road of all calls."""
    cdef uint32_t bits = tf_mode_here()[0]
    if bits & SLOW:
        r = HOOKS["slow"](op, tuple([None if args[i] == NULL else <object>args[i] for i in range(n)]),
                          op.decode(at), bits)
        if r is not NotImplemented:
            return r
    if op.inplace:
        return run_inplace(op, args, n, at, bits)
    return run(op, args, n, at, bits)


cdef bint late(Tensor t) noexcept:
    """Whether the base of a view got a history by a write after the view was made."""
    cdef Tensor b = t.base
    return b.needs and b.node is not None and t.synced != t.storage.version


cdef inline bint flows(Tensor t) noexcept:
    """Whether gradients flow to t."""
    return t.needs or (t.base is not None and late(t))


cdef inline int check_batch(Tensor t, str name) except -1:
    """Refuses a batch that no open level has answered for before."""
    if t.v.flags & TF_BATCHED:
        raise RuntimeError(f"{name}: a batched tensor is used after its vmap has returned")
    return 0


cdef struct Gathered:       # what the arguments of a call say
    int backend, index
    bint record             # whether a gradient flows to one of them
    int used                # how many are numbers
    tf_view numbers[4]
    int64_t slots[4]


cdef int gather(Op op, PyObject **args, int n, const tf_view **ins, Gathered *g) except -1:
    """The views of all arguments; 1 where they are not on one device."""
    cdef int i
    cdef Tensor t
    g.backend, g.record, g.used = -1, False, 0
    for i in range(n):
        if args[i] == NULL or args[i] == <PyObject *>None:
            if i >= len(op.optional) or not op.optional[i]:
                raise bad_argument(op, i, None)
            args[i] = NULL
            ins[i] = &ABSENT
        elif isinstance(<object>args[i], Tensor):
            t = <Tensor>args[i]
            ins[i] = &t.v
            check_batch(t, op.name)
            if flows(t):
                g.record = True
            if g.backend < 0:
                g.backend, g.index = t.v.backend, t.v.index
            elif g.backend != t.v.backend or g.index != t.v.index:
                return 1
        elif op.scalars and g.used < 4 and wrap_number(<object>args[i], &g.numbers[g.used], &g.slots[g.used]):
            ins[i] = &g.numbers[g.used]
            g.used += 1
        else:
            raise bad_argument(op, i, <object>args[i])
    if g.backend < 0:
        raise TypeError(f"{op.name}: none of the arguments is a Tensor, at least one must be")
    return 0


cdef object run_met(Op op, PyObject **args, int n, const tf_attrs *at):
    """With the arguments on one device, where those elsewhere are numbers on the CPU."""
    return op.run_with(HOOKS["meet"](op, tuple([None if args[i] == NULL else <object>args[i] for i in range(n)])),
                       op.decode(at))


cdef object run(Op op, PyObject **args, int n, const tf_attrs *at, uint32_t bits):
    """By formula, in place, as a view, elsewhere, or by the kernel of the arguments' device."""
    cdef const tf_view *in_stack[MAX_ARGS]
    cdef const tf_view **ins = in_stack
    cdef Gathered g
    if n > MAX_ARGS:
        ins = <const tf_view **>malloc(n * sizeof(void *))
        if ins == NULL:
            raise MemoryError(f"{op.name}: no memory for {n} arguments")
    try:
        if gather(op, args, n, ins, &g):
            return run_met(op, args, n, at)
        g.record = g.record and bits & GRAD
        if op.formula is not None and (op.kernel[g.backend] == NULL or
                                       (g.record and op.vjp is None and op.vjp_all is None)):
            return run_whole(op, args, n, at) if g.record and op.whole else run_formula(op, args, n, at)
        if op.mutates:
            return run_mutating(op, args, n, ins, at, bits, g.backend)
        if op.view:
            return run_view(op, args, n, ins, at, g.record)
        if op.kernel[g.backend] == NULL:
            return run_elsewhere(op, args, n, at, g.record)
        return run_kernel(op, args, n, ins, at, bits, &g)
    finally:
        if ins != in_stack:
            free(ins)


cdef object run_kernel(Op op, PyObject **args, int n, const tf_view **ins, const tf_attrs *at, uint32_t bits,
                       const Gathered *g):
    """Infer, allocate, compute, record."""
    cdef tf_view *outs[4]
    cdef tf_call call
    cdef int i, rc
    cdef int64_t work = 0
    cdef Tensor t, out = Tensor.__new__(Tensor)
    cdef list rest = None
    outs[0] = &out.v
    if op.nout > 1:
        rest = []
        for i in range(1, op.nout):
            t = Tensor.__new__(Tensor)
            rest.append(t)
            outs[i] = &t.v
    call.compute = op.result_class
    op.rule(ins, n, outs, at, &call, op.name)
    if op.picks and g.used:
        check_numbers(op.name, g.numbers, g.used, out.v.dtype)
    if op.copies and g.backend == TF_CPU and may_lend(<Tensor>args[0]):
        out.v.backend, out.v.index, out.inference = TF_CPU, 0, bits & INFERENCE != 0
        borrow_from(<Tensor>args[0], out)
        if g.record and category[out.v.dtype] >= 2:
            record_outputs(op, args, n, at, out, None)
        return out
    for i in range(op.nout):
        t = out if i == 0 else <Tensor>rest[i - 1]
        t.v.backend, t.v.index = g.backend, g.index
        t.inference = bits & INFERENCE != 0
        give_storage(t, op.name)
        work += t.v.size
    for i in range(n):
        work += ins[i].size
    rc = launch(op, ins, n, outs, at, &call, bits, g.backend, work)
    if rc == TF_EUNSUPPORTED and g.backend != TF_CPU:
        return run_elsewhere(op, args, n, at, g.record)
    if rc:
        raise kernel_error(op.name, op, rc, &call, ins, n)
    if g.record and category[out.v.dtype] >= 2 and not op.nondiff:
        record_outputs(op, args, n, at, out, rest)
    return out if rest is None else (out, *rest)


cdef object run_elsewhere(Op op, PyObject **args, int n, const tf_attrs *at, bint record):
    """What the device lacks runs on another; the history is that of a call on this one."""
    cdef Tensor out
    r = HOOKS["fallback"](op, tuple([None if args[i] == NULL else <object>args[i] for i in range(n)]), op.decode(at))
    out = r[0] if op.nout > 1 else r
    if record and category[out.v.dtype] >= 2 and not op.nondiff:
        record_outputs(op, args, n, at, out, list(r[1:]) if op.nout > 1 else None)
    return r


cdef object run_whole(Op op, PyObject **args, int n, const tf_attrs *at):
    """By formula without history; what is recorded is the call, whose own rule gives its gradient."""
    cdef uint32_t *mode = tf_mode_here()
    mode[0] &= ~<uint32_t>GRAD
    try:
        r = run_formula(op, args, n, at)
    finally:
        mode[0] |= GRAD
    record_outputs(op, args, n, at, <Tensor>r[0] if op.nout > 1 else <Tensor>r, list(r[1:]) if op.nout > 1 else None)
    return r


cdef inline int launch(Op op, const tf_view **ins, int n, tf_view **outs, const tf_attrs *at,
                       tf_call *call, uint32_t bits, int backend, int64_t work) noexcept:
    """Runs the kernel, and notes when, where that is asked for."""
    if NOTING:
        return launch_noted(op, ins, n, outs, at, call, bits, backend, work)
    return launch_now(op, ins, n, outs, at, call, bits, backend, work)


cdef inline int launch_now(Op op, const tf_view **ins, int n, tf_view **outs, const tf_attrs *at,
                           tf_call *call, uint32_t bits, int backend, int64_t work) noexcept:
    """Runs the kernel with its context, in flush mode where that is asked for."""
    cdef int rc
    cdef uint32_t csr = 0
    call.ctx, call.mode = op.ctx[backend], TF_DETERMINISTIC if bits & DETERMINISTIC else 0
    memset(call.detail, 0, sizeof(call.detail))  # kernels fill in what their error has to tell
    call.launched[0] = call.launched[1] = 0
    if call.mode:
        if op.inexact >> backend & 1:
            return TF_ENONDET
        csr = tf_csr_get()
        tf_csr_set(csr | TF_FLUSH)
    if backend == TF_VULKAN or backend == TF_OPENGL:
        # they only record, but making a program, or waiting for room, lets other threads go on
        fly(1)
        rc = op.kernel[backend](ins, n, outs, at, call)
        fly(-1)
    elif work >= GIL_GRAIN:
        rc = launch_freely(op, ins, n, outs, at, call, backend)
    else:
        rc = op.kernel[backend](ins, n, outs, at, call)
    if call.mode:
        tf_csr_set(csr)
    return rc


cdef inline void fly(int by) noexcept:
    """One kernel more, or less, during which other threads may run; without any, storages that were replaced can go."""
    global FLYING
    FLYING += by
    if not FLYING and len(REPLACED):
        REPLACED.clear()


cdef int launch_freely(Op op, const tf_view **ins, int n, tf_view **outs, const tf_attrs *at,
                       tf_call *call, int backend) noexcept:
    """Runs the kernel without the GIL; what it borrows stays until it has ended."""
    cdef int rc
    cdef list reading = None
    try:
        if backend == TF_CPU:
            reading = readers_of(ins, n)
    except MemoryError:
        return TF_ENOMEM
    fly(1)
    with nogil:
        rc = op.kernel[backend](ins, n, outs, at, call)
    fly(-1)
    if reading is not None:
        end_reading(reading)
    return rc


cdef int record_outputs(Op op, PyObject **args, int n, const tf_attrs *at, Tensor out, list rest) except -1:
    cdef Node node = make_node(op, args, n)
    cdef int i
    keep_shapes(node, args, n, out)
    finish_node(node, at, out, rest)
    out.node, out.needs = node, True
    if rest is not None and not op.blind:
        for i in range(len(rest)):
            if category[(<Tensor>rest[i]).v.dtype] >= 2:
                (<Tensor>rest[i]).node, (<Tensor>rest[i]).needs = node, True
                (<Tensor>rest[i]).out_nr = i + 1
    return 0


cdef object run_view(Op op, PyObject **args, int n, const tf_view **ins, const tf_attrs *at, bint record):
    """Other numbers over the same bytes; a copy where the row allows one and strides ask for it."""
    cdef Tensor x = <Tensor>args[0], out = Tensor.__new__(Tensor)
    cdef tf_view *outs[1]
    cdef tf_call call
    outs[0] = &out.v
    call.needs_copy = 0
    op.rule(ins, n, outs, at, &call, op.name)
    if call.needs_copy:
        if not op.copies:
            raise RuntimeError(f"{op.name}: shape {shape_tuple(&x.v)} with strides "
                               f"{x.stride()} cannot be viewed as {shape_tuple(&out.v)}; use reshape")
        return op(OPS["contiguous_copy"](x), *op.decode(at))
    settle(&out.v)
    if not countable(&out.v):
        raise RuntimeError(f"{op.name}: shape {shape_tuple(&out.v)} has more elements than can be counted")
    out.storage = x.storage
    if out.storage.lending != NULL:
        enlist(out)
    out.base = x if x.base is None else x.base
    out.synced = x.storage.version
    out.inference = x.inference
    if record:
        record_outputs(op, args, n, at, out, None)
    return out


cdef int bump(Tensor t) except -1:
    t.storage.version += 1
    return 0


cdef int check_writable(Tensor x, str name, uint32_t bits) except -1:
    if x.v.flags & TF_READONLY or x.storage.readonly:
        raise RuntimeError(f"{name}: input lies in read-only memory; write to a clone()")
    if x.inference and not bits & INFERENCE:
        raise RuntimeError(f"{name}: input was made in inference mode and cannot be written outside it; "
                           "write to a clone()")
    if overlaps_itself(&x.v):
        raise RuntimeError(f"{name}: input is a view of shape {shape_tuple(&x.v)} with strides {x.stride()} in which "
                           "elements share memory; clone() it before writing")
    if bits & GRAD and flows(x):
        if x.base is not None:
            sync_view(x)
        if x.node is None:
            raise RuntimeError(f"{name}: input is a leaf that requires grad; write under tinyfin.no_grad(), "
                               "or to a clone()")
        if x.base is not None and x.base.needs and x.base.node is None:
            raise RuntimeError(f"{name}: input is a view of a leaf that requires grad; write under "
                               "tinyfin.no_grad(), or to a clone()")
    return 0


cdef int forget(Tensor x, PyObject **at) except -1:
    """Records that x no longer depends on what it was made from."""
    cdef Node node = make_node(OPS["zero_gradient"], at, 1)
    keep_shapes(node, at, 1, x)
    finish_node(node, &NO_ATTRS, x, None)
    return set_history(x, node, 0)


cdef object run_mutating(Op op, PyObject **args, int n, const tf_view **ins, const tf_attrs *at,
                         uint32_t bits, int backend):
    """Rows that write some of their inputs: random fills, optimizer steps."""
    cdef tf_call call
    cdef int i, rc
    cdef int64_t work = 0
    cdef tf_view *outs[1]
    outs[0] = NULL
    for i in range(n):
        work += ins[i].size
        if op.mutates[i] and args[i] != NULL:
            check_writable(<Tensor>args[i], op.name, bits)
            if bits & GRAD and flows(<Tensor>args[i]):
                check_view(<Tensor>args[i], op.name)
    call.compute = op.result_class
    if op.rule != NULL:
        op.rule(ins, n, outs, at, &call, op.name)
    rc = TF_EUNSUPPORTED
    own_mutated(op, args, n)
    if op.kernel[backend] != NULL:
        rc = launch(op, ins, n, outs, at, &call, bits, backend, work)
    if op.kernel[backend] == NULL or (rc == TF_EUNSUPPORTED and backend != TF_CPU):
        HOOKS["fallback"](op, tuple([None if args[i] == NULL else <object>args[i] for i in range(n)]), op.decode(at))
    elif rc:
        raise kernel_error(op.name, op, rc, &call, ins, n)
    for i in range(n):
        if op.mutates[i] and args[i] != NULL:
            bump(<Tensor>args[i])
            if bits & GRAD and flows(<Tensor>args[i]):
                forget(<Tensor>args[i], args + i)
    return <object>args[0]


cdef int copy_data(Tensor x, Tensor src, uint32_t bits) except -1:
    """Elements of src, which broadcasts, into x; no history."""
    cdef Op op = OPS["cast"]
    cdef const tf_view *ins[1]
    cdef tf_view *outs[1]
    cdef tf_call call
    cdef int rc
    ins[0], outs[0] = &src.v, &x.v
    if x.storage.lending != NULL:
        own_written(x, "copy_")
    if op.kernel[x.v.backend] == NULL:
        HOOKS["copy_elsewhere"](x, src)
        return 0
    rc = launch(op, ins, 1, outs, &NO_ATTRS, &call, bits, x.v.backend, x.v.size)
    if rc == TF_EUNSUPPORTED and x.v.backend != TF_CPU:
        HOOKS["copy_elsewhere"](x, src)
        return 0
    if rc:
        raise kernel_error("copy_", op, rc, &call, ins, 1)
    return 0


cdef Tensor copy_of(Tensor x, int dtype):
    """A dense copy without history."""
    cdef Tensor t = new_tensor(x.v.ndim, x.v.shape, dtype, x.v.backend, x.v.index, "copy")
    copy_data(t, x, tf_mode_here()[0])
    return t


cdef int check_number(str name, int dtype, int kind, const int64_t *slot) except -1:
    """PyTorch's rule for writing one number: what the dtype cannot hold is an error, not another number."""
    cdef double value = (<const double *>slot)[0], most
    cdef int64_t whole = slot[0]
    cdef int bits = 8 * tf_itemsize[dtype]
    cdef bint fits = True
    if kind == TF_BOOL or dtype == TF_BOOL or dtype == TF_F64:
        return 0
    if category[dtype] == 1:
        most = <double>(<uint64_t>1 << (bits - (dtype != TF_U8)))
        if kind == TF_I64:
            fits = bits == 64 or -most - (dtype != TF_U8) < whole < most
        else:
            fits = (-1 if dtype == TF_U8 else -most - 1) < value < most
    elif kind == TF_F64:
        most = 65504.0 if dtype == TF_F16 else 3.4028234663852886e38
        fits = not (most < (value if value > 0 else -value) < INFINITY)
    if not fits:
        given = str(value) if kind == TF_F64 else str(whole)
        raise RuntimeError(f"{name}: the number {given} does not fit {dtype_object(dtype)}")
    return 0


cdef int check_numbers(str name, const tf_view *numbers, int used, int dtype) except -1:
    """Numbers that may become elements of an integer result. Halves and floats round theirs."""
    cdef int i
    if category[dtype] == 1:
        for i in range(used):
            check_number(name, dtype, numbers[i].dtype, <const int64_t *>numbers[i].data)
    return 0


def assign(Tensor x, src, str name="copy_"):
    """x.copy_(src): src broadcasts, is cast, and passes its gradient on."""
    cdef tf_view number
    cdef int64_t slot
    cdef Tensor t
    cdef Node node = None
    cdef uint32_t bits = tf_mode_here()[0]
    cdef PyObject *args[2]
    if not isinstance(src, Tensor):
        if not wrap_number(src, &number, &slot):
            raise TypeError(f"{name}: {src!r} of type {type(src).__name__} was given, expected a Tensor or a number")
        check_number(name, x.v.dtype, number.dtype, &slot)
        t = Tensor.__new__(Tensor)      # over `slot`: nothing here keeps it, and a number needs no memory
        t.v = number
        t.v.flags = TF_CONTIGUOUS
        if bits & SLOW or x.v.backend != TF_CPU:
            t.storage = allocate(8, TF_CPU, 0, name)
            (<int64_t *>t.storage.data)[0] = slot
            t.v.data = t.storage.data
        src = t
    if bits & SLOW:
        r = HOOKS["slow"](OPS["assign"], (x, src), (), bits)
        if r is not NotImplemented:
            return r
    t = src
    check_batch(t, name)
    check_batch(x, name)
    check_writable(x, name, bits)
    if t.v.backend != x.v.backend or t.v.index != x.v.index:
        t = HOOKS["to_device_of"](t, x)
    if t.v.ndim and not same_shape(&t.v, &x.v):
        HOOKS["check_expands"](name, shape_tuple(&t.v), shape_tuple(&x.v))
    if shares_oddly(t, x):
        t = OPS["contiguous_copy"](t)
    if bits & GRAD and (flows(x) or flows(t)) and category[x.v.dtype] >= 2:
        check_view(x, name)
        args[0], args[1] = <PyObject *>x, <PyObject *>t
        node = make_node(OPS["assign"], args, 2)
        keep_shapes(node, args, 2, x)
    copy_data(x, t, bits)
    bump(x)
    if node is not None:
        finish_node(node, &NO_ATTRS, x, None)
        set_history(x, node, 0)
    return x
