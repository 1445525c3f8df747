"""Tensor, Node, Op and the call for cimport."""
from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from tinyfin.core.abi cimport tf_attrs, tf_call, tf_kernel, tf_view
from tinyfin.core.infer cimport tf_rule
from tinyfin.core.storage cimport Storage

cdef enum:                       # bits of the calling thread's mode word
    GRAD = 1, INFERENCE = 2, DETERMINISTIC = 4
    FORWARD = 16, VMAP = 32, CAPTURE = 64, AUTOCAST = 128
    CHECK = 256, PROFILE = 512, ANOMALY = 1024, SAVE = 2048, READY = 1 << 30
    SLOW = 16 | 32 | 64 | 128 | 256 | 512

cdef class Tensor:
    cdef tf_view v
    cdef Storage storage
    cdef Node node                # what made it; None for leaves
    cdef readonly Tensor base     # the tensor this is a view of
    cdef object grad_slot         # accumulated gradient of a leaf, or of one that retains it
    cdef object extra             # dict of rare things: hooks, tangent, name ...
    cdef int64_t synced           # storage version for which `node` is right (views)
    cdef int32_t out_nr           # which result of `node` it is
    cdef bint needs, retains, inference
    cdef object __weakref__

cdef enum:
    FEW_INPUTS = 4                 # inputs and results that a node has room for itself

cdef class Node:
    cdef readonly Op op
    cdef readonly uint64_t seq
    cdef tuple edges, shapes, saved, out_meta
    cdef int32_t *outs             # which result of its edge each input is
    cdef uint8_t *dtypes           # of inputs; 255: no tensor
    cdef int64_t *versions
    cdef int32_t few_outs[4]
    cdef uint8_t few_dtypes[4]
    cdef int64_t few_versions[4]
    cdef tf_attrs *at
    cdef readonly object trace
    cdef object given_name         # of a node without an operation
    cdef public object backward, hooks
    cdef public list watchers     # (output number, function) called with that output's gradient
    cdef bint freed
    cdef uint32_t kept             # which inputs are saved, from bit 0 on, and results, from bit 31 down
    cdef int64_t first_shape[8]
    cdef uint8_t first_ndim, first_dtype
    cdef int nout

cdef class Rule:
    cdef readonly object fn
    cdef bytes codes               # where each parameter comes from
    cdef readonly int constant     # 0: call fn; see Rule
    cdef dict found                # see lines
    cdef object last_line          # the one found last, and for which kinds
    cdef uint64_t last_kinds
    cdef str called                # see over_of
    cdef bint asked                # whether that has been found out

cdef class Op:
    cdef void *vectorcall
    cdef readonly str name, doc, family
    cdef tf_rule rule
    cdef tf_kernel kernel[16]
    cdef const void *ctx[16]
    cdef uint32_t inexact          # bits of the backends whose kernel deterministic mode refuses
    cdef readonly int nin, nout, result_class, index
    cdef readonly int short_form            # how many arguments mean the row's other signature; -1 for none
    cdef int8_t places[40]         # of parameters in the users' order: a tensor's number, or -1 - an attribute's
    cdef bint nondiff, whole, blind  # see the row
    cdef bint picks                # results are elements of the arguments: numbers must fit
    cdef bint copies               # a copy, which may share bytes until one side is written
    cdef readonly bint view, scalars, variadic, elementwise, has_attrs, inplace, varargs, linear
    cdef readonly object row, formula, vjp_all, jvp, batch
    cdef readonly tuple arg_names, public_names, optional, attrs, params, vjp, partials, mutates
    cdef readonly tuple save_inputs, names
    cdef uint32_t saves_for[16]    # what each input's rule names, as bits of Node.kept
    cdef bint save_any, save_y, saves_shapes
    cdef readonly Op plain         # of an in-place twin: the op it is the twin of
    cdef tuple decode(self, const tf_attrs *at)

cdef uint32_t *mode_word() noexcept
cdef Tensor new_tensor(int ndim, const int64_t *shape, int dtype, int backend, int index, str label)
cdef Tensor alias_of(Tensor x)
cdef int claim(Tensor t, str label) except -1
cdef Tensor given_away(Tensor t, str label)
cdef Tensor twin_of(Tensor x)
cdef int check_readable(Tensor t, str what) except -1
cdef object read_element(const tf_view *v, const char *p)
cdef bint write_over(Op op, PyObject **args, int n, Tensor x) except -1
cdef str over_of(Rule rule)
cdef int parse_attrs(Op op, PyObject **values, PyObject *first, tf_attrs *at) except -1
cdef object invoke(Op op, PyObject **args, int n, tf_attrs *at)
cdef tuple shape_tuple(const tf_view *v)
cdef bint has_shape(const tf_view *v, tuple shape) except -1
cdef int bump(Tensor t) except -1
cdef int set_history(Tensor t, Node node, int out_nr) except -1
cdef Node make_node(Op op, PyObject **args, int n)
cdef int source_number(Node node, Py_ssize_t i) noexcept
cdef int sync_view(Tensor t) except -1
cdef class Packed:
    cdef readonly object value, unpack

cdef dict OPS
cdef dict HOOKS
