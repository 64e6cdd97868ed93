"""Checks of the data flow that dialects declare for their ops, before any pass relies on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, PluginError
from shardy_py.guards.guard import Guard
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.ir.graph.walk import data_flow_ops, region_arguments
from shardy_py.ir.interfaces.ops import OpOperand, OpSemantics, ShardableDataFlowOpInterface

_OWNER = "the semantics"


def check_data_flows(program: Program, semantics: OpSemantics) -> None:
    """Check the edges of all data-flow ops.

    Raises:
        PluginError: a method fails, or names values that cannot be on an edge of the op; one diagnostic for each op.
    """
    problems: list[Diagnostic] = []
    for op in data_flow_ops(program, semantics):
        data_flow = semantics.get_data_flow(op)
        problem = next(data_flow_problems(op, data_flow), None) if data_flow is not None else None
        # Ops whose data flow fails in the same way are one problem.
        if problem is not None and all((problem.op, problem.message) != (old.op, old.message) for old in problems):
            problems.append(problem)
    if problems:
        raise PluginError(*problems)


def data_flow_problems(op: Op, data_flow: ShardableDataFlowOpInterface) -> Iterator[Diagnostic]:
    """Yield the problems of the edges of one op."""
    try:
        yield from _edge_problems(op, data_flow)
    except _Failed as failed:
        yield failed.problem


class _Failed(Exception):
    """A failure of a method of a dialect."""

    def __init__(self, problem: Diagnostic) -> None:
        super().__init__(problem)
        self.problem = problem


def _edge_problems(op: Op, data_flow: ShardableDataFlowOpInterface) -> Iterator[Diagnostic]:
    """Check every edge: its owner, its sources, its other targets."""
    # A data flow that transforms shardings ties values that are seen with other axes, as in a manual computation.
    by_size = not _is_written(data_flow, "transform_target_sharding")
    arguments = _ask(data_flow.get_block_argument_edge_owners, op)
    results = _ask(data_flow.get_op_result_edge_owners, op)
    yield from _sharding_problems(op, data_flow, arguments, results)
    seen: set[int] = set()
    for owner in (*arguments, *results):
        if not _is_target(op, owner):
            yield _problem(
                op, data_flow, f"{owner!r} owns an edge, but is neither a result nor an argument of a region"
            )
            return
        if owner.id in seen:
            yield _problem(op, data_flow, f"{_name(op, owner)} owns two edges")
            return
        seen.add(owner.id)
        for source in _ask(data_flow.get_edge_sources, op, owner):
            problem = _source_problem(op, owner, source, by_size=by_size)
            if problem is not None:
                yield _problem(op, data_flow, f"get_edge_sources{problem}")
        for target in (owner, *_ask(data_flow.get_non_edge_owner_targets, op, owner)):
            if target is not owner and not _is_target(op, target):
                message = f"get_non_edge_owner_targets: {target!r} is neither a result nor a region argument"
                yield _problem(op, data_flow, message)
            elif _ask(data_flow.get_edge_owner_from_target, op, target) is not owner:
                shown = f"{_name(op, target)}, which is on the edge of {_name(op, owner)}"
                yield _problem(op, data_flow, f"get_edge_owner_from_target gives another owner for {shown}")
    others = [*region_arguments(op), *(value for value in op.results if value.id not in seen)]
    yield from _target_problems(op, data_flow, others, by_size=by_size)


def _target_problems(
    op: Op, data_flow: ShardableDataFlowOpInterface, targets: Sequence[Value], *, by_size: bool
) -> Iterator[Diagnostic]:
    """Check that every region argument and result with an owner is on an edge."""
    for target in targets:
        owner = _ask(data_flow.get_edge_owner_from_target, op, target)
        word = _difference(target.type, owner.type, by_size=by_size) if isinstance(owner, Value) else ""
        if word:
            message = (
                f"get_edge_owner_from_target: {_name(op, target)}, {target.type}, has {word} than its owner, "
                f"{_name(op, owner)}, {owner.type}"
            )
            yield _problem(op, data_flow, message)


def _sharding_problems(
    op: Op, data_flow: ShardableDataFlowOpInterface, arguments: Sequence[Value], results: Sequence[Value]
) -> Iterator[Diagnostic]:
    """Check that all owners of the op have a sharding, or none."""
    for name, owners in (
        ("get_block_argument_edge_owner_shardings", arguments),
        ("get_op_result_edge_owner_shardings", results),
    ):
        shardings = _ask(getattr(data_flow, name), op)
        if shardings and len(shardings) != len(owners):
            yield _problem(op, data_flow, f"{name} gives {len(shardings)} shardings for {len(owners)} owners")
        for sharding, owner in zip(shardings, owners, strict=False):
            if sharding.rank != (_rank(owner.type) or 0):
                message = f"{name} gives {sharding} for {_name(op, owner)} of type {owner.type}"
                yield _problem(op, data_flow, message)


def _ask(method: Callable[..., Any], *arguments: Any) -> Any:
    # A registry gives methods behind a guard; other semantics are not trusted either.
    try:
        return method(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        guard = Guard(method, getattr(method, "__name__", "a method"), _OWNER, code="data-flow")
        raise _Failed(guard.failure(error, arguments[0]).diagnostics[0]) from error


def _source_problem(op: Op, owner: Value, source: OpOperand, *, by_size: bool) -> str | None:
    """Return the problem of a source of an edge, or None."""
    if not isinstance(source, OpOperand):
        return f" gives {source!r}, not an OpOperand"
    user, number = source
    if user is not op and user.parent_op is not op:
        return f" names an operand of {user.name}, which is not in the op"
    if not 0 <= number < len(user.operands):
        return f" names operand {number} of {user.name}, of {len(user.operands)}"
    value = user.operands[number]
    word = _difference(value.type, owner.type, by_size=by_size)
    return f": {value.type} flows into {owner.type}, {_name(op, owner)}, which has {word}" if word else None


def _is_target(op: Op, value: Any) -> bool:
    return isinstance(value, Value) and value.owning_op is op


def _difference(type_: Type, other: Type, *, by_size: bool) -> str:
    """Describe the difference between two types of an edge, or return ""; a dynamic size fits any size."""
    # Mostly the types are the same object.
    if type_ is other:
        return ""
    if _rank(type_) != _rank(other):
        return "another rank"
    if not by_size or not isinstance(type_, TensorType) or not isinstance(other, TensorType):
        return ""
    pairs = zip(type_.shape, other.shape, strict=True)
    return "other sizes" if any(size != wanted and None not in (size, wanted) for size, wanted in pairs) else ""


def _is_written(data_flow: ShardableDataFlowOpInterface, method: str) -> bool:
    """Return whether a data flow overrides a method."""
    written_method = getattr(data_flow, method, None)
    return getattr(written_method, "__func__", written_method) is not getattr(ShardableDataFlowOpInterface, method)


def _rank(type_: Type) -> int | None:
    return type_.rank if isinstance(type_, TensorType) else None


def _name(op: Op, value: Value) -> str:
    return f"result {value.index}" if value.owner is op else f"region argument {value.index}"


def _problem(op: Op, data_flow: ShardableDataFlowOpInterface, message: str) -> Diagnostic:
    hint = f"the data flow of the op is given by {type(data_flow).__name__}"
    guard = getattr(data_flow, "guard", None)
    if isinstance(guard, Guard):
        hint = f"{hint}, {guard.provenance}"
    return Diagnostic("data-flow", message, op.location, op.name, hint)
