"""Wrappers: tensors that carry a tangent or stand for a batch. Part of tensor.pyx.

A wrapper shares bytes and numbers with the tensor it wraps and has a history of its own. What it
wraps stands in `extra` under "dual" or "batch"; upper floors put it there, the core looks no further.
"""

cdef Tensor twin_of(Tensor x):
    """The same bytes, numbers and wrapping without history."""
    cdef Tensor t = alias_of(x)
    cdef dict extra
    if x.extra is not None:
        extra = <dict>x.extra
        if "dual" in extra:
            t.extra = {"dual": extra["dual"]}
        elif "batch" in extra:
            t.extra = {"batch": extra["batch"]}
    return t


def twin(Tensor x not None, bint history=False):
    """A second tensor over x's bytes with the same wrapping; with `history` also with its history."""
    cdef Tensor t = twin_of(x)
    t.inference = x.inference
    if history:
        if x.base is not None and flows(x):
            sync_view(x)
        t.node, t.out_nr, t.needs, t.base, t.synced = x.node, x.out_nr, x.needs, x.base, x.synced
    return t


def rebase(Tensor x not None, Tensor base):
    """Makes x a view of another tensor over the same bytes."""
    x.base, x.synced = base, x.storage.version


def wrap(Tensor x not None, str key, value, int drop=-1):
    """A wrapper over x, or over the first slice of x along the axis `drop`."""
    cdef Tensor t = alias_of(x)
    cdef int i
    if drop >= 0:
        for i in range(drop, t.v.ndim - 1):
            t.v.shape[i], t.v.strides[i] = t.v.shape[i + 1], t.v.strides[i + 1]
        t.v.ndim -= 1
        t.v.flags |= TF_BATCHED
        settle(&t.v)
    t.inference = x.inference
    t.extra = {key: value}
    return t


def rewrap(Tensor t not None, Tensor x not None, str key, value, int drop=-1):
    """Makes t itself a wrapper over x."""
    cdef Tensor other = wrap(x, key, value, drop)
    look_at(t, other)
    if t.extra is None:
        t.extra = {}
    t.extra[key] = value


cdef bint is_wrapper(Tensor t, str key):
    return t.extra is not None and key in <dict>t.extra


cdef int check_readable(Tensor t, str what) except -1:
    """Values of a batched tensor are not there to be read one by one."""
    if is_wrapper(t, "batch"):
        raise RuntimeError(f"{what}: the tensor is batched by vmap and has no single value; values that steer "
                           "Python code cannot be read inside vmap")
    return 0


def record(Op op, tuple args, tuple attrs, tuple outs):
    """Gives fresh wrappers the history of op(*args), as the call gives it to its results."""
    cdef PyObject *few[MAX_ARGS]
    cdef PyObject **ptr = few
    cdef tf_attrs at
    cdef Tensor first = outs[0], x
    cdef int i, n = len(args), ndim = 0
    cdef bint needed = False
    if op.view:
        x = args[0]
        if first.storage is x.storage:
            first.base = x if x.base is None else x.base
            first.synced = x.storage.version
    for a in args:
        if isinstance(a, Tensor) and flows(<Tensor>a):
            needed = True
    if not needed or not tf_mode_here()[0] & GRAD or category[first.v.dtype] < 2 or op.nondiff:
        return
    if n > MAX_ARGS:
        ptr = <PyObject **>malloc(n * sizeof(void *))
        if ptr == NULL:
            raise MemoryError(f"{op.name}: no memory for {n} arguments")
    try:
        for i in range(n):
            ptr[i] = NULL if args[i] is None else <PyObject *>args[i]
        ndim = (<Tensor>args[0]).v.ndim if isinstance(args[0], Tensor) else 0
        for i in range(len(op.attrs)):
            (<Attr>op.attrs[i]).parse(attrs[i], ndim, &at, op.name)
        record_outputs(op, ptr, n, &at, first, list(outs[1:]) if op.nout > 1 else None)
    finally:
        if ptr != few:
            free(ptr)


def check_write(Tensor x not None, str name):
    """Raises where x may not be written."""
    check_writable(x, name, tf_mode_here()[0])


def record_assign(Tensor x not None, src):
    """Gives a wrapper that was written the history of x.copy_(src)."""
    cdef PyObject *args[2]
    cdef Node node
    if not tf_mode_here()[0] & GRAD or category[x.v.dtype] < 2:
        return
    if not x.needs and not (isinstance(src, Tensor) and (<Tensor>src).needs):
        return
    check_view(x, "copy_")
    args[0], args[1] = <PyObject *>x, <PyObject *>src
    node = make_node(OPS["assign"], args, 2)
    keep_shapes(node, args, 2, x)
    finish_node(node, &NO_ATTRS, x, None)
    set_history(x, node, 0)


def shares_storage(Tensor a not None, Tensor b not None):
    """Whether two tensors lie in the same storage."""
    return a.storage is b.storage


@cython.binding(False)
cdef class Packed:
    """A saved tensor in the form that a pack hook gave it."""

    def __init__(self, value, unpack):
        self.value, self.unpack = value, unpack


cdef int pack_saved(Node node) except -1:
    """Hands what a node saved to the pack hook; leaves stay, since edges hold them anyway."""
    cdef list saved = list(node.saved)
    cdef Tensor t
    cdef Py_ssize_t i
    for i in range(len(saved)):
        if saved[i] is None or not isinstance(saved[i], Tensor):
            continue
        t = <Tensor>saved[i]
        if t.storage.version == node.versions[i] and not (t.needs and t.node is None):
            saved[i] = HOOKS["pack"](twin_of(t))
    node.saved = tuple(saved)
    return 0
