"""The entry function of every emitter."""

from __future__ import annotations

from xdsl.dialects import func

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.concatenate import concatenate_entry
from shardy_py.kernels.entry.in_place import in_place_entry
from shardy_py.kernels.entry.loop import loop_entry
from shardy_py.kernels.entry.packed_transpose import packed_transpose_entry
from shardy_py.kernels.entry.reduction import reduction_entry
from shardy_py.kernels.entry.scatter import scatter_entry
from shardy_py.kernels.entry.sorted_scatter import sorted_scatter_entry
from shardy_py.kernels.entry.tiled_transpose import tiled_transpose_entry
from shardy_py.kernels.fusion.aliases import slices_of
from shardy_py.kernels.fusion.choose import Choice, EmitterKind
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.launch.packed import PackedTiles
from shardy_py.kernels.launch.reductions import plan_reduction
from shardy_py.kernels.launch.scatters import sorted_rows, update_map
from shardy_py.kernels.launch.transposes import transpose_tiles


def entry_function(functions: FunctionEmitter, choice: Choice, launch: Launch, device: DeviceSpec) -> func.FuncOp:
    """Return the entry function of a kernel.

    Args:
        functions: The functions of the fusion.
        choice: The emitter.
        launch: The grid.
        device: The device.

    Raises:
        UnsupportedError: the emitter has none.
    """
    if choice.emitter is not None:
        entry: func.FuncOp = choice.emitter.entry(functions, launch)
        return entry
    match choice.kind:
        case EmitterKind.LOOP:
            return loop_entry(functions, launch)
        case EmitterKind.TRANSPOSE:
            tiles = transpose_tiles(choice, launch)
            if isinstance(tiles, PackedTiles):
                return packed_transpose_entry(functions, choice, tiles)
            return tiled_transpose_entry(functions, choice, tiles)
        case EmitterKind.CONCATENATE:
            return concatenate_entry(functions, choice, launch)
        case EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE:
            return in_place_entry(functions, choice, launch)
        case EmitterKind.REDUCTION:
            return reduction_entry(functions, choice, launch, plan_reduction(functions.fusion, choice, device))
        case EmitterKind.SCATTER:
            slices = slices_of(functions.fusion, choice)
            rows = sorted_rows(functions.fusion, device)
            if rows is not None and rows.per_warp > 1:
                return sorted_scatter_entry(functions, slices, launch, rows)
            return scatter_entry(functions, slices, launch, update_map(functions.fusion, launch, rows))
    message = f"the fusion is for the emitter {choice.kind.value}: {choice.reason}"
    hint = "emitter, launch and functions are known; the entry function is not"
    raise UnsupportedError(Diagnostic("no-entry-function", message, hint=hint))
