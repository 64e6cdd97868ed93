"""Ops of Shardy to the custom calls that GSPMD has in their place."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import SymbolRef
from shardy_py.ir.graph.op_names import (
    CALL,
    CONSTANT,
    FUNCTION,
    MANUAL_COMPUTATION,
    MESH,
    NAMED_COMPUTATION,
    PROPAGATION_BARRIER,
    REGION_RETURN,
    RETURN,
    SHARDING_GROUP,
)
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.symbols import SymbolTable
from shardy_py.ir.graph.types import Type, function_type
from shardy_py.ir.graph.walk import all_ops
from shardy_py.jax.gspmd.exporter.annotate import (
    CUSTOM_CALL,
    SHARDING,
    SHARDING_CALL,
    drop_shardy_attributes,
    sharding_call,
)
from shardy_py.jax.gspmd.exporter.texts import Texts
from shardy_py.sharding.hlo import HloSharding
from shardy_py.transforms.exported_ops import RESHARDS

_STABLEHLO_CONSTANT = "stablehlo.constant"
FULL_TO_SHARD = "SPMDFullToShardShape"
SHARD_TO_FULL = "SPMDShardToFullShape"
_REMOVED = frozenset((PROPAGATION_BARRIER, SHARDING_GROUP))


def lower_shardy_ops(program: Program, texts: Texts) -> None:
    """Replace all ops of Shardy, those inside of regions first; meshes go.

    Raises:
        UnsupportedError: there is an op that propagation would have removed.
    """
    symbols = SymbolTable(program)
    for op in reversed(all_ops(program)):
        if not op.name.startswith("sdy.") or op.name == REGION_RETURN:
            continue
        if op.name == MESH:
            symbols.erase(op)
        elif op.name in RESHARDS:
            sharding = texts.of(op.attributes[RESHARDS[op.name]], op.results[0], op.parent)
            _replace(op, [_call(op, SHARDING_CALL, op.operands[0], op.results[0].type, sharding)])
        elif op.name in _REMOVED:
            _replace(op, op.operands)
        elif op.name == CONSTANT:
            _replace(op, _constant(op, texts))
        elif op.name == MANUAL_COMPUTATION:
            _lower_manual_computation(op, texts, symbols)
        elif op.name == NAMED_COMPUTATION:
            _inline(op)
        else:
            hint = "propagate the module first"
            message = "the op has no counterpart in GSPMD"
            raise UnsupportedError(Diagnostic("no-gspmd-form", message, op.location, op.name, hint))


def _replace(op: Op, values: Sequence[Value]) -> None:
    """Replace the results of an op by other values, which take its shardings if they have none, and erase it."""
    table = op.program.shardings
    for result, value in zip(op.results, values, strict=False):
        if result.id in table:
            table.setdefault(value.id, table[result.id])
        result.replace_all_uses_with(value)
    op.erase()


def _call(before: Op, target: str, operand: Value, type_: Type, sharding: HloSharding) -> Value:
    """Insert a custom call before an op and return its result."""
    call = Op(before.program, CUSTOM_CALL, [operand], [type_], sharding_call(target, sharding))
    _block(before).insert_before(before, call)
    return call.results[0]


def _constant(op: Op, texts: Texts) -> Sequence[Value]:
    """Insert a constant of StableHLO for one of Shardy."""
    value = op.results[0]
    constant = Op(op.program, _STABLEHLO_CONSTANT, (), [value.type], dict(op.attributes))
    drop_shardy_attributes(constant)
    if not texts.is_all_manual(op.parent):
        constant.attributes[SHARDING] = str(texts.of_value(value, op.parent))
    _block(op).insert_before(op, constant)
    return constant.results


def _inline(op: Op) -> None:
    """Put the ops of a named computation in its place."""
    body = op.regions[0].block
    for argument, value in zip(body.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(value)
    *inner, terminator = body.ops
    for item in inner:
        body.remove(item)
        _block(op).insert_before(op, item)
    _replace(op, list(terminator.operands))


def _lower_manual_computation(op: Op, texts: Texts, symbols: SymbolTable) -> None:
    """Cut the operands, call the body as a function, and put its results together, as JAX does it."""
    body = op.regions[0].block
    terminator = body.last
    returned = [] if terminator is None else list(terminator.operands)
    entering = _inside(op, "in_shardings", body.arguments, body, texts)
    leaving = _inside(op, "out_shardings", returned, body, texts)
    inputs = [_cut(op, number, sharding, texts) for number, sharding in enumerate(entering)]
    name = symbols.insert(_outlined(op, body, entering, leaving, is_silent=texts.is_all_manual(body)))
    attributes = {"callee": SymbolRef(name)}
    call = Op(op.program, CALL, inputs, [value.type for value in returned], attributes)
    if returned and not texts.is_all_manual(body):
        call.attributes[SHARDING] = str(leaving[0] if len(leaving) == 1 else HloSharding.tuple_of(leaving))
    _block(op).insert_before(op, call)
    shards = zip(call.results, leaving, strict=True)
    outputs = [_put_together(op, number, value, sharding, texts) for number, (value, sharding) in enumerate(shards)]
    _replace(op, outputs)


def _outlined(
    op: Op, body: Block, arguments: Sequence[HloSharding], results: Sequence[HloSharding], *, is_silent: bool
) -> Op:
    """Return a function with the ops of a body."""
    program, block = op.program, Block(op.program, [value.type for value in body.arguments])
    for old, new in zip(body.arguments, block.arguments, strict=True):
        old.replace_all_uses_with(new)
    *inner, terminator = body.ops
    types = [value.type for value in terminator.operands]
    for item in inner:
        body.remove(item)
        block.append(item)
    block.append(Op(program, RETURN, list(terminator.operands)))
    terminator.erase()
    function = Op(
        program,
        FUNCTION,
        attributes={
            "sym_name": "manual_computation_body",
            "sym_visibility": "private",
            "function_type": function_type([value.type for value in block.arguments], types),
        },
    )
    function.add_region(Region([block]))
    program.new_function_results(function, types)
    for name, shardings in (("arg_attrs", arguments), ("res_attrs", results)):
        if shardings and not is_silent:
            function.attributes[name] = tuple({SHARDING: str(sharding)} for sharding in shardings)
    return function


def _inside(op: Op, attribute: str, values: Sequence[Value], body: Block, texts: Texts) -> list[HloSharding]:
    """Return the shardings at a border of a manual computation as they are inside."""
    shardings = op.attributes[attribute].shardings
    return [texts.of(sharding, value, body) for sharding, value in zip(shardings, values, strict=True)]


def _cut(op: Op, number: int, inside: HloSharding, texts: Texts) -> Value:
    """Return the shards of an operand."""
    operand, argument = op.operands[number], op.regions[0].block.arguments[number]
    outside = texts.of(op.attributes["in_shardings"].shardings[number], operand, op.parent)
    cut = _call(op, SHARDING_CALL, operand, operand.type, outside)
    return _call(op, FULL_TO_SHARD, cut, argument.type, inside)


def _put_together(op: Op, number: int, value: Value, inside: HloSharding, texts: Texts) -> Value:
    """Return the whole value of the shards that leave a body."""
    result = op.results[number]
    shards = _call(op, SHARDING_CALL, value, value.type, inside)
    outside = texts.of(op.attributes["out_shardings"].shardings[number], result, op.parent)
    return _call(op, SHARD_TO_FULL, shards, result.type, outside)


def _block(op: Op) -> Block:
    assert op.parent is not None
    return op.parent
