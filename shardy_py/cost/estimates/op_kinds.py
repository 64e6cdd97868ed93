"""Kinds of ops: what the estimate asks again and again about all ops of one name, found out once."""

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
    Contraction,
    Elementwise,
    IsTerminator,
    PassThrough,
    Pure,
    RecursiveMemoryEffects,
    Reduction,
    Reshape,
    Trait,
)
from shardy_py.plugins import Registry
from shardy_py.values import define

_MOVING = frozenset((ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVE_PERMUTE, REDUCE_SCATTER, RESHARD))
_MOVABLE = frozenset((Pure, Elementwise, ConstantLike))
_FUSIBLE = frozenset((Elementwise, Broadcast, ConstantLike, PassThrough))
_FREE = frozenset((Broadcast, ConstantLike, PassThrough))
_FOLDED = frozenset((Elementwise, Broadcast, PassThrough))


@define(eq=False)
class OpKind:
    """The ops of one name with the same traits.

    Attributes:
        traits: The traits.
        cost: What the dialect knows of their cost, or None.
        is_ending: Whether they end a block.
        is_view: Whether the result is the operand in another shape.
        is_passing: Whether they only rearrange an operand.
        is_ordinary: Whether they are neither of these, nor calls, manual computations or meshes.
        is_own: Whether they are of Shardy's dialect.
        is_moving: Whether they move data between devices.
        is_broadcast: Whether they repeat elements.
        is_constant: Whether they make constants.
        is_elementwise: Whether they compute element by element.
        is_contraction: Whether they sum products.
        is_reduction: Whether they reduce dimensions.
        is_folding: Whether what they make of constants that are the same in all places is such a constant.
        is_fusible: Whether they are computed within kernels whatever their attributes.
        is_free: Whether a compiler hoists them out of loops only for what uses them.
        may_move: Whether they do nothing but compute, so that they may run elsewhere.
        may_merge: Whether equal ones become one, and unused ones are dropped.
        has_data_flow: Whether values flow through their regions or from operands to results.
        has_flops: Whether the dialect says how many operations they take, whatever their shapes.
        has_work: Whether it says what work they are, for tensors of given shapes.
        has_equal: Whether it says where a result equals an operand.
        has_parts: Whether it says what results are by themselves.
        has_expensive: Whether it says which ones are rather stored than computed by several kernels.
        has_branches: Whether it says which ones are computed in branches.
        has_repeated: Whether it says which ones are computed again where an equal one was.
        has_choices: Whether it says between which operands they choose.
        has_library: Whether it says which ones a library of kernels computes with reductions.
        has_windows: Whether it says what windows they read.
        has_mirrored: Whether it says along which dimensions they reverse the order of elements.
        has_collective: Whether it says what collective they are.
        has_fusible: Whether it says which ones are fusible.
        may_send: Whether they may send data to other devices.
    """

    traits: frozenset[Trait]
    cost: CostOpInterface | None
    is_ending: bool
    is_view: bool
    is_passing: bool
    is_ordinary: bool
    is_own: bool
    is_moving: bool
    is_broadcast: bool
    is_constant: bool
    is_elementwise: bool
    is_contraction: bool
    is_reduction: bool
    is_folding: bool
    is_fusible: bool
    is_free: bool
    may_move: bool
    may_merge: bool
    has_data_flow: bool
    has_flops: bool
    has_work: bool
    has_equal: bool
    has_parts: bool
    has_expensive: bool
    has_branches: bool
    has_repeated: bool
    has_choices: bool
    has_library: bool
    has_windows: bool
    has_mirrored: bool
    has_collective: bool
    has_fusible: bool
    may_send: bool


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
        known = self._by_name.get(op.name)
        if known is not None:
            return known
        traits = self.registry.get_traits(op)
        found = self._others.get((op.name, traits))
        if found is None:
            found = self._others[op.name, traits] = self._make(op, traits)
        if self.registry.traits_of_name(op.name) is not None:
            self._by_name[op.name] = found
        return found

    def _make(self, op: Op, traits: frozenset[Trait]) -> OpKind:
        name, cost = op.name, self.registry.get_cost(op)
        is_own = name.startswith("sdy.")
        is_ending = name == RETURN or IsTerminator in traits
        is_view, is_passing = Reshape in traits, PassThrough in traits
        has_data_flow = self.registry.get_data_flow(op) is not None
        # Regions such as that of a reduction only compute.
        is_computing = RecursiveMemoryEffects in traits and not has_data_flow
        may_move = is_own or is_computing or not traits.isdisjoint(_MOVABLE)

        def says(method: str) -> bool:
            return cost is not None and getattr(type(cost), method) is not getattr(CostOpInterface, method)

        return OpKind(
            traits,
            cost,
            is_ending,
            is_view,
            is_passing,
            not (is_ending or is_view or is_passing or name in (CALL, MANUAL_COMPUTATION, MESH)),
            is_own,
            name in _MOVING,
            Broadcast in traits,
            ConstantLike in traits,
            Elementwise in traits,
            Contraction in traits,
            Reduction in traits,
            not traits.isdisjoint(_FOLDED),
            name == ALL_SLICE or not traits.isdisjoint(_FUSIBLE),
            not traits.isdisjoint(_FREE),
            may_move,
            self.profile.simplifies_communication if is_own else may_move,
            has_data_flow,
            says("get_flops"),
            says("get_work"),
            says("get_equal_operand"),
            says("get_parts"),
            says("is_expensive"),
            says("is_branching"),
            says("is_repeated"),
            says("get_choices"),
            says("get_library_operands"),
            says("get_windows"),
            says("get_mirrored_dims"),
            says("get_collective"),
            says("is_fusible"),
            is_own or any(map(says, ("get_windows", "get_mirrored_dims", "get_collective"))),
        )
