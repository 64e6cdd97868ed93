"""The maps of the loops in entry functions."""

from __future__ import annotations

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.choose import Choice, EmitterKind
from shardy_py.kernels.fusion.fusion import Fusion, shape_of
from shardy_py.kernels.launch.grid import Launch, loop_map
from shardy_py.kernels.launch.in_place import in_place_map
from shardy_py.kernels.launch.joined import joined_output_maps
from shardy_py.kernels.launch.reduction_maps import reduction_maps
from shardy_py.kernels.launch.reductions import plan_reduction
from shardy_py.kernels.launch.scatters import scatter_maps
from shardy_py.kernels.launch.transposes import transpose_maps


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
            plan = plan_reduction(fusion, choice, device)
            return (reduction_maps(plan, launch).input,) * launch.blocks[2]
        case EmitterKind.SCATTER:
            return scatter_maps(fusion, launch, device)
        case _:
            return ()
