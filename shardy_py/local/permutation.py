"""Ops with sharded permutation factors, as manual computations with halo exchanges or between reshards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve

from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION, REGION_RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.rewriting import clone_region
from shardy_py.ir.graph.types import Type, static_shape
from shardy_py.ir.interfaces.local import CannotLocalize, LocalEmitter, LocalOps, Shard, local_form
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.local.divisible import padded_type
from shardy_py.local.whole_factors import make_whole
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.tensor import ManualAxes, TensorSharding, TensorShardingPerValue
from shardy_py.transforms.sharding_walker import IN_SHARDINGS, OUT_SHARDINGS, load_computation
from shardy_py.values import define


@define
class PermutationResolver:
    """Resolves the permutation factors of the ops of one program, in place.

    Attributes:
        program: The program.
        semantics: What is known about ops.
        ops: The ops for communication.
        next_channel: Gives the number of the next channel.
        exchanges: Whether ops become manual computations where they can.
    """

    program: Program
    semantics: OpSemantics
    ops: LocalOps
    next_channel: Callable[[], int]
    exchanges: bool

    def resolve(self, op: Op) -> None:
        """Put what moves along the sharded permutation factors of an op into the program."""
        rule = self.semantics.get_sharding_rule(op) if op.results else None
        if rule is None or not rule.permutation_factors or op.parent is None:
            return
        factors = self._sharded_factors(op, rule)
        if not factors:
            return
        shardings = [self._sharding(value) for value in (*op.operands, *op.results)]
        block, mesh = self._body(op, shardings)
        moves = block is None or any(map(self._moves, block.ops))
        if moves and self.exchanges and block is not None and mesh is not None and not _is_in_computation(op):
            self._exchange(op, shardings, block, mesh)
            return
        if block is not None:
            LocalEmitter(self.program, block, self.next_channel).erase_after(None)
        if moves:
            make_whole(self.program, op, rule, factors)

    def _sharding(self, value: Value) -> TensorSharding | None:
        return self.program.sharding(value)

    def _sharded_factors(self, op: Op, rule: OpShardingRule) -> set[int]:
        """Return the permutation factors of the dimensions that are sharded."""
        sharded_factors: set[int] = set()
        for value, mapping in zip((*op.operands, *op.results), rule.mappings, strict=True):
            sharding = self._sharding(value)
            for dim, factors in enumerate(mapping if sharding is not None else ()):
                if sharding is not None and sharding.of_dimension(dim).sharded_size(self._mesh(sharding)) > 1:
                    sharded_factors |= {factor for factor in factors if rule.kind(factor) is FactorKind.PERMUTATION}
        return sharded_factors

    def _mesh(self, sharding: TensorSharding) -> Mesh:
        return sharding.mesh if isinstance(sharding.mesh, Mesh) else self.program.meshes[sharding.mesh]

    def _body(self, op: Op, shardings: Sequence[TensorSharding | None]) -> tuple[Block | None, TensorSharding | None]:
        """Return the body of an op on one device, and a sharding with its mesh; no body where there is no local form.

        Args:
            op: The op.
            shardings: The shardings of its operands and results.
        """
        form = local_form(op, self.semantics)
        first_sharding = next((sharding for sharding in shardings if sharding is not None), None)
        if form is None or first_sharding is None:
            return None, first_sharding
        meshes, count = self.program.meshes, len(op.operands)
        block = Block(self.program)
        emit = LocalEmitter(self.program, block, self.next_channel)
        shard = Shard(
            op,
            (),
            shardings[:count],
            shardings[count:],
            meshes,
            self.semantics,
            emit,
            self.ops,
            lambda: [clone_region(self.program, region, {}) for region in op.regions],
        )
        try:
            types = [
                shard.local_type(value.type, sharding)
                for value, sharding in zip(op.operands, shardings[:count], strict=True)
            ]
            block = emit.block = Block(self.program, types)
            results = form(op, evolve(shard, operands=block.arguments))
        except CannotLocalize:
            emit.erase_after(None)
            return None, first_sharding
        emit.op(REGION_RETURN, results)
        return block, first_sharding

    def _moves(self, op: Op) -> bool:
        """Return whether an op sends elements to other devices."""
        return self.ops.read_collective(op) is not None

    def _exchange(
        self, op: Op, shardings: Sequence[TensorSharding | None], block: Block, sharding: TensorSharding
    ) -> None:
        """Put a manual computation over all axes in the place of an op; what does not divide is padded around it."""
        mesh = self._mesh(sharding)
        value_shardings = [
            item or TensorSharding.fully_closed(sharding.mesh, len(static_shape(value.type) or ()))
            for value, item in zip((*op.operands, *op.results), shardings, strict=True)
        ]
        count = len(op.operands)
        operands = [self._padded(op, value) for value in op.operands]
        computation = Op(
            self.program,
            MANUAL_COMPUTATION,
            operands,
            [padded_type(self.program, value) for value in op.results],
            {
                IN_SHARDINGS: TensorShardingPerValue(tuple(value_shardings[:count])),
                OUT_SHARDINGS: TensorShardingPerValue(tuple(value_shardings[count:])),
                "manual_axes": ManualAxes(tuple(axis.name for axis in mesh.axes)),
            },
            [Region([block])],
        )
        parent = _block_of(op)
        parent.insert_before(op, computation)
        load_computation(self.program, computation, self.semantics)
        for old, new, item in zip(op.results, computation.results, value_shardings[count:], strict=True):
            result = new
            if new.type != old.type:
                result = self._resized(op, new, old.type)
                self.program.shardings[result.id] = item
            old.replace_all_uses_with(result)
        op.erase()

    def _padded(self, op: Op, value: Value) -> Value:
        """Return a value whose sharded dimensions divide, for an op."""
        type_ = padded_type(self.program, value)
        return value if type_ == value.type else self._resized(op, value, type_)

    def _resized(self, op: Op, value: Value, type_: Type) -> Value:
        """Return a value cut or padded to a type, before an op."""
        block, sharding = Block(self.program), self._sharding(value)
        emit = LocalEmitter(self.program, block, self.next_channel)
        resized = self.ops.resize(emit, value, static_shape(type_) or ())
        for item in list(block.ops):
            block.remove(item)
            _block_of(op).insert_before(op, item)
        if sharding is not None:
            self.program.shardings[resized.id] = sharding
        return resized


def _block_of(op: Op) -> Block:
    if op.parent is None:
        raise ValueError(f"{op!r} is in no block")
    return op.parent


def _is_in_computation(op: Op) -> bool:
    """Return whether an op stands in a manual computation, in which some axes are taken already."""
    parent = op.parent_op
    while parent is not None and parent.name != MANUAL_COMPUTATION:
        parent = parent.parent_op
    return parent is not None
