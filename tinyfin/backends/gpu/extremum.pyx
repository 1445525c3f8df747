"""Extremes over axes, where they are, and any/all: keys are compared, so the order of comparing does not matter."""
from libc.stdint cimport INT64_MIN, int64_t

from tinyfin.backends.gpu.launch cimport *
from tinyfin.backends.gpu.reduce cimport Memory, Reduced, across, reduced, run_levels
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule
from tinyfin.core.layout cimport mask_of

from tinyfin.backends.gpu.modules import shader

cdef enum:
    AMAX, AMIN, ANY, ALL, ARGMAX, ARGMIN, MAXDIM, MINDIM
    KEY_MAX = 0, KEY_MIN, KEY_ANY, KEY_ALL      # what extremum.comp looks for
    PART = 12                                   # bytes of the value of a block

cdef int EXTREMUM = shader("extremum")


cdef struct Extremum:
    const tf_view *x
    const tf_view *values               # or NULL
    const tf_view *places
    int kind


cdef void pack(tf_launch *l, const void *of, const Reduced *r, Memory source, Memory target) noexcept:
    cdef const Extremum *s = <const Extremum *>of
    cdef bint last = target.address == 0
    if not last:
        bytes_of(l, target.address, target.nbytes, True)
    elif s.values != NULL:
        write(l, s.values)
    else:
        number(l, 0)
    if last and s.places != NULL:
        write(l, s.places)
    else:
        number(l, 0)
    if source.address:
        bytes_of(l, source.address, source.nbytes, False)
    else:
        read(l, s.x)
    constant(l, 0, s.kind)
    constant(l, 1, s.x.dtype)
    constant(l, 3, 1)
    constant(l, 4, s.x.dtype == TF_I64 or s.x.dtype == TF_F64)
    constant(l, 5, source.address == 0)
    constant(l, 6, s.values != NULL)
    constant(l, 7, s.places != NULL)


cdef unsigned int mask_of_one(const tf_view *x, int64_t dim) noexcept nogil:
    """One axis, or INT64_MIN for all."""
    if dim == INT64_MIN or x.ndim == 0:
        return (1 << x.ndim) - 1
    return 1 << (dim + x.ndim if dim < 0 else dim)


cdef int reduce_extremum(const tf_view *const *inputs, int n, tf_view *const *outputs, const tf_attrs *at,
                         tf_call *call) noexcept with gil:
    cdef const tf_view *x = inputs[0]
    cdef int what = <int><size_t>call.ctx
    cdef Extremum s
    cdef Reduced r
    call.detail[0] = x.dtype
    s.x = x
    s.kind = (KEY_ANY if what == ANY else KEY_ALL if what == ALL else
              KEY_MAX if what == AMAX or what == ARGMAX or what == MAXDIM else KEY_MIN)
    s.values = NULL if what == ARGMAX or what == ARGMIN else outputs[0]
    s.places = outputs[1] if what >= MAXDIM else outputs[0] if what >= ARGMAX else NULL
    if x.dtype > TF_F64 or not reduced(&r, x, mask_of_one(x, at.i[0]) if what >= ARGMAX else mask_of(x, at.i)):
        return TF_EUNSUPPORTED
    if r.outs == 0:
        return TF_OK
    across(&r, x)
    return run_levels(&r, x, EXTREMUM, PART, pack, &s, call)


KERNELS = {
    "reduce_amax": (kernel_capsule(reduce_extremum), AMAX),
    "reduce_amin": (kernel_capsule(reduce_extremum), AMIN),
    "reduce_any": (kernel_capsule(reduce_extremum), ANY),
    "reduce_all": (kernel_capsule(reduce_extremum), ALL),
    "argmax": (kernel_capsule(reduce_extremum), ARGMAX),
    "argmin": (kernel_capsule(reduce_extremum), ARGMIN),
    "max_dim": (kernel_capsule(reduce_extremum), MAXDIM),
    "min_dim": (kernel_capsule(reduce_extremum), MINDIM),
}
