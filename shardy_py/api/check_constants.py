"""Whether ops that a plugin calls constants are some: without operands, with one result."""

from __future__ import annotations

from fnmatch import fnmatchcase

from shardy_py.errors import Diagnostic, PluginError
from shardy_py.ir.finding import names_with_trait, ops_among
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.guard import shorten_place
from shardy_py.ir.interfaces import ConstantLike
from shardy_py.plugins import OpDefinition, Registry


def check_constants(program: Program, registry: Registry) -> None:
    """Check the ops with the trait `ConstantLike`.

    Raises:
        PluginError: some have operands, or other than one result; one diagnostic for each name.
    """
    problems: dict[str, Diagnostic] = {}
    for op in ops_among(program, names_with_trait(program, registry, ConstantLike)):
        is_one = not op.operands and len(op.results) == 1
        if not is_one and op.name not in problems and ConstantLike in registry.get_traits(op):
            problems[op.name] = _problem(op, registry)
    if problems:
        raise PluginError(*problems.values())


def _problem(op: Op, registry: Registry) -> Diagnostic:
    operands, results = len(op.operands), len(op.results)
    message = f"the op has the trait ConstantLike, but {operands} operands and {results} results"
    hint = "a constant has no operand and one result; an op that is folded with its operands is ConstantFoldable"
    source = next((item for item in registry.definitions if _may_say_so(item, op.name)), None)
    if source is not None:
        place = f" at {shorten_place(source.place)}" if source.place else ""
        hint = f"{hint}; defined by {registry.owners.get(source.name, 'an unknown owner')}{place}"
    return Diagnostic("constant-with-operands", message, op.location, op.name, hint)


def _may_say_so(definition: OpDefinition, name: str) -> bool:

    is_said = ConstantLike in definition.traits or definition.traits_of is not None
    return is_said and fnmatchcase(name, definition.name)
