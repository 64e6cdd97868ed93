"""Reshards at boundaries: returns of functions, calls, and the edges of data-flow ops.

Mirrors insert_explicit_reshards.cc::insertExplicitReshardsToTargetSharding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.ops import DataFlowShardingTransformType, OpOperand, ShardableDataFlowOpInterface
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.reshards.insertion import InsertionPoint, Resharder, rank_of
from shardy_py.transforms.finish.reshards.plan import are_equivalent
from shardy_py.transforms.finish.reshards.unreduced import make_unreduced, reduce_use, unreduced_axes


def reshard_returns(resharder: Resharder, function: Op, *, full: bool) -> None:
    """Reshard the returned values of a function to the shardings of its results.

    Mirrors insert_explicit_reshards.cc::insertExplicitReshardsOnFuncReturn.
    """
    blocks = function.regions[0].blocks if function.regions else []
    terminator = blocks[0].terminator if blocks else None
    if terminator is None:
        return
    place = InsertionPoint.before(terminator)
    for number, result in enumerate(function.function_results):
        target = resharder.program.shardings.get(result.id)
        # Otherwise there is nothing to do, which is so nearly always.
        if full or unreduced_axes(target) or unreduced_axes(resharder.sharding(terminator.operands[number])):
            _bring_to(resharder, OpOperand(terminator, number), target, place, full=full)


def reshard_data_flow(resharder: Resharder, op: Op, data_flow: ShardableDataFlowOpInterface, *, full: bool) -> None:
    """Bring the sources of every edge to the sharding of the edge's owner, each right behind its definition.

    Mirrors insert_explicit_reshards.cc::insertExplicitReshardsOnDataFlowOp.
    """
    owners = (*data_flow.get_op_result_edge_owners(op), *data_flow.get_block_argument_edge_owners(op))
    for owner in owners:
        target = resharder.program.shardings.get(owner.id)
        if target is not None:
            before = DataFlowShardingTransformType.BEFORE_EDGE_PROPAGATION
            target = data_flow.transform_target_sharding(op, owner, target, before)
        for source in data_flow.get_edge_sources(op, owner):
            _bring_to(resharder, source, target, InsertionPoint.after_value(source.value), full=full)


def reshard_call(resharder: Resharder, call: Op) -> None:
    """Bring the operands of a call to the shardings of the function's arguments.

    This happens in both versions: a function must not need a copy for every sharding it is called with.

    Mirrors insert_explicit_reshards.cc::insertExplicitReshardsOnCallOp.
    """
    targets = _argument_shardings(resharder, call)
    for number, target in enumerate(targets):
        value = call.operands[number]
        # Nearly always it is sharded that way already, and by the same object.
        if resharder.sharding(value) is not target or target.unreduced_axes:
            _bring_to(resharder, OpOperand(call, number), target, InsertionPoint.after_value(value), full=True)


def _argument_shardings(resharder: Resharder, call: Op) -> Sequence[TensorSharding]:
    """Return the shardings of the arguments of the function called.

    Arguments without one are open if another one has one; if none has, all are replicated, over the mesh of the
    first operand that is sharded, or () if there is none.
    """
    function = resharder.functions.get(callee_of(call) or "")
    blocks = function.regions[0].blocks if function and function.regions else []
    arguments = blocks[0].arguments if blocks else []
    shardings = [resharder.program.shardings.get(argument.id) for argument in arguments]
    mesh = _first_mesh(resharder, shardings)
    if mesh is not None:
        return [
            TensorSharding.fully_open(mesh, rank_of(value)) if sharding is None else sharding
            for value, sharding in zip(arguments, shardings, strict=True)
        ]
    mesh = _first_mesh(resharder, map(resharder.sharding, call.operands))
    return [] if mesh is None else [TensorSharding.fully_closed(mesh, rank_of(value)) for value in call.operands]


def _first_mesh(resharder: Resharder, shardings: Iterable[TensorSharding | None]) -> str | Mesh | None:
    """Return the first mesh that is not that of a single device."""
    for sharding in shardings:
        if sharding is not None and not resharder.mesh(sharding).is_maximal:
            return sharding.mesh
    return None


def _bring_to(
    resharder: Resharder, use: OpOperand, target: TensorSharding | None, place: InsertionPoint, *, full: bool
) -> None:
    """Bring one operand to a sharding: reduce, make unreduced, then reshard the rest in the full version.

    Mirrors insert_explicit_reshards.cc::insertExplicitReshardsToTargetSharding.
    """
    source = reduce_use(resharder, use, resharder.sharding(use.value), target, place)
    source = make_unreduced(resharder, use, target, place) or source
    if not full or are_equivalent(source, target):
        return
    if target is None and source is not None:
        target = TensorSharding.fully_closed(source.mesh, source.rank)
    if target is not None:
        use.op.set_operand(use.number, resharder.reshard(use.value, target, place))
