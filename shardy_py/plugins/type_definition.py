"""Definitions of the types of dialects, and the shapes that they give to the values of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, field

from shardy_py.errors import Diagnostic, PluginError, UnsupportedError
from shardy_py.guards.error_texts import calling_location, shown
from shardy_py.guards.guard import Guard, InvalidAnswer, bounded_list
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type
from shardy_py.plugins.argument_checks import refuse
from shardy_py.support.arguments import as_integer
from shardy_py.support.late_patterns import late_pattern
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.plugins.registry import Registry


ShapeOf = Callable[[OpaqueType], TensorType | Sequence[int | None] | None]
"""Returns the sizes of a type, None for one that is not known; or a `TensorType`, which also has the element type; or
None where the type is not a tensor."""

_NAME = late_pattern(r"![A-Za-z_][\w$]*(\.[\w$.-]+)?")


def _check_name(definition: TypeDefinition, attribute: Any, name: Any) -> None:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return
    hint = f"write !{name}" if isinstance(name, str) and _NAME.fullmatch(f"!{name}") else "for example !torch.vtensor"
    message = f"{shown(name)} is not the name of a type, without its parameters"
    raise refuse("invalid-type-name", message, hint=hint)


def _check_shape_of(definition: TypeDefinition, attribute: Any, shape_of: Any) -> None:
    if shape_of is not None and (not callable(shape_of) or isinstance(shape_of, type)):
        hint = "give a function that returns the sizes of a type"
        raise refuse("invalid-shape-of", f"shape_of of {definition.name} is {shown(shape_of)}", hint=hint)


@frozen
class TypeDefinition:
    """Definition of the types of one name.

    Args:
        name: The name with its dialect: ``!torch.vtensor`` for ``!torch.vtensor<[2,3],f32>``.
        shape_of: Returns the shape of such a type; None where no such type is a tensor.
        location: The line that defines it, for errors, or "".
    """

    name: str = field(validator=_check_name)
    shape_of: ShapeOf | None = field(default=None, kw_only=True, validator=_check_shape_of)
    location: str = field(default="", kw_only=True, eq=False, repr=False)
    _register: Callable[[TypeDefinition], None] | None = field(default=None, kw_only=True, eq=False, repr=False)

    @classmethod
    def made_here(
        cls, name: str, shape_of: ShapeOf | None, register: Callable[[TypeDefinition], None]
    ) -> TypeDefinition:
        """Return a definition that remembers the line that asked for it."""
        return cls(name, shape_of=shape_of, location=calling_location(), register=register)

    def __call__(self, shape_of: ShapeOf) -> ShapeOf:
        """Make the definition a decorator: take a function as ``shape_of`` and hand it back.

        Raises:
            PluginError: the definition was not made by `Dialect.type`, or has a function already.
        """
        if self._register is None or self.shape_of is not None:
            reason = "has a shape_of already" if self.shape_of is not None else "belongs to no dialect"
            raise refuse("invalid-shape-of", f"the definition of {self.name} {reason}")
        self._register(evolve(self, shape_of=shape_of))
        return shape_of


def give_shape(type_: OpaqueType, definitions: Mapping[str, TypeDefinition], owners: Mapping[str, str]) -> Type | None:
    """Return a type of a dialect with its shape, unchanged if it is not a tensor, None if it is not defined.

    Args:
        type_: The type.
        definitions: The definitions by name.
        owners: For each name the words that name the plugin.

    Raises:
        PluginError: the function of the plugin fails, or returns no shape.
    """
    definition = definitions.get(type_.name)
    if definition is None:
        return None
    if definition.shape_of is None:
        return type_
    owner = owners.get(type_.name, "an unknown owner")
    guard = Guard(definition.shape_of, f"shape_of for {type_}", owner, code="shape-of", location=definition.location)
    with_shape = guard.call(type_, check=_shape)
    if with_shape is None:
        return type_
    shape, element_type = with_shape
    return TensorType(shape, element_type, type_.text)


def has_unknown_shape(op: Op, definitions: Mapping[str, TypeDefinition]) -> bool:
    """Return whether an operand or a result of an op has an undefined type of a dialect."""
    types = [value.type for value in (*op.operands, *op.results)]
    return any(isinstance(type_, OpaqueType) and type_.is_foreign and type_.name not in definitions for type_ in types)


def _shape(answer: Any, op: Op) -> tuple[tuple[int | None, ...], str] | None:
    """Return the sizes and the element type of an answer."""
    if answer is None:
        return None
    sizes, element_type = (answer.shape, answer.element_type) if isinstance(answer, TensorType) else (answer, "")
    hint = "return the sizes, such as (2, 3) or (None, 3), a TensorType, or None for what is not a tensor"
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Sequence):
        raise InvalidAnswer(f"returned {shown(answer)}, which is not a shape", hint)
    return tuple(_size(size, answer, hint) for size in bounded_list(sizes)), element_type


def _size(size: Any, answer: Any, hint: str) -> int | None:
    number = as_integer(size)
    if size is not None and (number is None or number < 0):
        raise InvalidAnswer(f"returned {shown(answer)}, where {shown(size)} is not a size", hint)
    return number


OPAQUE_TYPE = "opaque-type"
"""The code of the warnings about types without a definition."""


def give_shapes(program: Program, registry: Registry) -> tuple[Diagnostic, ...]:
    """Give all values of a program whose types are defined by dialects their shapes.

    Args:
        program: The program; types keep their text.
        registry: The definitions of types.

    Returns:
        A warning for each name of types that nobody defines: their values get no shardings.

    Raises:
        PluginError: the function of a plugin fails, or returns no shape.
    """
    if program.has_foreign_types is False:
        return ()
    known: dict[str, Type] = {}
    unknown: dict[str, list[tuple[Op, Value]]] = {}
    found_foreign = False
    for op, value in _values(program):
        type_ = value.type
        found_foreign = found_foreign or type_.is_foreign
        if not type_.is_foreign or not isinstance(type_, OpaqueType):
            continue
        new_type = known.get(type_.text) or _shape_of_program_type(type_, op, registry)
        if new_type is None:
            unknown.setdefault(type_.name, []).append((op, value))
            continue
        value.type = known[type_.text] = new_type
        program.kinds_hold = False
    is_tensor = any(isinstance(type_, TensorType) for type_ in known.values())
    # Without them nothing has to be looked for again; what nobody knows is reported each time.
    program.has_foreign_types = program.has_foreign_types or is_tensor or (None if found_foreign else False)
    return tuple(_warning(name, values) for name, values in unknown.items())


def require_shapes(warnings: Iterable[Diagnostic]) -> None:
    """Refuse a program with undefined types.

    Args:
        warnings: What `give_shapes` returned; others are left alone.

    Raises:
        UnsupportedError: there are such types; all are named.
    """
    opaque = [item for item in warnings if item.code == OPAQUE_TYPE]
    if opaque:
        raise UnsupportedError(*opaque)


def _shape_of_program_type(type_: OpaqueType, op: Op, registry: Registry) -> Type | None:
    """Return a type with its shape; errors of the plugin name the op that has it first."""
    try:
        return registry.give_shape(type_)
    except PluginError as error:
        items = (
            evolve(item, op=item.op or op.name, location=item.location or op.location) for item in error.diagnostics
        )
        raise PluginError(*items) from error.__cause__


def _values(program: Program) -> Iterator[tuple[Op, Value]]:
    for op in program.walk():
        for region in op.regions:
            for block in region.blocks:
                for value in block.arguments:
                    yield op, value
        for value in (*op.results, *op.function_results):
            yield op, value


def _warning(name: str, values: list[tuple[Op, Value]]) -> Diagnostic:
    op, value = values[0]
    count = f"{len(values)} values" if len(values) > 1 else "1 value"
    return Diagnostic(
        OPAQUE_TYPE,
        f"{value.type} has no known shape; {count} of {name} get no sharding",
        op.location,
        op.name,
        f'a plugin gives types their shapes: dialect.type("{name}", shape_of=...)',
    )
