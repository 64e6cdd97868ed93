"""Facts about all ops of one name that the estimate asks for many times, looked up once."""

from __future__ import annotations

from attrs import field

from shardy_py.cost.machines.profile import Profile
from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    CALL,
    COLLECTIVE_PERMUTE,
    MANUAL_COMPUTATION,
    MESH,
    REDUCE_SCATTER,
    RESHARD,
    RETURN,
)
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.costs import CostOpInterface
from shardy_py.ir.interfaces.ops import (
    Broadcast,
    ConstantLike,
    Elementwise,
    IsTerminator,
    PassThrough,
    Pure,
    RecursiveMemoryEffects,
    Reshape,
    Trait,
)
from shardy_py.plugins import Registry
from shardy_py.values import define

_COLLECTIVES = frozenset((ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVE_PERMUTE, REDUCE_SCATTER, RESHARD))
_MOVABLE = frozenset((Pure, Elementwise, ConstantLike))
_FUSIBLE = frozenset((Elementwise, Broadcast, ConstantLike, PassThrough))
_FREE = frozenset((Broadcast, ConstantLike, PassThrough))
_FOLDED = frozenset((Elementwise, Broadcast, PassThrough))
_REARRANGING = frozenset((Reshape, PassThrough))
_COST_METHODS = tuple(name for name in vars(CostOpInterface) if name.startswith(("get_", "is_")))
_COMMUNICATION_METHODS = frozenset(("get_windows", "get_mirrored_dims", "get_collective"))


@define(eq=False)
class OpKind:
    """The ops of one name with the same traits.

    Attributes:
        traits: The traits.
        cost: What the dialect says about their cost, or None.
        cost_methods: The methods of `CostOpInterface` that the dialect writes; the defaults need no call.
        is_terminator: Whether they end a block.
        is_ordinary: Whether they are no terminators, reshapes, rearrangements, calls, manual computations or meshes.
        is_shardy: Whether they are of Shardy's dialect.
        is_collective: Whether they move data between devices.
        is_folding: Whether they give a constant with equal elements, if their operands are such constants.
        is_fusible: Whether they are computed within kernels whatever their attributes.
        is_hoisted_for_users_only: Whether a compiler hoists them out of loops only for what uses them.
        is_movable: Whether they only compute, or send what others compute with, so that they may run elsewhere.
        is_mergeable: Whether equal ones become one, and unused ones are dropped.
        has_data_flow: Whether values flow through their regions or from operands to results.
        may_communicate: Whether they may send data to other devices.
    """

    traits: frozenset[Trait]
    cost: CostOpInterface | None
    cost_methods: frozenset[str]
    is_terminator: bool
    is_ordinary: bool
    is_shardy: bool
    is_collective: bool
    is_folding: bool
    is_fusible: bool
    is_hoisted_for_users_only: bool
    is_movable: bool
    is_mergeable: bool
    has_data_flow: bool
    may_communicate: bool

    def implements(self, method: str) -> bool:
        """Return whether the dialect writes a method of `CostOpInterface`."""
        return method in self.cost_methods


@define(eq=False)
class OpKinds:
    """The kinds of the ops of a program.

    Args:
        registry: The definitions of ops.
        profile: The rules of the backend.
    """

    registry: Registry
    profile: Profile
    _by_name: dict[str, OpKind] = field(factory=dict, init=False)
    _others: dict[tuple[str, frozenset[Trait]], OpKind] = field(factory=dict, init=False)

    def of(self, op: Op) -> OpKind:
        """Return the kind of an op."""
        kind = self._by_name.get(op.name)
        if kind is not None:
            return kind
        traits = self.registry.get_traits(op)
        kind = self._others.get((op.name, traits))
        if kind is None:
            kind = self._others[op.name, traits] = self._make(op, traits)
        if self.registry.traits_of_name(op.name) is not None:
            self._by_name[op.name] = kind
        return kind

    def _make(self, op: Op, traits: frozenset[Trait]) -> OpKind:
        name, cost = op.name, self.registry.get_cost(op)
        methods = _methods_of(cost)
        is_shardy = name.startswith("sdy.")
        is_terminator = name == RETURN or IsTerminator in traits
        has_data_flow = self.registry.get_data_flow(op) is not None
        # Regions such as that of a reduction only compute.
        is_computing = RecursiveMemoryEffects in traits and not has_data_flow
        is_mergeable = is_computing or not traits.isdisjoint(_MOVABLE)
        is_special = is_terminator or not traits.isdisjoint(_REARRANGING) or name in (CALL, MANUAL_COMPUTATION, MESH)
        return OpKind(
            traits=traits,
            cost=cost,
            cost_methods=methods,
            is_terminator=is_terminator,
            is_ordinary=not is_special,
            is_shardy=is_shardy,
            is_collective=name in _COLLECTIVES,
            is_folding=not traits.isdisjoint(_FOLDED),
            is_fusible=name == ALL_SLICE or not traits.isdisjoint(_FUSIBLE),
            is_hoisted_for_users_only=not traits.isdisjoint(_FREE),
            # XLA moves collectives between the devices of one program as it does what only computes.
            is_movable=is_shardy or is_mergeable or "get_collective" in methods,
            is_mergeable=self.profile.simplifies_communication if is_shardy else is_mergeable,
            has_data_flow=has_data_flow,
            may_communicate=is_shardy or not methods.isdisjoint(_COMMUNICATION_METHODS),
        )


def _methods_of(cost: CostOpInterface | None) -> frozenset[str]:
    if cost is None:
        return frozenset()
    return frozenset(name for name in _COST_METHODS if getattr(type(cost), name) is not getattr(CostOpInterface, name))
