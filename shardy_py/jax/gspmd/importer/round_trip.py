"""Shardings of Shardy that XLA keeps as text, in dictionaries that all compilers hand on (``xla.sdy.sharding``).

HLO text of a program that was lowered with the Shardy partitioner has them, and exports of JAX of the year 2025.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from attrs import evolve

from shardy_py.errors import Diagnostic, ParseError, ShardyError
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import CONSTRAINT, FUNCTION, MESH, PROPAGATION_BARRIER, RETURN
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import SHARDING as SHARDY_SHARDING
from shardy_py.ir.graph.symbols import SYMBOL_NAME, SymbolTable
from shardy_py.ir.graph.walk import all_ops
from shardy_py.jax.gspmd.importer.annotated import FRONTEND, MESHES, PREFIX, SHARDING, dictionaries, frontend_attributes
from shardy_py.jax.gspmd.importer.annotations import TARGET
from shardy_py.jax.gspmd.importer.custom_calls import add_group_member
from shardy_py.sharding import grammar
from shardy_py.sharding.lexer import Cursor
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_attribute
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue

_SHARDING = "xla.sdy.sharding"
_RULE = "xla.sdy.sharding_rule"
_GROUP_ID = "xla.sdy.sharding_group_id"
_DIRECTION = "xla.sdy.allowed_direction"
_NOTATIONS: dict[type[Any], str] = {
    TensorSharding: "#sdy.sharding<...>",
    TensorShardingPerValue: "#sdy.sharding_per_value<[...]>",
    OpShardingRule: "#sdy.op_sharding_rule<...>",
}
_T = TypeVar("_T")


def read_shardings(program: Program) -> None:
    """Restore meshes and shardings that are kept as text, and drop their copies in terms of GSPMD.

    Raises:
        ParseError: a text cannot be read.
    """
    _read_meshes(program)
    for op in list(all_ops(program)):
        if op.name == FUNCTION:
            _read_interface(op)
        op.attributes.pop(SHARDING, None)
        texts = frontend_attributes(op.attributes)
        target = str(op.attributes.get(TARGET, "")).rpartition(PREFIX)[2]
        if _GROUP_ID in texts and target == "ShardingGroup":
            add_group_member(op.operands[0], _group_number(texts[_GROUP_ID], op), at=op)
            op.erase()
        elif _DIRECTION in texts and target == "PropagationBarrier":
            # It is the number of a direction with its type.
            _replace(op, PROPAGATION_BARRIER, {"allowed_direction": RawAttribute(str(texts[_DIRECTION]))})
        elif _SHARDING in texts:
            _read_op(op, target, texts)
        elif _RULE in texts:
            _read_rule(op, texts)


def _group_number(text: Any, op: Op) -> int:
    number = str(text).partition(":")[0].strip()
    if not number.isdecimal():
        raise _malformed("the number of a sharding group", text, op)
    return int(number)


def drop_texts(op: Op) -> None:
    """Remove the texts of Shardy from the dictionary of an op."""
    others = {name: value for name, value in frontend_attributes(op.attributes).items() if not name.startswith(PREFIX)}
    if others:
        op.attributes[FRONTEND] = others
    else:
        op.attributes.pop(FRONTEND, None)


def read_text(text: Any, op: Op) -> Any:
    """Return the value in a text, whose quotes may be escaped once more.

    Raises:
        ParseError: it cannot be read.
    """
    with _located(op.location, op.name):
        return parse_attribute(_unquoted(text))


@contextmanager
def _located(location: str = "", op: str = "") -> Iterator[None]:
    """Give errors the location of an op, as those in a text are of no file."""
    try:
        yield
    except ShardyError as error:
        raise ParseError(*(evolve(item, location=location, op=op) for item in error.diagnostics)) from None


def _read_value(text: Any, op: Op, kind: type[_T]) -> _T:
    """Return the value of a kind in a text.

    Raises:
        ParseError: it cannot be read, or is of another kind.
    """
    value = read_text(text, op)
    if not isinstance(value, kind):
        raise _malformed(_NOTATIONS[kind], text, op)
    return value


def _malformed(expected: str, text: Any, op: Op) -> ParseError:
    message = f"expected {expected}, but found {_unquoted(text)}"
    return ParseError(Diagnostic("malformed-module", message, op.location, op.name))


def _unquoted(text: Any) -> str:
    return str(text).replace('\\"', '"')


def _read_meshes(program: Program) -> None:
    """Add the meshes in front of everything, in their order.

    Raises:
        ParseError: their text cannot be read.
    """
    known = frontend_attributes(program.attributes)
    symbols = SymbolTable(program)
    last: Op | None = None
    with _located():
        meshes = _parse_meshes(known[MESHES])
    for name, mesh in meshes:
        op = Op(program, MESH, attributes={SYMBOL_NAME: name, "mesh": mesh})
        if symbols.get(name) is not None:
            message = f"the module has a symbol of the name of the mesh {name}"
            raise ParseError(Diagnostic("malformed-module", message))
        last = program.body.insert_after(last, op)
        symbols.insert(op)
    rest = {name: value for name, value in known.items() if name != MESHES}
    if rest:
        program.attributes[FRONTEND] = rest
    else:
        del program.attributes[FRONTEND]


def _parse_meshes(text: Any) -> list[tuple[str, Mesh]]:
    cursor = Cursor(_unquoted(text))
    meshes: list[tuple[str, Mesh]] = []
    cursor.expect("{")
    while not cursor.accept("}"):
        if meshes:
            cursor.expect(",", "}")
        name = cursor.string("the name of a mesh") if cursor.token.startswith('"') else cursor.advance()
        cursor.expect("=")
        cursor.expect("#sdy.mesh")
        meshes.append((name, grammar.mesh(cursor)))
    return meshes


def _read_interface(function: Op) -> None:
    for name in ("arg_attrs", "res_attrs"):
        items = dictionaries(function, name)
        if any(FRONTEND in item or SHARDING in item for item in items):
            function.attributes[name] = tuple(_converted(item, function) for item in items)


def _converted(item: dict[str, Any], function: Op) -> dict[str, Any]:
    """Return the attributes of one argument or result."""
    rest = {name: value for name, value in item.items() if name not in (SHARDING, FRONTEND)}
    others = dict(frontend_attributes(item))
    text = others.pop(_SHARDING, None)
    if others:
        rest[FRONTEND] = others
    if text is not None:
        rest[SHARDY_SHARDING] = _read_value(text, function, TensorSharding)
    return rest


def _read_op(op: Op, target: str, texts: Mapping[str, Any]) -> None:
    value = _read_value(texts[_SHARDING], op, TensorShardingPerValue)
    if target in ("Sharding", "FuncResultSharding") and len(value.shardings) != 1:
        raise _malformed("one sharding", texts[_SHARDING], op)
    if target == "Sharding":
        _replace(op, CONSTRAINT, {"sharding": value.shardings[0]})
    elif target == "FuncResultSharding":
        _read_result(op, value)
    else:
        op.attributes[SHARDY_SHARDING] = value
        _read_rule(op, texts)


def _read_rule(op: Op, texts: Mapping[str, Any]) -> None:
    """Give an op the rule that is kept as text, if there is one."""
    if _RULE in texts:
        op.attributes["sdy.sharding_rule"] = _read_value(texts[_RULE], op, OpShardingRule)
    drop_texts(op)


def _replace(op: Op, name: str, attributes: dict[str, Any]) -> None:
    """Put an op of Shardy in the place of a custom call with one operand and one result."""
    (result,) = op.results
    new_op = Op(op.program, name, op.operands, (result.type,), attributes, register_uses=False)
    assert op.parent is not None
    op.parent.insert_before(op, new_op)
    op.hand_over_uses(new_op)
    result.move_uses_to(new_op.results[0])
    op.erase()


def _read_result(op: Op, value: TensorShardingPerValue) -> None:
    """Put a sharding on the results of the function that return the value, and take the op away."""
    for user, number in op.results[0].uses:
        function = user.parent_op
        if user.name == RETURN and function is not None:
            items = list(dictionaries(function, "res_attrs") or ({},) * len(function.function_results))
            items[number] = {**items[number], SHARDY_SHARDING: value.shardings[0]}
            function.attributes["res_attrs"] = tuple(items)
    op.results[0].move_uses_to(op.operands[0], before=(op, 0))
    op.erase()
