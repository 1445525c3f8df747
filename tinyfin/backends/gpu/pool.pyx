"""Pooling over one, two or three axes: planes are dense, a copy is where they are not.

Missing axes come first, with size one. Each window's elements are taken in row-major order, each element's
windows in rising order, as on the CPU.
"""
from libc.stdint cimport INT64_MIN, int64_t
from libc.string cimport memset

from tinyfin.backends.cpu.spatial cimport three, volume
from tinyfin.backends.gpu.elementwise cimport dense
from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.infer cimport kernel_capsule

from tinyfin.backends.gpu.modules import shader

cdef int MAX = shader("pool_max")
cdef int[2] MEAN = [shader("pool_mean_f32"), shader("pool_mean_f64")]
cdef int GATHER = shader("pool_gather")
cdef int[2] SCATTER = [shader("pool_scatter_f32"), shader("pool_scatter_f64")]

cdef enum:
    GROUP = 256              # invocations of a work group
    TILE = 2048              # elements of a work group of pool_scatter
    FAR = 1 << 30            # sizes and steps up to which places are counted in 32 bits
    BY_DIVISOR = 0           # what a mean divides by
    BY_INSIDE
    BY_PADDED


cdef struct Windows:
    int64_t size[3]          # the larger side
    int64_t outs[3]          # one for each window
    int64_t kernel[3]
    int64_t stride[3]
    int64_t pad[3]
    int64_t dil[3]
    bint adaptive


cdef void sides(Windows *w, const tf_view *larger, const tf_view *smaller, int nd) noexcept nogil:
    three(&larger.shape[larger.ndim - nd], nd, 1, w.size)
    three(&smaller.shape[smaller.ndim - nd], nd, 1, w.outs)


cdef void steps(Windows *w, const tf_attrs *at, int nd, bint dilated) noexcept nogil:
    """kernel, stride, padding, dilation of the attributes."""
    cdef int a
    three(&at.i[0], nd, 1, w.kernel)
    three(&at.i[3], nd, 1, w.stride)
    three(&at.i[6], nd, 0, w.pad)
    three(&at.i[9], nd, 1, w.dil)
    w.adaptive = False
    for a in range(3):
        if not dilated:
            w.dil[a] = 1


cdef void fitted(Windows *w) noexcept nogil:
    """Adaptive windows; where sizes divide they are ordinary ones."""
    cdef int a
    w.adaptive = False
    for a in range(3):
        w.kernel[a] = w.stride[a] = w.dil[a] = 1
        w.pad[a] = 0
        w.adaptive = w.adaptive or w.size[a] % w.outs[a] != 0
    if not w.adaptive:
        for a in range(3):
            w.kernel[a] = w.stride[a] = w.size[a] // w.outs[a]


cdef bint countable(Windows *w) noexcept nogil:
    """Whether 32 bits count all places. Taps that reach nothing go, and steps that are never taken."""
    cdef int a
    for a in range(3):
        if w.adaptive:
            if w.size[a] >= FAR or w.outs[a] >= FAR or w.size[a] * (w.outs[a] + 1) >= FAR:
                return False
            continue
        if w.size[a] >= FAR or w.pad[a] >= FAR:
            return False
        w.kernel[a] = max(min(w.kernel[a], (w.size[a] + 2 * w.pad[a] - 1) // w.dil[a] + 1), 1)
        if w.outs[a] == 1:
            w.stride[a] = 1
        if w.kernel[a] == 1:
            w.dil[a] = 1
        if w.size[a] + 2 * w.pad[a] >= FAR or w.stride[a] >= FAR or w.dil[a] >= FAR:
            return False
    return volume(w.kernel) < FAR


cdef void window_words(tf_launch *l, const Windows *w, int64_t count, bint dilated) noexcept nogil:
    cdef const int64_t *fields[6]
    cdef int k, a
    fields[0], fields[1], fields[2] = w.size, w.outs, w.kernel
    fields[3], fields[4], fields[5] = w.stride, w.pad, w.dil
    word(l, count)
    for k in range(6 if dilated else 5):
        for a in range(3):
            word(l, fields[k][a])


cdef int run_max(Windows *w, const tf_view *x, tf_view *const *outputs, tf_call *call) noexcept:
    cdef tf_view planes = x[0]
    cdef list keep = []
    cdef tf_launch l
    cdef int rc
    if not countable(w) or not within_reach(&planes) or not within_reach(outputs[0]) or x.size >> 31:
        return TF_EUNSUPPORTED
    rc = dense(&planes, keep, call)
    if rc != TF_OK:
        return rc
    begin(&l, MAX, call)
    write(&l, outputs[0])
    write(&l, outputs[1])
    read(&l, &planes)
    window_words(&l, w, outputs[0].size, True)
    constant(&l, 0, x.dtype)
    constant(&l, 1, w.adaptive)
    spread(&l, (outputs[0].size + GROUP - 1) // GROUP)
    return launch(&l, outputs[0], call)


cdef int max_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept with gil:
    """kernel, stride, padding, dilation, ceil_mode, nd."""
    cdef Windows w
    cdef int nd = <int>at.i[13]
    call.detail[0] = inputs[0].dtype
    if not computes(inputs[0]):
        return TF_EUNSUPPORTED
    if outputs[0].size == 0:
        return TF_OK
    sides(&w, inputs[0], outputs[0], nd)
    steps(&w, at, nd, True)
    return run_max(&w, inputs[0], outputs, call)


cdef int adaptive_max_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                           const tf_attrs *at, tf_call *call) noexcept with gil:
    """size, nd."""
    cdef Windows w
    cdef int nd = <int>at.i[3]
    call.detail[0] = inputs[0].dtype
    if not computes(inputs[0]):
        return TF_EUNSUPPORTED
    if outputs[0].size == 0:
        return TF_OK
    sides(&w, inputs[0], outputs[0], nd)
    fitted(&w)
    return run_max(&w, inputs[0], outputs, call)


cdef int run_mean(Windows *w, const tf_view *x, tf_view *y, int counted, int64_t divisor, bint grad,
                  tf_call *call) noexcept:
    """x is what is read: the windows' side where it is the gradient; without elements it counts as zero."""
    cdef tf_view planes = x[0]
    cdef list keep = []
    cdef tf_launch l
    cdef int rc
    if not countable(w) or not within_reach(&planes) or not within_reach(y) or x.size >> 31:
        return TF_EUNSUPPORTED
    rc = dense(&planes, keep, call)
    if rc != TF_OK:
        return rc
    begin(&l, MEAN[is_double(x)], call)
    write(&l, y)
    read(&l, &planes)
    window_words(&l, w, y.size, False)
    number_word(&l, <double>divisor if is_double(x) else <double><float>divisor, is_double(x))      # rounded once
    constant(&l, 0, x.dtype)
    constant(&l, 1, w.adaptive)
    constant(&l, 2, counted)
    constant(&l, 3, grad)
    spread(&l, (y.size + GROUP - 1) // GROUP)
    return launch(&l, y, call)


cdef int mean(const tf_view *const *inputs, tf_view *const *outputs, const tf_attrs *at, tf_call *call,
              bint grad) noexcept:
    """kernel, stride, padding, ceil_mode, count_include_pad, divisor, nd."""
    cdef Windows w
    cdef int nd = <int>at.i[12]
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    cdef int counted = BY_DIVISOR if at.i[11] != INT64_MIN else BY_PADDED if at.i[10] else BY_INSIDE
    call.detail[0] = x.dtype
    if not computes(x):
        return TF_EUNSUPPORTED
    if y.size == 0:
        return TF_OK
    sides(&w, y if grad else x, x if grad else y, nd)
    steps(&w, at, nd, False)
    return run_mean(&w, x, y, counted, at.i[11], grad, call)


cdef int adaptive_mean(const tf_view *const *inputs, tf_view *const *outputs, const tf_attrs *at, tf_call *call,
                       bint grad) noexcept:
    """size, nd."""
    cdef Windows w
    cdef int nd = <int>at.i[3]
    cdef const tf_view *x = inputs[0]
    cdef tf_view *y = outputs[0]
    call.detail[0] = x.dtype
    if not computes(x):
        return TF_EUNSUPPORTED
    if y.size == 0:
        return TF_OK
    sides(&w, y if grad else x, x if grad else y, nd)
    if volume(w.outs) == 0:                     # a gradient of no windows
        memset(&w, 0, sizeof(w))
        three(&y.shape[y.ndim - nd], nd, 1, w.size)
        w.kernel[0] = w.kernel[1] = w.kernel[2] = w.stride[0] = w.stride[1] = w.stride[2] = 1
        w.dil[0] = w.dil[1] = w.dil[2] = 1
    else:
        fitted(&w)
    return run_mean(&w, x, y, BY_INSIDE, INT64_MIN, grad, call)


cdef int avg_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                  const tf_attrs *at, tf_call *call) noexcept with gil:
    return mean(inputs, outputs, at, call, False)


cdef int avg_pool_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                       const tf_attrs *at, tf_call *call) noexcept with gil:
    return mean(inputs, outputs, at, call, True)


cdef int adaptive_avg_pool(const tf_view *const *inputs, int n, tf_view *const *outputs,
                           const tf_attrs *at, tf_call *call) noexcept with gil:
    return adaptive_mean(inputs, outputs, at, call, False)


cdef int adaptive_avg_pool_grad(const tf_view *const *inputs, int n, tf_view *const *outputs,
                                const tf_attrs *at, tf_call *call) noexcept with gil:
    return adaptive_mean(inputs, outputs, at, call, True)


cdef int at_places(bint scatters, const tf_view *x, const tf_view *indices, tf_view *y, int64_t places, int64_t area,
                   tf_call *call) noexcept:
    """Values x and their flat places in planes of `area` elements, `places` of them in each plane."""
    cdef tf_view values = x[0]
    cdef tf_view index = indices[0]
    cdef list keep = []
    cdef tf_launch l
    cdef int rc
    if (not within_reach(&values) or not within_reach(&index) or not within_reach(y)
            or (x.size | indices.size | area) >> 31):
        return TF_EUNSUPPORTED
    rc = dense(&values, keep, call) or dense(&index, keep, call)
    call.detail[0] = x.dtype
    if rc != TF_OK:
        return rc
    begin(&l, SCATTER[is_double(x)] if scatters else GATHER, call)
    write(&l, y)
    read(&l, &values)
    read(&l, &index)
    fault(&l, y)
    word(&l, y.size)
    word(&l, places)
    word(&l, area)
    if scatters:
        word(&l, x.size)
    constant(&l, 0, x.dtype)
    spread(&l, (y.size + TILE - 1) // TILE if scatters else (y.size + GROUP - 1) // GROUP)
    return launch(&l, y, call)


cdef int64_t plane_of(const tf_view *v, int nd) noexcept nogil:
    """Elements of a plane."""
    cdef int64_t n = 1
    cdef int i
    for i in range(v.ndim - nd, v.ndim):
        n *= v.shape[i]
    return n


cdef int pool_gather(const tf_view *const *inputs, int n, tf_view *const *outputs,
                     const tf_attrs *at, tf_call *call) noexcept with gil:
    """x, indices; nd."""
    cdef int nd = <int>at.i[0]
    call.detail[0] = inputs[0].dtype
    if not computes(inputs[0]) or inputs[1].dtype != TF_I64:
        return TF_EUNSUPPORTED
    if outputs[0].size == 0:
        return TF_OK
    return at_places(False, inputs[0], inputs[1], outputs[0], plane_of(outputs[0], nd), plane_of(inputs[0], nd),
                     call)


cdef int pool_scatter(const tf_view *const *inputs, int n, tf_view *const *outputs,
                      const tf_attrs *at, tf_call *call) noexcept with gil:
    """g, indices; size, nd."""
    cdef int nd = <int>at.i[3]
    call.detail[0] = inputs[0].dtype
    if not computes(inputs[0]) or inputs[1].dtype != TF_I64:
        return TF_EUNSUPPORTED
    if outputs[0].size == 0:
        return TF_OK
    return at_places(True, inputs[0], inputs[1], outputs[0], plane_of(inputs[0], nd), plane_of(outputs[0], nd),
                     call)


KERNELS = {
    "max_pool": kernel_capsule(max_pool), "adaptive_max_pool": kernel_capsule(adaptive_max_pool),
    "avg_pool": kernel_capsule(avg_pool), "avg_pool_grad": kernel_capsule(avg_pool_grad),
    "adaptive_avg_pool": kernel_capsule(adaptive_avg_pool),
    "adaptive_avg_pool_grad": kernel_capsule(adaptive_avg_pool_grad),
    "pool_gather": kernel_capsule(pool_gather), "pool_scatter": kernel_capsule(pool_scatter),
}
