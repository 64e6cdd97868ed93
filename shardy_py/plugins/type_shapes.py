"""Give the types of dialects in a program their shapes, and warn about those that no plugin defines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from shardy_py.errors import Diagnostic, PluginError, UnsupportedError
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type
from shardy_py.plugins.registry import Registry

OPAQUE_TYPE = "opaque-type"
"""The code of the warnings about types that nobody defines."""


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
        found = known.get(type_.text) or _give_shape(type_, op, registry)
        if found is None:
            unknown.setdefault(type_.name, []).append((op, value))
            continue
        value.type = known[type_.text] = found
    is_tensor = any(isinstance(type_, TensorType) for type_ in known.values())
    # Without them nothing has to be looked for again; what nobody knows is reported each time.
    program.has_foreign_types = program.has_foreign_types or is_tensor or (None if found_foreign else False)
    return tuple(_warning(name, values) for name, values in unknown.items())


def require_shapes(warnings: Iterable[Diagnostic]) -> None:
    """Refuse a program with types that nobody defines.

    Args:
        warnings: What `give_shapes` returned; others are left alone.

    Raises:
        UnsupportedError: there are such types; all are named.
    """
    opaque = [item for item in warnings if item.code == OPAQUE_TYPE]
    if opaque:
        raise UnsupportedError(*opaque)


def _give_shape(type_: OpaqueType, op: Op, registry: Registry) -> Type | None:
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
