# Types of C for `shardy_py.frontends.mlir.bytecode`: places, and numbers of names and attributes, fit a word.
cimport cython

@cython.locals(name=Py_ssize_t, mask=int, attributes=Py_ssize_t, regions=Py_ssize_t, end=Py_ssize_t, records=list)
cpdef tuple _read_ops(bytes data, bytes short, Py_ssize_t at, Py_ssize_t count)

@cython.locals(byte=int, size=Py_ssize_t, end=Py_ssize_t)
cpdef tuple read_number(bytes data, Py_ssize_t at)

@cython.locals(count=Py_ssize_t, byte=int, numbers=list)
cpdef tuple _numbers(bytes data, Py_ssize_t at)
