"""The reverse walk: nodes by falling sequence number, gradients summed per node, no recursion."""
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport dtype_object
from tinyfin.core.layout cimport same_shape
from tinyfin.core.signature cimport Attr
from tinyfin.core.tensor cimport (
    ANOMALY, CHECK, GRAD, HOOKS, OPS, SLOW, Node, Op, Packed, Rule, Tensor, has_shape, invoke, mode_word, new_tensor, over_of,
    parse_attrs, shape_tuple, source_number, sync_view, twin_of, write_over)

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *o)
    object PyObject_Vectorcall(object fn, PyObject **args, size_t n, PyObject *names)

cdef Op ADD = OPS["add"]
cdef Op MUL = OPS["mul"]
cdef Op NEG = OPS["neg"]
cdef Op SUM = OPS["sum"]
cdef Op RESHAPE = OPS["reshape"]


include "rules.pxi"
include "reuse.pxi"


# ---- a heap of nodes, greatest sequence number first

cdef int push(list heap, Node node) except -1:
    cdef Py_ssize_t i = len(heap), up
    heap.append(node)
    while i > 0:
        up = (i - 1) // 2
        if (<Node>heap[up]).seq >= node.seq:
            break
        heap[i] = heap[up]
        i = up
    heap[i] = node
    return 0


cdef Node pop(list heap):
    cdef Node top = <Node>heap[0], last = <Node>heap.pop()
    cdef Py_ssize_t n = len(heap), i = 0, k
    if n == 0:
        return top
    while True:
        k = 2 * i + 1
        if k >= n:
            break
        if k + 1 < n and (<Node>heap[k + 1]).seq > (<Node>heap[k]).seq:
            k += 1
        if (<Node>heap[k]).seq <= last.seq:
            break
        heap[i] = heap[k]
        i = k
    heap[i] = last
    return top


# ---- one call of a rule

cdef object unpack(Node node, bint keep):
    """Saved inputs and results, checked against later in-place writes."""
    cdef list items
    cdef Tensor t, y
    cdef Py_ssize_t i, n
    if node.freed:
        raise RuntimeError(f"backward: the graph of {node.name()} was freed by an earlier backward; pass "
                           "retain_graph=True there to go through it again")
    if node.saved is None:
        return None
    items = list(node.saved)
    n = len(items) - node.nout
    for i in range(len(items)):
        if items[i] is None or not isinstance(items[i], Tensor):
            if isinstance(items[i], Packed):
                items[i] = unpacked(node, i, n, <Packed>items[i], keep)
            continue
        t = <Tensor>items[i]
        if t.storage.version != node.versions[i]:
            what = (f"argument '{node.op.public_names[min(i, node.op.nin - 1)]}'" if i < n else f"result {i - n}")
            raise RuntimeError(f"backward: {node.name()}: {what} of shape {shape_tuple(&t.v)} was modified in place "
                               f"(version {t.storage.version}, expected {node.versions[i]}); "
                               "write to a clone() instead")
        if i >= n and keep:
            y = twin_of(t)
            y.node, y.out_nr, y.needs = node, <int>(i - n), True
            items[i] = y
    return items


cdef object unpacked(Node node, Py_ssize_t i, Py_ssize_t n, Packed packed, bint keep):
    """What the unpack hook gives back, with the history that the packed tensor had."""
    cdef Tensor t
    value = packed.unpack(packed.value)
    if not isinstance(value, Tensor):
        raise TypeError(f"saved_tensors_hooks: the unpack hook returned {type(value).__name__}, expected a Tensor")
    t = twin_of(<Tensor>value)
    if i >= n and keep:
        t.node, t.out_nr, t.needs = node, <int>(i - n), True
    elif i < n and isinstance(node.edges[i], Node):
        t.node, t.out_nr, t.needs = <Node>node.edges[i], source_number(node, i), True
    return t


cdef object zeros_like_output(Node node, int k, list grads):
    shape, dtype = node.out_meta[k]
    for g in grads:
        if g is not None:
            return HOOKS["zeros"](shape, dtype, g)


cdef bint leads_on(object edge, dict wanted, set good):
    """Whether a gradient that takes this edge is asked for."""
    return edge is not None and (good is None or edge in good or edge in wanted)


cdef object constant_gradient(Node node, Py_ssize_t i, object value, list grads):
    """A number as the gradient of an input, on the device of what came from above."""
    cdef object shape = node.shapes[i] if node.shapes is not None else first_shape(node)
    for g in grads:
        if g is not None:
            return HOOKS["full"](shape, value, dtype_object(node.dtypes[i]), g)
    return None


cdef Py_ssize_t last_asked(Node node, dict wanted, set good):
    """The last input that a gradient is asked for and has a rule."""
    cdef Op op = node.op
    cdef Py_ssize_t i = len(node.edges) - 1
    while i >= 0 and (op.vjp is None or op.vjp[min(i, op.nin - 1)] is None or
                      not leads_on(node.edges[i], wanted, good)):
        i -= 1
    return i


cdef list input_gradients(Node node, list grads, bint keep, dict wanted, set good):
    """The gradient of each input, None where none is asked for or none exists."""
    cdef Op op = node.op
    cdef Rule rule
    cdef Py_ssize_t i, last = -1, n = len(node.edges)
    cdef list results, saved
    if good is not None:
        for e in node.edges:
            if leads_on(e, wanted, good):
                break
        else:
            return [None] * n
    if node.freed:
        unpack(node, keep)
    if node.backward is not None:
        results = list(node.backward(tuple(grads), node))
        if len(results) != n:
            raise RuntimeError(f"backward: {node.name()} returned {len(results)} gradients, expected {n}")
        return results
    saved = unpack(node, keep)
    if op.vjp_all is not None:
        results = list(call_rule(op.vjp_all, node, grads, saved, <int>n))
        return results + [None] * (n - len(results))
    results = [None] * n
    if node.hooks is None:                 # these see the cotangents afterwards
        last = last_asked(node, wanted, good)
    for i in range(n):
        if not leads_on(node.edges[i], wanted, good):
            continue
        rule = <Rule>op.vjp[min(i, op.nin - 1)] if op.vjp is not None else None
        if rule is None:
            continue
        if rule.constant == 2:
            results[i] = constant_gradient(node, i, 0.0, grads)
            continue
        if rule.constant:
            results[i] = grads[0] if rule.constant == 1 else negated(grads, i == last, keep)
            continue
        if i == last and not keep and op.partials is None and over_of(rule) is not None:
            results[i] = spent(rule, node, grads, saved, <int>n)
            if results[i] is not None:
                continue
        results[i] = call_rule(rule, node, grads, saved, <int>n)
        if op.partials is not None and results[i] is not None:
            results[i] = scaled(grads, results, i, i == last, keep)
        if isinstance(results[i], (int, float)):
            results[i] = constant_gradient(node, i, results[i], grads)
    return results


cdef object fit(Node node, Py_ssize_t i, object grad):
    """The gradient in its input's shape and dtype: sums over broadcast axes, casts."""
    cdef Tensor g
    cdef bint same
    cdef tuple shape
    if not isinstance(grad, Tensor):
        raise TypeError(f"backward: {node.name()}: a rule returned {type(grad).__name__}, expected a Tensor")
    g = <Tensor>grad
    if node.shapes is None:
        same = g.v.ndim == node.first_ndim
        for k in range(g.v.ndim if same else 0):
            if g.v.shape[k] != node.first_shape[k]:
                same = False
        shape = None
    else:
        shape = <tuple>node.shapes[i]
        same = has_shape(&g.v, shape)
    if not same:
        g = sum_to(g, shape if shape is not None else first_shape(node))
    if node.dtypes[i] != 255 and g.v.dtype != node.dtypes[i]:
        g = OPS["cast"](g, dtype_object(node.dtypes[i]))
    return g


cdef tuple first_shape(Node node):
    return tuple([node.first_shape[k] for k in range(node.first_ndim)])


cdef int accumulate(Tensor leaf, Tensor g, bint keep) except -1:
    """Adds to leaf.grad; takes the tensor over where nobody else holds its bytes."""
    cdef Tensor old
    if not same_shape(&g.v, &leaf.v):
        raise RuntimeError(f"backward: the gradient has shape {shape_tuple(&g.v)}, the leaf {shape_tuple(&leaf.v)}; "
                           "its data was replaced after it was used")
    if leaf.grad_slot is None:
        if keep:
            leaf.grad_slot = g
        elif Py_REFCNT(<PyObject *>g) <= 1 and Py_REFCNT(<PyObject *>g.storage) == 1 and g.base is None and \
                g.v.flags & TF_CONTIGUOUS and g.extra is None:
            g.node, g.needs = None, False
            leaf.grad_slot = g
        else:
            leaf.grad_slot = OPS["contiguous_copy"](g)
    else:
        old = leaf.grad_slot
        if keep:
            leaf.grad_slot = ADD(old, g)
        else:
            leaf.grad_slot = OPS["add_"](old, g) if not old.needs else ADD(old.detach(), g)
    if leaf.extra is not None and "post_hooks" in <dict>leaf.extra:
        for hook in list(leaf.extra["post_hooks"]):
            hook(leaf)
    return 0


# ---- the walk

cdef int check_meets(Node node, int out_nr, Tensor g) except -1:
    """Rules trust a gradient to have the shape that the result had; `data = ...` may have given it another since."""
    cdef int k
    cdef bint same
    cdef tuple shape = None
    if node.out_meta is not None:
        shape = <tuple>node.out_meta[out_nr][0]
        same = has_shape(&g.v, shape)
    else:
        same = g.v.ndim == node.first_ndim
        for k in range(g.v.ndim if same else 0):
            same = same and g.v.shape[k] == node.first_shape[k]
    if not same:
        raise RuntimeError(f"backward: a gradient of shape {shape_tuple(&g.v)} came for result {out_nr} of "
                           f"{node.name()}, which had shape {shape if shape is not None else first_shape(node)}; "
                           "its data was replaced after that")
    return 0


cdef int deposit(dict pending, list heap, Node node, int out_nr, Tensor g, bint keep) except -1:
    """Adds a gradient to what waits for a node."""
    cdef Tensor before
    cdef list slots = <list>pending.get(node)
    check_meets(node, out_nr, g)
    if slots is None:
        slots = [None] * node.nout
        pending[node] = slots
        push(heap, node)
    if slots[out_nr] is None:
        slots[out_nr] = g
    else:
        before = <Tensor>slots[out_nr]
        slots[out_nr] = added(before, g, not keep and spare(before, 2), not keep and spare(g, 1))
    return 0


cdef set leading_to(list roots, set targets):
    """Nodes from which one of the targets (leaves or nodes) can be reached; iterative."""
    cdef set good = set(), seen = set()
    cdef list stack = [(r, False) for r in roots]
    while stack:
        node, done = stack.pop()
        if done:
            for e in (<Node>node).edges:
                if e in targets or e in good:
                    good.add(node)
                    break
            continue
        if node in seen:
            continue
        seen.add(node)
        stack.append((node, True))
        for e in (<Node>node).edges:
            if isinstance(e, Node) and e not in seen:
                stack.append((e, False))
    return good


cdef Tensor one(Tensor like):
    """The number 1 in the dtype, shape and place of a one-element tensor."""
    cdef Tensor t
    if like.v.backend != TF_CPU:
        return HOOKS["full_of"](shape_tuple(&like.v), 1, like)
    t = new_tensor(like.v.ndim, like.v.shape, like.v.dtype, TF_CPU, 0, "backward")
    if like.v.dtype == TF_F32:
        (<float *>t.v.data)[0] = 1.0
    elif like.v.dtype == TF_F64:
        (<double *>t.v.data)[0] = 1.0
    else:
        (<uint16_t *>t.v.data)[0] = 0x3c00 if like.v.dtype == TF_F16 else 0x3f80
    return t


def backward_method(Tensor self not None, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds this tensor's gradients to the `grad` of the leaves; see tinyfin.autograd.backward.

    >>> import tinyfin
    >>> x = tinyfin.tensor(3.0, requires_grad=True)
    >>> (x * x).backward()
    >>> x.grad.item()
    6.0
    """
    cdef bint keep
    if gradient is None and inputs is None and self.needs and self.v.size == 1:
        keep = create_graph
        run_backward([self], [one(self)], keep if retain_graph is None else retain_graph, keep, None)
    else:
        HOOKS["backward"]([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs)


def run_backward(list tensors, list grads, bint retain, bint keep, list inputs):
    """Walks from `tensors` with cotangents `grads`.

    Args:
        retain: keep what the nodes saved.
        keep: record the walk itself (create_graph).
        inputs: None to accumulate into all leaves; else returns these tensors' gradients.
    """
    cdef dict pending = {}, late = {}, wanted = {}
    cdef list heap = [], roots = []
    cdef set good = None
    cdef Tensor t
    cdef uint32_t *word = mode_word()
    cdef uint32_t old = word[0]
    if inputs is not None:
        targets = set()
        for t in inputs:
            if t.base is not None and t.needs:
                sync_view(t)
            key = t if t.node is None else (t.node, t.out_nr)
            wanted[key] = None
            targets.add(t if t.node is None else t.node)
        roots = [(<Tensor>x).grad_fn for x in tensors if (<Tensor>x).grad_fn is not None]
        good = leading_to(roots, targets)
        good.update([x for x in targets if isinstance(x, Node)])
    word[0] = old | GRAD if keep else old & ~<uint32_t>GRAD
    try:
        for x, g in zip(tensors, grads):
            t = x
            if t.base is not None:
                sync_view(t)
            if t.node is not None:
                if good is None or t.node in good:
                    deposit(pending, heap, t.node, t.out_nr, g, keep)
            elif inputs is None:
                hand_over(t, g, late, keep)
            elif t in wanted:
                collect(wanted, t, g, keep)
        g = None
        grads = None
        walk(heap, pending, wanted if inputs is not None else None, late, good, retain, keep)
        for leaf in list(late):
            g = filtered(leaf, late.pop(leaf))
            accumulate(leaf, <Tensor>g, keep)
        if inputs is None:
            return None
        return [filtered(t, wanted[t]) if (<Tensor>t).node is None else wanted[((<Tensor>t).node, (<Tensor>t).out_nr)]
                for t in inputs]
    finally:
        word[0] = old


cdef bint counts(Tensor leaf, set inner):
    """Whether a leaf is one that somebody outside may differentiate by: not of this or of an ended transformation."""
    return leaf not in inner and not (leaf.extra is not None and "spent" in <dict>leaf.extra)


def reaches_beyond(list tensors, set inner):
    """Whether a leaf other than those in `inner` can be reached from what made the tensors; iterative."""
    cdef set seen = set()
    cdef list stack = []
    for x in tensors:
        node = (<Tensor>x).grad_fn
        if node is not None:
            stack.append(node)
        elif (<Tensor>x).needs and counts(x, inner):
            return True
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for e in (<Node>node).edges or ():
            if isinstance(e, Node):
                if e not in seen:
                    stack.append(e)
            elif e is not None and counts(e, inner):
                return True
    return False


cdef int walk(list heap, dict pending, dict wanted, dict late, set good, bint retain, bint keep) except -1:
    cdef Node node
    cdef list slots, results
    cdef Py_ssize_t i
    while heap:
        node = pop(heap)
        slots = <list>pending.pop(node)
        if node.watchers is not None:
            call_watchers(node, slots)
        if wanted is not None:
            for i in range(node.nout):
                if (node, i) in wanted and slots[i] is not None:
                    wanted[(node, i)] = slots[i]
            if node not in good:
                continue
        results = guarded(node, slots, keep, wanted, good)
        if node.hooks is not None:
            results = hooked(node, results, tuple(slots))
        slots = None
        if not retain:
            if node.saved is not None or node.backward is not None:
                node.freed = True
            node.saved = node.backward = None
        pass_on(node, results, heap, pending, wanted, late, good, keep)
    return 0


cdef object replaced(object hook, object before, object after):
    """What a hook gave back in place of a gradient, which None leaves as it is; all hooks' results pass here."""
    cdef Tensor old, new
    if after is None:
        return before
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(after, Tensor):
        raise TypeError(f"backward: hook '{name}' returned {type(after).__name__}, expected a Tensor or None")
    if before is None:
        raise RuntimeError(f"backward: hook '{name}' returned a Tensor in place of a gradient that is None")
    old, new = before, after
    if not same_shape(&new.v, &old.v):
        raise RuntimeError(f"backward: hook '{name}' has changed the size of value: it returned shape "
                           f"{shape_tuple(&new.v)}, the gradient has {shape_tuple(&old.v)}")
    if new.v.dtype != old.v.dtype or new.v.backend != old.v.backend or new.v.index != old.v.index:
        raise RuntimeError(f"backward: hook '{name}' has changed the type of value: it returned {new.dtype} on "
                           f"{new.device}, the gradient is {old.dtype} on {old.device}")
    return after


cdef list hooked(Node node, list results, tuple grads):
    """The inputs' gradients after the node's hooks, which see them as the inputs will get them."""
    cdef Py_ssize_t i, n = len(results)
    for i in range(n):
        results[i] = None if results[i] is None or node.edges[i] is None else fit(node, i, results[i])
    for hook in list(node.hooks):
        r = hook(tuple(results), grads)
        if r is None:
            continue
        name = getattr(hook, "__name__", type(hook).__name__)
        if not isinstance(r, (tuple, list)):
            raise TypeError(f"backward: hook '{name}' returned {type(r).__name__}, expected a tuple of {n} gradients")
        if len(r) != n:
            raise RuntimeError(f"backward: hook '{name}' returned {len(r)} gradients, expected {n}")
        results = [None if after is None else replaced(hook, before, after) for before, after in zip(results, r)]
    return results


cdef int call_watchers(Node node, list slots) except -1:
    """Hooks of results; those that keep the gradient (numbers below 0) see what the others left."""
    for keeps in (False, True):
        for out_nr, watcher in list(node.watchers):
            if (out_nr < 0) != keeps:
                continue
            k = -1 - out_nr if keeps else out_nr
            if slots[k] is not None:
                slots[k] = replaced(watcher, slots[k], watcher(slots[k]))
    return 0


cdef int pass_on(Node node, list results, list heap, dict pending, dict wanted, dict late, set good,
                 bint keep) except -1:
    """Hands each input's gradient to what made the input."""
    cdef Py_ssize_t i
    cdef object target
    for i in range(len(results)):
        target = node.edges[i]
        g = results[i]
        results[i] = None
        if target is None or g is None:
            continue
        if isinstance(target, Node):
            if good is None or target in good:
                g = fit(node, i, g)
                deposit(pending, heap, target, source_number(node, i), <Tensor>g, keep)
        elif wanted is None:
            g = fit(node, i, g)
            hand_over(target, g, late, keep)
            g = None
        elif target in wanted:
            g = fit(node, i, g)
            collect(wanted, target, g, keep)
    return 0


cdef int hand_over(Tensor leaf, object g, dict late, bint keep) except -1:
    """Accumulates at once; where the leaf has hooks, when all its gradients have come together."""
    if leaf.extra is not None and ("hooks" in <dict>leaf.extra or "post_hooks" in <dict>leaf.extra):
        return collect(late, leaf, g, keep)
    return accumulate(leaf, <Tensor>g, keep)


cdef object filtered(Tensor leaf, object g):
    """A leaf's gradient after its hooks."""
    if g is not None and leaf.extra is not None and "hooks" in <dict>leaf.extra:
        for hook in list(leaf.extra["hooks"]):
            g = replaced(hook, g, hook(g))
    return g


cdef list guarded(Node node, list slots, bint keep, dict wanted, set good):
    """input_gradients, with the creating line added to errors in anomaly mode."""
    if node.trace is None and not mode_word()[0] & ANOMALY:
        return input_gradients(node, slots, keep, wanted, good)
    try:
        results = input_gradients(node, slots, keep, wanted, good)
    except Exception as error:
        text = (f"backward of {node.name()} failed: {error}\n"
                f"It was recorded here:\n{node.trace or '(not in anomaly mode)'}")
        try:
            told = type(error)(text)
        except Exception:
            told = RuntimeError(text)
        raise told from error
    HOOKS["check_anomaly"](node, results)
    return results
