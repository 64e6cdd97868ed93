"""The launch of every emitter and its maps, and those of the operands of a concatenate."""

from __future__ import annotations

from itertools import accumulate

from shardy_py.indexing import IndexingMap, compose, op_maps, simplify
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.bodies import joined_dimension, joined_lengths
from shardy_py.kernels.fusion.choose import Choice, EmitterKind
from shardy_py.kernels.fusion.fusion import Fusion, IterationSpace, shape_of
from shardy_py.kernels.fusion.reductions import RootReductions
from shardy_py.kernels.fusion.scatters import RootScatter
from shardy_py.kernels.fusion.transposes import RootTransposes
from shardy_py.kernels.launch.grid import Launch, loop_map, space_launch
from shardy_py.kernels.launch.reduction_maps import reduction_maps
from shardy_py.kernels.launch.reductions import plan_reduction
from shardy_py.kernels.launch.scatters import scatter_launch, scatter_maps
from shardy_py.kernels.launch.transposes import transpose_launch, transpose_maps


def launch_of(fusion: Fusion, choice: Choice, device: DeviceSpec) -> Launch:
    """Return the launch of a fusion under its emitter."""
    form = choice.form
    match form:
        case RootTransposes():
            return transpose_launch(form, device)
        case RootReductions():
            # Groups of roots that share nothing run side by side along z.
            return plan_reduction(form, device).launch(len(form.groups))
        case RootScatter():
            return scatter_launch(form, device)
        case IterationSpace():
            return space_launch(form, device)
        case _:
            launch: Launch = form.launch(fusion, device)
            return launch


def maps_of(fusion: Fusion, choice: Choice, launch: Launch, device: DeviceSpec) -> tuple[IndexingMap, ...]:
    """Return the map of every loop of the entry function, in their order: over a result, of reductions the operand."""
    match choice.form:
        case RootTransposes() as transposes:
            return transpose_maps(transposes, launch, has_side=len(transposes.heroes) < len(fusion.roots))
        case RootReductions() as reductions:
            plan = plan_reduction(reductions, device, launch)
            return (reduction_maps(plan, launch).input,) * launch.blocks[2]
        case RootScatter() as scatter:
            return scatter_maps(scatter, launch, device)
        case IterationSpace() as space:
            map_ = loop_map(launch, space.shape, space.layout)
            hero = choice.heroes[0]
            if choice.kind is not EmitterKind.CONCATENATE or hero is None:
                return (map_,)
            return joined_output_maps(fusion, hero, fusion.roots[0], map_)
        case _:
            return ()


def joined_output_maps(fusion: Fusion, hero: Op, root: Value, read: IndexingMap) -> tuple[IndexingMap, ...]:
    """Return for every operand the map from threads and blocks to the index in the root; it holds inside of it.

    Args:
        fusion: The fusion.
        hero: The concatenate.
        root: The root.
        read: The map to the index in an operand.
    """
    written = fusion.same_place(hero.results[0], root)
    dimension, offsets = joined_dimension(hero), accumulate(joined_lengths(hero), initial=0)
    joined = (
        op_maps.concatenate_to_output(shape_of(value), dimension, offset)
        for value, offset in zip(hero.operands, offsets, strict=False)
    )
    return tuple(simplify(compose(compose(read, map_), written)) for map_ in joined)
