"""XLA's own figures of a compiled program: operations, bytes, collectives and memory of one device."""

from shardy_py.jax.figures.measure import measure
from shardy_py.jax.figures.values import XlaCollective, XlaFigures

__all__ = ["XlaCollective", "XlaFigures", "measure"]
