/* The description of PyTorch tensors by which calls of one kind are known again.

`basedsl_cute.arrays.describe` fills the table. Where anything is unusual the answer is None, and
Python looks itself.

`make native` turns this file into `describe.ll`, which is what is loaded. */

#include "object_layout.h"

extern Object PyTuple_Type;
extern Object _Py_FalseStruct, _Py_NoneStruct;
extern int64_t PyTuple_Size(Object *);
extern Object *PyTuple_GetItem(Object *, int64_t);
extern Object *PyTuple_New(int64_t);
extern int32_t PyTuple_SetItem(Object *, int64_t, Object *);
extern Object *PyList_New(int64_t);
extern int32_t PyList_Append(Object *, Object *);
extern Object *PyLong_FromUnsignedLongLong(uint64_t);
extern Object *PyBytes_FromStringAndSize(const char *, int64_t);
extern char *PyBytes_AsString(Object *);
extern Object *PyObject_GetAttr(Object *, Object *);
extern Object *PyObject_CallNoArgs(Object *);
extern Object *PyObject_VectorcallMethod(Object *, Object *const *, uint64_t, Object *);
extern void PyErr_Clear(void);
extern void Py_IncRef(Object *);
extern void Py_DecRef(Object *);

enum { MOST_MODES = 8, MOST_WORDS = 512, HEAD_WORDS = 3, NOTHING = -1 };

typedef struct {
    Object *tensor;    /* the class */
    Object *parameter; /* the class of a module's parameters */
    int32_t (*describe)(void *, Tensor *);
    Object *requires_grad; /* names of an attribute and of a method */
    Object *is_neg;
    Object *records; /* the function that says whether gradients are recorded now */
    int64_t alignment; /* the bits of an address that count */
} Library;

/* Whether a new reference is to False; it is given back. An error counts as another object. */
static int64_t is_false(Object *found) {
    if (!found) {
        PyErr_Clear();
        return 0;
    }
    Py_DecRef(found);
    return found == &_Py_FalseStruct;
}

/* Writes what a plan depends on, and returns the number of words; 0 for what Python must look at. */
static int64_t write(const Library *library, Object *x, int64_t *words, uint64_t *address) {
    Tensor tensor;
    if (x->type != library->tensor && x->type != library->parameter) return 0;
    tensor.strides = 0;
    if (library->describe(x, &tensor)) {
        PyErr_Clear();
        return 0;
    }
    const int64_t ndim = tensor.ndim;
    if (ndim > MOST_MODES || (ndim && !tensor.strides)) return 0;
    if (!is_false(PyObject_GetAttr(x, library->requires_grad)) &&
        !is_false(PyObject_CallNoArgs(library->records)))
        return 0;
    if (!is_false(PyObject_VectorcallMethod(library->is_neg, &x, 1, 0))) return 0;
    *address = (uint64_t)tensor.data + tensor.byte_offset;
    int64_t elements = 1;
    for (int64_t i = 0; i < ndim; i++) elements *= tensor.shape[i] != 0;
    if (!*address && elements) return 0; /* its memory was freed */
    words[0] = tensor.device;
    words[1] = (int64_t)tensor.dtype | ndim << 32;
    words[2] = (int64_t)*address & library->alignment;
    for (int64_t i = 0; i < ndim; i++) {
        words[HEAD_WORDS + i] = tensor.shape[i];
        words[HEAD_WORDS + ndim + i] = tensor.strides[i];
    }
    return HEAD_WORDS + 2 * ndim;
}

static int64_t append(Object *list, uint64_t number) {
    Object *made = PyLong_FromUnsignedLongLong(number);
    if (!made) return 0;
    const int32_t failed = PyList_Append(list, made);
    Py_DecRef(made);
    return !failed;
}

static Object *nothing(Object *list) {
    PyErr_Clear();
    if (list) Py_DecRef(list);
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* A METH_FASTCALL | METH_KEYWORDS function of a tuple of tensors and None; `self` are bytes, the
   address of a Library. Returns bytes that tell kinds apart and a list of addresses, or None. */
Object *basedsl_cute_describe(Object *self, Object *const *given, int64_t count, Object *names) {
    const Library *library = *(const Library *const *)PyBytes_AsString(self);
    int64_t words[MOST_WORDS];
    int64_t used = 0;
    if (count != 1 || names || given[0]->type != &PyTuple_Type) return nothing(0);
    Object *list = PyList_New(0);
    if (!list) return nothing(0);
    const int64_t size = PyTuple_Size(given[0]);
    for (int64_t i = 0; i < size; i++) {
        Object *x = PyTuple_GetItem(given[0], i);
        if (used + HEAD_WORDS + 2 * MOST_MODES > MOST_WORDS) return nothing(list);
        if (x == &_Py_NoneStruct) {
            words[used++] = NOTHING;
            continue;
        }
        uint64_t address;
        const int64_t written = write(library, x, words + used, &address);
        if (!written || !append(list, address)) return nothing(list);
        used += written;
    }
    Object *key = PyBytes_FromStringAndSize((const char *)words, 8 * used);
    Object *made = key ? PyTuple_New(2) : 0;
    if (!made) {
        if (key) Py_DecRef(key);
        return nothing(list);
    }
    PyTuple_SetItem(made, 0, key);
    PyTuple_SetItem(made, 1, list);
    return made;
}
