"""What a device does with plain arithmetic: for the check of drivers, no operation uses it."""
from tinyfin.backends.gpu.launch cimport *
from tinyfin.core.abi cimport *
from tinyfin.core.tensor cimport Tensor

from tinyfin.backends.gpu.modules import shader
from tinyfin.core.errors import FAILED

cdef int PROBE = shader("probe")
cdef enum:
    GROUP = 64                       # invocations of a work group


def probe(Tensor out not None, Tensor a not None, Tensor b not None, Tensor c not None, int which):
    """Computes number `which` of probe.comp from dense tensors with 32-bit elements, all of one size."""
    cdef tf_launch l
    cdef tf_call call
    for t in (out, a, b, c):
        if (<Tensor>t).v.size != out.v.size or tf_itemsize[(<Tensor>t).v.dtype] != 4 \
                or not (<Tensor>t).v.flags & TF_CONTIGUOUS or (<Tensor>t).v.backend != out.v.backend \
                or (<Tensor>t).v.index != out.v.index or not (<Tensor>t).v.block:
            raise ValueError("probe: four dense tensors of 32-bit elements on one GPU are expected")
    memset(&call, 0, sizeof(call))
    begin(&l, PROBE, &call)
    write(&l, &out.v)
    read(&l, &a.v)
    read(&l, &b.v)
    read(&l, &c.v)
    word(&l, out.v.size)
    constant(&l, 0, which)
    spread(&l, (out.v.size + GROUP - 1) // GROUP)
    if launch(&l, &out.v, &call) != TF_OK:
        raise FAILED[out.v.backend, out.v.index]
