"""Run ops that are on one device there only, and hand their results to all devices.

Mirrors resolve_single_device_sharding.cc::ResolveSingleDeviceShardingPass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import ClassVar

from attrs import field

from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import ALL_REDUCE, RESHARD
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.graph.shardings import mesh_of
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.local_ops import find_local_ops
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import AxisRefList
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields, define


class ResolveSingleDeviceShardingPass(NoFields):
    """Replace shardings over a mesh of one device.

    An op with such results runs under a condition on the device; the other devices have zeros, and an all-reduce over
    all axes gives its results to all. Reshards that bring its operands there go; what is sharded is made whole before.
    All devices have what no op makes there: arguments, and results of ops whose regions need all devices.
    """

    name: ClassVar[str] = "sdy-resolve-single-device-sharding"

    def run(self, program: Program, context: PassContext) -> None:
        """Resolve all shardings over one device.

        Raises:
            UnsupportedError: no dialect has ops for communication.
        """
        resolver = SingleDeviceResolver(program, context.semantics)
        ops_on_device = [
            (op, device) for op in list(all_ops(program)) if (device := resolver.device_of(op)) is not None
        ]
        ops = find_local_ops(program, context.semantics) if ops_on_device else None
        for op, device in ops_on_device:
            if op.name == RESHARD:
                resolver.remove_reshard(op)
            elif ops is not None and not resolver.needs_all(op):
                resolver.resolve(op, device, ops)
        resolver.replicate_rest()


@define
class SingleDeviceResolver:
    """Replaces the ops of one program that run on one device.

    Attributes:
        program: The program.
        semantics: What is known about ops.
    """

    program: Program
    semantics: OpSemantics
    _next_channel: Callable[[], int] = field(factory=lambda: count(1).__next__, init=False)

    def device_of(self, op: Op) -> int | None:
        """Return the device that alone has the tensors that an op makes, or None."""
        tensors = [value for value in op.results if isinstance(value.type, TensorType)]
        meshes = [self._mesh(value) for value in tensors]
        if not meshes or not all(mesh is not None and mesh.is_maximal for mesh in meshes):
            return None
        devices = {mesh.device_ids[0] for mesh in meshes if mesh is not None}
        return devices.pop() if len(devices) == 1 else None

    def needs_all(self, op: Op) -> bool:
        """Return whether devices may have to communicate in an op: it calls a function, or has shardings inside."""
        for inner in op.walk():
            values = () if inner is op else (*inner.operands, *inner.results)
            if callee_of(inner) is not None or any(self._sharding(value) is not None for value in values):
                return True
        return False

    def remove_reshard(self, op: Op) -> None:
        """Replace a reshard to one device by its operand, which is replicated first."""
        op.result.replace_all_uses_with(self._replicated(op, op.operands[0]))
        op.erase()

    def replicate_rest(self) -> None:
        """Take the sharding off all values that are still on one device."""
        meshes, table = self.program.meshes, self.program.shardings
        for number, sharding in list(table.items()):
            if mesh_of(sharding, meshes).is_maximal:
                del table[number]

    def _replicated(self, op: Op, value: Value) -> Value:
        """Return a value, or a reshard of it before an op, so that each device has all of it."""
        mesh, sharding = self._mesh(value), self._sharding(value)
        if mesh is None or sharding is None or mesh.is_maximal or sharding.is_fully_replicated:
            return value
        return self._insert(op, RESHARD, value, {}, _fully_replicated(sharding, value))

    def resolve(self, op: Op, device: int, ops: LocalOps) -> None:
        """Run an op on its device only.

        Args:
            op: The op; reshards of its operands to the device are gone already.
            device: The number of the device.
            ops: The ops for communication.
        """
        block = Block(self.program)
        emit = LocalEmitter(self.program, block, self._next_channel)

        replicated = {value.id: self._replicated(op, value) for value in op.operands}

        def run(inside: LocalEmitter) -> Sequence[Value]:
            clone = clone_op(op, replicated)
            for value in clone.results:
                self.program.shardings.pop(value.id, None)
            inside.block.append(clone)
            return clone.results

        sharding = self._target(op)
        results = ops.on_device(emit, device, [value.type for value in op.results], run)
        for new_op in list(block.ops):
            block.remove(new_op)
            op.parent.insert_before(op, new_op)  # type: ignore[union-attr]
        for value, result in zip(op.results, results, strict=True):
            is_used = bool(value.uses) and isinstance(value.type, TensorType)
            self._replace_result(value, self._reduced(op, result, sharding) if is_used and sharding else result)
        op.erase()

    def _reduced(self, op: Op, value: Value, sharding: TensorSharding) -> Value:
        mesh = self.program.meshes[sharding.mesh] if isinstance(sharding.mesh, str) else sharding.mesh
        axes = AxisRefList(tuple(AxisRef(axis.name) for axis in mesh.axes))
        return self._insert(op, ALL_REDUCE, value, {"reduction_axes": axes}, _fully_replicated(sharding, value))

    def _replace_result(self, value: Value, new: Value) -> None:
        """Replace all uses of a result, and reshards of it to the replicated sharding of the new value."""
        sharding = self.program.sharding(new)
        for user in list(dict.fromkeys(value.users)):
            target = self.program.sharding(user.results[0]) if user.name == RESHARD else None
            if target is None or sharding is None or target.mesh != sharding.mesh or not target.is_fully_replicated:
                continue
            user.result.replace_all_uses_with(new)
            user.erase()
        value.replace_all_uses_with(new)

    def _target(self, op: Op) -> TensorSharding | None:
        """Return a sharding over all devices: that of an operand, or the one that a result is resharded to."""
        users = [user.results[0] for value in op.results for user in value.users if user.name == RESHARD]
        for value in (*op.operands, *users):
            mesh, sharding = self._mesh(value), self._sharding(value)
            if mesh is not None and mesh.axes:
                return sharding
        default = next(((name, mesh) for name, mesh in self.program.meshes.items() if mesh.axes), None)
        return None if default is None else TensorSharding(default[0])

    def _sharding(self, value: Value) -> TensorSharding | None:
        """Return the sharding of a value, which the owner of its edge has where it is handed on."""
        carrier = shardable_value(value, self.semantics)
        return None if carrier is None else self.program.sharding(carrier)

    def _mesh(self, value: Value) -> Mesh | None:
        sharding = self._sharding(value)
        return None if sharding is None else mesh_of(sharding, self.program.meshes)

    def _insert(
        self, op: Op, name: str, value: Value, attributes: dict[str, object], sharding: TensorSharding
    ) -> Value:
        """Return the result of a new op before another one."""
        key = "sharding" if name == RESHARD else "out_sharding"
        new_op = Op(self.program, name, [value], [value.type], {**attributes, key: sharding})
        op.parent.insert_before(op, new_op)  # type: ignore[union-attr]
        self.program.shardings[new_op.result.id] = sharding
        return new_op.result


def _fully_replicated(sharding: TensorSharding, value: Value) -> TensorSharding:
    """Return the closed sharding under which each device has a whole value."""
    rank = len(value.type.shape) if isinstance(value.type, TensorType) else 0
    return TensorSharding.fully_closed(sharding.mesh, rank)
