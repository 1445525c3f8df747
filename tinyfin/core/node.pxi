"""Node: what is recorded of a call, and how views follow writes. Part of tensor.pyx."""

cdef list PENDING = []
cdef int NESTED = 0
cdef enum:
    MOST_NESTED = 60               # nodes that are freed by recursion


@cython.final
@cython.freelist(256)
@cython.binding(False)
cdef class Node:
    """One recorded call: operation, attributes, edges to what made its inputs, saved tensors."""

    def __dealloc__(self):
        # Of long chains, what lies deep waits in a list, for whoever is no deeper than the first.
        global NESTED
        if self.versions != self.few_versions:
            free(self.versions)
        if self.outs != self.few_outs:
            free(self.outs)
        free(self.at)
        if self.edges is None and self.saved is None:
            return
        if NESTED >= MOST_NESTED:
            PENDING.append(self.edges)
            PENDING.append(self.saved)
            self.edges = self.saved = None
            return
        NESTED += 1
        self.edges = None
        self.saved = None
        if NESTED <= 1:
            while PENDING:
                PENDING.pop()
        NESTED -= 1

    @property
    def next_functions(self):
        """((node or leaf, output number), ...) as the walk follows them."""
        if self.edges is None:
            return ()
        return tuple([(e, source_number(self, i)) for i, e in enumerate(self.edges)])

    def name(self):
        """The operation's name."""
        return self.given_name if self.op is None else self.op.name

    def __repr__(self):
        return f"<Node {self.name()}>"

    def register_hook(self, fn):
        """Calls fn(grad_inputs, grad_outputs) when the walk has passed this node; gives a handle."""
        if self.hooks is None:
            self.hooks = []
        return RemovableHandle(self.hooks, fn)


cdef int source_number(Node node, Py_ssize_t i) noexcept:
    """Which result of edge i the node's input is."""
    return node.outs[i]


cdef int room_for_sources(Node node, Py_ssize_t n) except -1:
    """Room for what `outs` and `dtypes` say of n inputs."""
    if n <= FEW_INPUTS:
        node.outs, node.dtypes = node.few_outs, node.few_dtypes
        return 0
    node.outs = <int32_t *>malloc(n * (sizeof(int32_t) + 1))
    if node.outs == NULL:
        raise MemoryError(f"backward: no memory for a node of {n} inputs")
    node.dtypes = <uint8_t *>(node.outs + n)
    return 0


cdef inline void put_item(tuple t, Py_ssize_t i, object value) noexcept:
    """Item i of a tuple that nobody else has seen."""
    cdef PyObject *before = PyTuple_GET_ITEM(<PyObject *>t, i)
    Py_INCREF(value)
    PyTuple_SET_ITEM(t, i, value)
    Py_XDECREF(before)


cdef inline void followed(tuple t) noexcept:
    """The collector follows the tuple; while it held nothing but None, a collection may have given it up."""
    if not PyObject_GC_IsTracked(t):
        PyObject_GC_Track(t)


cdef inline tuple nones(Py_ssize_t n):
    """A tuple to be filled by put_item, and followed() then."""
    cdef tuple t = PyTuple_New(n)
    cdef Py_ssize_t i
    for i in range(n):
        Py_INCREF(None)
        PyTuple_SET_ITEM(t, i, None)
    return t


cdef Node make_node(Op op, PyObject **args, int n):
    """Edges, dtypes and shapes of the inputs; saved inputs with their versions."""
    global SEQUENCE
    cdef Node node = Node.__new__(Node)
    cdef Tensor t
    cdef int i
    cdef tuple edges = nones(n)
    SEQUENCE += 1
    node.seq, node.op, node.nout = SEQUENCE, op, op.nout
    room_for_sources(node, n)
    for i in range(n):
        node.outs[i] = 0
        node.dtypes[i] = 255
        if args[i] == NULL or not isinstance(<object>args[i], Tensor):
            continue
        t = <Tensor>args[i]
        node.dtypes[i] = t.v.dtype
        if flows(t):
            if t.base is not None:
                sync_view(t)
            if t.node is not None:
                put_item(edges, i, t.node)
                node.outs[i] = t.out_nr
            else:
                put_item(edges, i, t)
            if op.save_any and n <= MAX_ARGS:
                node.kept |= op.saves_for[min(i, op.nin - 1)]
    followed(edges)
    node.edges = edges
    if node.kept:
        save_inputs(node, args, n)
    return node


cdef int save_inputs(Node node, PyObject **args, int n) except -1:
    """What rules ask for of the inputs, with room for results, and the versions of its storages."""
    cdef Op op = node.op
    cdef tuple saved = nones(n + op.nout)
    cdef int i
    cdef object arg
    node.versions = node.few_versions
    if n + op.nout > FEW_INPUTS:
        node.versions = <int64_t *>malloc((n + op.nout) * sizeof(int64_t))
    if node.versions == NULL:
        raise MemoryError(f"{op.name}: no memory for versions")
    for i in range(n):
        if args[i] != NULL and node.kept >> min(i, op.nin - 1) & 1:
            arg = <object>args[i]
            put_item(saved, i, arg)
            if isinstance(arg, Tensor):
                if (<Tensor>arg).inference:
                    raise RuntimeError(f"{op.name}: a tensor made in inference mode cannot be saved for backward; "
                                       "clone() it outside")
                node.versions[i] = (<Tensor>arg).storage.version
    followed(saved)
    node.saved = saved
    return 0


cdef int keep_shapes(Node node, PyObject **args, int n, Tensor out) except -1:
    """Input shapes, kept only where a rule asks or broadcasting must be undone."""
    cdef int i
    cdef bint odd = node.op.saves_shapes
    cdef Tensor t
    node.first_ndim, node.first_dtype = out.v.ndim, out.v.dtype
    memcpy(node.first_shape, out.v.shape, sizeof(out.v.shape))
    if not odd:
        for i in range(n):
            if node.edges[i] is not None and not same_shape(&(<Tensor>args[i]).v, &out.v):
                odd = True
    if odd:
        node.shapes = tuple([shape_tuple(&(<Tensor>args[i]).v) if args[i] != NULL and
                             isinstance(<object>args[i], Tensor) else () for i in range(n)])
    return 0


cdef int finish_node(Node node, const tf_attrs *at, Tensor first, list rest) except -1:
    """Attributes and saved results."""
    cdef Op op = node.op
    cdef int n, k
    if op.has_attrs:
        node.at = <tf_attrs *>malloc(sizeof(tf_attrs))
        if node.at == NULL:
            raise MemoryError(f"{op.name}: no memory for attributes")
        memcpy(node.at, at, sizeof(tf_attrs))
    if node.kept >> (32 - op.nout):
        n = len(node.saved) - op.nout
        for k in range(op.nout):
            if not node.kept << k >> 31:
                continue
            t = first if k == 0 else <Tensor>rest[k - 1]
            put_item(node.saved, n + k, twin_of(t))
            node.versions[n + k] = (<Tensor>t).storage.version
        followed(node.saved)
    if op.nout > 1:
        node.out_meta = tuple([(shape_tuple(&(<Tensor>t).v), dtype_object((<Tensor>t).v.dtype))
                               for t in [first] + rest])
    if tf_mode_here()[0] & (ANOMALY | SAVE):
        if tf_mode_here()[0] & ANOMALY:
            node.trace = HOOKS["trace"]()
        if node.saved is not None and tf_mode_here()[0] & SAVE:
            pack_saved(node)
    return 0


cdef int sync_view(Tensor t) except -1:
    """A view whose base was written after it was made takes its history from the base again."""
    cdef Node node
    cdef Tensor b = t.base
    if t.synced == t.storage.version or b.node is None:
        return 0
    check_view(t, "view")
    t.node = strided_node(b, t)
    t.out_nr, t.needs = 0, True
    t.synced = t.storage.version
    return 0


cdef int check_view(Tensor t, str name) except -1:
    """A view whose base got other data must still lie within it, for the base's history to follow a write."""
    cdef Tensor b = t.base
    cdef int64_t low, high, first, last
    if b is None or t.v.size == 0:
        return 0
    extent(&t.v, &low, &high)
    extent(&b.v, &first, &last)
    if b.v.size == 0 or t.v.offset + low < b.v.offset + first or t.v.offset + high > b.v.offset + last:
        raise RuntimeError(f"{name}: a view of shape {shape_tuple(&t.v)} and offset {t.v.offset} lies outside its "
                           f"base of shape {shape_tuple(&b.v)}, whose data was replaced after the view was made; "
                           "use detach() or clone()")
    return 0


cdef Node strided_node(Tensor b, Tensor t):
    cdef PyObject *args[1]
    cdef tf_attrs at
    cdef Node node
    cdef int i
    args[0] = <PyObject *>b
    memset(&at, 0, sizeof(at))
    at.i[0] = at.i[9] = t.v.ndim
    for i in range(t.v.ndim):
        at.i[1 + i], at.i[10 + i] = t.v.shape[i], t.v.strides[i]
    at.i[18] = t.v.offset
    at.i[19] = b.v.ndim
    for i in range(b.v.ndim):
        at.i[20 + i] = b.v.strides[i]
    at.i[28] = b.v.offset
    node = make_node(OPS["as_strided_view"], args, 1)
    keep_shapes(node, args, 1, t)
    finish_node(node, &at, t, None)
    return node


cdef int set_history(Tensor t, Node node, int out_nr) except -1:
    """What made t's present value is `node`; for a view, the base's history changes with it."""
    cdef Tensor b = t.base
    if b is None:
        t.node, t.out_nr, t.needs = node, out_nr, True
        if t.retains:
            HOOKS["retain_again"](t)
        return 0
    b.node, b.out_nr = HOOKS["write_node"](b, t, node, out_nr), 0
    b.needs = t.needs = True
    t.node, t.out_nr = strided_node(b, t), 0
    t.synced = t.storage.version
    if t.retains:
        HOOKS["retain_again"](t)
    if b.retains:
        HOOKS["retain_again"](b)
    return 0


def python_node(str name, backward, tuple inputs, tuple outputs):
    """A node whose derivative is a Python function of the output gradients."""
    global SEQUENCE
    cdef Node node = Node.__new__(Node)
    cdef Tensor t
    cdef Py_ssize_t i
    cdef tuple edges = nones(len(inputs))
    room_for_sources(node, len(inputs))
    for i, x in enumerate(inputs):
        node.outs[i] = 0
        node.dtypes[i] = (<Tensor>x).v.dtype if isinstance(x, Tensor) else 255
        if not isinstance(x, Tensor) or not flows(<Tensor>x):
            continue
        t = x
        if t.base is not None:
            sync_view(t)
        put_item(edges, i, t if t.node is None else t.node)
        node.outs[i] = 0 if t.node is None else t.out_nr
    SEQUENCE += 1
    node.seq, node.given_name, node.backward, node.nout = SEQUENCE, name, backward, max(len(outputs), 1)
    followed(edges)
    node.edges = edges
    node.shapes = tuple([shape_tuple(&(<Tensor>x).v) if isinstance(x, Tensor) else () for x in inputs])
    node.out_meta = tuple([(shape_tuple(&(<Tensor>x).v), dtype_object((<Tensor>x).v.dtype)) for x in outputs])
    if outputs:
        t = outputs[0]
        node.first_ndim, node.first_dtype = t.v.ndim, t.v.dtype
        memcpy(node.first_shape, t.v.shape, sizeof(t.v.shape))
    if tf_mode_here()[0] & ANOMALY:
        node.trace = HOOKS["trace"]()
    return node


def attach(Tensor t, Node node, int out_nr):
    """Makes `node` the history of t."""
    set_history(t, node, out_nr)
