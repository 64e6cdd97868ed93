"""Verifier of the shardings of a program: valid on their meshes, and without axes that are manual there.

Mirrors verifiers.cc::verifyTensorShardingAttr and verifiers.cc::emitBoundAxisInManualComputationError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from attrs import evolve

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.callgraph import callee_of, main_function
from shardy_py.ir.graph.op_index import all_ops, ops_named, place_of
from shardy_py.ir.graph.op_names import CALL, MANUAL_COMPUTATION
from shardy_py.ir.graph.op_values import region_arguments
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.shardings import distinct
from shardy_py.ir.graph.types import TensorType
from shardy_py.sharding.axes import quote
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue
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
    """Yield the problems of each sharding on its own, in program order."""
    get, ops, meshes = program.shardings.get, all_ops(program), program.meshes
    # Shardings and types are mostly shared, so that there are few pairs; their identities are hashed fastest.
    pairs = {
        (identity(item), identity(one.type)): one
        for op in ops
        for one in op.results
        if (item := get(one.id)) is not None
    }
    inner = _values_without_results([op for op in ops if op.regions])
    pairs.update({(identity(item), identity(one.type)): one for one in inner if (item := get(one.id)) is not None})
    # What does not depend on the value is found out once per sharding.
    of_sharding = {identity(one): _problems(one, None, meshes) for one in distinct(program.shardings.values())}
    broken = {
        pair: found for pair, one in pairs.items() if (found := of_sharding[pair[0]] or _misfits(one, get, meshes))
    }
    if not broken:
        return
    for op in ops:
        for value in (*op.results, *_values_without_results([op])):
            for problem in broken.get((identity(get(value.id)), identity(value.type)), ()):
                yield evolve(problem, message=f"{_role(value)}: {problem.message}", location=place_of(op), op=op.name)


def _misfits(
    value: Value, get: Callable[[int], TensorSharding | None], meshes: Mapping[str, Mesh]
) -> Sequence[Diagnostic]:
    """Return the problems that a valid sharding has on a value."""
    sharding, type_ = get(value.id), value.type
    # Of types that are no builtin tensors nobody knows the rank here.
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
            found = get(value.id)
            if found is None or (identity(found), bound) in without:
                continue
            problems = list(_bound_axes(found, bound, meshes, op, _role(value)))
            yield from problems
            if not problems:
                without.add((identity(found), bound))


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
        yield Diagnostic("bound-axis", message, place_of(op), op.name, hint)


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
