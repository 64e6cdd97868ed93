"""The kernels that jaxlib brings along for custom calls.

XLA looks them up when the program runs; JAX registers them when it lowers such an op, which never happened in a process
that only reads modules. A call of a kernel that is not registered ends the process.
"""

from __future__ import annotations


def register_kernels() -> None:
    """Register LAPACK for host devices."""
    from jaxlib import lapack

    lapack._lapack.initialize()
