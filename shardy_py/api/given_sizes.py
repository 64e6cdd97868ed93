"""Sizes that a caller gives for dynamic dimensions, and all that follows from them by sharding rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from attrs import field

from shardy_py.api.main_function import argument_names, arguments_of, find_main
from shardy_py.api.source import complete_registry, read_through
from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.op_graphs import ProgramFrontend
from shardy_py.frontends.select import frontend_of
from shardy_py.guards.error_texts import shown
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.data_flow import edge_members
from shardy_py.ir.graph.dynamic_sizes import has_dynamic_size, is_dynamic
from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION
from shardy_py.ir.graph.printing import print_program
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.types import TensorType, function_type
from shardy_py.ir.graph.walk import all_ops, region_arguments
from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
from shardy_py.plugins import Registry
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.support.arguments import as_integer
from shardy_py.values import frozen

ALL = "?"
"""The name that stands for all dynamic dimensions without a size of their own."""
_SAME_SIZE = (FactorKind.PASS_THROUGH, FactorKind.REDUCTION)
"""The kinds of factors along which all dimensions of an op have one size."""


def module_of_sizes(module: Any, frontend: Frontend, sizes: Mapping[str, int], registry: Registry) -> Any:
    """Return a program in which dynamic dimensions have sizes.

    Args:
        module: The program as a caller gives it.
        frontend: The frontend that accepts it.
        sizes: The sizes by dimension of an argument (``arg0.1``, ``x.0``), by a name that the frontend knows, or for
            all others (``?``).
        registry: The definitions of ops.

    Raises:
        OptionError: a size is not a positive integer, or its dimension is not a dynamic one.
        UnsupportedError: a size does not follow from those of the arguments.
    """
    for name, size in sizes.items():
        number = as_integer(size)
        if not isinstance(name, str) or number is None or number < 1:
            message = f"the size of {shown(name)} is {shown(size)}"
            raise OptionError(Diagnostic("invalid-size", message, hint="give a positive integer: {'arg0.0': 64}"))
    native = frontend.with_sizes(module, sizes)
    if native is not None:
        return native
    program = read_through(frontend, module)
    registry = complete_registry(program, registry)
    give_shapes(program, registry)
    _Sizes(program, find_main(program), registry).give(sizes)
    # Its own frontend does not know how to write other types.
    return print_program(program) if frontend_of(program).name in ("mlir", "jit") else _as_graph(program, frontend)


def _as_graph(program: Program, frontend: Frontend) -> Program:
    program.frontend = SizedFrontend(base=program.frontend or frontend)
    return program


@frozen
class SizedFrontend(ProgramFrontend):
    """Op graphs in which dynamic dimensions got sizes, with the names and arrays of the frontend that read them.

    Args:
        base: The frontend that read the program.
    """

    name: str = "sized"
    base: Frontend = field(kw_only=True)

    def printed_names(self, program: Program) -> Mapping[int, PrintedName]:
        """Return the names of values."""
        return self.base.printed_names(program)

    def argument_names(self, program: Program, function: Op) -> Sequence[str]:
        """Return the names of arguments."""
        return self.base.argument_names(program, function)

    def argument_aliases(self, program: Program, function: Op) -> Mapping[str, int]:
        """Return the further names of arguments, to their numbers."""
        return self.base.argument_aliases(program, function)

    def argument_arrays(self, program: Program) -> Mapping[int, Any]:
        """Return the arrays of arguments that the program brings itself."""
        return self.base.argument_arrays(program)

    def print_text(self, source: Program) -> str:
        """Return the op graph in MLIR's generic form."""
        return print_program(source)


class _Sizes:
    """The sizes of one program: those of arguments first, then those of all else, op by op."""

    def __init__(self, program: Program, main: Op, registry: Registry) -> None:
        self._program, self._main, self._registry = program, main, registry
        self._ops = [op for op in main.walk() if op is not main and (op.regions or has_dynamic_size(op))]
        # Before any size is known, as a rule wants all dimensions of a factor to agree.
        self._rules = {op.id: registry.get_sharding_rule(op) for op in self._ops if op.results and has_dynamic_size(op)}

    def give(self, sizes: Mapping[str, int]) -> None:
        self._give_arguments(sizes)
        # Sizes follow from operands, through bodies of loops, and those of constants from what they are used with.
        while sum(map(self._follow, self._ops)):
            pass
        ends = self._main.regions[0].blocks[0].terminator
        operands = ends.operands if ends is not None else ()
        for value, operand in zip(self._main.function_results, operands, strict=True):
            value.type = operand.type
        types = [value.type for value in entry_arguments(self._main)], [value.type for value in operands]
        self._main.attributes["function_type"] = RawAttribute(str(function_type(*types)))
        for op in all_ops(self._program):
            self._refuse_dynamic(op)

    def _follow(self, op: Op) -> bool:
        """Give the values of an op the sizes that follow, and return whether there are new ones."""
        if op.regions:
            return self._follow_data_flow(op)
        rule = self._rules.get(op.id)
        values = op.results if rule is None else [*op.results, *filter(_is_constant, op.operands)]
        if not any(is_dynamic(value.type) for value in values):
            return False
        if rule is not None:
            return self._follow_rule(op, rule)
        if op.name.startswith("sdy.") and len(op.operands) == len(op.results) == 1:
            # Constraints, reshards and collectives have the type of the whole tensor before and after.
            return _unify([op.operands[0], op.results[0]])
        return False

    def _follow_data_flow(self, op: Op) -> bool:
        data_flow = self._registry.get_data_flow(op)
        if data_flow is None or op.name == MANUAL_COMPUTATION:  # whose body has the shapes of shards
            return False
        members = edge_members(op, data_flow)
        edges: dict[int, list[Value]] = {}
        users = {
            user.id: user for user in (op, *(block.last for region in op.regions for block in region.blocks)) if user
        }
        for (user, number), owner in members.sources.items():
            edges.setdefault(owner.id, []).append(users[user].operands[number])
        targets = {value.id: value for value in (*region_arguments(op), *op.results)}
        for target, owner in members.targets.items():
            edges.setdefault(owner.id, []).append(targets[target])
        return sum(map(_unify, edges.values())) > 0

    def _follow_rule(self, op: Op, rule: OpShardingRule) -> bool:
        factors, is_new = self._factor_sizes(op, rule), False
        pairs = [*zip(op.results, rule.result_mappings, strict=True)]
        constants = zip(op.operands, rule.operand_mappings, strict=True)
        for value, mapping in (*pairs, *((value, mapping) for value, mapping in constants if _is_constant(value))):
            if not is_dynamic(value.type):
                continue
            shape = tuple(
                prod(factors[factor] for factor in dim)
                if size is None and dim and all(factor in factors for factor in dim)
                else size
                for size, dim in zip(value.type.shape, mapping, strict=True)  # type: ignore[union-attr]
            )
            is_new |= _set_shape(value, shape)
        return is_new

    def _give_arguments(self, sizes: Mapping[str, int]) -> None:
        arguments, unused = arguments_of(self._main), set(sizes) - {ALL}
        known: list[str] = []
        for number, (value, name) in enumerate(zip(arguments, argument_names(self._main), strict=True)):
            if not isinstance(value.type, TensorType):
                continue
            shape = list(value.type.shape)
            for dim, size in enumerate(value.type.shape):
                if size is not None:
                    continue
                names = [f"{item}.{dim}" for item in dict.fromkeys((name, f"arg{number}", str(number)))]
                known.append(names[0])
                chosen = next((item for item in (*names, ALL) if item in sizes), None)
                if chosen is not None:
                    shape[dim] = sizes[chosen]
                    unused.discard(chosen)
            _set_shape(value, tuple(shape))
        if unused:
            message = f"{shown(min(unused))} is not a dynamic dimension of an argument"
            hint = f"the dynamic dimensions are {', '.join(known)}" if known else "no argument has a dynamic dimension"
            raise OptionError(Diagnostic("unknown-size", message, hint=hint))

    def _factor_sizes(self, op: Op, rule: OpShardingRule) -> dict[int, int]:
        """Return the sizes of factors that follow from those of the operands."""
        sizes: dict[int, int] = {}
        dims = [
            (size, [factor for factor in dim if rule.kind(factor) in _SAME_SIZE])
            for value, mapping in zip(op.operands, rule.operand_mappings, strict=True)
            if isinstance(value.type, TensorType)
            for size, dim in zip(value.type.shape, mapping, strict=True)
            if size is not None and all(rule.kind(factor) in _SAME_SIZE for factor in dim)
        ]
        for size, dim in dims:
            if len(dim) == 1 and sizes.setdefault(dim[0], size) != size:
                message = f"a dimension has the sizes {sizes[dim[0]]} and {size} in two operands"
                raise UnsupportedError(Diagnostic("size-conflict", message, op.location, op.name))
        for size, dim in dims:
            self._solve(size, dim, rule, sizes)
        return sizes

    def _solve(self, size: int, dim: list[int], rule: OpShardingRule, sizes: dict[int, int]) -> None:
        """Find the only unknown factor of a dimension; the others are known, or have a size by the rule."""
        static = {factor for factor in dim if factor not in sizes and self._is_static(rule, factor)}
        sizes |= {factor: rule.factor_sizes[factor] for factor in static}
        unknown = [factor for factor in dim if factor not in sizes]
        if len(unknown) == 1:
            rest = prod(sizes[factor] for factor in dim if factor in sizes)
            if rest and size % rest == 0:
                sizes[unknown[0]] = size // rest

    def _is_static(self, rule: OpShardingRule, factor: int) -> bool:
        return rule.factor_sizes[factor] < _LEAST_STAND_IN

    def _refuse_dynamic(self, op: Op) -> None:
        values = entry_arguments(op) if op is self._main else op.results
        value = next((item for item in values if is_dynamic(item.type)), None)
        if value is None:
            return
        if op is self._main:
            message = f"argument {value.index} of type {value.type} has a dimension without a size"
            hint = f"give it, --size arg{value.index}.0=64; or one for all, --size '?=64'"
        else:
            message = f"the sizes of result {value.index} of type {value.type} do not follow from those of the operands"
            hint = "write the type with its sizes"
        raise UnsupportedError(Diagnostic("size-not-known", message, op.location, op.name, hint))


_LEAST_STAND_IN = 1 << 40
"""No dimension is so large; what a stand-in was divided by is still larger."""


def _is_constant(value: Value) -> bool:
    """Return whether a value has no operands from which its sizes could follow."""
    return isinstance(value.owner, Op) and not value.owner.operands and not value.owner.regions


def _unify(values: Sequence[Value]) -> bool:
    """Give values of one shape the sizes that any of them has, and return whether there are new ones."""
    shapes = [value.type.shape for value in values if isinstance(value.type, TensorType)]
    if len({len(shape) for shape in shapes}) != 1:
        return False
    shape = tuple(next((size for size in sizes if size is not None), None) for sizes in zip(*shapes, strict=True))
    return sum(_set_shape(value, shape) for value in values if is_dynamic(value.type)) > 0


def _set_shape(value: Value, shape: tuple[int | None, ...]) -> bool:
    """Set the shape of a value, and return whether it is another one."""
    type_ = value.type
    if not isinstance(type_, TensorType) or shape == type_.shape:
        return False
    value.type = TensorType(shape, type_.element_type)
    return True
