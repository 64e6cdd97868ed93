"""Replace reshards by the collectives that carry them out, on operands whose shardings the reference can look up.

Mirrors reshard_to_collectives.cc::ReshardToCollectivesPass.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import evolve, field

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import FUNCTION, RESHARD
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import mesh_of
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import nearest_location, ops_among, ops_named
from shardy_py.ir.interfaces.ops import OpSemantics, PropagationBarrier, UpstreamDataFlow
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.collectives.plan import Collective, plan_collectives
from shardy_py.values import NoFields, frozen

_OF_COLLECTIVES = "out_sharding"
"""The attribute in which collectives have the sharding of their result."""


class ReshardBlockArgumentsPass(NoFields):
    """Put a reshard between the argument of a region and its collectives, to the sharding that it has already.

    A collective is verified against the sharding of its operand. The reference does not find that of a block argument
    if it does not know the data flow of the op; the result of the reshard has it. The same holds for a result of such
    an op that is on the edge of a block argument.
    """

    name: ClassVar[str] = "reshard-block-arguments"

    def run(self, program: Program, context: PassContext) -> None:
        """Put the reshards into all functions, one for each argument."""
        resharded: dict[int, Value] = {}
        semantics = context.semantics
        for op in ops_among(program, [name for name in program.op_names if name.startswith("sdy.")]):
            if semantics.get_sharding_attribute(op) != _OF_COLLECTIVES:
                continue
            value = op.operands[0]
            sharding = _sharding_unknown_upstream(value, program, semantics)
            if sharding is not None:
                if value.id not in resharded:
                    resharded[value.id] = _reshard(program, value, sharding)
                op.set_operand(0, resharded[value.id])


def _sharding_unknown_upstream(value: Value, program: Program, semantics: OpSemantics) -> TensorSharding | None:
    """Return the sharding of a value that the reference does not find; None where it does, or there is none."""
    owner = value.owning_op
    if owner.name == FUNCTION or semantics.has_trait(owner, UpstreamDataFlow):
        return None
    carrier = shardable_value(value, semantics)
    if carrier is None or (carrier is value and not value.is_block_argument):
        return None
    return program.shardings.get(carrier.id)


def _reshard(program: Program, value: Value, sharding: TensorSharding) -> Value:
    reshard = Op(program, RESHARD, [value], [value.type], {"sharding": sharding})
    value.insert_after(reshard)
    program.shardings[reshard.results[0].id] = sharding
    return reshard.results[0]


@frozen
class ReshardToCollectivesPass:
    """Replace every ``sdy.reshard`` by collectives, or by its operand where nothing has to be done.

    Reshards between meshes with different axes stay, as do those between a single device and several. Where neither
    sharding has dimensions (both of a single device, or of a scalar), nothing has to be done, as in the reference.

    Args:
        keep_redundant_reshards: Keep a reshard whose operand is sharded like its result already.
    """

    name: ClassVar[str] = "sdy-reshard-to-collectives"

    keep_redundant_reshards: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the reshards of a program.

        Raises:
            VerificationError: a reshard cannot be carried out.
        """
        lowering = _Lowering(program, context, program.meshes)
        reshards = ops_named(program, RESHARD)
        # What stays is decided on the shardings as they are, before any reshard is replaced.
        for op in [op for op in reshards if not lowering.stays(op, keep_redundant=self.keep_redundant_reshards)]:
            lowering.replace(op)
        lowering.finish()


@frozen
class _Lowering:
    program: Program
    context: PassContext
    meshes: dict[str, Mesh]
    replaced: dict[int, tuple[Op, Value]] = field(factory=dict)

    def stays(self, op: Op, *, keep_redundant: bool) -> bool:
        """Return whether a reshard is left alone."""
        source, target = self._sharding(self._skip_barriers(op.operands[0])), self._target(op)
        # Unreduced axes are no matter here, as in the reference.
        if keep_redundant and target.is_equivalent(source, ignore_unreduced_axes=True):
            return True
        if self._is_single_device(source) or self._is_single_device(target):
            rank = source.rank if source is not None else getattr(op.result.type, "rank", 0)
            return rank > 0 or target.rank > 0
        # Gathering everything, or nothing at all, is the same for any mesh.
        if target.is_fully_replicated or source is None:
            return False
        return not self._have_same_axes(source, target)

    def replace(self, op: Op) -> None:
        """Insert the collectives for a reshard, and record its replacement."""
        target = self._target(op)
        current = self.current(op.operands[0])
        operand = self._skip_barriers(current)
        source = self._sharding(operand) or TensorSharding.fully_open(target.mesh, target.rank)
        if target.is_fully_replicated:
            if source.is_fully_replicated:
                self.replaced[op.result.id] = (op, current)
                return
            target = TensorSharding.fully_closed(source.mesh, source.rank)
        if source.rank != target.rank or not self._have_same_axes(source, target):
            raise VerificationError(_incompatible(op, source, target))
        if self._mesh(source) == self._mesh(target):
            # Another name for the same mesh makes no difference to any device.
            source = evolve(source, mesh=target.mesh)
        shape = operand.type.shape if isinstance(operand.type, TensorType) else (None,) * source.rank
        plan = plan_collectives(source, target, shape, self._mesh(source))
        if plan is None:
            raise VerificationError(_incompatible(op, source, target))
        for collective in plan:
            operand = self._insert(op, collective, operand)
            source = collective.out_sharding
        if not target.is_equivalent(source, ignore_unreduced_axes=True):
            self.context.warnings.append(_inexact(op, source, target))
        self.replaced[op.result.id] = (op, operand)

    def current(self, value: Value) -> Value:
        """Return the current replacement of a value."""
        while value.id in self.replaced:
            _, value = self.replaced[value.id]
        return value

    def finish(self) -> None:
        """Make the users of the reshards use their replacements, and erase the reshards."""
        for op, _ in self.replaced.values():
            op.result.replace_all_uses_with(self.current(op.result))
        for op, _ in reversed(self.replaced.values()):
            self.program.shardings.pop(op.result.id, None)
            op.erase()

    def _insert(self, op: Op, collective: Collective, operand: Value) -> Value:
        new = Op(self.program, collective.name, [operand], [op.result.type])
        if collective.attribute:
            new.attributes[collective.attribute] = collective.value
        if op.parent is not None:
            op.parent.insert_before(op, new)
        self.program.shardings[new.result.id] = collective.out_sharding
        return new.result

    def _skip_barriers(self, value: Value) -> Value:
        producer = value.defining_op
        while producer is not None and self.context.semantics.has_trait(producer, PropagationBarrier):
            value = producer.operands[0]
            producer = value.defining_op
        return value

    def _sharding(self, value: Value) -> TensorSharding | None:
        carrier = shardable_value(value, self.context.semantics)
        return None if carrier is None else self.program.sharding(carrier)

    def _target(self, op: Op) -> TensorSharding:
        sharding = self.program.sharding(op.result)
        if sharding is None:
            raise VerificationError(
                Diagnostic("missing-sharding", "the reshard has no sharding", nearest_location(op), op.name)
            )
        return sharding

    def _is_single_device(self, sharding: TensorSharding | None) -> bool:
        return sharding is not None and self._mesh(sharding).is_maximal

    def _have_same_axes(self, first: TensorSharding, second: TensorSharding) -> bool:
        return first.mesh == second.mesh or self._mesh(first).equals(self._mesh(second), ignore_device_ids=True)

    def _mesh(self, sharding: TensorSharding) -> Mesh:
        return mesh_of(sharding, self.meshes)


def _incompatible(op: Op, source: TensorSharding, target: TensorSharding) -> Diagnostic:
    return Diagnostic(
        "incompatible-reshard",
        f"no collectives lead from {source} to {target}",
        nearest_location(op),
        op.name,
        hint="both shardings need the same rank, unreduced axes, and meshes with the same axes",
    )


def _inexact(op: Op, reached: TensorSharding, target: TensorSharding) -> Diagnostic:
    """Return the warning for a reshard between unrelated axis sizes that, as in the reference, is not exact."""
    return Diagnostic(
        "inexact-reshard",
        f"the collectives lead to {reached} instead of {target}",
        nearest_location(op),
        op.name,
        hint="use axis sizes of which one always divides the other, for example powers of two",
    )
