"""Checks of the arguments of a `Builder`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from attrs import evolve

from shardy_py.errors import Diagnostic, VerificationError, with_article
from shardy_py.ir.graph.attributes import DenseElements, OpaqueElements, RawAttribute, SymbolRef, Unit
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type
from shardy_py.sharding.axes import SdyAttribute
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding, symbol
from shardy_py.sharding.verify import NoShape, field_problem, verify_mesh, verify_tensor_sharding
from shardy_py.support.arguments import shown

_PLAIN = (bool, int, float, str)
_ATTRIBUTES = (DenseElements, OpaqueElements, RawAttribute, SymbolRef, Unit, TensorType, OpaqueType)


def refuse(code: str, message: str, *, op: str = "", hint: str = "") -> VerificationError:
    """Return the error for an argument."""
    return VerificationError(Diagnostic(code, message, op=op, hint=hint))


def check_name(name: Any, program: Program) -> None:
    """Refuse a symbol that is not a text, or that the program has."""
    if not isinstance(name, str) or not name:
        raise refuse("invalid-symbol", f"{shown(name)} is not the name of a symbol", hint="give a text")
    if any(op.attributes.get("sym_name") == name for op in program.body.ops):
        raise refuse("duplicate-symbol", f"{symbol(name)} is defined twice", hint="give it another name")


def check_mesh(name: Any, mesh: Any, program: Program) -> Mesh:
    """Return the mesh for a mesh or a mapping of axis sizes."""
    check_name(name, program)
    checked_mesh = Mesh.of(mesh) if isinstance(mesh, Mapping) else mesh
    if not isinstance(checked_mesh, Mesh):
        raise refuse(
            "invalid-mesh", f"{with_article(type(mesh).__name__)} is not a mesh", hint='give a Mesh, or {"a": 2}'
        )
    problems = verify_mesh(checked_mesh)
    if problems:
        raise VerificationError(*problems)
    return checked_mesh


def check_types(types: Any, op: str) -> list[Type]:
    """Return types after a check that they are types."""
    if isinstance(types, (*get_args(Type), str)) or not isinstance(types, Iterable):
        hint = "give a list of types: [tensor(8, 16)]"
        raise refuse("invalid-type", f"the types are {shown(types)}, not a list of types", op=op, hint=hint)
    checked_types = list(types)
    for index, type_ in enumerate(checked_types):
        if not isinstance(type_, get_args(Type)):
            hint = "use tensor(8, 16), a TensorType or an OpaqueType"
            raise refuse("invalid-type", f"type {index} is {shown(type_)}, which is not a type", op=op, hint=hint)
        sizes = type_.shape if isinstance(type_, TensorType) else ()
        if any(size is not None and (type(size) is not int or size < 0) for size in sizes):
            raise refuse("invalid-type", f"type {index} has the sizes {sizes}", op=op, hint="give whole numbers from 0")
    return checked_types


def check_operands(operands: Any, op: str, program: Program, open_blocks: Sequence[Block]) -> list[Value]:
    """Return operands after a check that they are values that the op can see."""
    if isinstance(operands, Value) or not isinstance(operands, Iterable):
        hint = "give a list of values: [x]"
        raise refuse("invalid-operand", f"the operands are {shown(operands)}, not a list of values", op=op, hint=hint)
    checked_operands = list(operands)
    for index, value in enumerate(checked_operands):
        check_value(value, f"operand {index}", op, program)
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent
        if isinstance(value.owner, Op) and value in value.owner.function_results:
            hint = "call the function"
            raise refuse("not-visible", f"operand {index} is a result of a function, not of an op", op=op, hint=hint)
        if home not in open_blocks:
            hint = "return it from the region, or pass it as an argument"
            message = f"operand {index}, {value!r}, is defined in a region that this op is not in"
            raise refuse("not-visible", message, op=op, hint=hint)
    return checked_operands


def check_value(value: Any, role: str, op: str, program: Program) -> Value:
    """Return a value after a check that it belongs to this program."""
    if not isinstance(value, Value):
        hint = "op returns a tuple for an op with several results" if isinstance(value, tuple) else "give a Value"
        raise refuse("invalid-operand", f"{role} is {shown(value)}, which is not a value", op=op, hint=hint)
    owner = value.owner.parent_op if isinstance(value.owner, Block) else value.owner
    if owner is None or owner.program is not program:
        hint = "build both with one Builder"
        raise refuse("foreign-value", f"{role}, {value!r}, belongs to another program", op=op, hint=hint)
    return value


def join_attributes(attributes: Any, more: Mapping[str, Any]) -> Any:
    """Return the attributes that two mappings give; anything else as it is, for `check_attributes` to refuse."""
    return {**attributes, **more} if isinstance(attributes, Mapping) else attributes or more


def check_attributes(attributes: Mapping[str, Any], op: str) -> dict[str, Any]:
    """Return attributes after a check that their values are those of `shardy_py.ir.graph.attributes`."""
    if not isinstance(attributes, Mapping):
        message = f"the attributes are {shown(attributes)}, not a mapping of names to attributes"
        raise refuse("invalid-attribute", message, op=op, hint='give a dict: {"axis": 0}')
    for name, value in attributes.items():
        if not isinstance(name, str) or not name:
            raise refuse(
                "invalid-attribute", f"{shown(name)} is not the name of an attribute", op=op, hint="give a text"
            )
        for wrong in _wrong_parts(value):
            hint = "use bool, int, float, str, tuples and dicts of these, a type, a sharding, or RawAttribute(text)"
            message = f"the attribute {name!r} holds {with_article(type(wrong).__name__)}: {shown(wrong)}"
            raise refuse("invalid-attribute", message, op=op, hint=hint)
    return dict(attributes)


def _wrong_parts(value: Any) -> Iterator[Any]:
    """Yield the parts of an attribute that are not attributes."""
    if type(value) in _PLAIN or isinstance(value, (*_ATTRIBUTES, SdyAttribute)):
        return
    if isinstance(value, (tuple, list, Mapping)):
        if isinstance(value, Mapping):
            yield from (name for name in value if not isinstance(name, str))
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _wrong_parts(part)
        return
    yield value


def check_sharding(value: Value, sharding: TensorSharding, program: Program) -> None:
    """Refuse a sharding that does not fit a value or a mesh of the program."""
    if not isinstance(sharding, TensorSharding):
        hint = "give a TensorSharding, or its text"
        raise refuse("invalid-sharding", f"{with_article(type(sharding).__name__)} is not a sharding", hint=hint)
    problem = field_problem(sharding)
    if problem is not None:
        raise VerificationError(problem)
    meshes = program.meshes
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes.get(sharding.mesh)
    if mesh is None:
        known = ", ".join(map(symbol, meshes)) or "none"
        message = f"the sharding {sharding} is over the mesh {sharding.mesh!r}, which the program does not have"
        raise refuse("unknown-mesh", message, hint=f"the meshes are {known}; add others by mesh(...)")
    type_ = value.type
    # A type of a dialect may have a shape that only its plugin knows.
    shape = type_.shape if isinstance(type_, TensorType) else None if type_.is_foreign else NoShape.NOT_SHAPED
    problems = verify_tensor_sharding(sharding, mesh, shape)
    if problems:
        message = f"the sharding {sharding} of a value of type {type_}"
        raise VerificationError(*(evolve(item, message=f"{message}: {item.message}") for item in problems))


def check_shardings(program: Program) -> None:
    """Refuse a table in which a sharding does not fit its value; some shapes are not known before."""
    table = program.shardings
    if not table:
        return
    for op in program.walk():
        arguments = [value for region in op.regions for block in region.blocks for value in block.arguments]
        for value in (*op.results, *op.function_results, *arguments):
            if value.id in table:
                check_sharding(value, table[value.id], program)
