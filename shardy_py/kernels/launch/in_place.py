"""The launch and the map of updates in place: threads are spread over the update."""

from __future__ import annotations

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.fusion import Fusion, bits_of, element_type_of, shape_of
from shardy_py.kernels.fusion.in_place import in_place_updates
from shardy_py.kernels.launch.grid import Launch, loop_map, loop_unroll, spread


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
