# cython: binding=False
# Methods are C descriptors, which check the type of self; bound functions of Cython do not.
"""Tensor, Node, Op and the call: they name one another, so they live together.

The life of a call: gather views, infer, allocate, run the kernel, record. Rules and formulas are
data of the row; nothing here knows an operation by name except the operator slots.
"""
cimport cython
from cpython.buffer cimport (
    Py_buffer, PyBUF_ANY_CONTIGUOUS, PyBUF_C_CONTIGUOUS, PyBUF_F_CONTIGUOUS, PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES,
    PyBUF_WRITABLE, PyBuffer_FillInfo)
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t)
from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from tinyfin.core.abi cimport *
from tinyfin.core.dtype cimport DType, category, dtype_object
from tinyfin.core.infer cimport kernel_capsule, promote_inputs, wrapped
from tinyfin.core.layout cimport *
from tinyfin.core.signature cimport Attr
from tinyfin.core.storage cimport Lending, Storage, adopt_block, allocate, leave

from tinyfin.core.storage import set_allocator  # no-cython-lint

import os
import sys

from tinyfin.core.device import device_object
from tinyfin.core.handle import RemovableHandle
from tinyfin.core.pair import Pair
from tinyfin.core.size import Size

cdef extern from "Python.h":
    void Py_XDECREF(PyObject *o)
    PyObject *PyTuple_GET_ITEM(PyObject *t, Py_ssize_t i)
    bint PyObject_GC_IsTracked(object o)
    void PyObject_GC_Track(object o)

cdef extern from *:
    """
    static uint32_t tf_mode_default = 1u | 1u << 30;
    static __thread uint32_t tf_mode_tls;
    static inline uint32_t *tf_mode_here(void) {
      if (!tf_mode_tls) tf_mode_tls = tf_mode_default;
      return &tf_mode_tls;
    }
    typedef PyObject *(*tf_vectorcall)(PyObject *, PyObject *const *, size_t, PyObject *);
    static void tf_make_callable(PyTypeObject *type, Py_ssize_t offset) {
      type->tp_vectorcall_offset = offset;
      type->tp_call = PyVectorcall_Call;
      type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
      PyType_Modified(type);
    }
    static void tf_install(PyTypeObject *type, PyObject *name, PyObject *value) {
      PyDict_SetItem(type->tp_dict, name, value);
      PyType_Modified(type);
    }
    """
    uint32_t tf_mode_default
    uint32_t *tf_mode_here() nogil
    void tf_make_callable(PyObject *type, Py_ssize_t offset)
    void tf_install(PyObject *type, object name, object value)

cdef extern from "flush.h" nogil:
    uint32_t tf_csr_get()
    void tf_csr_set(uint32_t)
    uint32_t TF_FLUSH

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf) nogil
    Py_ssize_t Py_REFCNT(PyObject *o)
    bint PyIndex_Check(object o)
    bint PyFloat_Check(object o)
    bint PyLong_Check(object o)
    int PySlice_Unpack(object s, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t n, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step)

cdef enum:
    MAX_ARGS = 16             # more (cat of many tensors) go through the heap
    GIL_GRAIN = 1 << 15       # elements from which a kernel runs without the GIL

cdef tf_attrs NO_ATTRS
memset(&NO_ATTRS, 0, sizeof(tf_attrs))
cdef tf_view ABSENT
memset(&ABSENT, 0, sizeof(tf_view))
ABSENT.flags = TF_ABSENT

cdef uint64_t SEQUENCE = 0
cdef Storage NOTHING = Storage.__new__(Storage)     # under tensors that have no bytes yet
HOOKS = {}                    # what upper floors hand down: slow, fallback, advanced indexing ...
cdef int DEFAULT_BACKEND = TF_CPU
cdef int DEFAULT_INDEX = 0


cdef uint32_t *mode_word() noexcept:
    return tf_mode_here()


def mode():
    """The calling thread's mode bits."""
    return tf_mode_here()[0]


def set_mode(uint32_t bits, uint32_t mask):
    """Replaces the mode bits in `mask` and returns the former word."""
    cdef uint32_t old = tf_mode_here()[0]
    tf_mode_here()[0] = (old & ~mask) | (bits & mask)
    return old


def set_mode_default(uint32_t bits):
    """Mode bits of threads that have not begun yet."""
    global tf_mode_default
    tf_mode_default = bits | READY


def install_hook(str name, value):
    """Upper floors hand functions down to the core by name."""
    HOOKS[name] = value


def set_default_backend(int backend, int index):
    """Where tensors made from nothing live."""
    global DEFAULT_BACKEND, DEFAULT_INDEX
    DEFAULT_BACKEND, DEFAULT_INDEX = backend, index


def default_backend():
    """(slot, index) of the default device."""
    return DEFAULT_BACKEND, DEFAULT_INDEX


cdef tuple shape_tuple(const tf_view *v):
    cdef int i
    cdef tuple shape = PyTuple_New(v.ndim)
    cdef object size
    for i in range(v.ndim):
        size = v.shape[i]
        Py_INCREF(size)
        PyTuple_SET_ITEM(shape, i, size)
    return shape


cdef bint has_shape(const tf_view *v, tuple shape) except -1:
    """Whether the sizes are these."""
    cdef int i
    if len(shape) != v.ndim:
        return False
    for i in range(v.ndim):
        if <int64_t>shape[i] != v.shape[i]:
            return False
    return True


cdef Tensor new_tensor(int ndim, const int64_t *shape, int dtype, int backend, int index, str label):
    """A fresh row-major tensor; its bytes are whatever was there."""
    cdef Tensor t = Tensor.__new__(Tensor)
    t.v.ndim, t.v.dtype, t.v.backend, t.v.index = ndim, dtype, backend, index
    t.inference = tf_mode_here()[0] & INFERENCE != 0
    memcpy(t.v.shape, shape, ndim * sizeof(int64_t))
    give_storage(t, label)
    return t


cdef int give_storage(Tensor t, str label) except -1:
    dense_strides(&t.v)
    if t.v.size < 0:
        raise MemoryError(f"{label}: shape {shape_tuple(&t.v)} has more elements than memory can have")
    t.storage = allocate(t.v.size * tf_itemsize[t.v.dtype], t.v.backend, t.v.index, label)
    t.v.data, t.v.block, t.v.offset = t.storage.data, t.storage.block, 0
    return 0


cdef Tensor alias_of(Tensor x):
    """The same bytes and numbers in a tensor without history."""
    cdef Tensor t = Tensor.__new__(Tensor)
    look_at(t, x)
    return t


cdef int look_at(Tensor t, Tensor x) except -1:
    """Gives t the window and the storage of x."""
    t.v, t.storage = x.v, x.storage
    if t.storage.lending != NULL:
        enlist(t)
    return 0


include "node.pxi"
include "events.pxi"
include "lending.pxi"
include "call.pxi"
include "inplace.pxi"
include "op.pxi"
include "wrap.pxi"
include "access.pxi"


# --------------------------------------------------------------------------- operator slots

cdef Op ADD, SUB, MUL, DIV, FLOORDIV, MOD, POW, MATMUL, EQ, NE, LT, LE, GT, GE
cdef Op AND, OR, XOR, LSHIFT, RSHIFT, NEG, ABS, INVERT, GETITEM


cdef int bind_operator(Op op) except -1:
    """Operator slots of Tensor go to the rows that name the symbol."""
    global ADD, SUB, MUL, DIV, FLOORDIV, MOD, POW, MATMUL, EQ, NE, LT, LE, GT, GE
    global AND, OR, XOR, LSHIFT, RSHIFT, NEG, ABS, INVERT, GETITEM
    s = None if op.inplace else op.row.symbol
    if s == "+": ADD = op
    elif s == "-": SUB = op
    elif s == "*": MUL = op
    elif s == "/": DIV = op
    elif s == "//": FLOORDIV = op
    elif s == "%": MOD = op
    elif s == "**": POW = op
    elif s == "@": MATMUL = op
    elif s == "==": EQ = op
    elif s == "!=": NE = op
    elif s == "<": LT = op
    elif s == "<=": LE = op
    elif s == ">": GT = op
    elif s == ">=": GE = op
    elif s == "&": AND = op
    elif s == "|": OR = op
    elif s == "^": XOR = op
    elif s == "<<": LSHIFT = op
    elif s == ">>": RSHIFT = op
    elif s == "neg": NEG = op
    elif s == "abs": ABS = op
    elif s == "~": INVERT = op
    elif s == "[]": GETITEM = op
    return 0


cdef object binary(Op op, object a, object b):
    cdef PyObject *args[2]
    if not (isinstance(b, Tensor) or PyFloat_Check(b) or PyLong_Check(b)) or not isinstance(a, Tensor):
        if not is_operand(a) or not is_operand(b):
            return not_mine(op.name, a, b)
    args[0], args[1] = <PyObject *>a, <PyObject *>b
    return invoke(op, args, 2, &NO_ATTRS)


cdef object not_mine(str name, object a, object b):
    """Python asks the other side, except for arrays: a comparison would quietly end as False."""
    other = b if isinstance(a, Tensor) else a
    if hasattr(other, "__array_interface__"):
        raise TypeError(f"{name}: one side is a {type(other).__module__}.{type(other).__name__}, expected a Tensor or "
                        "a number; convert it with tinyfin.from_numpy()")
    return NotImplemented


cdef bint is_operand(object o):
    cdef tf_view v
    cdef int64_t slot
    return isinstance(o, Tensor) or wrap_number(o, &v, &slot) == 1


cdef object unary_call(Op op, object a):
    cdef PyObject *args[1]
    args[0] = <PyObject *>a
    return invoke(op, args, 1, &NO_ATTRS)


cdef object binary_inplace(str name, object a, object b):
    if not is_operand(b):
        return not_mine(name, a, b)
    return OPS[name](a, b)


include "indexing.pxi"


@cython.freelist(128)
@cython.binding(False)
cdef class Tensor:
    """A strided window on a storage, with an optional history for differentiation."""

    __array_priority__ = 1000
    __array_ufunc__ = None

    def __cinit__(self, *args, **kwargs):
        # an empty tensor until its maker says otherwise: a subclass may forget to call __init__
        self.v.ndim, self.v.strides[0], self.v.flags, self.v.dtype = 1, 1, TF_CONTIGUOUS, TF_F32
        self.storage = NOTHING

    def __init__(self, *args):
        """Tensor(2, 3) is an uninitialised float tensor, Tensor([1, 2]) one of these values."""
        HOOKS["construct"](self, args)

    # ---- numbers

    @property
    def shape(self):
        """Sizes, as a tuple."""
        return tuple.__new__(Size, shape_tuple(&self.v))

    def size(self, dim=None):
        """The shape, or the size of one dimension."""
        if dim is None:
            return self.shape
        return self.v.shape[wrap_axis(dim, self.v.ndim, "size")]

    def stride(self, dim=None):
        """Steps between neighbours, in elements."""
        if dim is None:
            return tuple([self.v.strides[i] for i in range(self.v.ndim)])
        return self.v.strides[wrap_axis(dim, self.v.ndim, "stride")]

    def storage_offset(self):
        """Number of the first element within the storage."""
        return self.v.offset

    def storage_elements(self):
        """How many elements of this dtype the storage holds, counted from offset 0."""
        cdef int64_t item = tf_itemsize[self.v.dtype]
        cdef size_t before = self.v.data - self.storage.data if self.v.data != NULL else self.v.offset * item
        return self.v.offset + <int64_t>((self.storage.nbytes - before) // item)

    def numel(self):
        """Number of elements."""
        return self.v.size

    def nelement(self):
        """Number of elements."""
        return self.v.size

    def dim(self):
        """Number of dimensions."""
        return self.v.ndim

    def element_size(self):
        """Bytes of one element."""
        return tf_itemsize[self.v.dtype]

    @property
    def ndim(self):
        """Number of dimensions."""
        return self.v.ndim

    @property
    def dtype(self):
        """Type of the elements."""
        return dtype_object(self.v.dtype)

    @property
    def device(self):
        """Where the elements are."""
        return device_object(self.v.backend, self.v.index)

    @property
    def itemsize(self):
        """Bytes of one element."""
        return tf_itemsize[self.v.dtype]

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.v.size * tf_itemsize[self.v.dtype]

    def data_ptr(self):
        """Address of the first element; 0 where the host cannot see it."""
        expose(self, "data_ptr")
        return <size_t>self.v.data

    def is_contiguous(self):
        """Whether elements lie row by row without gaps."""
        return self.v.flags & TF_CONTIGUOUS != 0

    def is_floating_point(self):
        """Whether the elements are floating-point numbers."""
        return category[self.v.dtype] == 2

    def is_complex(self):
        """Whether the elements are complex numbers; none are yet."""
        return category[self.v.dtype] == 3

    # ---- history

    @property
    def requires_grad(self):
        """Whether gradients flow to this tensor."""
        if not self.needs and flows(self):
            sync_view(self)
        return self.needs

    @requires_grad.setter
    def requires_grad(self, value):
        if value is not True and value is not False:
            raise TypeError(f"requires_grad: got {value!r}, expected True or False")
        if value and category[self.v.dtype] < 2:
            raise RuntimeError(f"requires_grad: only floating-point tensors can require gradients, "
                               f"this one is {self.dtype}")
        if value and self.inference:
            raise RuntimeError("requires_grad: this tensor was made in inference mode; clone() it outside")
        if not value and not self.is_leaf:
            raise RuntimeError("requires_grad: only leaves can change it; use detach()")
        self.needs = value

    def requires_grad_(self, requires_grad=True):
        """Sets requires_grad and returns the tensor."""
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self):
        """Whether no recorded operation made this tensor."""
        return self.grad_fn is None

    @property
    def grad_fn(self):
        """The recorded operation that made this tensor, or None."""
        if self.base is not None and flows(self):
            sync_view(self)
        return self.node

    @property
    def output_nr(self):
        """Which result of grad_fn this is."""
        return self.out_nr

    @property
    def grad(self):
        """The accumulated gradient, or None."""
        return self.grad_slot

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad: got {type(value).__name__}, expected a Tensor or None")
            if not same_shape(&(<Tensor>value).v, &self.v):
                raise RuntimeError(f"grad: shape {shape_tuple(&(<Tensor>value).v)} differs from the tensor's "
                                   f"{shape_tuple(&self.v)}")
            if (<Tensor>value).v.dtype != self.v.dtype or (<Tensor>value).v.backend != self.v.backend:
                raise RuntimeError(f"grad: {(<Tensor>value).dtype} on {(<Tensor>value).device} given to a tensor of "
                                   f"{self.dtype} on {self.device}")
        self.grad_slot = value

    @grad.deleter
    def grad(self):
        self.grad_slot = None

    def mark_retained_(self):
        """Notes that this non-leaf's gradient is kept."""
        self.retains = True

    @property
    def retains_grad(self):
        """Whether a non-leaf's gradient is kept."""
        return self.retains

    @property
    def _version(self):
        """How often the storage was written in place."""
        return self.storage.version

    def detach(self):
        """A view of the same elements without history."""
        cdef Tensor t = alias_of(self)
        t.base = None
        t.inference = self.inference
        r = self.extra
        if r is not None and ("dual" in r or "batch" in r):
            return HOOKS["detach"](self, t)
        return t

    def detach_(self):
        """Drops this tensor's history."""
        if self.base is not None:
            raise RuntimeError("detach_: input is a view; use detach()")
        self.node, self.needs, self.out_nr = None, False, 0
        return self

    @property
    def data(self):
        """The same elements without history; writes through it are not recorded."""
        return self.detach()

    @data.setter
    def data(self, Tensor value not None):
        if self.needs and category[value.v.dtype] < 2:
            raise RuntimeError(f"data: a tensor that requires grad cannot become one of {value.dtype}")
        if FLYING:                    # a kernel may be at work on what this tensor had
            REPLACED.append(self.storage)
        look_at(self, value)
        self.base, self.inference = None, value.inference

    def is_inference(self):
        """Whether the tensor was made in inference mode."""
        return self.inference

    @property
    def extra_(self):
        """Dictionary of rare things (hooks, tangents); None until first used."""
        return self.extra

    def set_extra_(self, str key, value):
        """Stores one rare thing; None removes it."""
        if value is None:
            if self.extra is not None:
                (<dict>self.extra).pop(key, None)
            return
        if self.extra is None:
            self.extra = {}
        self.extra[key] = value

    @staticmethod
    def _make_subclass(cls, Tensor data not None, bint requires_grad=False):
        """An instance of a subclass over the bytes of `data`."""
        cdef Tensor t = cls.__new__(cls)
        look_at(t, data)
        if requires_grad:
            t.requires_grad = True
        return t

    # ---- values

    def item(self):
        """The only element, as a Python number."""
        check_readable(self, "item")
        if self.v.size != 1:
            raise RuntimeError(f"item: the tensor has shape {shape_tuple(&self.v)} of {self.v.size} elements, "
                               "expected exactly one")
        if self.v.backend != TF_CPU:
            return self.cpu().item()
        return read_element(&self.v, self.v.data)

    def __bool__(self):
        if self.v.size != 1:
            raise RuntimeError(f"bool: a tensor of {self.v.size} elements has no single truth value; "
                               "use any() or all()")
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __index__(self):
        if category[self.v.dtype] >= 2 or self.v.size != 1:
            raise TypeError(f"index: a {self.dtype} tensor of shape {shape_tuple(&self.v)} is no integer")
        return int(self.item())

    def __len__(self):
        if self.v.ndim == 0:
            raise TypeError("len: a tensor without dimensions has no length")
        return self.v.shape[0]

    def __hash__(self):
        return <Py_ssize_t><void *>self >> 4

    def __iter__(self):
        if self.v.ndim == 0:
            raise TypeError("iter: a tensor without dimensions cannot be iterated")
        return iter([self[i] for i in range(self.v.shape[0])])

    def __contains__(self, item):
        if not is_operand(item):
            raise RuntimeError(f"contains: {item!r} of type {type(item).__name__} is no Tensor and no number")
        return bool(EQ(self, item).any())

    def __repr__(self):
        return HOOKS["repr"](self)

    def __format__(self, spec):
        if not spec:
            return str(self)
        if self.v.ndim:
            raise TypeError(f"format: '{spec}' formats one number, the tensor has shape {shape_tuple(&self.v)}")
        return format(self.item(), spec)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        fill_buffer(self, buffer, flags)

    def __releasebuffer__(self, Py_buffer *buffer):
        release_buffer(buffer)

    def __reduce_ex__(self, protocol):
        return HOOKS["reduce"](self)

    def __getitem__(self, key):
        cdef tf_attrs at
        cdef PyObject *args[1]
        if parse_key(self, key, &at):
            return HOOKS["getitem"](self, key)
        args[0] = <PyObject *>self
        return invoke(GETITEM, args, 1, &at)

    def __setitem__(self, key, value):
        cdef tf_attrs at
        cdef PyObject *args[1]
        if parse_key(self, key, &at):
            HOOKS["setitem"](self, key, value)
            return
        args[0] = <PyObject *>self
        HOOKS["setslice"](invoke(GETITEM, args, 1, &at), value)

    def __delitem__(self, key):
        raise TypeError("index: elements of a tensor cannot be deleted")

    # ---- operators

    def __add__(self, other): return binary(ADD, self, other)
    def __radd__(self, other): return binary(ADD, other, self)
    def __sub__(self, other): return binary(SUB, self, other)
    def __rsub__(self, other): return binary(SUB, other, self)
    def __mul__(self, other): return binary(MUL, self, other)
    def __rmul__(self, other): return binary(MUL, other, self)
    def __truediv__(self, other): return binary(DIV, self, other)
    def __rtruediv__(self, other): return binary(DIV, other, self)
    def __floordiv__(self, other): return binary(FLOORDIV, self, other)
    def __rfloordiv__(self, other): return binary(FLOORDIV, other, self)
    def __mod__(self, other): return binary(MOD, self, other)
    def __rmod__(self, other): return binary(MOD, other, self)
    def __pow__(self, other, modulo): return binary(POW, self, other) if modulo is None else NotImplemented
    def __rpow__(self, other, modulo): return binary(POW, other, self) if modulo is None else NotImplemented

    def __matmul__(self, other):
        return MATMUL(self, other) if isinstance(other, Tensor) else not_mine("matmul", self, other)

    def __rmatmul__(self, other): return not_mine("matmul", other, self)
    def __and__(self, other): return binary(AND, self, other)
    def __rand__(self, other): return binary(AND, other, self)
    def __or__(self, other): return binary(OR, self, other)
    def __ror__(self, other): return binary(OR, other, self)
    def __xor__(self, other): return binary(XOR, self, other)
    def __rxor__(self, other): return binary(XOR, other, self)
    def __lshift__(self, other): return binary(LSHIFT, self, other)
    def __rshift__(self, other): return binary(RSHIFT, self, other)
    def __eq__(self, other): return binary(EQ, self, other)
    def __ne__(self, other): return binary(NE, self, other)
    def __lt__(self, other): return binary(LT, self, other)
    def __le__(self, other): return binary(LE, self, other)
    def __gt__(self, other): return binary(GT, self, other)
    def __ge__(self, other): return binary(GE, self, other)
    def __neg__(self): return unary_call(NEG, self)
    def __pos__(self): return self
    def __abs__(self): return unary_call(ABS, self)
    def __invert__(self): return unary_call(INVERT, whole_numbers(self, "~"))
    def __iadd__(self, other): return binary_inplace("add_", self, other)
    def __isub__(self, other): return binary_inplace("sub_", self, other)
    def __imul__(self, other): return binary_inplace("mul_", self, other)
    def __itruediv__(self, other): return binary_inplace("div_", self, other)
    def __ifloordiv__(self, other): return binary_inplace("floor_divide_", self, other)
    def __imod__(self, other): return binary_inplace("remainder_", self, other)
    def __ipow__(self, other): return binary_inplace("pow_", self, other)
    def __iand__(self, other): return binary_inplace("bitwise_and_", self, other)
    def __ior__(self, other): return binary_inplace("bitwise_or_", self, other)
    def __ixor__(self, other): return binary_inplace("bitwise_xor_", self, other)
