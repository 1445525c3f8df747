"""Dispatches for cimport: what kernels of all GPU backends are written with."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from tinyfin.core.abi cimport *
from tinyfin.core.layout cimport extent

cdef extern from "launch.h" nogil:
    enum: TF_OPERANDS, TF_WORDS, TF_CONSTANTS, TF_FAULT_BIT
    ctypedef struct tf_range:
        uint64_t low, high
    ctypedef struct tf_key:
        uint32_t shader
        uint32_t constants[14]
    ctypedef struct tf_launch:
        tf_key key
        int32_t operands, words
        uint32_t written, deterministic
        uint64_t at[8]
        tf_range range[8]
        uint32_t word[28]
        uint32_t groups[3]
    ctypedef struct tf_table:
        uint32_t used
    uint32_t behind(const tf_launch *l)
    uint64_t table_find(const tf_table *t, const tf_key *key)
    int table_add(tf_table *t, const tf_key *key, uint64_t handle)
    void table_clear(tf_table *t)

ctypedef int (*tf_launcher)(void *stream, tf_launch *l) except -1

cdef enum:
    HAS_INT64 = 1        # features of devices
    HAS_FLOAT64 = 2      # with 64-bit integers, which its bits are read as
    HAS_COOPERATIVE = 4  # matrices of 16 x 16 float16, multiplied by 32 invocations together; bfloat16
    HAS_COOPERATIVE_BF16 = 8
    IS_SOFTWARE = 16     # compiles long texts slowly
    GROUPS = 32768       # work groups along x; more of them are spread over y


cdef int set_launcher(int slot, tf_launcher launcher) except -1
cdef int launch(tf_launch *l, const tf_view *where, tf_call *call) noexcept
cdef int failed(const tf_view *where, tf_call *call, object error) noexcept
cdef object scratch(const tf_view *where, uint64_t nbytes)
cdef uint32_t features(const tf_view *where) noexcept nogil
cdef uint64_t fault_of(const tf_view *where) noexcept


cdef inline void begin(tf_launch *l, uint32_t shader, tf_call *call) noexcept nogil:
    """An empty dispatch of a shader."""
    memset(l, 0, sizeof(tf_launch))
    l.key.shader = shader
    l.deterministic = call.mode & TF_DETERMINISTIC
    l.groups[1] = l.groups[2] = 1


cdef inline void constant(tf_launch *l, int k, uint32_t value) noexcept nogil:
    """Constant k of those that the body names; before them stand FLUSH and BEHIND, which launching sets."""
    l.key.constants[k + 2] = value


cdef inline uint64_t address_of(const tf_view *v) noexcept nogil:
    """Of the view's first element."""
    return <uint64_t>v.block + <uint64_t>(v.offset * tf_itemsize[v.dtype])


cdef inline void number(tf_launch *l, uint64_t bits) noexcept nogil:
    """The next operand is a number."""
    l.at[l.operands] = bits
    l.operands += 1


cdef inline void bytes_of(tf_launch *l, uint64_t address, uint64_t nbytes, bint writes) noexcept nogil:
    """The next operand is plain memory."""
    cdef int k = l.operands
    l.at[k] = l.range[k].low = address
    l.range[k].high = address + nbytes
    if writes:
        l.written |= <uint32_t>1 << k
    l.operands += 1


cdef inline void operand(tf_launch *l, const tf_view *v, bint writes) noexcept nogil:
    """The next operand is a tensor; an absent one has no memory."""
    cdef int64_t low, high
    cdef int k = l.operands, item = tf_itemsize[v.dtype]
    l.operands += 1
    if v.flags & TF_ABSENT or v.size == 0:
        return
    extent(v, &low, &high)
    l.at[k] = address_of(v)
    l.range[k].low = l.at[k] + <uint64_t>(low * item)
    l.range[k].high = l.at[k] + <uint64_t>((high + 1) * item)
    if writes:
        l.written |= <uint32_t>1 << k


cdef inline void read(tf_launch *l, const tf_view *v) noexcept nogil:
    operand(l, v, False)


cdef inline void write(tf_launch *l, const tf_view *v) noexcept nogil:
    operand(l, v, True)


cdef inline void fault(tf_launch *l, const tf_view *where) noexcept:
    """The next operand is where a body tells of a bad index (fault.glsl); no barrier orders it."""
    l.written |= <uint32_t>1 << (TF_FAULT_BIT + l.operands)
    number(l, fault_of(where))


cdef inline void word(tf_launch *l, int64_t value) noexcept nogil:
    """The next word, an integer."""
    l.word[l.words] = <uint32_t>value
    l.words += 1


cdef inline void real(tf_launch *l, double value) noexcept nogil:
    """The next word, a float32."""
    cdef float f = <float>value
    memcpy(&l.word[l.words], &f, 4)
    l.words += 1


cdef inline void number_word(tf_launch *l, double value, bint doubled) noexcept nogil:
    """The next `number`: a float32, or a float64 in two words for bodies that compute in it."""
    if not doubled:
        real(l, value)
        return
    memcpy(&l.word[l.words], &value, 8)
    l.words += 2


cdef inline bint is_double(const tf_view *v) noexcept nogil:
    """Whether the body for float64 is to be taken."""
    return v.dtype == TF_F64


cdef inline bint computes(const tf_view *v) noexcept nogil:
    """Whether bodies for floats take a tensor of this dtype: the halves, float32, float64 where the device has it."""
    return TF_F16 <= v.dtype <= TF_F32 or (v.dtype == TF_F64 and features(v) & HAS_FLOAT64 != 0)


cdef inline void spread(tf_launch *l, int64_t groups) noexcept nogil:
    """So many work groups; the body takes tf_group() and leaves those past the last."""
    l.groups[0] = <uint32_t>groups
    l.groups[1] = 1
    if groups > GROUPS:
        l.groups[0], l.groups[1] = GROUPS, <uint32_t>((groups + GROUPS - 1) // GROUPS)


cdef inline bint within_reach(const tf_view *v) noexcept nogil:
    """Whether 32 bits with a sign count the view's elements, from its first one, both ways."""
    cdef int64_t low, high
    if v.flags & TF_ABSENT or v.size == 0:
        return True
    extent(v, &low, &high)
    return low > -(<int64_t>1 << 31) and high < <int64_t>1 << 31 and v.size < <int64_t>1 << 31
