"""The unknown sizes of a program: which dynamic dimensions of its arguments are one size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field

from shardy_py.api.main_function import argument_names
from shardy_py.api.size_inference import SAME_SIZE, call_values, edge_values
from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.symbols import SymbolTable, has_body
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import Registry
from shardy_py.values import define

Dimension = tuple[int, int]
"""The id of a value, and the number of a dimension."""


def unknown_sizes(program: Program, main: Op, registry: Registry) -> list[list[str]]:
    """Return the names of the dynamic dimensions of the arguments, those that are one size together.

    They are names as ``sizes`` takes them, such as ``arg0.0``. Dimensions of one factor are one size, through all ops
    and data-flow edges; a dimension that a static one is tied to is known.

    Args:
        program: The program.
        main: Its main function.
        registry: The definitions of ops.
    """
    ties = _Ties()
    for values in _values_of_one_shape(program, registry):
        shapes = [value.type.shape for value in values if isinstance(value.type, TensorType)]
        for dim in range(min(map(len, shapes), default=0)):
            ties.tie([(value.id, dim) for value in values], [shape[dim] for shape in shapes])
    for op in program.walk():
        ties.tie_factors(op, registry)
        sizes_of = registry.get_sizes(op)
        sizes = None if sizes_of is None else sizes_of(op, lambda value: None)
        if sizes is not None and sizes.equal:
            shapes = [getattr(value.type, "shape", ()) for value, _ in sizes.equal]
            dims = [dim for _, dim in sizes.equal]
            ties.tie(
                [(value.id, dim) for value, dim in sizes.equal],
                [shape[dim] for shape, dim in zip(shapes, dims, strict=True)],
            )
    classes: dict[Dimension, list[str]] = {}
    for value, name in zip(entry_arguments(main), argument_names(main), strict=True):
        for dim, size in enumerate(getattr(value.type, "shape", ())):
            root = ties.root((value.id, dim))
            if size is None and root not in ties.known:
                classes.setdefault(root, []).append(f"{name}.{dim}")
    return list(classes.values())


def _values_of_one_shape(program: Program, registry: Registry) -> Iterator[Sequence[Value]]:
    """Yield the values on each data-flow edge, and operands of calls with the arguments that get them."""
    symbols = SymbolTable(program)
    for op in program.walk():
        if op.name == CALL and has_body(symbols.callee(op)):
            yield from call_values(op, symbols.callee(op))
        else:
            yield from edge_values(op, registry)


@define
class _Ties:
    """Sets of dimensions of one size.

    Attributes:
        parents: Each dimension to another one of its set; the last is the root.
        known: The roots of the sets with a known size.
    """

    parents: dict[Dimension, Dimension] = field(factory=dict, init=False)
    known: set[Dimension] = field(factory=set, init=False)

    def root(self, dimension: Dimension) -> Dimension:
        """Return the representative of the set that a dimension is in."""
        while dimension in self.parents:
            dimension = self.parents[dimension]
        return dimension

    def tie(self, dimensions: Sequence[Dimension], sizes: Sequence[int | None]) -> None:
        """Make dimensions one size, a known one if any of them has."""
        roots = {self.root(dimension) for dimension in dimensions}
        first = min(roots)
        self.parents.update({root: first for root in roots if root != first})
        if roots & self.known or any(size is not None for size in sizes):
            self.known.add(first)

    def tie_factors(self, op: Op, registry: Registry) -> None:
        """Tie the dimensions of each factor of the rule of an op."""
        values = (*op.operands, *op.results)
        if not any(None in getattr(value.type, "shape", ()) for value in values):
            return
        rule = registry.get_sharding_rule(op)
        dimensions: dict[int, list[Dimension]] = {}
        sizes: dict[int, list[int | None]] = {}
        for value, mapping in zip(values, () if rule is None else rule.mappings, strict=rule is not None):
            for dim, factors in enumerate(mapping):
                if len(factors) == 1 and rule is not None and rule.kind(factors[0]) in SAME_SIZE:
                    dimensions.setdefault(factors[0], []).append((value.id, dim))
                    sizes.setdefault(factors[0], []).append(value.type.shape[dim])  # type: ignore[union-attr]
        for factor, members in dimensions.items():
            self.tie(members, sizes[factor])
