"""Op: one operation as users call it, function and method in one object. Part of tensor.pyx."""

OPS = {}   # name -> Op

cdef dict ALIASES = {"axis": "dim", "keepdims": "keepdim"}   # NumPy's names, as PyTorch takes them


@cython.binding(False)
cdef class Rule:
    """A derivative rule and where each of its parameters comes from.

    codes: 0 cotangent, 1 result, 2 argument, 3 its shape, 4 attribute, 5 cotangent or None, 6 its tangent, 8 its dtype,
    9 how many of its elements stand behind one of the result's; each followed by a number. constant: 0 call fn, 1 or -1
    that factor, 2 no derivative at all.
    """

    def __init__(self, fn, bytes codes, int constant=0):
        self.fn, self.codes, self.constant = fn, codes, constant
        self.found, self.asked = {}, fn is None

    @property
    def lines(self):
        """Kinds of arguments -> the form in which the walk runs fn for them; None where it calls fn."""
        return self.found

    @lines.setter
    def lines(self, dict found):
        self.found, self.last_line = found, None

    @property
    def over(self):
        """The elementwise row that fn does nothing but call, on its parameters in order; or None."""
        return over_of(self)

    @over.setter
    def over(self, str name):
        self.called, self.asked = name, True

    def parts(self):
        """(code, number) of each parameter."""
        return [(self.codes[i], self.codes[i + 1]) for i in range(0, len(self.codes), 2)]

    def __repr__(self):
        return f"<Rule {self.parts()}>"


cdef str over_of(Rule rule):
    """rule.over, found when it is first asked for."""
    if not rule.asked:
        rule.called, rule.asked = HOOKS["only_called"](rule), True
    return rule.called


cdef uint32_t named_by(rule):
    """Bits of what a rule's parameters name: inputs from 0 upwards, results from 31 downwards."""
    cdef uint32_t bits = 0
    if rule is not None:
        for code, number in rule.parts():
            if code == 1:
                bits |= <uint32_t>1 << 31 >> <int>number
            elif code == 2:
                bits |= <uint32_t>1 << <int>number
    return bits


@cython.binding(False)
cdef class Op:
    """An operation: callable as a function, and as a method when found on a Tensor."""

    def __init__(self, row, tuple attrs, tuple params, Op plain=None):
        self.vectorcall = <void *>op_vectorcall
        self.row, self.name, self.doc, self.family = row, row.name, row.doc, row.family
        self.arg_names, self.public_names, self.optional = row.arg_names, row.public_names, row.optional
        self.nin, self.nout, self.index = len(row.arg_names), row.nout, row.index
        self.view, self.variadic = row.view, row.variadic
        self.copies, self.nondiff, self.whole = bool(row.copies), bool(row.nondiff), bool(row.whole)
        self.scalars, self.picks = bool(row.scalars), row.scalars == "fit"
        self.elementwise = row.expr is not None
        self.result_class = {"same": 0, "float": 1, "bool": 2, None: 0}[row.result]
        self.attrs, self.params, self.has_attrs = attrs, params, len(attrs) > 0
        for i, (_, is_attr, number) in enumerate(params):
            self.places[i] = -1 - number if is_attr else number
        self.varargs, self.formula, self.batch = row.varargs, row.formula, row.batch
        self.linear = row.jvp == "linear"
        self.mutates = tuple([a in row.mutates for a in row.arg_names]) if row.mutates else ()
        self.plain, self.inplace = plain, plain is not None
        if plain is not None:
            self.name = plain.name + "_"
        self.save_inputs, self.names = (), row.names
        self.short_form = -1
        if row.overload is not None and not row.overload.__defaults__:
            if row.overload.__code__.co_argcount < len(row.arg_names):
                self.short_form = row.overload.__code__.co_argcount

    def set_rule(self, rule):
        """The shape rule, as a capsule."""
        self.rule = <tf_rule>PyCapsule_GetPointer(rule, "tf_rule")

    def set_kernel(self, int backend, kernel, variant=None, bint exact=True):
        """The kernel of one backend: a capsule, what it finds in call.ctx, and whether deterministic mode takes it."""
        self.inexact &= ~(<uint32_t>1 << backend)
        self.inexact |= <uint32_t>(not exact) << backend
        self.kernel[backend] = <tf_kernel>PyCapsule_GetPointer(kernel, "tf_kernel")
        if variant is not None:
            if PyCapsule_CheckExact(variant):
                self.ctx[backend] = PyCapsule_GetPointer(variant, "tf_ctx")
            else:
                self.ctx[backend] = <const void *><size_t>variant

    def clear_kernel(self, int backend):
        """The backend runs the row's formula."""
        self.kernel[backend] = NULL

    def has_kernel(self, int backend):
        """Whether the backend runs this row itself."""
        return self.view or self.kernel[backend] != NULL

    def set_rules(self, vjp, vjp_all, partials, jvp, saves, bint save_y, bint shapes):
        """Derivative rules and what they save."""
        self.vjp, self.vjp_all, self.partials, self.jvp = vjp, vjp_all, partials, jvp
        self.save_inputs, self.save_y, self.saves_shapes = tuple(saves), save_y, shapes
        self.save_any, self.blind = save_y or any(saves), self.row.blind
        for i in range(min(self.nin, MAX_ARGS)):
            self.saves_for[i] = named_by(vjp_all) | named_by(vjp[i] if vjp is not None else None)

    cdef tuple decode(self, const tf_attrs *at):
        if not self.has_attrs:
            return ()
        return tuple([(<Attr>a).decode(at) for a in self.attrs])

    def run_with(self, tuple args, tuple attrs):
        """Runs on tensor arguments (one per input) and attribute values in the row's order."""
        cdef PyObject *few[MAX_ARGS]
        cdef PyObject **ptr = few
        cdef tf_attrs at
        cdef int i, n = len(args), ndim = 0
        if n != self.nin and not (self.variadic and n > self.nin) or len(attrs) != len(self.attrs):
            raise TypeError(f"{self.name}: run_with got {n} arguments and {len(attrs)} attributes, expected "
                            f"{self.nin}{' or more' if self.variadic else ''} and {len(self.attrs)}")
        if n > MAX_ARGS:
            ptr = <PyObject **>malloc(n * sizeof(void *))
            if ptr == NULL:
                raise MemoryError(f"{self.name}: no memory for {n} arguments")
        for i in range(n):
            ptr[i] = NULL if args[i] is None else <PyObject *>args[i]
        if n and isinstance(args[0], Tensor):
            ndim = (<Tensor>args[0]).v.ndim
        try:
            for i in range(len(self.attrs)):
                (<Attr>self.attrs[i]).parse(attrs[i], ndim, &at, self.name)
            return invoke(self, ptr, n, &at)
        finally:
            if ptr != few:
                free(ptr)

    @property
    def __name__(self):
        return self.name

    @property
    def __doc__(self):
        return self.doc

    @property
    def __signature__(self):
        return HOOKS["signature"](self)

    @property
    def __text_signature__(self):
        return None

    def __get__(self, obj, cls):
        return self if obj is None else BoundOp(self, obj)

    def __repr__(self):
        return f"<tinyfin operation {self.name}>"

    def __reduce__(self):
        return op_by_name, (self.name,)


def op_by_name(str name):
    """The operation called `name`."""
    return OPS[name]


@cython.binding(False)
cdef class BoundOp:
    """An operation with its first argument: what `x.add` is before it is called."""
    cdef readonly Op op
    cdef readonly object obj

    def __cinit__(self, Op op not None, obj):
        self.op, self.obj = op, obj

    def __call__(self, *args, **kwargs):
        return self.op(self.obj, *args, **kwargs)

    @property
    def __name__(self):
        return self.op.name

    @property
    def __doc__(self):
        return self.op.doc

    def __repr__(self):
        return f"<tinyfin operation {self.op.name} of {self.obj!r}>"


cdef object op_vectorcall(object self, PyObject **args, size_t nargsf, PyObject *kwnames):
    """Positional and keyword arguments to tensor pointers and attribute slots."""
    cdef Op op = <Op>self
    cdef PyObject *few[MAX_ARGS]
    cdef int n = <int>PyVectorcall_NARGS(nargsf), i
    if kwnames == NULL and n == op.nin and not op.has_attrs and not op.variadic:
        for i in range(n):
            few[i] = NULL if args[i] == <PyObject *>None else args[i]
        return invoke(op, few, n, &NO_ATTRS)
    return call_general(op, args, n, kwnames)


cdef tuple others_of(Op op):
    """Parameter names of the row's other signature."""
    if op.row.overload is None:
        return ()
    code = op.row.overload.__code__
    return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]


cdef int find_keyword(Op op, PyObject *key) except -1:
    """The parameter's number; -2 where another signature has to take over."""
    cdef int p
    for p in range(len(op.params)):
        if key == <PyObject *>(<tuple>op.params[p])[0]:
            return p
    for p in range(len(op.params)):
        if <object>key == (<tuple>op.params[p])[0]:
            return p
    others = others_of(op)
    if <object>key == "out" or <object>key in others:
        return -2
    other = ALIASES.get(<object>key)
    if other is not None and (other in others or other in [(<tuple>q)[0] for q in op.params]):
        return find_keyword(op, <PyObject *>other)
    names = ", ".join(dict.fromkeys([q[0] for q in op.params] + list(others)))
    raise TypeError(f"{op.name}: unexpected keyword argument '{<object>key}', expected: {names}")


cdef object call_overload(Op op, PyObject **args, int n, tuple keys):
    """The other signature of a row that has one; and `out=` for all."""
    cdef dict internal = dict(zip(op.public_names, op.arg_names))
    positional = tuple([<object>args[i] for i in range(n)])
    known = op.public_names + tuple([(<tuple>q)[0] for q in op.params]) + others_of(op)
    named = {keys[k] if keys[k] in known else ALIASES.get(keys[k], keys[k]): <object>args[n + k]
             for k in range(len(keys))}
    if "out" in named:
        out = named.pop("out")
        return HOOKS["into"](op.name, op(*positional, **named), out)
    result = op.row.overload(*positional, **{internal.get(k, k): v for k, v in named.items()})
    if not op.inplace:
        return result
    x = positional[0] if positional else named[op.public_names[0]]
    return HOOKS["inplace_formula"](op, x, result)


cdef object call_general(Op op, PyObject **args, int n, PyObject *kwnames):
    """params: (public name, 0 tensor argument or 1 attribute, number) in the users' order."""
    cdef PyObject *given[40]
    cdef int nparams = len(op.params), p, k, i, ndim = 0, nkw = 0
    cdef tuple param, packed = None, keys
    if n == op.short_form and kwnames == NULL:
        return call_overload(op, args, n, ())
    if n > nparams or (op.varargs and n == nparams and n > 0):
        packed = pack_varargs(op, args, &n, nparams)
    for p in range(nparams):
        given[p] = args[p] if p < n else NULL
    if packed is not None:
        given[nparams - 1] = <PyObject *>packed
    if kwnames != NULL:
        keys = <tuple>kwnames
        nkw = len(keys)
        for k in range(nkw):
            p = find_keyword(op, <PyObject *>keys[k])
            if p < 0:
                return call_overload(op, args, n if packed is None else nparams - 1 + len(packed), keys)
            if given[p] != NULL:
                raise TypeError(f"{op.name}: argument '{keys[k]}' is given twice")
            given[p] = args[n + k] if packed is None else args[(<tuple>packed).__len__() + nparams - 1 + k]
    return place(op, given, nparams)


cdef tuple pack_varargs(Op op, PyObject **args, int *n, int nparams):
    """x.reshape(2, 3): trailing integers become the last attribute's tuple."""
    cdef int first = nparams - 1, i
    cdef tuple packed
    if not op.varargs:
        raise TypeError(f"{op.name}: takes at most {nparams} arguments, {n[0]} were given")
    if n[0] == nparams and isinstance(<object>args[first], (tuple, list)):
        return None
    packed = nones(n[0] - first)
    for i in range(first, n[0]):
        put_item(packed, i - first, <object>args[i])
    followed(packed)
    return packed


cdef int sort_out(Op op, PyObject **given, int nparams, PyObject **tensors, PyObject **values) except -1:
    """Parameters in the users' order to tensor arguments and attributes; NULL where none was given."""
    cdef int p, i
    for i in range(op.nin):
        tensors[i] = NULL
    for i in range(len(op.attrs)):
        values[i] = NULL
    for p in range(nparams):
        i = op.places[p]
        if i < 0:
            values[-1 - i] = given[p]
        elif given[p] != NULL and given[p] != <PyObject *>None:
            tensors[i] = given[p]
        elif not op.optional[i] and not (op.variadic and i == op.nin - 1):
            name = (<tuple>op.params[p])[0]
            raise TypeError(f"{op.name}: missing argument '{name}'" if given[p] == NULL else
                            f"{op.name}: {name} is None, expected a Tensor")
    return 0


cdef int parse_attrs(Op op, PyObject **values, PyObject *first, tf_attrs *at) except -1:
    """Attributes to slots; dims count from the end of the first tensor."""
    cdef int i, ndim = 0
    cdef Attr attr
    if first != NULL and isinstance(<object>first, Tensor):
        ndim = (<Tensor>first).v.ndim
    for i in range(len(op.attrs)):
        attr = <Attr>op.attrs[i]
        if values[i] != NULL:
            attr.parse(<object>values[i], ndim, at, op.name)
        elif attr.required:
            raise TypeError(f"{op.name}: missing argument '{attr.name}'")
        else:
            attr.parse(attr.default, ndim, at, op.name)
    return 0


cdef object place(Op op, PyObject **given, int nparams):
    """Sorts arguments into tensors and attributes, fills defaults, and runs."""
    cdef PyObject *few[MAX_ARGS]
    cdef PyObject **tensors = few
    cdef PyObject *values[24]
    cdef tf_attrs at
    cdef int i, n = op.nin, extra
    cdef tuple sequence = ()
    sort_out(op, given, nparams, few, values)
    if op.variadic:
        sequence = sequence_of_tensors(op, few[n - 1])
        extra = len(sequence)
        n += extra - 1
        if n > MAX_ARGS:
            tensors = <PyObject **>malloc(n * sizeof(void *))
            if tensors == NULL:
                raise MemoryError(f"{op.name}: no memory for {n} arguments")
            memcpy(tensors, few, op.nin * sizeof(void *))
        for i in range(extra):
            tensors[op.nin - 1 + i] = <PyObject *>sequence[i]
    try:
        parse_attrs(op, values, tensors[0] if n else NULL, &at)
        r = invoke(op, tensors, n, &at)
        return r if op.names is None else Pair(r, op.names)
    finally:
        if tensors != few:
            free(tensors)


cdef tuple sequence_of_tensors(Op op, PyObject *value):
    name = op.public_names[op.nin - 1]
    if value == NULL or not isinstance(<object>value, (tuple, list)):
        raise TypeError(f"{op.name}: {name} must be a tuple or list of Tensors")
    items = tuple(<object>value)
    if not items:
        raise ValueError(f"{op.name}: {name} is empty, expected at least one Tensor")
    for i, t in enumerate(items):
        if not isinstance(t, Tensor):
            raise TypeError(f"{op.name}: {name}[{i}] is {t!r} of type {type(t).__name__}, expected a Tensor")
    return items


cdef object run_formula(Op op, PyObject **args, int n, const tf_attrs *at):
    """By other operations, whose errors get this one's name: the user called no other."""
    try:
        return op.formula(*[None if args[i] == NULL else <object>args[i] for i in range(n)], *op.decode(at))
    except Exception as error:
        from tinyfin.core.errors import rename
        rename(error, op.name, OPS)
        raise


cdef object kernel_error(str name, Op op, int rc, const tf_call *call, const tf_view **ins, int n):
    """The exception for a kernel's error code."""
    cdef int i
    dtypes = [dtype_object(ins[i].dtype) for i in range(n) if not ins[i].flags & TF_ABSENT]
    return HOOKS["kernel_error"](name, rc, [call.detail[i] for i in range(4)], op.row.dtypes, dtypes)


cdef int do_nothing(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                    tf_call *call) noexcept nogil:
    return TF_OK


def empty_kernel():
    """A kernel that leaves its output as it is: for the backend that computes nothing."""
    return kernel_capsule(do_nothing)


cdef Tensor whole_numbers(Tensor x, str symbol):
    """x itself; PyTorch's TypeError where an operator takes no floating point."""
    if category[x.v.dtype] >= 2:
        raise TypeError(f"{symbol}: input has dtype {dtype_object(x.v.dtype)}, expected integers or bool")
    return x


def make_op(row, tuple attrs, tuple params, plain=None):
    """Builds an Op and enters it into the core's table."""
    op = Op(row, attrs, params, plain)
    OPS[op.name] = op
    bind_operator(op)
    return op


def install_method(str name, value):
    """Puts a function, property or Op into Tensor itself, where the C lookup finds it."""
    tf_install(<PyObject *>Tensor, sys.intern(name), value)


cdef void enable_vectorcall():
    cdef Op probe = Op.__new__(Op)
    tf_make_callable(<PyObject *>Op, <char *>&probe.vectorcall - <char *><PyObject *>probe)


enable_vectorcall()
