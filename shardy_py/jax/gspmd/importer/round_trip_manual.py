"""Manual computations that XLA keeps as a function, called between two custom calls that change shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import CALL, MANUAL_COMPUTATION, REGION_RETURN
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.symbols import functions_callees_first
from shardy_py.ir.graph.types import OpaqueType
from shardy_py.ir.graph.walk import ops_named, outermost
from shardy_py.jax.gspmd.importer.annotated import frontend_attributes
from shardy_py.jax.gspmd.importer.annotations import TARGET
from shardy_py.jax.gspmd.importer.inline import inline_call
from shardy_py.jax.gspmd.importer.round_trip import PREFIX, read_text
from shardy_py.sharding.tensor import TensorShardingPerValue

_BODY = "xla.sdy.manual_computation_body"
_CUT = "GlobalToLocalShape"
_JOIN = "LocalToGlobalShape"
_PART = "stablehlo.get_tuple_element"


def read_manual_calls(program: Program) -> None:
    """Replace calls of the bodies of manual computations, and the custom calls around them, by the computations.

    Raises:
        UnsupportedError: a custom call stands elsewhere than next to such a call.
    """
    calls = [op for op in ops_named(program, CALL) if _BODY in (callee_of(op) or "")]
    order = {function: number for number, function in enumerate(functions_callees_first(program))} if calls else {}
    for call in sorted(calls, key=lambda call: order[outermost(call)]):
        inline_call(_rebuild(call))


def _rebuild(call: Op) -> Op:
    """Replace a call and the custom calls around it by a manual computation with the call, and return the call."""
    program, block = call.program, call.parent
    assert block is not None
    cut = _source(call.operands[0]) if call.operands else None
    join = next((user for user, _ in call.results[0].uses if _is(user, _JOIN)), None) if call.results else None
    is_cut = cut is None if not call.operands else cut is not None and _parts(cut) == list(call.operands)
    is_joined = join is None if not call.results else join is not None and list(join.operands) == list(call.results)
    if not is_cut or not is_joined:
        message = "the body of a manual computation is not called between the custom calls that change shapes"
        raise UnsupportedError(Diagnostic("manual-call", message, call.location, call.name))
    attributes: dict[str, Any] = {}
    for op in (cut, join, call):
        if op is not None:
            attributes.update({name: read_text(text, op) for name, text in _texts(op).items()})
    outputs = [] if join is None else _parts(join)
    computation = Op(
        program,
        MANUAL_COMPUTATION,
        () if cut is None else cut.operands,
        [value.type for value in outputs],
        {
            "in_shardings": attributes.get("in_shardings", TensorShardingPerValue(())),
            "out_shardings": attributes.get("out_shardings", TensorShardingPerValue(())),
            "manual_axes": attributes["manual_axes"],
        },
    )
    body = Block(program, [value.type for value in call.operands])
    computation.add_region(Region([body]))
    block.insert_before(call, computation)
    for value, result in zip(outputs, computation.results, strict=True):
        value.move_uses_to(result)
    for number, argument in enumerate(body.arguments):
        call.set_operand(number, argument)
    if join is not None:
        _erase(join)
    if cut is not None:
        _erase(cut)
    block.remove(call)
    body.append(call)
    body.append(Op(program, REGION_RETURN, call.results))
    return call


def _texts(op: Op) -> dict[str, Any]:
    known = frontend_attributes(op.attributes)
    names = ("in_shardings", "out_shardings", "manual_axes")
    return {name: known[PREFIX + name] for name in names if PREFIX + name in known}


def _is(op: Op | None, target: str) -> bool:
    return op is not None and str(op.attributes.get(TARGET, "")).endswith(PREFIX + target)


def _source(value: Value) -> Op | None:
    """Return the custom call that cuts a value, itself or the tuple it is in."""
    op = value.defining_op
    if op is not None and op.name == _PART:
        op = op.operands[0].defining_op
    return op if _is(op, _CUT) else None


def _parts(op: Op) -> Sequence[Value]:
    """Return the results of an op, those in a tuple if it gives one."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, OpaqueType):
        return list(op.results)
    parts = {int(user.attributes["index"]): user.results[0] for user, _ in op.results[0].uses if user.name == _PART}
    return [parts[number] for number in sorted(parts)]


def _erase(op: Op) -> None:
    """Erase an op with those that take its tuple apart."""
    for user, _ in list(op.results[0].uses) if op.results else ():
        user.erase()
    op.erase()
