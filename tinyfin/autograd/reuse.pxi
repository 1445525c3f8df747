"""Gradients written over gradients that only the walk holds. Part of engine.pyx.

What only the walk holds has as many references as the walk knows of, which each caller says, and its storage has one:
then no hook, view, array, graph or `grad` can see the bytes change.
"""

cdef bint spare(Tensor g, Py_ssize_t refs) noexcept:
    """Whether nobody but the `refs` references of the caller knows g or its bytes."""
    return (g is not None and Py_REFCNT(<PyObject *>g) <= refs and Py_REFCNT(<PyObject *>g.storage) == 1 and g.base is None and
            g.node is None and not g.needs and g.extra is None and g.v.flags & TF_CONTIGUOUS and
            not g.storage.exposed and not g.storage.readonly and g.storage.lending == NULL and
            (g.storage.pooled or g.v.backend != TF_CPU))


cdef object written_over(Op op, PyObject **args, int n, Tensor g):
    """The row's result over g, one of its arguments; None where it cannot be."""
    cdef uint32_t bits = mode_word()[0]
    if bits & (GRAD | SLOW & ~CHECK):
        return None
    return g if write_over(op, args, n, g) else None


cdef int compare(str name, object got, object want) except -1:
    """CHECK mode: what was written over an argument must be what the plain road gives, bit for bit."""
    if want is not None:
        HOOKS["check_reuse"](name, got, want)
    return 0


cdef object added(Tensor a, Tensor b, bint over_a, bint over_b):
    """a + b, over one of them where the caller says that it may be."""
    cdef PyObject *args[2]
    cdef object want = None, got
    if not (over_a or over_b):
        return ADD(a, b)
    args[0], args[1] = <PyObject *>a, <PyObject *>b
    if mode_word()[0] & CHECK:
        want = ADD(a, b)
    got = written_over(ADD, args, 2, a if over_a else b)
    if got is None:
        return ADD(a, b)
    compare("add", got, want)
    return got


cdef int collect(dict kept, object key, Tensor g, bint keep) except -1:
    """Adds a gradient to what is kept under a key."""
    cdef Tensor before = kept.get(key)
    kept[key] = g if before is None else added(before, g, not keep and spare(before, 2), not keep and spare(g, 1))
    return 0


cdef object scaled(list grads, list results, Py_ssize_t i, bint last, bint keep):
    """The cotangent times a partial derivative; over the derivative, or over the cotangent after its last use."""
    cdef PyObject *args[2]
    cdef Tensor g = grads[0], target = None
    cdef object want = None, got, d = results[i]
    if not keep and isinstance(d, Tensor) and spare(<Tensor>d, 2):
        target = <Tensor>d
    elif not keep and last and spare(g, 2):
        target = g
    else:
        return g * d
    args[0], args[1] = <PyObject *>g, <PyObject *>d
    if mode_word()[0] & CHECK:
        want = g * d
    got = written_over(MUL, args, 2, target)
    if got is None:
        return g * d
    compare("mul", got, want)
    return got


cdef object negated(list grads, bint last, bint keep):
    """The negative of the cotangent, over it after its last use."""
    cdef PyObject *args[1]
    cdef Tensor g = grads[0]
    cdef object want = None, got
    if not last or keep or not spare(g, 2):
        return NEG(g)
    args[0] = <PyObject *>g
    if mode_word()[0] & CHECK:
        want = NEG(g)
    got = written_over(NEG, args, 1, g)
    if got is None:
        return NEG(g)
    compare("neg", got, want)
    return got


cdef object spent(Rule rule, Node node, list grads, list saved, int nargs):
    """The result of a rule that only calls an elementwise row, over the cotangent; None where it cannot be."""
    cdef PyObject *args[3]
    cdef Tensor g
    cdef Op op = OPS[over_of(rule)]
    cdef object want = None, got, value
    cdef int k, code, number, n = <int>(len(rule.codes) // 2)
    if grads[0] is None or n > 3:
        return None
    g = grads[0]
    if not spare(g, 2):
        return None
    for k in range(n):
        code, number = rule.codes[2 * k], rule.codes[2 * k + 1]
        if code > 2 or (code == 0) != (k == 0) or (code == 0 and number):
            return None
        value = grads[0] if code == 0 else saved[nargs + number] if code == 1 else saved[number]
        if not isinstance(value, Tensor):
            return None
        args[k] = <PyObject *>value
    value = None
    if mode_word()[0] & CHECK:
        want = call_rule(rule, node, grads, saved, nargs)
    got = written_over(op, args, n, g)
    if got is not None:
        compare(op.name, got, want)
    return got
