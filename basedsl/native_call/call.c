/* The call of compiled code from Python: check, unpack, run, wrap.

`call` is the C function behind every compiled function object. It tries the variants that the
Python side (`basedsl.native_call.entry`) has described in plain tables, and hands the call to Python
(`fallback`) when none fits. All decisions are data: nothing here is generated for a function.

`make native` turns this file into `call.ll`, which is what is loaded. Only exported functions of the
C API are used, and of objects in memory only what `object_layout.h` declares. */

#include "object_layout.h"

extern Object PyLong_Type, PyFloat_Type, PyTuple_Type, PyBytes_Type, PyUnicode_Type;
extern Object _Py_TrueStruct, _Py_FalseStruct, _Py_NoneStruct;
extern int64_t PyLong_AsLongLongAndOverflow(Object *, int32_t *);
extern uint64_t PyLong_AsUnsignedLongLong(Object *);
extern double PyLong_AsDouble(Object *);
extern Object *PyLong_FromLongLong(int64_t);
extern Object *PyLong_FromUnsignedLongLong(uint64_t);
extern double PyFloat_AsDouble(Object *);
extern Object *PyFloat_FromDouble(double);
extern Object *PyTuple_New(int64_t);
extern Object *PyTuple_GetItem(Object *, int64_t);
extern int32_t PyTuple_SetItem(Object *, int64_t, Object *);
extern int64_t PyTuple_Size(Object *);
extern int64_t PyList_Size(Object *);
extern Object *PyList_GetItem(Object *, int64_t);
extern Object *PyDict_GetItemWithError(Object *, Object *);
extern int64_t PyDict_Size(Object *);
extern Object *PyObject_GenericGetDict(Object *, void *);
extern Object *PyObject_CallNoArgs(Object *);
extern Object *PyObject_CallOneArg(Object *, Object *);
extern Object *PyObject_Vectorcall(Object *, Object *const *, uint64_t, Object *);
extern int32_t PyUnicode_Compare(Object *, Object *);
extern Object *PyBytes_FromStringAndSize(const char *, int64_t);
extern char *PyBytes_AsString(Object *);
extern int64_t PyBytes_Size(Object *);
extern Object *PyErr_Occurred(void);
extern void PyErr_Clear(void);
extern void PyErr_SetObject(Object *, Object *);
extern void Py_IncRef(Object *);
extern void Py_DecRef(Object *);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);

/* Writes a value's C storage to `slots` and returns 1, or 0 if the value is none that the code was
   compiled for. Raises nothing. A plugin's own unpackers have this type. */
typedef int64_t Unpack(Object *value, char *slots, const int64_t *data);

typedef struct {
    Unpack *unpack;
    const int64_t *data;
    int64_t slot;
} Argument;

enum { WORD, HALF, ITEM, SIZE, DICT_OF, CALL, LIST_SIZE, LIST_ITEM };

typedef struct {
    int64_t kind;
    void *at;
    void *key;
    void *expected;
} Guard;

enum { NOTHING, SINGLE, TUPLE, PYTHON };

typedef struct {
    int64_t kind;
    int64_t slot;
} Result;

typedef struct {
    int64_t guard_count;
    const Guard *guards;
    const Argument *arguments;
    void (*code)(void *slots);
    int64_t shape;
    int64_t result_count;
    const Result *results;
    int64_t result_slot;
    int64_t result_size;
    Object *make;          /* for PYTHON: from the bytes of the results */
    const int64_t *failed; /* not zero after the call: ask `on_failure` for an exception, or None */
    Object *on_failure;
    int64_t without_gil;
} Variant;

enum { MOST_VARIANTS = 8, MOST_PARAMETERS = 32, SLOT_BYTES = 1024 };

typedef struct {
    int64_t parameters;
    int64_t positional; /* as many may be passed by position */
    Object *const *names; /* null where a parameter cannot be passed by name */
    Object *const *defaults;
    const int64_t *tracing;
    Object *fallback;
    int64_t variant_count;
    const Variant *variants[MOST_VARIANTS];
} Entry;

static int64_t store(char *slots, int64_t size, int64_t value) {
    switch (size) {
    case 1: *(int8_t *)slots = (int8_t)value; break;
    case 2: *(int16_t *)slots = (int16_t)value; break;
    case 4: *(int32_t *)slots = (int32_t)value; break;
    default: *(int64_t *)slots = value;
    }
    return 1;
}

/* data: bytes, least, most */
int64_t basedsl_unpack_int(Object *value, char *slots, const int64_t *data) {
    if (value->type != &PyLong_Type) return 0;
    int32_t overflow = 0;
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || number < data[1] || number > data[2]) return 0;
    return store(slots, data[0], number);
}

int64_t basedsl_unpack_uint64(Object *value, char *slots, const int64_t *data) {
    if (value->type != &PyLong_Type) return 0;
    uint64_t number = PyLong_AsUnsignedLongLong(value);
    if (number == UINT64_MAX && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return store(slots, 8, (int64_t)number);
}

int64_t basedsl_unpack_bool(Object *value, char *slots, const int64_t *data) {
    if (value == &_Py_TrueStruct) return store(slots, 1, 1);
    if (value == &_Py_FalseStruct) return store(slots, 1, 0);
    return 0;
}

/* data: bytes (4 or 8), whether an int is taken too */
int64_t basedsl_unpack_float(Object *value, char *slots, const int64_t *data) {
    double number;
    if (value->type == &PyFloat_Type) {
        number = PyFloat_AsDouble(value);
    } else if (data[1] && value->type == &PyLong_Type) {
        number = PyLong_AsDouble(value);
        if (number == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
    } else {
        return 0;
    }
    if (data[0] == 4) {
        float narrow = (float)number;
        // A finite number beyond the type's range: the slower path says so.
        if (narrow - narrow != 0 && number - number == 0) return 0;
        *(float *)slots = narrow;
    } else {
        *(double *)slots = number;
    }
    return 1;
}

/* data: the object. For static arguments: this very one. */
int64_t basedsl_unpack_same(Object *value, char *slots, const int64_t *data) {
    return (int64_t)value == data[0];
}

/* data: the int */
int64_t basedsl_unpack_equal_int(Object *value, char *slots, const int64_t *data) {
    if (value->type != &PyLong_Type) return 0;
    int32_t overflow = 0;
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow && number == data[0];
}

/* data: the str */
int64_t basedsl_unpack_equal_text(Object *value, char *slots, const int64_t *data) {
    if ((int64_t)value == data[0]) return 1;
    if (value->type != &PyUnicode_Type) return 0;
    return PyUnicode_Compare(value, (Object *)data[0]) == 0;
}

/* data: number of items, then unpack, data, slot of each */
int64_t basedsl_unpack_tuple(Object *value, char *slots, const int64_t *data) {
    if (value->type != &PyTuple_Type || PyTuple_Size(value) != data[0]) return 0;
    const Argument *items = (const Argument *)(data + 1);
    for (int64_t i = 0; i < data[0]; i++) {
        Object *item = PyTuple_GetItem(value, i);
        if (!items[i].unpack(item, slots + items[i].slot, items[i].data)) return 0;
    }
    return 1;
}

/* data: bytes of the slots, those of one call, number of items, where each is stored. The value is a
   tuple of as many addresses: what differs in this call. */
int64_t basedsl_unpack_repeated(Object *value, char *slots, const int64_t *data) {
    if (value->type != &PyTuple_Type || PyTuple_Size(value) != data[2]) return 0;
    __builtin_memcpy(slots, (const char *)data[1], data[0]);
    for (int64_t i = 0; i < data[2]; i++) {
        Object *item = PyTuple_GetItem(value, i);
        if (item->type != &PyLong_Type) return 0;
        const uint64_t address = PyLong_AsUnsignedLongLong(item);
        if (address == UINT64_MAX && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        *(uint64_t *)(slots + data[3 + i]) = address;
    }
    return 1;
}

/* leaf: whether it is a stride, axis, divisor, bytes to store (0: none), whether it is known, the
   known value. The address goes first, each stored leaf into the next slot. */
static int64_t store_leaves(char *address, const int64_t *shape, const int64_t *strides,
                            const int64_t *leaf, int64_t count, char *slots) {
    *(char **)slots = address;
    slots += 8;
    for (int64_t i = 0; i < count; i++, leaf += 6) {
        int64_t number = (leaf[0] ? strides : shape)[leaf[1]];
        if (leaf[2] != 1) {
            if (number % leaf[2]) return 0;
            number /= leaf[2];
        }
        if (leaf[4] && number != leaf[5]) return 0;
        if (leaf[3] == 4 && number != (int32_t)number) return 0;
        if (leaf[3]) {
            store(slots, leaf[3], number);
            slots += 8;
        }
    }
    return 1;
}

/* data: type, dtype, ndim, flags that must be set, alignment in bytes, number of leaves, leaves */
int64_t basedsl_unpack_array(Object *value, char *slots, const int64_t *data) {
    const Array *array = (const Array *)value;
    if ((int64_t)value->type != data[0] || (int64_t)array->dtype != data[1]) return 0;
    if (array->ndim != data[2] || (array->flags & data[3]) != data[3]) return 0;
    if ((int64_t)array->data & (data[4] - 1)) return 0;
    return store_leaves(array->data, array->shape, array->strides, data + 6, data[5], slots);
}

/* data: unpack, its data, type, bytes of an item, number of stretches of memory, first and end of
   each. For arrays that overlap none of these: the code has their contents. */
int64_t basedsl_unpack_apart(Object *value, char *slots, const int64_t *data) {
    if (!((Unpack *)data[0])(value, slots, (const int64_t *)data[1])) return 0;
    if ((int64_t)value->type != data[2]) return 0;
    const Array *array = (const Array *)value;
    int64_t first = (int64_t)array->data, end = first + data[3];
    for (int64_t i = 0; i < array->ndim; i++) {
        const int64_t reach = (array->shape[i] - 1) * array->strides[i];
        if (array->shape[i] == 0) return 1;
        if (reach < 0) first += reach;
        else end += reach;
    }
    const int64_t *stretch = data + 5;
    for (int64_t i = 0; i < data[4]; i++, stretch += 2) {
        if (first < stretch[1] && stretch[0] < end) return 0;
    }
    return 1;
}

/* data: type, function that fills a DLTensor, device, dtype, ndim, alignment in bytes, number of
   leaves, leaves. The function is DLPack's `dltensor_from_py_object_no_sync`. */
int64_t basedsl_unpack_tensor(Object *value, char *slots, const int64_t *data) {
    if ((int64_t)value->type != data[0]) return 0;
    Tensor tensor;
    tensor.strides = 0;
    if (((int32_t(*)(void *, Tensor *))data[1])(value, &tensor)) {
        PyErr_Clear(); /* the fallback meets the error again, and reports it */
        return 0;
    }
    if (tensor.device != data[2] || tensor.dtype != data[3] || tensor.ndim != data[4]) return 0;
    char *address = tensor.data + tensor.byte_offset;
    if ((int64_t)address & (data[5] - 1)) return 0;
    if (tensor.ndim && !tensor.strides) return 0;
    return store_leaves(address, tensor.shape, tensor.strides, data + 7, data[6], slots);
}

/* data: a callable that gives the bytes of the slots, or None; their size */
int64_t basedsl_unpack_python(Object *value, char *slots, const int64_t *data) {
    Object *packed = PyObject_CallOneArg((Object *)data[0], value);
    if (!packed) {
        PyErr_Clear(); /* the fallback meets the error again, and reports it */
        return 0;
    }
    int64_t fits = packed->type == &PyBytes_Type && PyBytes_Size(packed) == data[1];
    if (fits) __builtin_memcpy(slots, PyBytes_AsString(packed), data[1]);
    Py_DecRef(packed);
    return fits;
}

static int32_t holds(const Guard *guard) {
    switch (guard->kind) {
    case WORD: return *(void **)guard->at == guard->expected;
    case HALF: return *(uint32_t *)guard->at == (uint32_t)(uint64_t)guard->expected;
    case ITEM: {
        void *found = PyDict_GetItemWithError(guard->at, guard->key);
        if (!found && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return found == guard->expected;
    }
    case SIZE: return PyDict_Size(guard->at) == (int64_t)guard->expected;
    case DICT_OF: {
        Object *found = PyObject_GenericGetDict(guard->at, 0);
        if (!found) {
            PyErr_Clear();
            return 0;
        }
        Py_DecRef(found);
        return found == guard->expected;
    }
    case CALL: {
        Object *answer = PyObject_CallNoArgs(guard->at);
        if (!answer) {
            PyErr_Clear();
            return 0;
        }
        Py_DecRef(answer);
        return answer == &_Py_TrueStruct;
    }
    case LIST_SIZE: return PyList_Size(guard->at) == (int64_t)guard->expected;
    case LIST_ITEM: return PyList_GetItem(guard->at, (int64_t)guard->key) == guard->expected;
    }
    return 0;
}

static Object *same(Object *object) {
    Py_IncRef(object);
    return object;
}

static Object *wrap(const Result *result, const char *slots) {
    const char *at = slots + result->slot;
    switch (result->kind) {
    case 0: return same(*(int8_t *)at ? &_Py_TrueStruct : &_Py_FalseStruct);
    case 1: return PyLong_FromLongLong(*(int8_t *)at);
    case 2: return PyLong_FromLongLong(*(int16_t *)at);
    case 3: return PyLong_FromLongLong(*(int32_t *)at);
    case 4: return PyLong_FromLongLong(*(int64_t *)at);
    case 5: return PyLong_FromLongLong(*(uint8_t *)at);
    case 6: return PyLong_FromLongLong(*(uint16_t *)at);
    case 7: return PyLong_FromLongLong(*(uint32_t *)at);
    case 8: return PyLong_FromUnsignedLongLong(*(uint64_t *)at);
    case 9: return PyFloat_FromDouble(*(float *)at);
    default: return PyFloat_FromDouble(*(double *)at);
    }
}

static Object *wrap_all(const Variant *variant, const char *slots) {
    switch (variant->shape) {
    case NOTHING: return same(&_Py_NoneStruct);
    case SINGLE: return wrap(variant->results, slots);
    case TUPLE: {
        Object *made = PyTuple_New(variant->result_count);
        for (int64_t i = 0; made && i < variant->result_count; i++) {
            Object *item = wrap(&variant->results[i], slots);
            if (!item || PyTuple_SetItem(made, i, item)) {
                Py_DecRef(made);
                return 0;
            }
        }
        return made;
    }
    default: {
        Object *raw = PyBytes_FromStringAndSize(slots + variant->result_slot, variant->result_size);
        if (!raw) return 0;
        Object *made = PyObject_CallOneArg(variant->make, raw);
        Py_DecRef(raw);
        return made;
    }
    }
}

static int32_t fits(const Variant *variant, int64_t count, Object *const *values, char *slots) {
    for (int64_t i = 0; i < count; i++) {
        const Argument *one = &variant->arguments[i];
        if (!one->unpack(values[i], slots + one->slot, one->data)) return 0;
    }
    for (int64_t i = 0; i < variant->guard_count; i++) {
        if (!holds(&variant->guards[i])) return 0;
    }
    return 1;
}

static Object *run(const Variant *variant, char *slots) {
    if (variant->without_gil) {
        void *state = PyEval_SaveThread();
        variant->code(slots);
        PyEval_RestoreThread(state);
    } else {
        variant->code(slots);
    }
    if (*variant->failed && variant->on_failure) {
        Object *failure = PyObject_CallNoArgs(variant->on_failure);
        if (failure && failure != &_Py_NoneStruct) PyErr_SetObject(failure->type, failure);
        if (failure) Py_DecRef(failure);
        if (failure != &_Py_NoneStruct) return 0;
    }
    return wrap_all(variant, slots);
}

/* One value a parameter, from arguments by position and by name, and defaults; 0 if they do not fit.
   Names of calls and parameters are interned, so that their addresses tell them apart: where one
   is not, the fallback finds it. */
static int32_t bind(const Entry *entry, Object *const *given, int64_t count, Object *keywords,
                    Object **values) {
    const int64_t parameters = entry->parameters;
    for (int64_t i = 0; i < parameters; i++) values[i] = i < count ? given[i] : 0;
    const int64_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (int64_t k = 0; k < named; k++) {
        Object *name = PyTuple_GetItem(keywords, k);
        int64_t i = 0;
        while (i < parameters && entry->names[i] != name) i++;
        if (i == parameters || values[i]) return 0;
        values[i] = given[count + k];
    }
    for (int64_t i = 0; i < parameters; i++) {
        if (!values[i]) values[i] = entry->defaults[i];
        if (!values[i]) return 0;
    }
    return 1;
}

/* A METH_FASTCALL | METH_KEYWORDS function; `self` are bytes, the address of an Entry. */
Object *basedsl_call(Object *self, Object *const *given, int64_t count, Object *keywords) {
    const Entry *entry = *(const Entry *const *)PyBytes_AsString(self);
    const int64_t parameters = entry->parameters;
    _Alignas(16) char slots[SLOT_BYTES];
    Object *filled[MOST_PARAMETERS];
    Object *const *values = given;
    if (*entry->tracing || count > entry->positional) goto slow;
    if (keywords || count < parameters) {
        if (!bind(entry, given, count, keywords, filled)) goto slow;
        values = filled;
    }
    for (int64_t i = 0; i < entry->variant_count; i++) {
        const Variant *variant = entry->variants[i];
        if (fits(variant, parameters, values, slots)) return run(variant, slots);
    }
slow:
    return PyObject_Vectorcall(entry->fallback, given, (uint64_t)count, keywords);
}
