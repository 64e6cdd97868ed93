"""Functions in the places of fragments.

Mirrors mpmd/transforms/export/lower_to_fragment_calls.cc.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

from attrs import evolve

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.attributes import RawAttribute, SymbolRef
from shardy_py.ir.graph.op_names import FUNCTION, MANUAL_COMPUTATION, MESH, RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Region
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.graph.symbols import SymbolTable
from shardy_py.ir.graph.types import function_type
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import attributes_at, block_of, set_attributes_at
from shardy_py.mpmd.dialect.fragments import (
    MESH_NAME,
    body_of,
    is_fragment,
    mesh_of,
    mpmd_functions,
    number_of,
    origins_of,
    terminator_of,
)
from shardy_py.mpmd.dialect.op_names import FRAGMENT_CALL, MESH_SHAPE, ORIGIN, REMAT
from shardy_py.mpmd.dialect.types import require_topology
from shardy_py.mpmd.passes.export.fragment_functions import (
    argument_shardings,
    body_key,
    function_name,
    module_name,
    signature_key,
)
from shardy_py.mpmd.passes.export.reserved_memory import RESERVED
from shardy_py.mpmd.passes.region_ops import move_ops
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import symbol
from shardy_py.values import frozen


@frozen
class LowerToFragmentCallsPass:
    """Turn each fragment into a call of a function; equal fragments of one mesh share it.

    Args:
        verbose_logging: Whether warnings list what each mesh will run.
    """

    name: ClassVar[str] = "mpmd-lower-to-fragment-calls"

    verbose_logging: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Lower the fragments of all functions; groups are numbered in the order in which they appear."""
        for function in mpmd_functions(program):
            fragments = [op for op in block_of(function).ops if is_fragment(op)]
            by_body: dict[Hashable, list[Op]] = {}
            groups: dict[Hashable, list[Op]] = {}
            for op in fragments:
                body = body_key(op)
                by_body.setdefault(body, []).append(op)
                groups.setdefault((body, signature_key(op)), []).append(op)
            for alike in by_body.values():
                _reserve_alike(alike)
            has_backward = any(origin.transpose_count for op in fragments for origin in origins_of(op))
            if self.verbose_logging:
                context.warnings.extend(_what_meshes_run(function, fragments, has_backward=has_backward))
            symbols = SymbolTable(program)
            for number, group in enumerate(groups.values()):
                name = function_name(number, group, program, has_backward=has_backward)
                _lower(group, name, symbols)


def _what_meshes_run(function: Op, fragments: Sequence[Op], *, has_backward: bool) -> Iterator[Diagnostic]:
    """Yield a text for each mesh with the origins of its fragments, in order."""
    module = module_name(function.program)
    by_mesh: dict[str, list[Op]] = {}
    for op in fragments:
        by_mesh.setdefault(mesh_of(op), []).append(op)
    for mesh, ops in by_mesh.items():
        lines = [f"from program with origins [{_show_origins(op, with_phase=has_backward)}]" for op in ops]
        message = "\n".join([f"Module {module} on mesh {mesh} will execute:", *lines])
        yield Diagnostic("fragments-of-mesh", message, function.location, function.name)


def _show_origins(op: Op, *, with_phase: bool) -> str:
    phases = {0: "(fwd)", 1: "(bwd)"}
    return ", ".join(
        origin.name + (phases.get(origin.transpose_count, f"({origin.transpose_count})") if with_phase else "")
        for origin in origins_of(op)
    )


def _reserve_alike(alike: Sequence[Op]) -> None:
    """Reserve for all of some fragments with equal bodies what the largest of them needs.

    The reference lets them share a function even if their shardings differ; here each sharding has its own.
    """
    reserved = [count for op in alike if (count := number_of(op.attributes, RESERVED)) is not None]
    for op in alike if reserved else ():
        op.attributes[RESERVED] = RawAttribute(f"{max(reserved)} : i64")


def _lower(group: Sequence[Op], name: str, symbols: SymbolTable) -> None:
    """Make the function of a group from its first fragment, and calls of it in the places of all."""
    first = group[0]
    program = first.program
    topology, shardings = require_topology(first), argument_shardings(first)
    old = body_of(first)
    block = Block(program, [argument.type for argument in old.arguments])
    move_ops(old, block, terminator_of(first).operands)
    for argument, new in zip(old.arguments, block.arguments, strict=True):
        argument.replace_all_uses_with(new)
    end = block.terminator
    assert end is not None
    returned = list(end.operands)
    block.append(Op(program, RETURN, returned))
    end.erase()
    results = [value.type for value in returned]
    attributes: dict[str, Any] = {
        "sym_name": name,
        "function_type": function_type([value.type for value in block.arguments], results),
        MESH_SHAPE: RawAttribute(f"#sdy.mesh{topology.mesh(mesh_of(first))}"),
    }
    if RESERVED in first.attributes:
        attributes[RESERVED] = first.attributes[RESERVED]
    function = Op(program, FUNCTION, (), (), attributes, [Region([block])])
    program.new_function_results(function, results)
    counts = len(block.arguments), len(results)
    for where, count, sharding_by_number in zip(("arg_attrs", "res_attrs"), counts, shardings, strict=True):
        dictionaries = attributes_at(first, where, count)
        for number, sharding in sharding_by_number.items():
            dictionaries[number][SHARDING] = sharding
        set_attributes_at(function, where, dictionaries)
    table = program.shardings
    for values, sharding_by_number in zip((block.arguments, function.function_results), shardings, strict=True):
        for number, sharding in sharding_by_number.items():
            table[values[number].id] = sharding  # type: ignore[assignment]
    final = symbols.insert(function)
    _rename_manual_meshes(function, mesh_of(first), topology.mesh(mesh_of(first)))
    for op in group:
        _replace_by_call(op, final)


def _rename_manual_meshes(function: Op, name: str, mesh: Mesh | None) -> None:
    """Let manual computations refer to the mesh of their function by its name in the topology."""
    program, table = function.program, function.program.shardings
    for op in function.walk():
        if op.name != MANUAL_COMPUTATION or mesh is None:
            continue
        for value in (*op.regions[0].block.arguments, *op.results):
            sharding = table.get(value.id)
            if sharding is not None:
                table[value.id] = evolve(sharding, mesh=name)
        if name not in program.meshes:
            program.body.insert_after(None, Op(program, MESH, attributes={"sym_name": name, "mesh": mesh}))


def _replace_by_call(op: Op, name: str) -> None:
    attributes: dict[str, Any] = {
        "callee": SymbolRef(name, symbol(name)),
        MESH_NAME: op.attributes[MESH_NAME],
        ORIGIN: op.attributes[ORIGIN],
    }
    if REMAT in op.attributes:
        attributes[REMAT] = op.attributes[REMAT]
    call = Op(op.program, FRAGMENT_CALL, op.operands, [value.type for value in op.results], attributes)
    assert op.parent is not None
    op.parent.insert_before(op, call)
    for value, new in zip(op.results, call.results, strict=True):
        value.replace_all_uses_with(new)
    op.erase()
