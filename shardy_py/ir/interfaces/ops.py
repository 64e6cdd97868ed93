"""The interfaces of ops for dialects: trait markers and the protocols.

These names mirror Shardy's `ShardingRuleOpInterface` and `ShardableDataFlowOpInterface`. A definition that a plugin
registers for an op name implements them; the op concerned is the first argument.

Mirrors op_interface.td::ShardableDataFlowOpInterface and op_interface.td::ShardingRuleOpInterface.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.sharding.rule import Reductions


@frozen(cache_hash=True)
class Trait:
    """A marker an op may have; traits are compared by name."""

    name: str

    def __str__(self) -> str:
        return self.name


@frozen(cache_hash=True)
class FoldsIntoConstant(Trait):
    """The op stands for a constant: MLIR's canonicalizer replaces it by an op that holds its value for all elements.

    Args:
        constant: The name of that op.
        attribute: The attribute of the op that is the value.
    """

    constant: str
    attribute: str


ConstantLike = Trait("ConstantLike")
"""The op makes a constant: no operands, one result, no side effects."""
AsSdyConstant = Trait("AsSdyConstant")
"""A `ConstantLike` op that becomes an ``sdy.constant`` with its attributes, so that no folding merges the copies."""
UnitedByMlir = Trait("UnitedByMlir")
"""A `ConstantLike` op that MLIR's canonicalizer knows: it unites equal ones, so that they are not copied per use."""
Elementwise = Trait("Elementwise")
"""Every element of the results depends on the same element of the operands only."""
ConstantFoldable = Trait("ConstantFoldable")
"""The op is folded when its operands are constant, so it is copied per use together with them."""
Pure = Trait("Pure")
"""The op has no side effects: it is erased when nobody uses its results."""
RecursiveMemoryEffects = Trait("RecursiveMemoryEffects")
"""The side effects of the op are those of the ops in its regions."""
IsTerminator = Trait("IsTerminator")
"""The op ends its block."""
ReturnLike = Trait("ReturnLike")
"""Hands its operands to the results of the op around it, as they are."""
IsolatedFromAbove = Trait("IsolatedFromAbove")
"""The regions of the op use no values defined outside."""
PassThrough = Trait("PassThrough")
"""Moves data without computing (reshape, transpose, host offload): as early as elementwise ops."""
PropagationBarrier = Trait("PropagationBarrier")
"""Propagates only in the direction its ``allowed_direction`` attribute names."""
ForwardPassThrough = Trait("ForwardPassThrough")
"""As PassThrough, from operands to results only (dynamic slices)."""
Broadcast = Trait("Broadcast")
"""Repeats its operand along new dimensions; propagates forward last."""
Contraction = Trait("Contraction")
"""Sums products of its two operands along the reduction factors of its rule (dot products)."""
Concatenation = Trait("Concatenation")
"""Joins its operands along one dimension."""
Sort = Trait("Sort")
"""Orders elements along one dimension."""
Reduction = Trait("Reduction")
"""Combines elements along dimensions by the op that its region ends with, which has one of the next three traits."""
Sum = Trait("Sum")
"""Adds its two operands."""
Maximum = Trait("Maximum")
"""Takes the larger of its two operands."""
Minimum = Trait("Minimum")
"""Takes the smaller of its two operands."""
Product = Trait("Product")
"""Multiplies its two operands."""
CrossDeviceReduction = Trait("CrossDeviceReduction")
"""Combines the values of several devices by the op that its region ends with, as `Reduction` does."""
Reshape = Trait("Reshape")
"""Gives its operand another shape; the elements keep their row-major order."""
Bitcast = Trait("Bitcast")
"""Gives its operand another shape or layout; the memory stays as it is."""
DynamicSlice = Trait("DynamicSlice")
"""Returns a part of its first operand, from a start per dimension on, the operands after that one."""
DynamicUpdate = Trait("DynamicUpdate")
"""Returns its first operand with the second one written into it, at a start per dimension, the operands after these."""
ReadsSizes = Trait("ReadsSizes")
"""Reads the sizes of its operands and no element: its local form takes them sharded in any way."""
Scatter = Trait("Scatter")
"""Returns its first operand with updates, its third, combined into it at the indices that its second one lists."""
Unpartitioned = Trait("Unpartitioned")
"""Is computed on whole tensors by XLA's SPMD partitioner, which gathers its operands and slices its results."""
LibraryCall = Trait("LibraryCall")
"""Is computed by a routine of a library on its own, so that no generated kernel has it inside."""
Nondeterministic = Trait("Nondeterministic")
"""May give other results on each device, even where nothing is sharded: its local form makes copies agree."""
UpstreamDataFlow = Trait("UpstreamDataFlow")
"""Upstream's own library knows the data flow of the op, and with it the shardings of the arguments of its regions."""

TRAITS: tuple[Trait, ...] = tuple(item for item in list(globals().values()) if isinstance(item, Trait))
"""All traits above."""


class OpOperand(NamedTuple):
    """An operand of an op; a tuple, as thousands are created and dropped."""

    op: Op
    number: int

    @property
    def value(self) -> Value:
        """The value used."""
        return self.op.operands[self.number]


class DataFlowShardingTransformType(Enum):
    """The point at which `ShardableDataFlowOpInterface.transform_target_sharding` is called."""

    BEFORE_EDGE_PROPAGATION = "before"
    AFTER_EDGE_PROPAGATION = "after"


@runtime_checkable
class ShardingRuleOpInterface(Protocol):
    """An op that gives its own sharding rule."""

    def get_sharding_rule(self, op: Op) -> OpShardingRule | None:
        """Return the rule, or None where there is nothing to propagate."""
        ...


class ShardableDataFlowOpInterface(Protocol):
    """A region op, or another op, through which several values flow that must be sharded alike.

    One edge ties its sources (operands of the op or of terminators in its regions) to its targets (block arguments
    and results). One target is the edge's owner and stands for all of them. Subclasses write at least
    `get_edge_sources`, `get_edge_owner_from_target` and `get_edge_owner_from_source`; the rest has defaults.
    """

    def get_block_argument_edge_owners(self, op: Op) -> Sequence[Value]:
        """Return the block arguments that own an edge. Default: none."""
        return ()

    def get_op_result_edge_owners(self, op: Op) -> Sequence[Value]:
        """Return the results that own an edge. Default: all of them."""
        return op.results

    def get_edge_sources(self, op: Op, owner: Value) -> Sequence[OpOperand]:
        """Return the sources of the edge of ``owner``, in the order in which they are considered."""
        raise NotImplementedError

    def get_edge_owner_from_target(self, op: Op, target: Value) -> Value | None:
        """Return the owner of the edge that has ``target``, or None where no edge has it."""
        raise NotImplementedError

    def get_edge_owner_from_source(self, op: Op, source: OpOperand) -> Value | None:
        """Return the owner of the edge that has ``source``, or None where no edge has it."""
        raise NotImplementedError

    def get_non_edge_owner_targets(self, op: Op, owner: Value) -> Sequence[Value]:
        """Return the targets of the edge of ``owner`` besides the owner itself. Default: none."""
        return ()

    def get_block_argument_edge_owner_shardings(self, op: Op) -> Sequence[TensorSharding]:
        """Return the shardings the op holds for its block argument edge owners, or () for none.

        Default: those in an attribute ``argument_shardings`` of its dialect.
        """
        attribute = op.attributes.get(_argument_shardings(op))
        return () if attribute is None else attribute.shardings

    def set_block_argument_edge_owner_shardings(self, op: Op, shardings: Sequence[TensorSharding]) -> None:
        """Store shardings for the block argument edge owners on the op.

        Default: in an attribute ``argument_shardings`` of its dialect.
        """
        from shardy_py.sharding.tensor import TensorShardingPerValue

        op.attributes[_argument_shardings(op)] = TensorShardingPerValue(tuple(shardings))

    def get_op_result_edge_owner_shardings(self, op: Op) -> Sequence[TensorSharding]:
        """Return the shardings the op holds for its result edge owners, or (). Default: ``sdy.sharding``."""
        attribute = op.attributes.get("sdy.sharding")
        if attribute is None:
            return ()
        shardings: Sequence[TensorSharding] = attribute.shardings
        owners = self.get_op_result_edge_owners(op)
        if len(owners) == len(op.results) or len(shardings) != len(op.results):
            return shardings
        return tuple(shardings[owner.index] for owner in owners)

    def set_op_result_edge_owner_shardings(self, op: Op, shardings: Sequence[TensorSharding]) -> None:
        """Store shardings for the result edge owners on the op. Default: ``sdy.sharding``.

        The attribute has one sharding per result: results that own no edge are replicated there.
        """
        from shardy_py.sharding.tensor import TensorShardingPerValue

        owners = self.get_op_result_edge_owners(op)
        if len(owners) != len(op.results):
            new_shardings = {owner.index: sharding for owner, sharding in zip(owners, shardings, strict=True)}
            shardings = [new_shardings.get(value.index) or _replicated(shardings[0], value) for value in op.results]
        op.attributes["sdy.sharding"] = TensorShardingPerValue(tuple(shardings))

    def transform_target_sharding(
        self, op: Op, target: Value, sharding: TensorSharding, transform: DataFlowShardingTransformType
    ) -> TensorSharding:
        """Return the sharding of ``target`` as seen from the sources, or back again. Default: the same."""
        return sharding

    def should_keep_edge_owner_shardings_divisible(self, op: Op) -> bool:
        """Return whether the shardings of the owners must divide the sizes evenly. Default: no."""
        return False


def _argument_shardings(op: Op) -> str:
    return f"{op.name.partition('.')[0]}.argument_shardings"


def _replicated(other: TensorSharding, value: Value) -> TensorSharding:
    """Return the sharding of a value that is replicated over the mesh of another sharding."""
    return TensorSharding.fully_closed(other.mesh, value.type.rank if isinstance(value.type, TensorType) else 0)


class MeshReferenceOpInterface(Protocol):
    """An op that refers to a mesh elsewhere than in its shardings, such as a collective over some axes of a mesh."""

    def get_mesh(self, op: Op) -> str | Mesh | None:
        """Return the name of the mesh, or the mesh itself where it is inlined; None where the op refers to none."""
        ...

    def set_mesh(self, op: Op, mesh: str | Mesh) -> None:
        """Make the op refer to another mesh, by name or inlined."""
        ...


@frozen
class RuleOptions:
    """Options of rule functions.

    Args:
        conservative: Leave out factors that could be sharded unevenly (upstream's conservative propagation).
        extended: Give rules to ops that the reference leaves without one although they obviously have one.
        like_jit: Leave ops without a rule, also where `extended`, that come of XLA and that XLA leaves so.
    """

    conservative: bool = False
    extended: bool = False
    like_jit: bool = False


@frozen(eq=False)
class OpFacts:
    """Traits and rule of an op; ops with equal names, types and attributes share an object.

    Args:
        traits: All its traits.
        rule: Its rule, or None.
    """

    traits: frozenset[Trait]
    rule: OpShardingRule | None


class OpSemantics(Protocol):
    """The queries of the stages about ops; a `Registry` answers them, and so may a test."""

    @property
    def options(self) -> RuleOptions:
        """The options of rule functions."""
        ...

    def with_options(self, options: RuleOptions) -> OpSemantics:
        """Return the same semantics under other rule options."""
        ...

    def get_traits(self, op: Op) -> frozenset[Trait]:
        """Return all traits of an op; cheap, it is called once per op."""
        ...

    def has_trait(self, op: Op, trait: Trait) -> bool:
        """Return whether an op has a trait."""
        ...

    def get_sharding_rule(self, op: Op) -> OpShardingRule | None:
        """Return the registered rule of an op, or None."""
        ...

    def get_reductions(self, op: Op) -> Reductions:
        """Return the combiners and initial operands of the reductions of an op."""
        ...

    def sums_collectives(self, name: str) -> bool:
        """Return whether explicit collectives of the ops of a name are sums, however these reduce."""
        ...

    def told_apart_by(self, name: str) -> str:
        """Return the attribute whose values tell kinds of the ops of a name apart, or ""."""
        ...

    def get_facts(self, op: Op) -> OpFacts:
        """Return traits and rule of an op at once.

        Ops of one name with the same types and attributes share one object, unless their definition is contextual.
        """
        ...

    def facts_of(self, program: Program) -> Callable[[Op], OpFacts]:
        """Return `get_facts` for the ops of one program, for callers with many ops."""
        ...

    def get_data_flow(self, op: Op) -> ShardableDataFlowOpInterface | None:
        """Return the data flow of an op, or None; the same for all ops of one name."""
        ...

    def traits_of_name(self, name: str) -> frozenset[Trait] | None:
        """Return the traits that all ops of a name have; None where they depend on the op."""
        ...

    def names_with_traits(self, names: Iterable[str], traits: frozenset[Trait]) -> frozenset[str]:
        """Return the op names whose ops have one of some traits, or may have it where that depends on the op."""
        ...

    def names_with_data_flow(self, names: Iterable[str]) -> frozenset[str]:
        """Return the op names whose ops have data-flow edges."""
        ...

    def names_with_mesh_reference(self, names: Iterable[str]) -> frozenset[str]:
        """Return the op names whose ops may refer to a mesh besides their shardings."""
        ...

    def get_sharding_attribute(self, op: Op) -> str:
        """Return the attribute that holds the sharding of the op's result; ``sdy.sharding`` by default."""
        ...

    def names_with_sharding_attribute(self, names: Iterable[str], attributes: Collection[str]) -> frozenset[str]:
        """Return the op names whose ops hold the shardings of their results in one of some attributes."""
        ...

    def get_mesh_reference(self, op: Op) -> MeshReferenceOpInterface | None:
        """Return the accessor of the mesh that an op refers to besides its shardings, or None."""
        ...
