"""Writes over a tensor: in-place twins, and results over an argument that is not needed any more. Part of tensor.pyx."""

cdef bint same_window(const tf_view *x, const tf_view *out) noexcept nogil:
    cdef int i
    if x.data != out.data or x.offset != out.offset or x.dtype != out.dtype or not same_shape(x, out):
        return False
    for i in range(x.ndim):
        if x.shape[i] > 1 and x.strides[i] != out.strides[i]:
            return False
    return True


cdef bint shares_oddly(Tensor a, Tensor b) noexcept:
    """Whether a overlaps b without being the very same window; by addresses, since arrays may be borrowed twice."""
    cdef const tf_view *x = &a.v
    cdef const tf_view *out = &b.v
    cdef int64_t lo1, hi1, lo2, hi2
    if x.size == 0 or out.size == 0 or x.backend != out.backend or (x.data == NULL and a.storage is not b.storage):
        return False
    if same_window(x, out):
        return False
    extent(x, &lo1, &hi1)
    extent(out, &lo2, &hi2)
    if x.data == NULL:
        return x.offset + lo1 <= out.offset + hi2 and out.offset + lo2 <= x.offset + hi1
    return x.data + lo1 * tf_itemsize[x.dtype] < out.data + (hi2 + 1) * tf_itemsize[out.dtype] and \
        out.data + lo2 * tf_itemsize[out.dtype] < x.data + (hi1 + 1) * tf_itemsize[x.dtype]


cdef bint reads_saved(Node node, Tensor x) except -1:
    """Whether a rule that will run asks for the value of x as an argument."""
    cdef Rule rule
    if node.op.vjp is None:
        return True
    for i, edge in enumerate(node.edges):
        rule = node.op.vjp[i]
        if edge is not None and rule is not None:
            for code, number in rule.parts():
                if code == 2 and node.saved[number] is x:
                    return True
    return False


cdef int keep_old_value(Node node, Tensor x) except -1:
    """What a rule needs of x is copied, with its history, before x is overwritten."""
    cdef Tensor old
    if node.saved is None or not any([t is x for t in node.saved]):
        return 0
    old = None                 # x itself must not stay: it is about to be the node's result, and would make a cycle
    if reads_saved(node, x):
        old = copy_of(x, x.v.dtype)
        old.node, old.needs, old.out_nr = x.node, x.needs, x.out_nr
        for i, t in enumerate(node.saved):
            if t is x:
                node.versions[i] = 0
    node.saved = tuple([old if t is x else t for t in node.saved])
    return 0


cdef object run_inplace(Op op, PyObject **args, int n, const tf_attrs *at, uint32_t bits):
    """x.op_(...): the plain operation's result written over x, and its history taken over."""
    cdef Op plain = op.plain
    cdef Tensor x
    cdef Node node = None
    cdef bint record = False
    cdef int i
    if args[0] == NULL or not isinstance(<object>args[0], Tensor):
        raise bad_argument(op, 0, None if args[0] == NULL else <object>args[0])
    x = <Tensor>args[0]
    check_batch(x, op.name)
    check_writable(x, op.name, bits)
    if bits & GRAD:
        for i in range(n):
            if args[i] != NULL and isinstance(<object>args[i], Tensor) and flows(<Tensor>args[i]):
                record = True
    if record and plain.vjp is None and plain.vjp_all is None:
        return HOOKS["inplace_formula"](op, x, plain.run_with(
            tuple([None if args[i] == NULL else <object>args[i] for i in range(n)]), plain.decode(at)))
    if record:
        check_view(x, op.name)
        node = make_node(plain, args, n)
        keep_old_value(node, x)
        keep_shapes(node, args, n, x)
    if plain.elementwise and plain.kernel[x.v.backend] != NULL:
        if write_elementwise(op, args, n, x, at, bits):
            return run_met(op, args, n, at)
    else:
        old = set_mode(0, GRAD)
        try:
            r = run(plain, args, n, at, bits & ~<uint32_t>GRAD)
            check_fits(op.name, &(<Tensor>r).v, &x.v)
            copy_data(x, <Tensor>r, bits)
        finally:
            set_mode(old, GRAD)
    bump(x)
    if record:
        finish_node(node, at, x, None)
        set_history(x, node, 0)
    return x


cdef int check_fits(str name, const tf_view *r, const tf_view *x) except -1:
    if not same_shape(r, x):
        raise RuntimeError(f"{name}: the result has shape {shape_tuple(r)}, the tensor written to {shape_tuple(x)}")
    if category[r.dtype] > category[x.dtype]:
        raise RuntimeError(f"{name}: the result has dtype {dtype_object(r.dtype)}, which cannot be cast to the "
                           f"tensor's {dtype_object(x.dtype)}")
    return 0


cdef int write_elementwise(Op op, PyObject **args, int n, Tensor x, const tf_attrs *at, uint32_t bits) except -1:
    """The result over x; 1 where the arguments are not on one device."""
    cdef const tf_view *ins[MAX_ARGS]
    cdef tf_view *outs[1]
    cdef tf_view numbers[4]
    cdef tf_view result
    cdef int64_t slots[4]
    cdef tf_call call
    cdef int i, used = 0
    cdef list copies = None
    cdef Tensor t
    for i in range(n):
        if args[i] != NULL and isinstance(<object>args[i], Tensor):
            t = <Tensor>args[i]
            check_batch(t, op.name)
            if t.v.backend != x.v.backend or t.v.index != x.v.index:
                return 1                 # nothing is written yet
            if shares_oddly(t, x):
                t = copy_of(t, t.v.dtype)
                copies = [t] if copies is None else [*copies, t]
            ins[i] = &t.v
        elif args[i] != NULL and used < 4 and wrap_number(<object>args[i], &numbers[used], &slots[used]):
            ins[i] = &numbers[used]
            used += 1
        else:
            raise bad_argument(op, i, None if args[i] == NULL else <object>args[i])
    outs[0] = &result
    call.compute = op.plain.result_class
    op.plain.rule(ins, n, outs, at, &call, op.name)
    if op.plain.picks:
        check_numbers(op.name, numbers, used, x.v.dtype)
    check_fits(op.name, &result, &x.v)
    return compute_over(op.plain, op.name, args, ins, n, x, at, &call, bits)


cdef inline int compute_over(Op plain, str name, PyObject **args, const tf_view **ins, int n, Tensor x, const tf_attrs *at,
                             tf_call *call, uint32_t bits) except -1:
    """Runs an elementwise row's kernel with x as its result."""
    cdef tf_view *outs[1]
    cdef int rc
    outs[0] = &x.v
    if x.storage.lending != NULL:
        own_written(x, name)
    rc = launch(plain, ins, n, outs, at, call, bits, x.v.backend, x.v.size)
    if rc == TF_EUNSUPPORTED and x.v.backend != TF_CPU:
        copy_data(x, <Tensor>run_elsewhere(plain, args, n, at, False), bits)
    elif rc:
        raise kernel_error(name, plain, rc, call, ins, n)
    return 0


cdef bint write_over(Op op, PyObject **args, int n, Tensor x) except -1:
    """The result of an elementwise row over x, one of its arguments, which nobody else holds; False where tensors differ
    in shape or dtype or the device has no kernel. No history, no version."""
    cdef const tf_view *ins[MAX_ARGS]
    cdef tf_view *outs[1]
    cdef tf_view numbers[4]
    cdef tf_view result
    cdef int64_t slots[4]
    cdef tf_call call
    cdef Tensor t
    cdef int i, used = 0
    if op.kernel[x.v.backend] == NULL or not op.elementwise or op.has_attrs or n != op.nin:
        return False
    for i in range(n):
        if not isinstance(<object>args[i], Tensor):
            if used == 4 or not wrap_number(<object>args[i], &numbers[used], &slots[used]):
                return False
            ins[i] = &numbers[used]
            used += 1
            continue
        t = <Tensor>args[i]
        if t.v.dtype != x.v.dtype or t.v.backend != x.v.backend or t.v.index != x.v.index or not same_shape(&t.v, &x.v):
            return False
        ins[i] = &t.v
    outs[0] = &result
    call.compute = op.result_class
    op.rule(ins, n, outs, &NO_ATTRS, &call, op.name)
    if result.dtype != x.v.dtype:
        return False
    compute_over(op, op.name, args, ins, n, x, &NO_ATTRS, &call, tf_mode_here()[0])
    return True
