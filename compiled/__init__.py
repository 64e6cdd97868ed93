"""Build of the optional compiled modules: the same sources, through Cython and a C compiler.

``python -m compiled TARGET`` makes a copy of a checkout with compiled modules in it; with ``SHARDY_PY_COMPILED=1`` the
wheel has them (`compiled.hatch_hook`). Without either the package is pure Python.
"""
