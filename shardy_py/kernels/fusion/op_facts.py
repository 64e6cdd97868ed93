"""Facts of the ops of a fusion: indexing maps, scalar body, and the kind of op that follows from these."""

from __future__ import annotations

from functools import cached_property
from math import prod

from attrs import field

from shardy_py.indexing import IndexingMap, op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.ops import (
    Bitcast,
    Concatenation,
    Contraction,
    DynamicUpdate,
    Elementwise,
    Reduction,
    Reshape,
    Scatter,
)
from shardy_py.kernels.fusion.bodies import (
    Traced,
    body_of,
    joins_in_order,
    keeps_element,
    picks_elements,
    reduces_by_region,
)
from shardy_py.plugins import Registry
from shardy_py.values import frozen

_WIDE_WINDOW = 8
_MANY_OPERANDS = 10


@frozen(eq=False, slots=False)
class FusedOpFacts:
    """Facts of an op; each is found when it is asked for first.

    Args:
        op: The op.
        registry: The definitions of ops.
    """

    op: Op
    registry: Registry = field(repr=False)

    @cached_property
    def operand_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of every operand."""
        return tuple(static_shape(value.type) or () for value in self.op.operands)

    @cached_property
    def result_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of every result."""
        return tuple(static_shape(value.type) or () for value in self.op.results)

    @cached_property
    def maps(self) -> tuple[IndexingMap, ...]:
        """The map of every operand, from the index of the first result."""
        indexing = self.registry.get_indexing(self.op) if self.op.operands else None
        unknown = (IndexingMap.undefined(),) * len(self.op.operands)
        return unknown if indexing is None else indexing.output_to_input

    @cached_property
    def body(self) -> tuple[Traced, ...]:
        """The values that the scalar body makes; none where that is not known."""
        emission = self.registry.get_emission(self.op)
        return () if emission is None else body_of(self.op, emission, self.maps) or ()

    @cached_property
    def is_elementwise(self) -> bool:
        """True if each element is computed from the same element of the operands, or from scalars.

        Client ops may broadcast their operands besides.
        """
        if not self.registry.has_trait(self.op, Elementwise):
            return False
        same = op_maps.identity(self.result_shapes[0])
        return all(map_.is_undefined or not map_.results or map_ == same for map_ in self.maps)

    @cached_property
    def keeps_elements(self) -> bool:
        """True if the op computes nothing: an element of its result is the one that its map says."""
        return keeps_element(self.op, self.body)

    @cached_property
    def is_bitcast(self) -> bool:
        """True if the op gives its operand another shape and leaves the memory as it is."""
        has_trait = self.registry.has_trait
        return (has_trait(self.op, Reshape) or has_trait(self.op, Bitcast)) and self.keeps_elements

    @cached_property
    def is_reduction(self) -> bool:
        """True if the op combines elements along whole dimensions, by a region and from initial operands.

        One that says so without these, or computes more, is computed element by element, by its scalar body.
        """
        op, count = self.op, len(self.op.results)
        is_regular = bool(op.regions) and len(op.operands) == 2 * count
        if not is_regular or not self.registry.has_trait(op, Reduction):
            return False
        has_scalars = not any(self.operand_shapes[count:])
        return has_scalars and reduces_by_region(op, self.body, self.maps)

    @cached_property
    def is_concatenation(self) -> bool:
        """True if the op joins its operands along a dimension, in their order, and computes nothing."""
        if not self.registry.has_trait(self.op, Concatenation):
            return False
        return joins_in_order(self.op, self.maps) and picks_elements(self.body)

    @cached_property
    def is_contraction(self) -> bool:
        """True if the op sums products."""
        return self.registry.has_trait(self.op, Contraction)

    @cached_property
    def is_scatter(self) -> bool:
        """True if the op writes updates to indices that are known at run time."""
        return bool(self.op.regions) and self.registry.has_trait(self.op, Scatter)

    @cached_property
    def is_dynamic_update(self) -> bool:
        """True if the op writes a part of its operand that begins at an index known at run time."""
        shapes = self.operand_shapes
        has_starts = len(shapes) == 2 + len(shapes[0]) if shapes else False
        return has_starts and self.registry.has_trait(self.op, DynamicUpdate) and picks_elements(self.body)

    @cached_property
    def is_expensive(self) -> bool:
        """True if the op computes so much for an element that loops over it are not unrolled."""
        if self.is_contraction:
            return True
        if self.is_concatenation:
            return len(self.op.operands) > _MANY_OPERANDS
        if not self.op.operands or self.is_elementwise:
            return False
        if self.is_reduction:
            return len(self.op.results) > 1
        return prod(bound.interval.size for bound in self.maps[0].ranges) > _WIDE_WINDOW

    @cached_property
    def moves_only(self) -> bool:
        """True if the op makes its elements of nothing, or takes each from one index of its only operand."""
        if not self.op.operands:
            return True
        if len(self.op.operands) > 1 or self.is_elementwise or self.is_reduction:
            return False
        (map_,) = self.maps
        is_one_index = not (map_.is_undefined or map_.constraints or map_.ranges or map_.runtimes)
        return is_one_index and self.keeps_elements
