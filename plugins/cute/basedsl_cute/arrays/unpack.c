/* A tensor argument from an array of NumPy or PyTorch, or from what Python code makes of a value.

`basedsl_cute.arrays.unpack` fills the tables and says what they mean; this is the same as
`TensorArgument.pack` where the value is one that the type takes, else 0. It raises nothing.

`make native` turns this file into `unpack.ll`, which is what is loaded. Objects in memory are read as
basedsl's `object_layout.h` declares them. */

#include "object_layout.h"

extern Object PyBytes_Type;
extern Object _Py_FalseStruct;
extern Object *PyObject_GetAttr(Object *, Object *);
extern Object *PyObject_CallOneArg(Object *, Object *);
extern Object *PyObject_CallNoArgs(Object *);
extern char *PyBytes_AsString(Object *);
extern int64_t PyBytes_Size(Object *);
extern void PyErr_Clear(void);
extern void Py_DecRef(Object *);

enum { MOST_MODES = 32, WRITEABLE = 0x0400 };
enum { READ_ONLY = 1, WRITABLE = 2 };
enum { NARROW = 1, WIDE = 2 };

typedef struct {
    int64_t known;  /* whether it is `number`; else it is a multiple of it, and is stored */
    int64_t number;
} Leaf;

typedef struct {
    Object *numpy; /* the class; 0 where none is taken */
    Object *numpy_dtype;
    int64_t itemsize;
    Object *torch; /* the class; 0 where none is taken */
    Object *parameter; /* the class of a module's parameters, likewise */
    int32_t (*describe)(void *, Tensor *);
    Object *requires_grad; /* the attribute's name */
    Object *records; /* the function that says whether gradients are recorded now */
    int64_t device;
    int64_t device_mask;
    int64_t dtype;
    Object *pack; /* from an object of any other class the bytes of the slots, or None */
    int64_t ndim;
    int64_t address_mask; /* address & mask == bits */
    int64_t address_bits;
    int64_t access; /* set of READ_ONLY, WRITABLE */
    int64_t reach;  /* set of NARROW, WIDE */
    int64_t bytes;  /* of a stored number */
    int64_t exact;  /* whether the mode of static stride 1 must be `leading`, -1 for none */
    int64_t leading;
    int64_t vector; /* elements of the widest access less one, where that is asked; else 0 */
    int64_t ragged; /* with `exact`: whether a stride beside the leading one is no multiple of it */
    Leaf leaves[]; /* extents, then strides */
} Type;

/* The mode whose stride is static in the type of a plain array, or -1. */
static int64_t leading_mode(const int64_t *shape, const int64_t *strides, int64_t ndim) {
    int64_t units = 0, unit = -1, longer = 0, longest = -1;
    for (int64_t i = 0; i < ndim; i++) {
        if (strides[i] != 1) continue;
        units++;
        unit = i;
        if (shape[i] > 1) {
            longer++;
            longest = i;
        }
    }
    if (units <= 1 || longer == 0) return unit;
    return longer == 1 ? longest : -1;
}

/* Whether a stride that matters, beside the leading mode's, has a bit of `vector`. */
static int64_t ragged(const int64_t *shape, const int64_t *strides, const Type *type) {
    int64_t bits = 0;
    for (int64_t i = 0; i < type->ndim; i++)
        if (i != type->leading && shape[i] > 1) bits |= strides[i];
    return (bits & type->vector) != 0;
}

/* Whether an extent, their product, a stride or an offset takes more than 31 bits. An overflow of 64
   bits counts as more. */
static int64_t reach(const int64_t *shape, const int64_t *strides, int64_t ndim) {
    int64_t furthest = 0, size = 1, most = INT32_MAX;
    for (int64_t i = 0; i < ndim; i++) {
        if (shape[i] > most || strides[i] > most || strides[i] < -most) return WIDE;
        if (!shape[i]) continue;
        if (__builtin_mul_overflow(size, shape[i], &size)) return WIDE;
        int64_t stride = strides[i] < 0 ? -strides[i] : strides[i], span;
        if (__builtin_mul_overflow(shape[i] - 1, stride, &span)) return WIDE;
        if (__builtin_add_overflow(furthest, span, &furthest)) return WIDE;
    }
    return furthest > most || size > most ? WIDE : NARROW;
}

static int64_t is_empty(const int64_t *shape, int64_t ndim) {
    for (int64_t i = 0; i < ndim; i++)
        if (!shape[i]) return 1;
    return 0;
}

static int64_t store(const Type *type, const char *data, const int64_t *shape,
                     const int64_t *strides, char *slots) {
    const int64_t ndim = type->ndim;
    if (((int64_t)data & type->address_mask) != type->address_bits) return 0;
    if (!data && !is_empty(shape, ndim)) return 0;  /* `pack` raises the error */
    if (!(reach(shape, strides, ndim) & type->reach)) return 0;
    if (type->exact) {
        if (leading_mode(shape, strides, ndim) != type->leading) return 0;
        if (ragged(shape, strides, type) != type->ragged) return 0;
    }
    *(const char **)slots = data;
    for (int64_t i = 0; i < 2 * ndim; i++) {
        const Leaf *leaf = &type->leaves[i];
        const int64_t number = i < ndim ? shape[i] : strides[i - ndim];
        const int64_t matters = i < ndim || shape[i - ndim] > 1;
        if (leaf->known) {
            if (number != leaf->number && matters) return 0;
            continue;
        }
        if (!type->exact && leaf->number != 1 && matters && number % leaf->number) return 0;
        slots += 8;
        if (type->bytes == 8) {
            *(int64_t *)slots = number;
        } else {
            if (number != (int32_t)number) return 0;
            *(int32_t *)slots = (int32_t)number;
        }
    }
    return 1;
}

static int64_t numpy(const Type *type, const Array *array, char *slots) {
    int64_t strides[MOST_MODES];
    if (array->dtype != type->numpy_dtype || array->ndim != type->ndim) return 0;
    if (!(type->access & (array->flags & WRITEABLE ? WRITABLE : READ_ONLY))) return 0;
    for (int64_t i = 0; i < type->ndim; i++) {
        if (array->strides[i] % type->itemsize) return 0;
        strides[i] = array->strides[i] / type->itemsize;
    }
    return store(type, array->data, array->shape, strides, slots);
}

/* Whether a new reference is to False; it is given back. An error counts as another object. */
static int64_t is_false(Object *found) {
    if (!found) {
        PyErr_Clear();
        return 0;
    }
    Py_DecRef(found);
    return found == &_Py_FalseStruct;
}

static int64_t torch(const Type *type, Object *value, char *slots) {
    Tensor tensor;
    tensor.strides = 0;
    if (type->describe(value, &tensor)) {
        PyErr_Clear(); /* the fallback meets the error again, and reports it */
        return 0;
    }
    if ((tensor.device & type->device_mask) != type->device) return 0;
    if (tensor.dtype != type->dtype || tensor.ndim != type->ndim) return 0;
    if (tensor.ndim && !tensor.strides) return 0;
    if (!(type->access & WRITABLE)) return 0; /* PyTorch's tensors all are */
    if (!is_false(PyObject_GetAttr(value, type->requires_grad)) &&
        !is_false(PyObject_CallNoArgs(type->records)))
        return 0;
    return store(type, tensor.data + tensor.byte_offset, tensor.shape, tensor.strides, slots);
}

int64_t basedsl_cute_unpack_tensor(Object *value, char *slots, const Type *type) {
    if (value->type == type->torch || value->type == type->parameter)
        return torch(type, value, slots);
    if (value->type == type->numpy) return numpy(type, (const Array *)value, slots);
    Object *packed = PyObject_CallOneArg(type->pack, value);
    if (!packed) {
        PyErr_Clear();
        return 0;
    }
    int64_t stored = 1;
    for (int64_t i = 0; i < 2 * type->ndim; i++) stored += !type->leaves[i].known;
    int64_t fits = packed->type == &PyBytes_Type && PyBytes_Size(packed) == 8 * stored;
    if (fits) __builtin_memcpy(slots, PyBytes_AsString(packed), 8 * stored);
    Py_DecRef(packed);
    return fits;
}
