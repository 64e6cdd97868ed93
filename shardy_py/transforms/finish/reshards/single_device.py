"""Reshards around ops that run on one device: operands go there, by way of all devices, and results come back.

Upstream does so since `5716fd20` (2026-08-18), with ``upstream="head"`` here.

Mirrors insert_explicit_reshards.cc::processSingleDeviceOperation.
"""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.reshards.insertion import InsertionPoint, Resharder, rank_of


def refuse_single_device_interface(resharder: Resharder, function: Op) -> None:
    """Check that no argument or result of a function is on one device.

    Raises:
        VerificationError: one is.
    """
    for kind, values in (("argument", entry_arguments(function)), ("result", function.function_results)):
        for number, value in enumerate(values):
            if _device(resharder, resharder.sharding(value)) is not None:
                message = f"function {kind} {number} cannot have a single-device (maximal) sharding attribute"
                hint = "move it to the device by a constraint in the function"
                raise VerificationError(Diagnostic("single-device", message, function.location, function.name, hint))


def reshard_single_device_op(resharder: Resharder, op: Op) -> bool:
    """Insert the reshards around an op that gives results on one device, and return whether it does.

    Raises:
        VerificationError: its results are on several devices.
    """
    targets = [resharder.sharding(value) for value in op.results]
    devices = {device: sharding for sharding in targets if (device := _device(resharder, sharding)) is not None}
    if not devices:
        return False
    if len(devices) > 1:
        message = "has conflicting single-device result shardings"
        raise VerificationError(Diagnostic("single-device", message, op.location, op.name, "put them on one device"))
    mesh = next((name for name, mesh in resharder.meshes.items() if mesh.axes and not mesh.is_maximal), None)
    (sharding,) = devices.values()
    if mesh is None or sharding is None:
        return True
    single = TensorSharding.fully_closed(sharding.mesh, 0)
    _reshard_operands(resharder, op, single, mesh)
    _reshard_results(resharder, op, single, mesh, targets)
    return True


def _device(resharder: Resharder, sharding: TensorSharding | None) -> int | None:
    """Return the device that alone has a tensor, or None."""
    if sharding is None:
        return None
    mesh = resharder.mesh(sharding)
    return mesh.device_ids[0] if mesh.is_maximal else None


def _tensors(values: list[Value]) -> Iterator[tuple[int, Value]]:
    return ((number, value) for number, value in enumerate(values) if isinstance(value.type, TensorType))


def _reshard_operands(resharder: Resharder, op: Op, single: TensorSharding, mesh: str) -> None:
    place = InsertionPoint.before(op)
    for number, value in _tensors(list(op.operands)):
        replicated = TensorSharding.fully_closed(mesh, rank_of(value))
        sharding = resharder.sharding(value) or replicated
        if sharding.mesh == single.mesh:
            continue
        is_replicated = sharding.mesh == mesh and sharding.is_fully_replicated
        source = value if is_replicated else resharder.reshard(value, replicated, place)
        op.set_operand(number, resharder.reshard(source, single, place))


def _reshard_results(
    resharder: Resharder, op: Op, single: TensorSharding, mesh: str, targets: list[TensorSharding | None]
) -> None:
    place = InsertionPoint.after(op)
    for number, value in _tensors(list(op.results)):
        replicated, target = TensorSharding.fully_closed(mesh, rank_of(value)), targets[number]
        first = result = resharder.reshard(value, replicated, place)
        if target is not None and _device(resharder, target) is None and target != replicated:
            result = resharder.reshard(result, target, place)
        value.replace_all_uses_with(result, except_op=first.owning_op)
        resharder.program.shardings[value.id] = single
