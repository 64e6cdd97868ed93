"""Checks of ops against the traits of plugins: constants have no operands, terminators end blocks."""

from __future__ import annotations

from fnmatch import fnmatchcase

from shardy_py.errors import Diagnostic, PluginError
from shardy_py.guards.error_texts import shorten_location
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import names_with_trait, ops_among
from shardy_py.ir.interfaces.ops import ConstantLike, IsTerminator, Trait
from shardy_py.plugins import OpDefinition, Registry


def check_traits(program: Program, registry: Registry) -> None:
    """Check the ops with the traits `ConstantLike` and `IsTerminator`.

    Raises:
        PluginError: a constant has operands, or other than one result, or ops follow a terminator in its block; one
            diagnostic for each definition.
    """
    problems: dict[tuple[str, str], Diagnostic] = {}
    for op in ops_among(program, names_with_trait(program, registry, ConstantLike)):
        if (op.operands or len(op.results) != 1) and ConstantLike in registry.get_traits(op):
            _add(problems, op, registry, ConstantLike, "constant-with-operands")
    for op in ops_among(program, names_with_trait(program, registry, IsTerminator)):
        if op.next is not None and IsTerminator in registry.get_traits(op):
            _add(problems, op, registry, IsTerminator, "terminator-inside")
    if problems:
        raise PluginError(*problems.values())


def _add(problems: dict[tuple[str, str], Diagnostic], op: Op, registry: Registry, trait: Trait, code: str) -> None:
    """Add what is wrong with an op, unless the same definition is blamed already."""
    source = next((item for item in registry.definitions if _may_give(item, trait, op.name)), None)
    key = code, source.name if source else op.name
    if key in problems:
        return
    if trait is ConstantLike:
        message = f"the op has the trait ConstantLike, but {len(op.operands)} operands and {len(op.results)} results"
        hint = "a constant has no operand and one result; an op that is folded with its operands is ConstantFoldable"
    else:
        message = "the op has the trait IsTerminator, but other ops follow it in its block"
        hint = "a terminator ends its block; leave out the trait"
    if source is not None:
        place = f" at {shorten_location(source.location)}" if source.location else ""
        hint = f"{hint}; defined by {registry.owners.get(source.name, 'an unknown owner')}{place}"
    problems[key] = Diagnostic(code, message, op.location, op.name, hint)


def _may_give(definition: OpDefinition, trait: Trait, name: str) -> bool:
    is_said = trait in definition.traits or definition.traits_of is not None
    return is_said and fnmatchcase(name, definition.name)
