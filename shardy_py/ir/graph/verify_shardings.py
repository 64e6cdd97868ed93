"""Verify the shardings of a program and Shardy's attributes: valid on their meshes, without axes that are manual there.

Mirrors verifiers.cc::verifyTensorShardingAttr and verifiers.cc::emitBoundAxisInManualComputationError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.enum_attributes import DIRECTION, DIRECTIONS, direction_code
from shardy_py.ir.graph.graphs import callee_of, main_function
from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    CALL,
    COLLECTIVE_PERMUTE,
    CONSTRAINT,
    MANUAL_COMPUTATION,
    MESH,
    NAMED_COMPUTATION,
    PROPAGATION_BARRIER,
    REDUCE_SCATTER,
    REPLICATED_TO_UNREDUCED,
    RESHARD,
    SHARDED_TO_UNREDUCED,
    SHARDING_GROUP,
)
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE
from shardy_py.ir.graph.shardings import SHARDING, distinct
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops, nearest_location, ops_named, region_arguments
from shardy_py.sharding.axes import quote
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import ManualAxes, TensorSharding, TensorShardingPerValue
from shardy_py.sharding.verify import Shape, verify_tensor_sharding
from shardy_py.support.identity import identity

Names = frozenset[str]


def verify_shardings(program: Program) -> None:
    """Check the shardings of a program's table; all problems are collected before the error is raised.

    Raises:
        VerificationError: a sharding is none on its mesh, does not fit its value, or uses a manual axis.
    """
    problems = [*diagnose_shardings(program), *diagnose_manual_axes(program)]
    if problems:
        raise VerificationError(*problems)


def verify_manual_axes(program: Program) -> None:
    """Check that no sharding uses an axis that is manual where its value is, calls on the way there included.

    Raises:
        VerificationError: one does.
    """
    problems = list(diagnose_manual_axes(program))
    if problems:
        raise VerificationError(*problems)


def diagnose_shardings(program: Program) -> Iterator[Diagnostic]:
    """Yield the problems of each sharding alone, in program order."""
    get, ops, meshes = program.shardings.get, all_ops(program), program.meshes
    # Shardings and types are mostly shared, so that there are few pairs; their identities are hashed fastest.
    pairs = {
        (identity(sharding), identity(value.type)): value
        for op in ops
        for value in op.results
        if (sharding := get(value.id)) is not None
    }
    for value in _values_without_results([op for op in ops if op.regions]):
        sharding = get(value.id)
        if sharding is not None:
            pairs[identity(sharding), identity(value.type)] = value
    # The checks that do not depend on the value are made once per sharding.
    shardings = distinct([program.shardings[value.id] for value in pairs.values()])
    of_sharding = {identity(item): _problems(item, None, meshes) for item in shardings}
    broken = {
        pair: problems
        for pair, value in pairs.items()
        if (problems := of_sharding[pair[0]] or _misfits(value, get, meshes))
    }
    if not broken:
        return
    for op in ops:
        for value in (*op.results, *_values_without_results([op])):
            for problem in broken.get((identity(get(value.id)), identity(value.type)), ()):
                yield evolve(
                    problem, message=f"{_role(value)}: {problem.message}", location=nearest_location(op), op=op.name
                )


def _misfits(
    value: Value, get: Callable[[int], TensorSharding | None], meshes: Mapping[str, Mesh]
) -> Sequence[Diagnostic]:
    """Return the problems that a valid sharding has on a value."""
    sharding, type_ = get(value.id), value.type
    # Of types that are not builtin tensors nobody knows the rank here.
    if sharding is None or not isinstance(type_, TensorType) or type_.rank == sharding.rank:
        return ()
    return _problems(sharding, type_.shape, meshes)


def _problems(sharding: TensorSharding, shape: Shape | None, meshes: Mapping[str, Mesh]) -> Sequence[Diagnostic]:
    return _problems_on(sharding, resolve_mesh(sharding.mesh, meshes), shape)


@lru_cache(maxsize=8192)
def _problems_on(sharding: TensorSharding, mesh: Mesh | None, shape: Shape | None) -> Sequence[Diagnostic]:
    return tuple(verify_tensor_sharding(sharding, mesh, shape))


def _values_without_results(ops: Iterable[Op]) -> Iterator[Value]:
    """Yield the arguments of the regions of ops, and the results of functions."""
    for op in ops:
        yield from region_arguments(op)
        yield from op.function_results


def diagnose_manual_axes(program: Program) -> Iterator[Diagnostic]:
    """Yield each sharding that uses an axis that is manual where its value is.

    The manual axes of a called function are those of its callers, too; functions that main does not reach do not count.
    """
    if not ops_named(program, MANUAL_COMPUTATION):
        return
    meshes, get = program.meshes, program.shardings.get
    # By identity, as shardings are mostly shared; the program keeps them alive.
    without: set[tuple[int, Names]] = set()
    for op, bound in _in_manual_scope(program):
        if op.name == MANUAL_COMPUTATION:
            held = op.attributes.get("in_shardings")
            for sharding in held.shardings if isinstance(held, TensorShardingPerValue) else ():
                yield from _bound_axes(sharding, bound, meshes, op, "operand")
        for value in (*op.results, *_arguments(op)) if op.regions else op.results:
            value_sharding = get(value.id)
            if value_sharding is None or (identity(value_sharding), bound) in without:
                continue
            problems = list(_bound_axes(value_sharding, bound, meshes, op, _role(value)))
            yield from problems
            if not problems:
                without.add((identity(value_sharding), bound))


def _in_manual_scope(program: Program) -> Iterator[tuple[Op, Names]]:
    """Yield the ops inside manual computations with the axes that are manual there, through calls, each pair once.

    A function counts as inside with its arguments, which its calls bring there.
    """
    functions, main = program.functions, main_function(program)
    waiting: list[tuple[Op, Names]] = [] if main is None else [(main, frozenset())]
    seen: set[tuple[int, Names]] = set()
    while waiting:
        function, bound = waiting.pop()
        if (function.id, bound) in seen:
            continue
        seen.add((function.id, bound))
        if bound:
            yield function, bound
        calls: list[tuple[Op, Names]] = []
        for op, names in _walk(function, bound):
            callee = functions.get(callee_of(op) or "") if op.name == CALL else None
            if callee is not None:
                calls.append((callee, names))
            if names:
                yield op, names
        waiting += reversed(calls)


def _walk(function: Op, bound: Names) -> Iterator[tuple[Op, Names]]:
    """Yield the ops of a function in order, each with the axes that are manual where it stands."""
    # Where to go on after a region, and the blocks to do before that, the next one last.
    waiting = [(block.first, bound) for region in reversed(function.regions) for block in reversed(region.blocks)]
    while waiting:
        op, names = waiting.pop()
        while op is not None:
            yield op, names
            if op.regions:
                waiting.append((op.next, names))
                inside = names.union(op.attributes["manual_axes"].names) if op.name == MANUAL_COMPUTATION else names
                blocks = [block for region in op.regions for block in region.blocks]
                waiting.extend([(block.first, inside) for block in reversed(blocks)])
                break
            op = op.next


def _arguments(op: Op) -> Iterator[Value]:
    return region_arguments(op) if op.name != MANUAL_COMPUTATION else iter(())


def _bound_axes(
    sharding: TensorSharding, bound: Names, meshes: Mapping[str, Mesh], op: Op, role: str
) -> Iterator[Diagnostic]:
    name = _bound_axis(sharding, bound, resolve_mesh(sharding.mesh, meshes))
    if name is not None:
        message = f"{role}: the sharding {sharding} operates on axis {quote(name)}, which is manual there"
        hint = "leave the axis out: inside the manual computation, and in what it calls, shapes are local to it"
        yield Diagnostic("bound-axis", message, nearest_location(op), op.name, hint)


@lru_cache(maxsize=8192)
def _bound_axis(sharding: TensorSharding, bound: Names, mesh: Mesh | None) -> str | None:
    """Return the name of the first axis of a sharding that is manual, or None."""
    axes = [axis for dim in sharding.dim_shardings for axis in dim.axes]
    for axis in (*axes, *sharding.replicated_axes, *sharding.unreduced_axes):
        # An axis of one device shards nothing; propagation leaves it out.
        if axis.name in bound and mesh is not None and mesh.has_axis(axis.name) and mesh.axis_size(axis.name) > 1:
            return axis.name
    return None


def _role(value: Value) -> str:
    owner = value.owner
    return f"argument {value.index}" if isinstance(owner, Block) else f"result {value.index}"


Expected = Mapping[str, tuple[type, ...]]

_EVERYWHERE: Expected = {SHARDING: (TensorSharding, TensorShardingPerValue), RULE_ATTRIBUTE: (OpShardingRule,)}
_PER_VALUE: Expected = {"in_shardings": (TensorShardingPerValue,), "out_shardings": (TensorShardingPerValue,)}
_OUT: Expected = {"out_sharding": (TensorSharding,)}
_OF_OP: Mapping[str, Expected] = {
    MESH: {"mesh": (Mesh,), "sym_name": (str,)},
    CONSTRAINT: {"sharding": (TensorSharding,)},
    RESHARD: {"sharding": (TensorSharding,)},
    SHARDING_GROUP: {"group_id": (int,)},
    NAMED_COMPUTATION: {"name": (str,)},
    MANUAL_COMPUTATION: {**_PER_VALUE, "manual_axes": (ManualAxes,)},
    COLLECTIVE_PERMUTE: _OUT,
    SHARDED_TO_UNREDUCED: _OUT,
    REPLICATED_TO_UNREDUCED: _OUT,
}
_LISTS = ("arg_attrs", "res_attrs")


@cache
def _of_collectives() -> Mapping[str, Expected]:
    """Return the attributes of the collectives that have lists of axes, whose classes few programs need."""
    from shardy_py.sharding.op_attributes import AllToAllParamList, AxisRefList, ListOfAxisRefLists

    return {
        ALL_GATHER: {"gathering_axes": (ListOfAxisRefLists,), **_OUT},
        ALL_SLICE: {"slicing_axes": (ListOfAxisRefLists,), **_OUT},
        REDUCE_SCATTER: {"reduce_scatter_axes": (ListOfAxisRefLists,), **_OUT},
        ALL_REDUCE: {"reduction_axes": (AxisRefList,), **_OUT},
        ALL_TO_ALL: {"params": (AllToAllParamList,), **_OUT},
    }


def wrong_attributes(op: Op) -> Iterator[tuple[str, Any, str]]:
    """Yield the invalid attributes of Shardy on an op: name, value, and a description of the expected value.

    One that the op needs and does not have has the value None.
    """
    attributes = op.attributes
    yield from _wrong_in(attributes, _EVERYWHERE)
    needed = _OF_OP.get(op.name)
    if needed is None:
        needed = _of_collectives().get(op.name, {}) if op.name.startswith("sdy.") else {}
    yield from _wrong_in({name: attributes.get(name) for name in needed}, needed)
    if op.name == PROPAGATION_BARRIER and not _is_direction(attributes.get(DIRECTION)):
        yield DIRECTION, attributes.get(DIRECTION), f"direction: {', '.join(DIRECTIONS)}"
    for name in _LISTS:
        items = attributes.get(name)
        for item in items if isinstance(items, tuple) else ():
            if isinstance(item, Mapping):
                yield from _wrong_in(item, {SHARDING: (TensorSharding,)})


def _is_direction(value: object) -> bool:
    """Return whether a value is a direction: its number, its name, or MLIR's attribute with either."""
    return not isinstance(value, bool) and direction_code(value) is not None


def _wrong_in(attributes: Mapping[str, Any], expected: Expected) -> Iterator[tuple[str, Any, str]]:
    for name, types in expected.items():
        if name in attributes and (not isinstance(attributes[name], types) or isinstance(attributes[name], bool)):
            yield name, attributes[name], " or ".join(type_.__name__ for type_ in types)
