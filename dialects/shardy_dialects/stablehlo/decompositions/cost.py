"""Decompositions of matrices and triangular systems, which XLA makes loops of.

As in cholesky_expander.cc, triangular_solve_expander.cc, qr_expander.cc and eigh_expander.cc: matrices are divided into
blocks of 128. Shapes stay the same within a loop, so that each step computes on a whole block, zeros included. Products
follow from the algorithms; the other operations, and the elements that are read and written, are those per element
and step of what XLA:CPU compiles for matrices of many sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2, prod

from shardy_dialects.stablehlo.attributes import flag_of
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork
from shardy_py.support.element_types import mlir_element_bits
from shardy_py.values import frozen

_BLOCK = 128


_DIRECT_BATCH, _DIRECT_SIZE = _BLOCK // 16, _BLOCK // 4
"""More systems than the first, of smaller matrices than the second, are solved row by row, without a loop."""


@frozen
class LoopWork:
    """Work of the loops of an op.

    Args:
        flops: The operations.
        moved: The elements that are read and written.
        temporary: The elements in memory besides operands and results.
        transcendentals: The transcendental operations.
    """

    flops: float = 0.0
    moved: float = 0.0
    temporary: float = 0.0
    transcendentals: float = 0.0

    def __add__(self, other: LoopWork) -> LoopWork:
        """Return the work of two loops that run one after the other."""
        most_temporary = max(self.temporary, other.temporary)
        return LoopWork(
            self.flops + other.flops,
            self.moved + other.moved,
            most_temporary,
            self.transcendentals + other.transcendentals,
        )


def cholesky(batch: int, n: int) -> LoopWork:
    """Return the work of Cholesky decompositions: each step multiplies the block with itself."""
    if n == 1:
        return LoopWork(2.0 * batch, float(batch), transcendentals=batch)
    work = LoopWork(temporary=2.0 * batch * n**2)
    for start, size in _blocks(n):
        flops = batch * (2.0 * size**4 + 6 * size**3 + 2 * size**2 + 3 * size) + 2 * size + 1
        work += LoopWork(flops, batch * (8.0 * size**3 + 20 * size**2), transcendentals=batch * size)
        if start:
            work += LoopWork(2.0 * batch * (n - start) * start * size, 3.0 * batch * (n - start) * size)
        if rest := n - start - size:
            work += triangular_solve(batch, size, rest)
    return work


def triangular_solve(batch: int, n: int, columns: int) -> LoopWork:
    """Return the work of solving triangular systems: the blocks of the diagonal are inverted row by row."""
    if n == 1:
        return LoopWork(batch * (columns + 1.0), 3.0 * batch)
    if batch > _DIRECT_BATCH and n < _DIRECT_SIZE:
        return LoopWork(float(batch * columns * n * (n + 3)), 3.0 * batch * columns * n**2, 3.0 * batch * columns * n)
    size = min(n, _BLOCK)
    inverted = batch * -(-n // size)
    flops = 2.0 * inverted * (size - 1) * size**2 + (9 * inverted + 6) * size**2
    work = LoopWork(flops, inverted * ((size - 1) * (size**2 + 16.0 * size)), 2.0 * inverted * size**2)
    for start, rows in _blocks(n):
        known = start + rows
        work += LoopWork(2.0 * batch * rows * columns * known, batch * (rows * known + 4.0 * known * columns))
    return work


def householder_vectors(batch: int, m: int, n: int) -> LoopWork:
    """Return the work of QR decompositions to Householder vectors: each step reflects the block."""
    work = LoopWork(temporary=float(batch * m * n))
    for start, size in _blocks(min(m, n)):
        rows, rest = m - start, n - start - size
        flops = batch * (9.0 * rows * size**2 + 20 * rows * size + 3 * size**2 + 48 * size)
        shared = 2 * rows * size + 6 * size + 1
        moved = batch * size * (7.0 * rows * size + 16 * rows)
        work += LoopWork(flops + shared, moved, transcendentals=2.0 * batch * size)
        if rest:
            # The reflections of the block, as one product, change what is beside it.
            products = 2.0 * rows * size**2 + 4 * rows * size * rest
            work += _reflections(batch, rows, size)
            work += LoopWork(batch * products, 4.0 * batch * rows * (rest + size), 2.0 * batch * m * n)
    return work


def householder_product(batch: int, m: int, n: int, vectors: int) -> LoopWork:
    """Return the work of products of Householder reflections."""
    work = LoopWork(temporary=2.0 * batch * (m + n) * vectors)
    for start, size in _blocks(vectors):
        rows, columns = m - start, n - start
        products = 4.0 * rows * size * columns + 2 * size**2 * columns
        work += _reflections(batch, rows, size)
        work += LoopWork(batch * products, 3.0 * batch * rows * columns)
    return work


def _reflections(batch: int, m: int, n: int) -> LoopWork:
    """Return the work of making one product of reflections: a loop over their vectors."""
    flops = batch * (2.0 * m * n**2 + 2 * n**3 + 4 * n**2) + 10 * m * n + 4 * n**2
    return LoopWork(flops, batch * (n**3 + 8.0 * m * n + 15 * n**2))


def eigenvectors(batch: int, n: int, *, is_sorted: bool) -> LoopWork:
    """Return the work of one sweep of Jacobi rotations over symmetric matrices; the data decide how many run.

    A step rotates pairs of rows and of columns, and brings other ones beside one another.
    """
    if n == 1:
        return LoopWork(moved=2.0 * batch)
    even = n + n % 2
    steps, elements = even - 1, even**2
    flops = batch * steps * (21.5 * elements + 8 * even) + 8 * steps * even + 20 * batch * elements
    temporary_elements = 3.6 * batch * elements
    work = LoopWork(flops, 16.5 * batch * steps * elements, temporary_elements, float(batch * steps * even))
    if is_sorted:
        count = batch * n**2
        work += LoopWork(float(count * ceil(log2(count))), 4.0 * count)
    return work


def _blocks(size: int) -> Iterator[tuple[int, int]]:
    """Yield where each block along a dimension starts, and its size."""
    for start in range(0, size, _BLOCK):
        yield start, min(_BLOCK, size - start)


def _work(op: Op, loops: LoopWork) -> OpWork:
    """Return work; what the loops move counts as read of the first operand."""
    type_ = op.operands[0].type
    bits = mlir_element_bits(type_.element_type) if isinstance(type_, TensorType) else None
    temporary_bytes = int(loops.temporary * -(-(bits or 0) // 8))
    return OpWork(loops.flops, loops.transcendentals, reads={0: loops.moved}, temporary_bytes=temporary_bytes)


class CholeskyCost(CostOpInterface):
    """Cholesky decompositions."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return a third of the cube of the size, or what XLA's loops do."""
        batch, n = prod(shapes.operands[0][:-2]), shapes.operands[0][-1]
        return OpWork(batch * n**3 / 3, expanded=_work(op, cholesky(batch, n)))


class TriangularSolveCost(CostOpInterface):
    """Solutions of triangular systems."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return two operations per element of the solution and row of the matrix, or what XLA's loops do."""
        batch, n = prod(shapes.operands[0][:-2]), shapes.operands[0][-1]
        columns = shapes.operands[1][-1 if flag_of(op, "left_side") else -2]
        return OpWork(2.0 * n * prod(shapes.operands[1]), expanded=_work(op, triangular_solve(batch, n, columns)))
