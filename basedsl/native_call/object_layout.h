/* The objects of CPython, NumPy and DLPack that native code reads directly, field by field.

Python code checks CPython's and NumPy's on live objects before native code that reads them is
called. Objects are read, never written. */

#ifndef BASEDSL_OBJECT_LAYOUT_H
#define BASEDSL_OBJECT_LAYOUT_H

#include <stdint.h>

/* CPython's PyObject (object.h), in builds with the GIL. */
typedef struct Object {
    int64_t references;
    struct Object *type;
} Object;

/* NumPy's PyArrayObject_fields (ndarraytypes.h), up to the flags. */
typedef struct {
    Object base;
    char *data;
    int32_t ndim;
    int64_t *shape;
    int64_t *strides; /* in bytes */
    Object *owner;
    Object *dtype;
    int32_t flags;
} Array;

/* DLPack's DLTensor (dlpack.h): the ABI that array libraries share. */
typedef struct {
    char *data;
    int64_t device; /* type, and id in the upper half */
    int32_t ndim;
    uint32_t dtype; /* code, bits, lanes in the upper half */
    int64_t *shape;
    int64_t *strides; /* in items */
    uint64_t byte_offset;
} Tensor;

#endif
