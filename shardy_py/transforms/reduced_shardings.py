"""Shardings that a user gives to inputs and outputs, and that finishing reduces: warnings before the first pass.

Propagation only adds axes behind those that are given, and finishing keeps the longest prefix that divides a dimension.
So what becomes of a given sharding is known before anything runs, in a session as well as in `propagate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL, FUNCTION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import ops_among
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.finish.input_output_shardings import (
    evenly_sharded,
    inputs_and_outputs,
    whole_axes,
)
from shardy_py.transforms.prepare.remove_size_one_axes import remove_size_one_axes

CODE = "sharding-reduced"
"""The code of the warnings."""


def warn_of_reduced_shardings(
    program: Program,
    main: Op | None,
    semantics: OpSemantics,
    *,
    hint: str,
    name_of: Callable[[Value], str] = lambda value: "",
    inline_calls: bool = False,
) -> tuple[Diagnostic, ...]:
    """Return a warning for each given sharding of an input or output that finishing will reduce.

    Args:
        program: The program, before any pass; shardings are in its table.
        main: Its main function, None for a module without one.
        semantics: Answers questions about ops.
        hint: The option that keeps these shardings.
        name_of: Returns the user's own name of a value, or "".
        inline_calls: Whether calls, and with them the inputs and outputs of other functions, will be gone.
    """
    warnings = []
    table, meshes = program.shardings, program.meshes
    for op in _interfaces(program, main, semantics, inline_calls=inline_calls):
        for value in inputs_and_outputs(op, semantics):
            sharding = table.get(value.id)
            if sharding is None:
                continue
            shape, mesh = static_shape(value.type), resolve_mesh(sharding.mesh, meshes)
            reasons = None if shape is None or mesh is None else _reduce(shape, sharding, mesh, op is main)
            if reasons is not None:
                reduced, why = reasons
                subject = _describe(op, value, main, name_of(value))
                message = f"the sharding {_dims(sharding)} given for {subject} becomes {_dims(reduced)}: {why}"
                warnings.append(Diagnostic(CODE, message, op.location, op.name, hint, severity="warning"))
    return tuple(warnings)


def _interfaces(program: Program, main: Op | None, semantics: OpSemantics, *, inline_calls: bool) -> Iterator[Op]:
    """Yield the ops that are there after all passes and have inputs or outputs whose shardings are reduced."""
    ops = ops_among(program, (FUNCTION, CALL, *semantics.names_with_data_flow(program.op_names)))
    called = {callee_of(op) for op in ops if op.name == CALL}
    for op in ops:
        if op.name == FUNCTION and op is not main:
            is_private = op.attributes.get("sym_visibility") == "private"
            if inline_calls or (is_private and op.attributes["sym_name"] not in called):
                continue
        if op.name != CALL or not inline_calls:
            yield op


@lru_cache(maxsize=4096)
def _reduce(
    shape: tuple[int, ...], sharding: TensorSharding, mesh: Mesh, is_main: bool
) -> tuple[TensorSharding, str] | None:
    """Return the sharding to which finishing reduces another, with the reason; None where it stays the same."""
    sharding = remove_size_one_axes(sharding, mesh)
    even = evenly_sharded(sharding, shape, mesh)
    reduced = even.map_dims(whole_axes) if is_main else even
    reasons = [
        _reason(index, size, before, mesh)
        for index, (size, before, after) in enumerate(
            zip(shape, sharding.dim_shardings, reduced.dim_shardings, strict=False)
        )
        if before.axes != after.axes
    ]
    return (reduced, "; ".join(reasons)) if reasons else None


def _reason(index: int, size: int, dim: DimensionSharding, mesh: Mesh) -> str:
    parts = dim.sharded_size(mesh)
    if size % parts:
        return f"dimension {index} of size {size} does not divide into {parts} shards"
    return f"dimension {index} is open, and an open one of the main function takes whole axes only"


def _describe(op: Op, value: Value, main: Op | None, name: str) -> str:
    """Return the name of a value in a message: ``argument arg0 (params)``."""
    called = f" ({name})" if name else ""
    if op.name == FUNCTION:
        is_argument = value.owner is not op
        short = f"{'arg' if is_argument else 'result'}{value.index}"
        of = "" if op is main else f" of @{op.attributes['sym_name']}"
        return f"{'argument' if is_argument else 'result'} {short}{called}{of} of type {value.type}"
    if value.owner is op:
        return f"result {value.index} of type {value.type}"
    return f"region argument {value.index} of type {value.type}"


def _dims(sharding: TensorSharding) -> str:
    return f"[{', '.join(map(str, sharding.dim_shardings))}]"
