/* Accesses as quick as those of CPython's own interpreter, in code that Cython made.

   CPython's interpreter remembers at each place of the code what it found there: where in the objects of a type a slot
   is, which function a method is. Code of Cython looks it up at every access, which is most of what it does. With this
   file each place has such a memory, too; it holds for as long as the type has the same version tag, which CPython
   changes with every change of the type. Items of lists, tuples, dictionaries and bytes, lengths, truth and comparisons
   of small integers take the short way where the objects are of exactly these types. Anything else goes the usual way,
   so that the code means the same.

   It is included twice in each file: in front of the code of the module, and with SHARDY_BEHIND_OWN_CODE behind it,
   where the functions of Cython follow. */

#if CYTHON_COMPILING_IN_CPYTHON && !CYTHON_COMPILING_IN_LIMITED_API && !defined(Py_GIL_DISABLED) && defined(__GNUC__)
#ifndef SHARDY_BEHIND_OWN_CODE

#include "structmember.h"

/* The version tag of no type. */
#define SHARDY_NO_TAG 0xFFFFFFFFu

/* After so many misses a place learns nothing more: it meets many types, or what it looks for is no slot or method. */
#define SHARDY_MISSES 16

/* What a place knows of two types, the one that it met last first. */
typedef struct {
    unsigned int tag, other_tag;
    Py_ssize_t offset, other_offset;
    int misses;
} shardy_slot;

typedef struct {
    unsigned int tag, other_tag;
    PyObject *method, *other_method;
    int misses;
} shardy_method;

#define SHARDY_PLACE {SHARDY_NO_TAG, SHARDY_NO_TAG, 0, 0, 0}

/* Where in the objects of a type a slot is; 0 if the attribute is no slot, or has one of some flags. */
static Py_ssize_t shardy_offset(PyTypeObject *type, PyObject *name, int refused_flags) {
    PyObject *found = _PyType_Lookup(type, name);
    if (!found || !Py_IS_TYPE(found, &PyMemberDescr_Type) || !type->tp_version_tag) return 0;
    if (!PyType_IsSubtype(type, ((PyDescrObject *)found)->d_type)) return 0;
    PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
    return member->type == T_OBJECT_EX && !(member->flags & refused_flags) ? member->offset : 0;
}

static __attribute__((noinline)) void shardy_learn_slot(
    PyTypeObject *type, PyObject *name, int refused_flags, shardy_slot *place) {
    Py_ssize_t offset = shardy_offset(type, name, refused_flags);
    place->misses++;
    if (offset <= 0) return;
    place->other_tag = place->tag;
    place->other_offset = place->offset;
    place->tag = type->tp_version_tag;
    place->offset = offset;
}

/* The slot of an object, or NULL if the place does not know it. */
static CYTHON_INLINE PyObject **shardy_find_slot(PyObject *object, const shardy_slot *place) {
    unsigned int tag = Py_TYPE(object)->tp_version_tag;
    if (likely(tag == place->tag)) return (PyObject **)((char *)object + place->offset);
    if (tag == place->other_tag) return (PyObject **)((char *)object + place->other_offset);
    return NULL;
}

static CYTHON_INLINE PyObject *shardy_getattr(PyObject *object, PyObject *name, shardy_slot *place) {
    PyObject **slot = shardy_find_slot(object, place);
    PyTypeObject *type = Py_TYPE(object);
    if (likely(slot && *slot)) return Py_NewRef(*slot);
    if (unlikely(place->misses < SHARDY_MISSES) && type->tp_getattro == PyObject_GenericGetAttr)
        shardy_learn_slot(type, name, ~READONLY, place);
    return type->tp_getattro ? type->tp_getattro(object, name) : PyObject_GetAttr(object, name);
}

static CYTHON_INLINE int shardy_setattr(PyObject *object, PyObject *name, PyObject *value, shardy_slot *place) {
    PyObject **slot = shardy_find_slot(object, place);
    PyTypeObject *type = Py_TYPE(object);
    if (likely(slot)) {
        PyObject *old = *slot;
        *slot = Py_NewRef(value);
        Py_XDECREF(old);
        return 0;
    }
    if (unlikely(place->misses < SHARDY_MISSES) && type->tp_setattro == PyObject_GenericSetAttr)
        shardy_learn_slot(type, name, ~0, place);
    return PyObject_SetAttr(object, name, value);
}

/* ``Class.__new__(Class)`` of a plain class, or NULL without an error for any other call. */
static PyObject *shardy_new(PyObject *name, PyObject *const *args, size_t nargsf) {
    static PyObject *new_name = NULL;
    if (!new_name) new_name = PyUnicode_InternFromString("__new__");
    if (name != new_name || PyVectorcall_NARGS(nargsf) != 2 || args[0] != args[1]) return NULL;
    PyTypeObject *type = (PyTypeObject *)args[0];
    if (type->tp_new != PyBaseObject_Type.tp_new || (type->tp_flags & Py_TPFLAGS_IS_ABSTRACT)) return NULL;
    return type->tp_alloc(type, 0);
}

static __attribute__((noinline)) void shardy_learn_method(PyTypeObject *type, PyObject *name, shardy_method *place) {
    place->misses++;
    if (type->tp_getattro != PyObject_GenericGetAttr || type->tp_dictoffset || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT))
        return;
    PyObject *found = _PyType_Lookup(type, name);
    if (!found || !(Py_TYPE(found)->tp_flags & Py_TPFLAGS_METHOD_DESCRIPTOR) || !type->tp_version_tag) return;
    place->other_tag = place->tag;
    place->other_method = place->method;
    place->tag = type->tp_version_tag;
    place->method = found;
}

static CYTHON_INLINE PyObject *shardy_find_method(PyTypeObject *type, const shardy_method *place) {
    if (likely(type->tp_version_tag == place->tag)) return place->method;
    return type->tp_version_tag == place->other_tag ? place->other_method : NULL;
}

/* Calls are counted, as a recursion without end is to be Python's error and not the end of the process. */
static CYTHON_INLINE PyObject *shardy_call_method(
    PyObject *name, PyObject *const *args, size_t nargsf, shardy_method *place) {
    PyTypeObject *type = Py_TYPE(args[0]);
    PyObject *result, *method = shardy_find_method(type, place);
    if (unlikely(Py_EnterRecursiveCall(" while calling a method"))) return NULL;
    if (likely(method)) {
        Py_INCREF(method);
        result = PyObject_Vectorcall(method, args, nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        Py_DECREF(method);
    } else {
        if (unlikely(place->misses < SHARDY_MISSES)) shardy_learn_method(type, name, place);
        result = type == &PyType_Type ? shardy_new(name, args, nargsf) : NULL;
        if (!result) result = PyObject_VectorcallMethod(name, args, nargsf, NULL);
    }
    Py_LeaveRecursiveCall();
    return result;
}

/* What `shardy_py.support.identity.identity` is, and what it returns. */
#if PY_VERSION_HEX < 0x030C0000
#define SHARDY_IDENTITY() Py_XNewRef(PyDict_GetItemString(PyEval_GetBuiltins(), "id"))
#define SHARDY_IDENTITY_OF(object) PyLong_FromVoidPtr(object)
#else
#define SHARDY_IDENTITY() PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__hash__")
#define SHARDY_IDENTITY_OF(object) PyLong_FromSsize_t(PyBaseObject_Type.tp_hash(object))
#endif

static CYTHON_INLINE PyObject *shardy_call(PyObject *function, PyObject *const *args, size_t nargsf) {
    static PyObject *identity = NULL;
    if (unlikely(!identity) && !(identity = SHARDY_IDENTITY())) return NULL;
    if (function == identity && PyVectorcall_NARGS(nargsf) == 1) return SHARDY_IDENTITY_OF(args[0]);
    if (unlikely(Py_EnterRecursiveCall(" while calling a Python object"))) return NULL;
    PyObject *result = PyObject_Vectorcall(function, args, nargsf, NULL);
    Py_LeaveRecursiveCall();
    return result;
}

#define SHARDY_IS_SMALL(object) (PyLong_CheckExact(object) && __Pyx_PyLong_IsCompact(object))

static CYTHON_INLINE PyObject *shardy_getitem(PyObject *container, PyObject *key) {
    if (PyDict_CheckExact(container)) {
        PyObject *found = PyDict_GetItemWithError(container, key);
        if (likely(found)) return Py_NewRef(found);
        if (PyErr_Occurred()) return NULL;
    } else if (SHARDY_IS_SMALL(key)) {
        size_t index = (size_t)__Pyx_PyLong_CompactValue(key);
        if (PyList_CheckExact(container)) {
            if (likely(index < (size_t)PyList_GET_SIZE(container))) return Py_NewRef(PyList_GET_ITEM(container, index));
        } else if (PyTuple_CheckExact(container)) {
            if (likely(index < (size_t)PyTuple_GET_SIZE(container)))
                return Py_NewRef(PyTuple_GET_ITEM(container, index));
        } else if (PyByteArray_CheckExact(container)) {
            if (likely(index < (size_t)PyByteArray_GET_SIZE(container)))
                return PyLong_FromLong((unsigned char)PyByteArray_AS_STRING(container)[index]);
        } else if (PyBytes_CheckExact(container)) {
            if (likely(index < (size_t)PyBytes_GET_SIZE(container)))
                return PyLong_FromLong((unsigned char)PyBytes_AS_STRING(container)[index]);
        }
    }
    return PyObject_GetItem(container, key);
}

static CYTHON_INLINE int shardy_setitem(PyObject *container, PyObject *key, PyObject *value) {
    if (PyDict_CheckExact(container)) return PyDict_SetItem(container, key, value);
    if (SHARDY_IS_SMALL(key)) {
        size_t index = (size_t)__Pyx_PyLong_CompactValue(key);
        if (PyList_CheckExact(container)) {
            if (likely(index < (size_t)PyList_GET_SIZE(container))) {
                PyObject *old = PyList_GET_ITEM(container, index);
                PyList_SET_ITEM(container, index, Py_NewRef(value));
                Py_XDECREF(old);
                return 0;
            }
        } else if (PyByteArray_CheckExact(container) && SHARDY_IS_SMALL(value)) {
            size_t byte = (size_t)__Pyx_PyLong_CompactValue(value);
            if (likely(index < (size_t)PyByteArray_GET_SIZE(container) && byte < 256)) {
                PyByteArray_AS_STRING(container)[index] = (char)byte;
                return 0;
            }
        }
    }
    return PyObject_SetItem(container, key, value);
}

static CYTHON_INLINE Py_ssize_t shardy_length(PyObject *object) {
    return PyList_CheckExact(object) || PyTuple_CheckExact(object) ? Py_SIZE(object) : PyObject_Length(object);
}

static CYTHON_INLINE int shardy_is_true(PyObject *object) {
    if (object == Py_True) return 1;
    if (object == Py_False || object == Py_None) return 0;
    if (PyList_CheckExact(object) || PyTuple_CheckExact(object)) return Py_SIZE(object) != 0;
    return PyObject_IsTrue(object);
}

static CYTHON_INLINE PyObject *shardy_compare(PyObject *left, PyObject *right, int operator) {
    if (SHARDY_IS_SMALL(left) && SHARDY_IS_SMALL(right))
        Py_RETURN_RICHCOMPARE(__Pyx_PyLong_CompactValue(left), __Pyx_PyLong_CompactValue(right), operator);
    return PyObject_RichCompare(left, right, operator);
}

#pragma push_macro("__Pyx_PyObject_GetAttrStr")
#undef __Pyx_PyObject_GetAttrStr
#define __Pyx_PyObject_GetAttrStr(object, name) \
    __extension__({ static shardy_slot place_ = SHARDY_PLACE; shardy_getattr(object, name, &place_); })
#pragma push_macro("__Pyx_PyObject_SetAttrStr")
#undef __Pyx_PyObject_SetAttrStr
#define __Pyx_PyObject_SetAttrStr(object, name, value) \
    __extension__({ static shardy_slot place_ = SHARDY_PLACE; shardy_setattr(object, name, value, &place_); })
#pragma push_macro("__Pyx_PyObject_FastCallMethod")
#undef __Pyx_PyObject_FastCallMethod
#define __Pyx_PyObject_FastCallMethod(name, args, nargsf) \
    __extension__({ \
        static shardy_method place_ = SHARDY_PLACE; shardy_call_method(name, args, nargsf, &place_); })
#pragma push_macro("__Pyx_PyObject_FastCall")
#undef __Pyx_PyObject_FastCall
#define __Pyx_PyObject_FastCall(function, args, nargsf) shardy_call(function, args, nargsf)
#pragma push_macro("__Pyx_PyObject_GetItem")
#undef __Pyx_PyObject_GetItem
#define __Pyx_PyObject_GetItem(container, key) shardy_getitem(container, key)
#pragma push_macro("__Pyx_PyObject_IsTrue")
#undef __Pyx_PyObject_IsTrue
#define __Pyx_PyObject_IsTrue(object) shardy_is_true(object)
#pragma push_macro("PyObject_SetItem")
#undef PyObject_SetItem
#define PyObject_SetItem(container, key, value) shardy_setitem(container, key, value)
#pragma push_macro("PyObject_Length")
#undef PyObject_Length
#define PyObject_Length(object) shardy_length(object)
#pragma push_macro("PyObject_RichCompare")
#undef PyObject_RichCompare
#define PyObject_RichCompare(left, right, operator) shardy_compare(left, right, operator)

#else

#pragma pop_macro("__Pyx_PyObject_GetAttrStr")
#pragma pop_macro("__Pyx_PyObject_SetAttrStr")
#pragma pop_macro("__Pyx_PyObject_FastCallMethod")
#pragma pop_macro("__Pyx_PyObject_FastCall")
#pragma pop_macro("__Pyx_PyObject_GetItem")
#pragma pop_macro("__Pyx_PyObject_IsTrue")
#pragma pop_macro("PyObject_SetItem")
#pragma pop_macro("PyObject_Length")
#pragma pop_macro("PyObject_RichCompare")

#endif
#endif
