"""The launch of every emitter, its maps, and those of concatenates and of updates in place."""

from __future__ import annotations

from itertools import accumulate
from math import gcd, prod

from attrs import evolve

from shardy_py.indexing import IndexingMap, compose, op_maps, simplify
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.bodies import joined_dimension
from shardy_py.kernels.fusion.choose import Choice, EmitterKind
from shardy_py.kernels.fusion.fusion import Fusion, bits_of, element_type_of, shape_of
from shardy_py.kernels.fusion.in_place import form_of, in_place_updates, scatter_of
from shardy_py.kernels.launch.grid import THREADS, Launch, loop_map, loop_unroll, spread
from shardy_py.kernels.launch.reduction_maps import reduction_maps
from shardy_py.kernels.launch.reductions import plan_reduction, reduction_launch
from shardy_py.kernels.launch.scatters import indices_per_warp, scatter_maps
from shardy_py.kernels.launch.transposes import transpose_launch, transpose_maps

_WIDE_WINDOW = 8
_MANY_OPERANDS = 10


def launch_of(fusion: Fusion, choice: Choice, device: DeviceSpec) -> Launch:
    """Return the launch of a fusion under its emitter."""
    if choice.emitter is not None:
        launch: Launch = choice.emitter.launch(fusion, device)
        return launch
    match choice.kind:
        case EmitterKind.TRANSPOSE:
            return transpose_launch(fusion, choice, device)
        case EmitterKind.REDUCTION:
            return reduction_launch(fusion, choice, device)
        case EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE:
            return in_place_launch(fusion, device)
        case EmitterKind.CONCATENATE:
            return _concatenate(fusion, choice, device)
        case EmitterKind.SCATTER:
            return _scatter(fusion, device)
        case _:
            return _loop(fusion, device)


def _loop(fusion: Fusion, device: DeviceSpec) -> Launch:
    root = fusion.roots[0]
    elements = fusion.elements(root)
    bits = min(bits_of(element_type_of(value)) for value in fusion.roots)
    unroll = loop_unroll(elements, device, bits=bits, blocked=any(is_expensive(fusion, op) for op in fusion.ops))
    return spread(-(-elements // unroll), device, unroll=unroll)


def is_expensive(fusion: Fusion, op: Op) -> bool:
    """Return whether an op computes so much for an element that loops over it are not unrolled."""
    facts = fusion.facts[op.id]
    if facts.is_contraction:
        return True
    if facts.is_concatenation:
        return len(op.operands) > _MANY_OPERANDS
    if not op.operands or facts.is_elementwise:
        return False
    ranges = prod(bound.interval.size for bound in facts.maps[0].ranges)
    if facts.is_reduction:
        return len(op.results) > 1
    return ranges > _WIDE_WINDOW


def _concatenate(fusion: Fusion, choice: Choice, device: DeviceSpec) -> Launch:
    (hero,) = choice.heroes
    assert hero is not None
    return joined_launch(fusion, hero, device)


def _scatter(fusion: Fusion, device: DeviceSpec) -> Launch:
    root = scatter_of(fusion)
    updates = form_of(fusion).updates_shape
    unroll = loop_unroll(prod(updates), device, bits=bits_of(element_type_of(root.results[0])))
    unroll = gcd(prod(updates[1:]), unroll)
    per_warp = indices_per_warp(fusion, root, device)
    if per_warp is None:
        launch = spread(-(-prod(updates) // unroll), device, unroll=unroll)
        threads = -(-launch.threads[0] // device.threads_per_warp) * device.threads_per_warp
        return evolve(launch, threads=(threads, 1, 1))
    warps = -(-updates[0] // per_warp)
    return Launch((-(-warps // (THREADS // device.threads_per_warp)), 1, 1), (THREADS, 1, 1), unroll)


def maps_of(fusion: Fusion, choice: Choice, launch: Launch, device: DeviceSpec) -> tuple[IndexingMap, ...]:
    """Return the map of every loop of the entry function, in their order: over a result, of reductions the operand."""
    root = fusion.roots[0]
    match choice.kind:
        case EmitterKind.LOOP:
            return (loop_map(launch, shape_of(root), fusion.layout_of(root)),)
        case EmitterKind.TRANSPOSE:
            return transpose_maps(fusion, choice, launch)
        case EmitterKind.CONCATENATE:
            (hero,) = choice.heroes
            assert hero is not None
            return joined_output_maps(fusion, hero, root, launch)
        case EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE:
            return (in_place_map(fusion, launch),)
        case EmitterKind.REDUCTION:
            plan = plan_reduction(fusion, choice, device, launch)
            return (reduction_maps(plan, launch).input,) * launch.blocks[2]
        case EmitterKind.SCATTER:
            return scatter_maps(fusion, launch, device)
        case _:
            return ()


def in_place_launch(fusion: Fusion, device: DeviceSpec) -> Launch:
    """Return the launch over the elements of an update."""
    update = in_place_updates(fusion)[0]
    elements = fusion.elements(update.operands[1])
    unroll = loop_unroll(elements, device, bits=bits_of(element_type_of(update.results[0])))
    return spread(-(-elements // unroll), device, unroll=unroll)


def in_place_map(fusion: Fusion, launch: Launch) -> IndexingMap:
    """Return the map from threads and blocks to the index in the update."""
    update = in_place_updates(fusion)[0].operands[1]
    return loop_map(launch, shape_of(update), fusion.layout_of(update))


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
