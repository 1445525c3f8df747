/* The contract between all C and Cython of tinyfin: what a kernel sees. */
#ifndef TF_ABI_H
#define TF_ABI_H
#include <stdint.h>

#define TF_ABI_VERSION 1
#define TF_MAXDIM 8
#define TF_MAXBACKEND 16 /* slots 8-15 belong to third parties */

/* dtype ids; the last five are reserved: sizes and promotion exist, kernels do not */
enum {
  TF_BOOL, TF_U8, TF_I8, TF_I16, TF_I32, TF_I64, TF_F16, TF_BF16, TF_F32, TF_F64,
  TF_C64, TF_C128, TF_U16, TF_U32, TF_U64, TF_NDTYPE
};

enum { TF_CPU, TF_NULL, TF_VULKAN, TF_OPENGL }; /* backend slots; `blas` shares device cpu */

/* tf_view.flags */
enum { TF_CONTIGUOUS = 1, TF_WRAPPED = 2, TF_READONLY = 4, TF_ABSENT = 8, TF_BATCHED = 16 };
/* CONTIGUOUS: row-major without gaps; WRAPPED: a Python number, which promotes by category only;
   ABSENT: an optional tensor argument that was not given (size 0, data NULL);
   BATCHED: the first sample of a vmap's batch, which no kernel may see */

/* A strided window on a storage; owns nothing. Strides count elements, may be 0 or negative. */
typedef struct {
  char *data;      /* first element on host devices, else NULL */
  void *block;     /* device block on other devices */
  int64_t offset;  /* of the first element within the storage, in elements */
  int64_t size;    /* number of elements */
  int64_t shape[TF_MAXDIM], strides[TF_MAXDIM];
  uint8_t ndim, dtype, backend, index, flags;
} tf_view;

/* Attributes of a call; the slots are assigned by the row, in the order of its attributes. */
typedef struct {
  int64_t i[32];
  double f[8];
} tf_attrs;

/* Error codes of kernels; detail[] says which value was wrong. */
enum {
  TF_OK = 0,
  TF_ENOMEM,       /* scratch memory refused: detail = bytes */
  TF_EINDEX,       /* index out of range: detail = value, size, dim */
  TF_EZERODIV,     /* integer division by zero */
  TF_EVALUE,       /* a value outside the domain: detail = argument, bits of the double, domain */
  TF_EUNSUPPORTED, /* this kernel does not take this dtype or layout */
  TF_ENONDET,      /* refused in deterministic mode */
  TF_EDEVICE       /* the device failed: detail = slot, number, under which core.errors.FAILED has the exception */
};

/* tf_call.mode */
enum { TF_DETERMINISTIC = 1 };

/* One call: what the family knows of the row, and where a kernel reports what went wrong. */
typedef struct {
  const void *ctx;   /* set by the backend for the row: an entry of the loop table, ... */
  uint32_t mode;
  uint8_t compute;   /* dtype in which an elementwise or reduce row computes; set by infer */
  uint8_t needs_copy; /* a view row answers: strides do not allow it, copy first */
  int64_t detail[4];
  int64_t launched[2]; /* numbers of the device's dispatches: the first of the call, and the one behind its last */
} tf_call;

typedef int (*tf_kernel)(const tf_view *const *in, int n, tf_view *const *out,
                         const tf_attrs *at, tf_call *call);

static const uint8_t tf_itemsize[TF_NDTYPE] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8};

#endif
