"""The launch of every emitter."""

from __future__ import annotations

from math import gcd, prod

from attrs import evolve

from shardy_py.ir.graph.program import Op
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.choose import Choice, EmitterKind
from shardy_py.kernels.fusion.fusion import Fusion, bits_of, element_type_of, shape_of
from shardy_py.kernels.fusion.scatters import scatter_of
from shardy_py.kernels.launch.grid import THREADS, Launch, loop_unroll, spread
from shardy_py.kernels.launch.in_place import in_place_launch
from shardy_py.kernels.launch.joined import joined_launch
from shardy_py.kernels.launch.reductions import reduction_launch
from shardy_py.kernels.launch.scatters import indices_per_warp
from shardy_py.kernels.launch.transposes import transpose_launch

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
    if fusion.is_contraction(op):
        return True
    if fusion.is_concatenation(op):
        return len(op.operands) > _MANY_OPERANDS
    if not op.operands or fusion.is_elementwise(op):
        return False
    ranges = prod(bound.interval.size for bound in fusion.maps(op)[0].ranges)
    if fusion.is_reduction(op):
        return len(op.results) > 1
    return ranges > _WIDE_WINDOW


def _concatenate(fusion: Fusion, choice: Choice, device: DeviceSpec) -> Launch:
    (hero,) = choice.heroes
    assert hero is not None
    return joined_launch(fusion, hero, device)


def _scatter(fusion: Fusion, device: DeviceSpec) -> Launch:
    root = scatter_of(fusion)
    updates = shape_of(root.operands[2])
    unroll = loop_unroll(prod(updates), device, bits=bits_of(element_type_of(root.results[0])))
    unroll = gcd(prod(updates[1:]), unroll)
    per_warp = indices_per_warp(fusion, root, device)
    if per_warp is None:
        launch = spread(-(-prod(updates) // unroll), device, unroll=unroll)
        threads = -(-launch.threads[0] // device.threads_per_warp) * device.threads_per_warp
        return evolve(launch, threads=(threads, 1, 1))
    warps = -(-updates[0] // per_warp)
    return Launch((-(-warps // (THREADS // device.threads_per_warp)), 1, 1), (THREADS, 1, 1), unroll)
