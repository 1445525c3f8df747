"""Copies that share bytes until one side is written. Part of tensor.pyx.

A large copy gets a storage of its own, with its own version, over the bytes of the first: it borrows. Whoever writes,
or gives an address away, asks own() before: a borrower then gets a block of its own. The lender's bytes stay where they
are, since nobody knows all tensors over them; a borrower's tensors are enlisted from its first one on, by weak
references, and follow when it moves. Their views name the borrower in `block`, which nothing else uses on the host.

A kernel that runs without the GIL counts as a reader of what it borrows, and nothing moves before it has ended. While
one runs, copies are made at once: it may be writing what is copied.
"""
from cpython.weakref cimport PyWeakref_NewRef

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)

cdef size_t LENT_FROM = 1 << 15   # bytes; below, copying costs no more than the books
cdef int FLYING = 0               # kernels that run without the GIL
cdef list REPLACED = []           # storages that `data = ...` took from under tensors meanwhile
cdef int FORKS = 0                # kernels of other threads do not go on in a child


def forget_kernels():
    """After a fork: no other thread's kernel runs here."""
    global FLYING, FORKS, NESTED
    FLYING = NESTED = 0
    FORKS += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_kernels)


def lend_from(size_t nbytes):
    """Sets from how many bytes on copies share them; gives the former number."""
    global LENT_FROM
    old, LENT_FROM = LENT_FROM, max(nbytes, 1)
    return old


cdef bint may_lend(Tensor x) noexcept:
    """Whether a copy of x may borrow its bytes: a whole block of the pool, which only tensors know."""
    cdef Storage s = x.storage
    return (s.nbytes >= LENT_FROM and (s.pooled or s.lending != NULL) and not s.exposed and not FLYING and
            x.v.flags & (TF_CONTIGUOUS | TF_READONLY | TF_BATCHED) == TF_CONTIGUOUS and x.v.data == s.data and
            x.v.size * tf_itemsize[x.v.dtype] == <int64_t>s.nbytes)


cdef int borrow_from(Tensor x, Tensor out) except -1:
    """Gives `out`, which has x's shape and dtype, a storage over x's bytes."""
    cdef Storage lender = x.storage, s = Storage.__new__(Storage)
    cdef Lending all
    if lender.lending == NULL:
        all = Lending.__new__(Lending)
        all.borrowers, all.lender = {}, lender
        lender.lending = <void *>all
    else:
        all = <Lending>lender.lending
    all.borrowers[<size_t><void *>s] = []
    Py_INCREF(all)
    s.lending, s.data, s.nbytes = <void *>all, lender.data, lender.nbytes
    dense_strides(&out.v)
    out.v.data, out.v.offset, out.storage = s.data, 0, s
    return enlist(out)


cdef int enlist(Tensor t) except -1:
    """Notes a new tensor over a storage that takes part in a lending, where that borrows."""
    cdef Lending all = <Lending>t.storage.lending
    cdef list windows
    cdef Py_ssize_t n
    if all.lender is t.storage:
        return 0
    windows = <list>all.borrowers[<size_t><void *>t.storage]
    n = len(windows)
    if n >= 16 and n & (n - 1) == 0:       # what is gone leaves the list before it doubles
        windows[:] = [w for w in windows if w() is not None]
    windows.append(PyWeakref_NewRef(t, None))
    t.v.block = <void *>t.storage
    return 0


cdef int move_windows(Lending all, Storage s, char *data) except -1:
    """The tensors of a borrower follow its bytes."""
    cdef Tensor t
    cdef set moved = set()           # one that came back to the storage stands there twice
    for window in <list>all.borrowers[<size_t><void *>s]:
        t = window()
        if t is not None and t.storage is s and id(t) not in moved:
            moved.add(id(t))
            t.v.data = data + (t.v.data - s.data)
    return 0


cdef int settle_windows(Lending all, Storage s) except -1:
    """The tensors of a storage that borrows no more are as all others."""
    cdef Tensor t
    for window in <list>all.borrowers[<size_t><void *>s]:
        t = window()
        if t is not None and t.storage is s:
            t.v.block = NULL
    return 0


cdef int own(Storage s, str label) except -1:
    """Ends what a storage lends or borrows, before its bytes are written or given away.

    Raises MemoryError where there is no room for a copy; nothing has changed then.
    """
    cdef Lending all
    cdef Storage fresh = None
    while s.lending != NULL:
        all = <Lending>s.lending
        if all.readers and all.readers_fork == FORKS:
            with nogil:
                usleep(20)
        elif not all.borrowers:            # the last has gone; a waiting thread, or one lost in a fork, holds the books
            s.lending, all.lender = NULL, None
        elif all.lender is not s and len(all.borrowers) == 1 and Py_REFCNT(<PyObject *>all.lender) == 1:
            settle_windows(all, s)         # nobody else is left: the block changes hands
            adopt_block(s, all.lender)
            leave(s)
        elif fresh is None:                # allocation may run other code, so all is looked at again
            fresh = allocate(s.nbytes, TF_CPU, 0, label)
        elif all.lender is s:
            hand_on(all, s, fresh)
        else:
            copy_block(fresh.data, s.data, s.nbytes)
            move_windows(all, s, fresh.data)
            settle_windows(all, s)
            adopt_block(s, fresh)
            leave(s)
    return 0


cdef int own_written(Tensor x, str label) except -1:
    """own() for a tensor that a kernel is about to write; while it waits, another thread may do anything."""
    cdef tf_view before = x.v
    cdef int i
    cdef bint same
    while x.storage.lending != NULL:
        own(x.storage, label)
    same = same_shape(&before, &x.v) and before.dtype == x.v.dtype and before.backend == x.v.backend
    for i in range(x.v.ndim if same else 0):
        same = same and before.strides[i] == x.v.strides[i]
    if not same:
        raise RuntimeError(f"{label}: another thread gave the tensor of shape {shape_tuple(&before)} other data during "
                           "the call")
    return 0


cdef int own_mutated(Op op, PyObject **args, int n) except -1:
    """own_written() for everything that a row writes; from the first again where that took time."""
    cdef bint again = True
    cdef int i
    while again:
        again = False
        for i in range(n):
            if op.mutates[i] and args[i] != NULL and (<Tensor>args[i]).storage.lending != NULL:
                own_written(<Tensor>args[i], op.name)
                again = True
    return 0


cdef int hand_on(Lending all, Storage lender, Storage fresh) except -1:
    """The first borrower gets the fresh block and lends it to the others."""
    cdef size_t first = next(iter(all.borrowers)), place
    cdef Storage heir = <Storage><void *>first, s
    copy_block(fresh.data, lender.data, lender.nbytes)
    for place in all.borrowers:
        s = <Storage><void *>place
        move_windows(all, s, fresh.data)
        s.data = fresh.data
    settle_windows(all, heir)
    adopt_block(heir, fresh)
    if len(all.borrowers) == 1:
        leave(heir)
        return 0
    del all.borrowers[first]
    lender.lending = NULL
    all.lender = heir
    Py_DECREF(all)                         # the heir's: a lender owns none
    return 0


cdef int copy_block(char *to, const char *source, size_t nbytes) except -1:
    """Bytes by the kernel of copies, which has threads; the GIL stays held."""
    cdef Op op = OPS["cast"]
    cdef tf_view views[2]
    cdef const tf_view *ins[1]
    cdef tf_view *outs[1]
    cdef tf_call call
    cdef int i, dtype = TF_U8 if nbytes % 8 else TF_I64
    cdef int64_t start = perf_counter_ns() if NOTING else 0
    memset(views, 0, sizeof(views))
    memset(&call, 0, sizeof(call))
    for i in range(2):
        views[i].ndim, views[i].dtype, views[i].shape[0] = 1, dtype, nbytes // tf_itemsize[dtype]
        dense_strides(&views[i])
    views[0].data, views[1].data = <char *>source, to
    ins[0], outs[0], call.ctx = &views[0], &views[1], op.ctx[TF_CPU]
    if op.kernel[TF_CPU](ins, 1, outs, &NO_ATTRS, &call) != TF_OK:
        memcpy(to, source, nbytes)
    if start:
        note("copy on write", start, perf_counter_ns())
    return 0


cdef int expose(Tensor t, str label) except -1:
    """Before an address is given away: nobody else reads the bytes, and no copy will share them."""
    while t.storage.lending != NULL:
        own(t.storage, label)
    t.storage.exposed = True
    return 0


cdef Tensor given_away(Tensor t, str label):
    """A tensor over bytes whose address is given away."""
    expose(t, label)
    return alias_of(t)


cdef int claim(Tensor t, str label) except -1:
    """Before values are read one by one: other code may run meanwhile and write what t borrows."""
    check_readable(t, label)
    while t.storage.lending != NULL:
        own(t.storage, label)
    return 0


cdef list readers_of(const tf_view **ins, int n):
    """The lendings that a kernel on the host reads, counted as such; None where there are none."""
    cdef list found = None
    cdef Lending all
    cdef int i
    for i in range(n):
        if ins[i].block == NULL:
            continue
        all = <Lending>(<Storage>ins[i].block).lending
        if found is None:
            found = []
        found.append(all)
        if all.readers_fork != FORKS:
            all.readers, all.readers_fork = 0, FORKS
        all.readers += 1
    return found


cdef int end_reading(list found) noexcept:
    cdef Lending all
    for all in found:
        all.readers -= 1
    return 0
