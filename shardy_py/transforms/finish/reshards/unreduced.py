"""Partial results: reducing those that their user does not take, and making those that it expects.

Mirrors explicit_reshards_util.cc::insertUnreducedCollectives.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.op_names import REPLICATED_TO_UNREDUCED, RESHARD, SHARDED_TO_UNREDUCED
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.walk import nearest_location
from shardy_py.ir.interfaces.ops import OpOperand
from shardy_py.sharding.axis_lists import PrefixStatus, axis_set_difference, prefix_status, sort_and_merge
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.tensor import DimensionSharding, ReductionOp, TensorSharding
from shardy_py.transforms.finish.reshards.insertion import InsertionPoint, Resharder
from shardy_py.values import define

Shardings = Sequence[TensorSharding | None]


def unreduced_axes(sharding: TensorSharding | None) -> Axes:
    """Return the unreduced axes of a sharding; () for None."""
    return () if sharding is None else sharding.unreduced_axes


def reduce_operands(resharder: Resharder, op: Op, operands: Shardings, results: Shardings) -> bool:
    """All-reduce the operands of an op along the unreduced axes that its results do not have.

    Mirrors insert_explicit_reshards.cc::insertAllReduceOnOpIfUnreducedToReplicated.

    Args:
        resharder: The program.
        op: The op.
        operands: The shardings of the operands.
        results: The shardings of the results.

    Returns:
        Whether an operand changed.

    Raises:
        VerificationError: the results have different unreduced axes, or there are none that could take those of an
            operand.
    """
    partial = [number for number, sharding in enumerate(operands) if sharding is not None and sharding.unreduced_axes]
    target = results[0] if results else None
    if len(results) > 1 and any(unreduced_axes(result) != unreduced_axes(target) for result in results):
        message = "the results have different unreduced axes"
        raise _error("unreduced-mismatch", message, op, "give all results the same unreduced axes")
    if not partial:
        return False
    if not results:
        message = "an operand has unreduced axes, but the op has no results"
        raise _error("unreduced-operand", message, op, "reduce the operand before, with a sharding constraint")
    place = InsertionPoint.before(op)
    for number in partial:
        reduce_use(resharder, OpOperand(op, number), operands[number], target, place)
    return True


def reduce_use(
    resharder: Resharder,
    use: OpOperand,
    source: TensorSharding | None,
    target: TensorSharding | None,
    place: InsertionPoint,
) -> TensorSharding | None:
    """All-reduce one operand along the unreduced axes of ``source`` that ``target`` does not have.

    Whether the op may take partial results at all is not checked: the shardings say so.

    Mirrors explicit_reshards_util.cc::insertAllReduceIfUnreducedToReplicated.

    Returns:
        The sharding of the operand afterwards.
    """
    if source is None or not source.unreduced_axes:
        return source
    mesh = resharder.mesh(source)
    if target is not None and resharder.mesh(target) != mesh:
        message = f"the unreduced axes of {source} are on another mesh than {target}"
        raise _error("unreduced-mesh", message, use.op, "use one mesh for both")
    axes = axis_set_difference(source.unreduced_axes, unreduced_axes(target), mesh)
    if not axes:
        return source
    rest = axis_set_difference(source.unreduced_axes, axes, mesh)
    reduced = evolve(source, unreduced_axes=rest, reduction_op=source.reduction_op if rest else "sum")
    use.op.set_operand(use.number, resharder.all_reduce(use.value, axes, reduced, source.reduction_op, place))
    return reduced


def make_unreduced(
    resharder: Resharder, use: OpOperand, target: TensorSharding | None, place: InsertionPoint
) -> TensorSharding | None:
    """Turn replicated and sharded axes of an operand into the unreduced axes that ``target`` has besides its own.

    Axes that shard a dimension beyond ``target`` can become unreduced as they are; the other dimensions are
    resharded first.

    Mirrors explicit_reshards_util.cc::insertUnreducedCollectives.

    Returns:
        The sharding of the operand afterwards; None if nothing was inserted.

    Raises:
        VerificationError: the meshes differ, or the operand has unreduced axes that the target does not have.
    """
    source = resharder.sharding(use.value)
    if source is None or target is None or not target.unreduced_axes:
        return None
    mesh = resharder.mesh(source)
    if resharder.mesh(target) != mesh:
        message = f"the unreduced axes of {target} are on another mesh than {source}"
        raise _error("unreduced-mesh", message, use.op, "use one mesh for both")
    new_axes = axis_set_difference(target.unreduced_axes, source.unreduced_axes, mesh)
    if not new_axes:
        return None
    if axis_set_difference(source.unreduced_axes, target.unreduced_axes, mesh):
        message = f"{source} and {target} both have unreduced axes that the other one has not"
        raise _error("unreduced-mismatch", message, use.op, "reduce one of them first")
    steps = _Steps.between(source, target, new_axes, mesh)
    return _insert_steps(resharder, use, source, target, steps, place)


@define
class _Steps:
    """The steps by which an operand becomes unreduced.

    Attributes:
        dims: The dimension shardings before sharded axes become unreduced.
        needs_reshard: Whether the operand has to be brought to ``dims`` first.
        sharded: The axes of every dimension that become unreduced.
        replicated: The other new unreduced axes, together with those the operand has.
        new_replicated: The other new unreduced axes alone.
    """

    dims: tuple[DimensionSharding, ...]
    needs_reshard: bool
    sharded: list[Axes]
    replicated: Axes
    new_replicated: Axes

    @classmethod
    def between(cls, source: TensorSharding, target: TensorSharding, new_axes: Axes, mesh: Mesh) -> _Steps:
        dims: list[DimensionSharding] = []
        sharded: list[Axes] = []
        needs_reshard = False
        for old, new in zip(source.dim_shardings, target.dim_shardings, strict=True):
            status = prefix_status(new.axes, old.axes)
            extra = _rest(old.axes, new.axes, mesh) if status is PrefixStatus.STRICT_PREFIX else ()
            becomes_unreduced = bool(extra) and not axis_set_difference(extra, new_axes, mesh)
            dims.append(old if becomes_unreduced else new)
            sharded.append(extra if becomes_unreduced else ())
            needs_reshard |= not becomes_unreduced and status is not PrefixStatus.EQUAL
        gathered = tuple(axis for axes in sharded for axis in axes)
        new_replicated = axis_set_difference(new_axes, gathered, mesh)
        both = sort_and_merge(source.unreduced_axes + new_replicated, mesh)
        return cls(tuple(dims), needs_reshard, sharded, both, new_replicated)


def _rest(axes: Axes, prefix: Axes, mesh: Mesh) -> Axes:
    """Return the axes after a strict prefix of a list of axes."""
    count = len(prefix)
    if not prefix or prefix[-1] == axes[count - 1]:
        return axes[count:]
    suffix = axes[count - 1].suffix_without_overlap(prefix[-1], mesh)
    return axes[count:] if suffix is None else (suffix, *axes[count:])


def _insert_steps(
    resharder: Resharder,
    use: OpOperand,
    source: TensorSharding,
    target: TensorSharding,
    steps: _Steps,
    place: InsertionPoint,
) -> TensorSharding | None:
    value, last = use.value, None
    if steps.needs_reshard:
        last = evolve(source, dim_shardings=steps.dims)
        value = resharder.reshard(value, last, place)
    if steps.new_replicated:
        from shardy_py.sharding.op_attributes import AxisRefList

        last = TensorSharding(source.mesh, steps.dims, target.replicated_axes, steps.replicated, target.reduction_op)
        replicated = AxisRefList(tuple(steps.new_replicated))
        value = resharder.collective(REPLICATED_TO_UNREDUCED, value, {"axes": replicated}, last, place)
    if any(steps.sharded):
        from shardy_py.sharding.op_attributes import ListOfAxisRefLists

        last = target
        sharded = ListOfAxisRefLists(tuple(tuple(axes) for axes in steps.sharded))
        value = resharder.collective(SHARDED_TO_UNREDUCED, value, {"axes": sharded}, last, place)
    if value is use.value:
        return None
    use.op.set_operand(use.number, value)
    return last


def convert_reshard(resharder: Resharder, op: Op) -> bool:
    """Replace a reshard that makes axes unreduced by the ops that do so; return whether there was one.

    Mirrors explicit_reshards_util.cc::convertReshardToUnreducedCollectives.
    """
    if op.name != RESHARD:
        return False
    use = OpOperand(op, 0)
    if make_unreduced(resharder, use, resharder.sharding(op.results[0]), InsertionPoint.before(op)) is None:
        return False
    replace_by(resharder, op, use.value)
    return True


def replace_by(resharder: Resharder, op: Op, value: Value) -> None:
    """Let the users of an op with one result use another value, and erase the op."""
    op.results[0].replace_all_uses_with(value)
    resharder.program.shardings.pop(op.results[0].id, None)
    op.erase()


def reduce_results(
    resharder: Resharder,
    op: Op,
    axes: Axes,
    default: Sequence[TensorSharding],
    *,
    reduction: ReductionOp | None = None,
) -> None:
    """All-reduce all results of an op along some axes.

    Mirrors explicit_reshards_util.cc::insertAllReducesForReductionFactors.

    Args:
        resharder: The program.
        op: The op.
        axes: The axes.
        default: The sharding of each result in case it has none.
        reduction: The combiner of partial results; by default that of the sharding of the result.
    """
    place = InsertionPoint.after(op)
    for value, missing in zip(op.results, default, strict=True):
        sharding = resharder.sharding(value) or missing
        reduced = resharder.all_reduce(value, axes, sharding, reduction or sharding.reduction_op, place)
        value.replace_all_uses_with(reduced, except_op=reduced.owning_op)


def _error(code: str, message: str, op: Op, hint: str) -> VerificationError:
    return VerificationError(Diagnostic(code, message, nearest_location(op), op.name, hint))
