"""One call of a derivative rule: by its straight line of operations where it has one. Part of engine.pyx.

autograd/straight.py says what a straight line is and finds it; here its calls are made. They are the calls that the rule
itself makes, by the same road, so recording, levels and modes see no difference.
"""

cdef enum:
    MOST_REGISTERS = 64            # as in straight.py
    MOST_PARAMETERS = 16           # whose kinds fit one word, four bits each
    MOST_LINES = 32                # of one rule
    ABSENT_KIND = 15, TRUE_KIND = 1, FALSE_KIND = 2, EMPTY_KIND = 3, TUPLE_KIND = 4


@cython.final
cdef class Step:
    """One operation of a line, or without one a part of an earlier value."""
    cdef Op op
    cdef int register, n, n_attrs
    cdef int8_t tensors[16]
    cdef int8_t attrs[24]
    cdef tuple ended               # registers that nothing reads afterwards


@cython.final
cdef class Line:
    """The calls that a rule makes for arguments of one kind."""
    cdef int size
    cdef tuple constants, steps
    cdef object result             # a register or a tuple of registers, -1 for None
    cdef bint single               # whether the result is the last step's


cdef Line line_of(tuple found):
    """The compiled form of what straight.py found."""
    cdef Line line = Line.__new__(Line)
    cdef Step step
    cdef int k
    cdef list steps = []
    cdef dict last = {}
    line.size, line.constants, calls, line.result = found
    for number, op, tensors, attrs in calls:
        step = Step.__new__(Step)
        step.op, step.register, step.n, step.n_attrs = op, number, len(tensors), len(attrs)
        for k in range(step.n):
            step.tensors[k] = tensors[k]
        for k in range(step.n_attrs):
            step.attrs[k] = attrs[k]
        for read in tensors + attrs:
            last[read] = len(steps)
        steps.append(step)
    for read in line.result if isinstance(line.result, tuple) else (line.result,):
        last[read] = len(steps)
    for step in steps:
        k = last.get(step.register, len(steps))
        if k < len(steps):
            (<Step>steps[k]).ended = ((<Step>steps[k]).ended or ()) + (step.register,)
    line.steps = tuple(steps)
    line.single = len(steps) > 0 and line.result == (<Step>steps[len(steps) - 1]).register
    return line


cdef bint kinds_of(Rule rule, PyObject **values, Py_ssize_t n, uint64_t *kinds) noexcept:
    """What straight.py may know of the values, four bits each; False where they have no line."""
    cdef Py_ssize_t k
    cdef int code
    cdef uint64_t kind
    cdef object value
    if n > MOST_PARAMETERS:
        return False
    kinds[0] = 0
    for k in range(n):
        code, value = rule.codes[2 * k], <object>values[k]
        kind = 0
        if value is None:
            kind = ABSENT_KIND
        elif code <= 2 or code == 5:
            if not isinstance(value, Tensor):
                return False
            kind = (<Tensor>value).v.ndim
        elif code == 3:
            kind = len(<tuple>value)
            if kind and isinstance((<tuple>value)[0], tuple):
                return False
        elif code == 4:
            if value is True:
                kind = TRUE_KIND
            elif value is False:
                kind = FALSE_KIND
            elif isinstance(value, tuple):
                kind = TUPLE_KIND if len(<tuple>value) else EMPTY_KIND
        kinds[0] |= kind << 4 * k
    return True


cdef Line find_line(Rule rule, PyObject **values, Py_ssize_t n):
    """The rule's line for values of these kinds; None where it is to be called."""
    cdef uint64_t kinds
    cdef Py_ssize_t k
    if not kinds_of(rule, values, n, &kinds):
        return None
    if rule.last_line is not None and rule.last_kinds == kinds:
        return <Line>rule.last_line
    if kinds in rule.found:
        found = rule.found[kinds]
    elif len(rule.found) == MOST_LINES:
        return None
    else:
        found = HOOKS["straight"](rule, [kinds >> 4 * k & 15 for k in range(n)])
        found = rule.found[kinds] = None if found is None else line_of(found)
    if found is not None:
        rule.last_line, rule.last_kinds = found, kinds
    return found


cdef object run_step(Step step, PyObject **registers):
    """One call."""
    cdef PyObject *args[16]
    cdef PyObject *values[24]
    cdef tf_attrs at
    cdef int k
    if step.op is None:
        value, key = <object>registers[step.tensors[0]], <object>registers[step.tensors[1]]
        return value[len(value) - key:] if step.n_attrs else value[key]
    for k in range(step.n):
        args[k] = NULL if step.tensors[k] < 0 else registers[step.tensors[k]]
        if args[k] == <PyObject *>None:
            args[k] = NULL
    for k in range(step.n_attrs):
        values[k] = NULL if step.attrs[k] < 0 else registers[step.attrs[k]]
    if step.n_attrs:
        parse_attrs(step.op, values, args[0] if step.n else NULL, &at)
    return invoke(step.op, args, step.n, &at)


cdef object run_line(Line line, PyObject **values, Py_ssize_t n):
    """The result of a rule by its line."""
    cdef PyObject *registers[MOST_REGISTERS]
    cdef dict held = None
    cdef Py_ssize_t k
    cdef tuple constant
    cdef Step step = None
    memcpy(registers, values, n * sizeof(void *))
    for constant in line.constants:
        registers[<int>constant[0]] = <PyObject *>constant[1]
    for k in range(len(line.steps)):
        step = <Step>line.steps[k]
        result = run_step(step, registers)
        if line.single and k == len(line.steps) - 1:
            return result
        if held is None:
            held = {}
        held[step.register] = result
        registers[step.register] = <PyObject *>result
        result = None
        if step.ended is not None:
            for number in step.ended:
                del held[number]
    if not isinstance(line.result, tuple):
        return <object>registers[<int>line.result]
    return tuple([None if number < 0 else <object>registers[<int>number] for number in <tuple>line.result])


cdef object elements_per_result(Node node, int number):
    """How many elements of an argument stand behind one of the result; at least one."""
    cdef int64_t n = 1, results = 1
    cdef int k
    for size in <tuple>node.shapes[number]:
        n *= size
    for k in range(node.first_ndim):
        results *= node.first_shape[k]
    return max(n // results, 1) if results else 1


cdef object call_rule(Rule rule, Node node, list grads, list saved, int nargs):
    """Collects what the rule's parameters name and calls it."""
    cdef PyObject *argv[24]
    cdef list hold = []
    cdef Py_ssize_t k, n = len(rule.codes) // 2
    cdef int code, number
    cdef object value
    cdef Line line
    for k in range(n):
        code, number = rule.codes[2 * k], rule.codes[2 * k + 1]
        if code == 0 or code == 5:
            value = grads[number]
            if value is None and code == 0:
                value = zeros_like_output(node, number, grads)
                grads[number] = value
        elif code == 1:
            value = saved[nargs + number]
        elif code == 2:
            value = saved[number]
            if node.op.variadic and number == node.op.nin - 1:
                value = tuple(saved[number:nargs])
        elif code == 3:
            value = node.shapes[number]
            if node.op.variadic and number == node.op.nin - 1:
                value = node.shapes[number:]
        elif code == 4:
            value = (<Attr>node.op.attrs[number]).decode(node.at)
        elif code == 9:
            value = elements_per_result(node, number)
        else:
            value = dtype_object(node.dtypes[number])
        hold.append(value)
        argv[k] = <PyObject *>value
    line = find_line(rule, argv, n)
    return PyObject_Vectorcall(rule.fn, argv, n, NULL) if line is None else run_line(line, argv, n)


cdef Tensor sum_to(Tensor g, tuple shape):
    """g summed over the axes along which `shape` was broadcast to its shape."""
    cdef tf_attrs at
    cdef PyObject *args[1]
    cdef int k, n = <int>len(shape), lead = g.v.ndim - n, reduced = 0
    cdef int64_t size
    cdef bint ones = False
    if lead < 0:
        return HOOKS["sum_to"](g, shape)
    for k in range(g.v.ndim):
        size = 1 if k < lead else shape[k - lead]
        if k < lead or size == 1 and g.v.shape[k] != 1:
            at.i[1 + reduced] = k
            reduced += 1
            ones = ones or k >= lead
    if reduced:                    # sum: count and axes, keepdim, dtype
        at.i[0], at.i[9], at.i[10] = reduced, ones, -1
        args[0] = <PyObject *>g
        g = invoke(SUM, args, 1, &at)
    return g if has_shape(&g.v, shape) else RESHAPE(g, shape)
