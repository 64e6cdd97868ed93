"""Emitters: a fusion, a connected piece of a program, becomes one kernel (extra ``codegen``)."""
