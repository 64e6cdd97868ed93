"""Interpreter of kernels: all threads of a grid at once, in arrays of numpy."""
