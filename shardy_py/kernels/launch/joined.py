"""The maps of a concatenate: its operands are read by the same threads, one operand after the other."""

from __future__ import annotations

from itertools import accumulate
from math import gcd

from shardy_py.indexing import IndexingMap, compose, op_maps, simplify
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.concatenates import joined_dimension
from shardy_py.kernels.fusion.fusion import Fusion, bits_of, element_type_of, shape_of
from shardy_py.kernels.launch.grid import Launch, loop_map, loop_unroll, spread


def joined_launch(fusion: Fusion, hero: Op, device: DeviceSpec) -> Launch:
    """Return the launch over the longest operand; no thread's elements reach over the end of another operand."""
    dimension = joined_dimension(hero)
    elements = fusion.elements(longest_operand(hero))
    unroll = loop_unroll(elements, device, bits=bits_of(element_type_of(hero.results[0])))
    unroll = gcd(unroll, *(shape_of(value)[dimension] for value in hero.operands))
    return spread(-(-elements // unroll), device, unroll=unroll)


def joined_input_map(fusion: Fusion, hero: Op, launch: Launch) -> IndexingMap:
    """Return the map from threads and blocks to the index in each operand."""
    longest = longest_operand(hero)
    return loop_map(launch, shape_of(longest), fusion.layout_of(longest))


def joined_output_maps(fusion: Fusion, hero: Op, root: Value, launch: Launch) -> tuple[IndexingMap, ...]:
    """Return for every operand the map from threads and blocks to the index in the root; it holds inside of it."""
    read = joined_input_map(fusion, hero, launch)
    written = fusion.same_place(hero.results[0], root)
    dimension = joined_dimension(hero)
    sizes = [shape_of(value)[dimension] for value in hero.operands]
    offsets = list(accumulate(sizes, initial=0))[:-1]
    joined = (
        op_maps.concatenate_to_output(shape_of(value), dimension, offset)
        for value, offset in zip(hero.operands, offsets, strict=True)
    )
    return tuple(simplify(compose(compose(read, map_), written)) for map_ in joined)


def longest_operand(hero: Op) -> Value:
    """Return the operand that is longest along the dimension in which they are joined."""
    dimension = joined_dimension(hero)
    return max(hero.operands, key=lambda value: shape_of(value)[dimension])
