"""Sizes of all tensors of a program that follow from those of its arguments.

Most follow from sharding rules: the dimensions of one factor have one size. Those that a program computes, such as the
shape of a reshape, are known where ops say which integers they give; see `ResultSizes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.data_flow import edge_members
from shardy_py.ir.graph.dead_ops import erase_dead_ops
from shardy_py.ir.graph.dynamic_sizes import has_dynamic_size, is_dynamic
from shardy_py.ir.graph.op_names import CALL, CONSTANT, FUNCTION, MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.symbols import SymbolTable, has_body
from shardy_py.ir.graph.types import TensorType, function_type
from shardy_py.ir.graph.walk import region_arguments
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.ir.interfaces.result_sizes import Numbers
from shardy_py.plugins import Registry
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.transforms.prepare.flatten_call_graph import FlattenCallGraphPass
from shardy_py.values import define

SAME_SIZE = (FactorKind.PASS_THROUGH, FactorKind.REDUCTION)
"""The kinds of factors along which all dimensions of an op have one size."""
_LEAST_STAND_IN = 1 << 40
"""No dimension is so large; what a stand-in was divided by is still larger."""


@define
class SizeInference:
    """The sizes of one program, op by op, from operands to results.

    Attributes:
        program: The program; its types get the sizes.
        registry: The definitions of ops.
        functions: The functions that are called, the main function first.
        rules: The rules by op, from before any size is known, as a rule wants all dimensions of a factor to agree.
        callees: The functions of calls, by op.
        numbers: The elements of small tensors of integers, by value.
        static: The ops in the place of those of dynamic sizes, by op.
        assertions: The ops that are assertions about sizes that hold.
    """

    program: Program
    registry: Registry
    functions: Sequence[Op]
    rules: Mapping[int, OpShardingRule | None]
    callees: Mapping[int, Op]
    numbers: dict[int, Numbers] = field(factory=dict, init=False)
    static: dict[int, Callable[[Op], Value]] = field(factory=dict, init=False)
    assertions: dict[int, Op] = field(factory=dict, init=False)

    @classmethod
    def of(cls, program: Program, main: Op, registry: Registry) -> SizeInference:
        """Return the inference for a program without sizes; each call gets a function of its own."""
        # Two calls of one function may give it other sizes, or other integers.
        FlattenCallGraphPass().run(program, PassContext(registry))
        symbols, functions, callees = SymbolTable(program), [main], {}
        for function in functions:
            for call in function.walk():
                if call.name == CALL and has_body(symbols.callee(call)):
                    callees[call.id] = symbols.callee(call)
                    if callees[call.id] not in functions:
                        functions.append(callees[call.id])
        ops = (op for function in functions for op in function.walk() if op.results and has_dynamic_size(op))
        rules = {op.id: registry.get_sharding_rule(op) for op in ops if op.id not in callees}
        return cls(program, registry, functions, rules, callees)

    def run(self) -> None:
        """Give all tensors the sizes that follow from those of the arguments.

        Raises:
            UnsupportedError: a size does not follow.
        """
        ops = [op for function in self.functions for op in function.walk() if op is not function]
        # Sizes follow from operands, through bodies of loops, and those of constants from what they are used with.
        while sum(map(self._follow, ops)):
            pass
        for function in self.functions:
            _close_function(function)
        # The size of a call follows from what its function returns, so that the error is about that.
        for function in reversed(self.functions):
            for op in function.walk():
                _refuse_dynamic(op)
        for op in ops:
            if op.id in self.static:
                _replace(op, self.static[op.id])
        for op in self.assertions.values():
            op.erase()
        self._fold_numbers()
        if self.static or self.assertions or self.numbers:
            erase_dead_ops(self.program, self.registry)

    def _fold_numbers(self) -> None:
        """Put constants in the places of the scalars that are known: the number of turns of a loop is one."""
        for function in self.functions:
            block = function.regions[0].blocks[0]
            values = [*block.arguments, *(value for op in list(function.walk()) for value in op.results)]
            for value in values:
                anchor = block.first if value.defining_op is None else value.defining_op
                numbers = self.numbers.get(value.id, (None,))
                is_number = None not in numbers and getattr(value.type, "element_type", "i1") != "i1"
                if not is_number or value.shape or anchor is None or not value.uses or _is_constant(value):
                    continue
                elements = RawAttribute(f"dense<{numbers[0]}> : {value.type}")
                constant = Op(self.program, CONSTANT, (), [value.type], {"value": elements})
                assert anchor.parent is not None
                anchor.parent.insert_before(anchor, constant)
                value.replace_all_uses_with(constant.result)

    def _follow(self, op: Op) -> bool:
        """Set the sizes of an op that follow from others, and return whether any is new."""
        if op.id in self.callees:
            return self._follow_call(op, self.callees[op.id])
        is_new = self._follow_op(op)
        # Only the sizes: what is counted in a loop changes.
        is_new |= sum(map(_unify_shapes, edge_values(op, self.registry))) > 0
        rule = self.rules.get(op.id)
        values = op.results if rule is None else [*op.results, *filter(_is_constant, op.operands)]
        if not any(is_dynamic(value.type) for value in values):
            return is_new
        if rule is not None:
            return self._follow_rule(op, rule) or is_new
        if op.name.startswith("sdy.") and not op.regions and len(op.operands) == len(op.results) == 1:
            # Constraints, reshards and collectives have the type of the whole tensor before and after.
            return self._unify([op.operands[0], op.results[0]]) or is_new
        return is_new

    def _follow_call(self, call: Op, function: Op) -> bool:
        return sum(map(self._unify, call_values(call, function))) > 0

    def _follow_op(self, op: Op) -> bool:
        """Set the sizes that the definition of an op gives to its results."""
        is_known = op.id in self.assertions or any(
            None not in self.numbers.get(value.id, (None,)) for value in op.results[:1]
        )
        sizes_of = None if is_known else self.registry.get_sizes(op)
        sizes = None if sizes_of is None else sizes_of(op, self._numbers_of)
        if sizes is None:
            return False
        if sizes.is_met:
            self.assertions[op.id] = op
        has_more_numbers = sizes.numbers is not None and sizes.numbers != self.numbers.get(op.results[0].id)
        if sizes.numbers is not None:
            self.numbers[op.results[0].id] = sizes.numbers
        if sizes.static is not None:
            self.static[op.id] = sizes.static
        is_new = _unify_dimensions(sizes.equal)
        if sizes.shape is not None and op.id in self.rules:
            is_new |= sum([_give_shape(value, sizes.shape) for value in op.results]) > 0
        return is_new or sizes.is_met or has_more_numbers

    def _numbers_of(self, value: Value) -> Numbers | None:
        return self.numbers.get(value.id)

    def _unify(self, values: Sequence[Value]) -> bool:
        """Give values of one shape the sizes and integers that any of them has, and return whether any are new."""
        known = [self.numbers[value.id] for value in values if value.id in self.numbers]
        joined = max(known, key=lambda numbers: sum(number is not None for number in numbers), default=None)
        changed = [value.id for value in values if joined is not None and self.numbers.get(value.id) != joined]
        self.numbers.update({number: joined for number in changed if joined is not None})
        return _unify_shapes(values) or bool(changed)

    def _follow_rule(self, op: Op, rule: OpShardingRule) -> bool:
        factors, is_new = _factor_sizes(op, rule), False
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
            is_new |= set_shape(value, shape)
        return is_new


def call_values(call: Op, function: Op) -> Iterator[tuple[Value, Value]]:
    """Yield the operands of a call with the arguments that get them, and what its function returns with its results."""
    ends = function.regions[0].blocks[0].terminator
    yield from zip(call.operands, entry_arguments(function), strict=True)
    yield from zip(() if ends is None else ends.operands, call.results, strict=True)


def edge_values(op: Op, registry: Registry) -> Iterable[Sequence[Value]]:
    """Return the values on each data-flow edge of an op, which have one shape."""
    data_flow = registry.get_data_flow(op) if op.regions else None
    if data_flow is None or op.name == MANUAL_COMPUTATION:  # whose body has the shapes of shards
        return ()
    members = edge_members(op, data_flow)
    edges: dict[int, list[Value]] = {}
    users = {user.id: user for user in (op, *(block.last for region in op.regions for block in region.blocks)) if user}
    for (user, number), owner in members.sources.items():
        edges.setdefault(owner.id, []).append(users[user].operands[number])
    targets = {value.id: value for value in (*region_arguments(op), *op.results)}
    for target, owner in members.targets.items():
        edges.setdefault(owner.id, []).append(targets[target])
    return edges.values()


def _close_function(function: Op) -> None:
    """Give the results and the type of a function the sizes of what it returns."""
    ends = function.regions[0].blocks[0].terminator
    operands = ends.operands if ends is not None else ()
    for value, operand in zip(function.function_results, operands, strict=True):
        value.type = operand.type
    types = [value.type for value in entry_arguments(function)], [value.type for value in operands]
    function.attributes["function_type"] = RawAttribute(str(function_type(*types)))


def _replace(op: Op, static: Callable[[Op], Value]) -> None:
    """Put a result of known sizes in the place of that of an op; its shardings stay."""
    value = static(op)
    if value.defining_op is not None:
        value.defining_op.attributes.update({name: item for name, item in op.attributes.items() if _is_of_shardy(name)})
    op.result.replace_all_uses_with(value)
    op.erase()


def _is_of_shardy(name: str) -> bool:
    return name.startswith("sdy.")


def _factor_sizes(op: Op, rule: OpShardingRule) -> dict[int, int]:
    """Return the sizes of factors that follow from those of the operands."""
    sizes: dict[int, int] = {}
    dims = [
        (size, [factor for factor in dim if rule.kind(factor) in SAME_SIZE])
        for value, mapping in zip(op.operands, rule.operand_mappings, strict=True)
        if isinstance(value.type, TensorType)
        for size, dim in zip(value.type.shape, mapping, strict=True)
        if size is not None and all(rule.kind(factor) in SAME_SIZE for factor in dim)
    ]
    for size, dim in dims:
        if len(dim) == 1 and sizes.setdefault(dim[0], size) != size:
            message = f"a dimension has the sizes {sizes[dim[0]]} and {size} in two operands"
            raise UnsupportedError(Diagnostic("size-conflict", message, op.location, op.name))
    for size, dim in dims:
        _solve(size, dim, rule, sizes)
    return sizes


def _solve(size: int, dim: list[int], rule: OpShardingRule, sizes: dict[int, int]) -> None:
    """Find the only unknown factor of a dimension; the others are known, or have a size by the rule."""
    static = {factor for factor in dim if factor not in sizes and rule.factor_sizes[factor] < _LEAST_STAND_IN}
    sizes |= {factor: rule.factor_sizes[factor] for factor in static}
    unknown = [factor for factor in dim if factor not in sizes]
    if len(unknown) == 1:
        rest = prod(sizes[factor] for factor in dim if factor in sizes)
        if rest and size % rest == 0:
            sizes[unknown[0]] = size // rest


def _refuse_dynamic(op: Op) -> None:
    """Check that the results of an op have sizes.

    Raises:
        UnsupportedError: one has none.
    """
    value = None if op.name == FUNCTION else next((item for item in op.results if is_dynamic(item.type)), None)
    if value is not None:
        message = f"the sizes of result {value.index} of type {value.type} do not follow from those of the operands"
        hint = "write the type with its sizes, or define the op with 'sizes', a function that returns them"
        raise UnsupportedError(Diagnostic("size-not-known", message, op.location, op.name, hint))


def _is_constant(value: Value) -> bool:
    """Return whether a value has no operands from which its sizes could follow."""
    return isinstance(value.owner, Op) and not value.owner.operands and not value.owner.regions


def _unify_shapes(values: Sequence[Value]) -> bool:
    """Give values of one shape the sizes that any of them has, and return whether there are new ones."""
    shapes = [value.type.shape for value in values if isinstance(value.type, TensorType)]
    if len({len(shape) for shape in shapes}) != 1:
        return False
    shape = tuple(next((size for size in sizes if size is not None), None) for sizes in zip(*shapes, strict=True))
    return sum(set_shape(value, shape) for value in values if is_dynamic(value.type)) > 0


def _unify_dimensions(dimensions: Sequence[tuple[Value, int]]) -> bool:
    """Give dimensions the size that any of them has, and return whether any is new."""
    known = [value.type.shape[dim] for value, dim in dimensions if isinstance(value.type, TensorType)]
    size = next((item for item in known if item is not None), None)
    is_new = False
    for value, dim in dimensions if size is not None else ():
        shape = list(getattr(value.type, "shape", ()))
        if shape and shape[dim] is None:
            shape[dim] = size
            is_new |= set_shape(value, tuple(shape))
    return is_new


def _give_shape(value: Value, shape: Sequence[int | None]) -> bool:
    """Fill the unknown sizes of a result, and return whether there were any that are known now.

    Raises:
        UnsupportedError: another size is known, such as that of what a loop carries, which it may not change.
    """
    known = value.type.shape if isinstance(value.type, TensorType) else ()
    if len(known) != len(shape):
        return False
    pairs = [*zip(known, shape, strict=True)]
    dim = next((number for number, pair in enumerate(pairs) if None not in pair and pair[0] != pair[1]), None)
    if dim is not None:
        op = value.defining_op
        assert op is not None
        message = f"dimension {dim} of result {value.index} has the size {shape[dim]} by the operands, and {known[dim]}"
        message += " where the result is used"
        hint = "give other sizes; what a loop carries keeps its sizes"
        raise UnsupportedError(Diagnostic("size-conflict", message, op.location, op.name, hint))
    return set_shape(value, tuple(new if size is None else size for size, new in pairs))


def set_shape(value: Value, shape: tuple[int | None, ...]) -> bool:
    """Set the shape of a value, and return whether it is another one."""
    type_ = value.type
    if not isinstance(type_, TensorType) or shape == type_.shape:
        return False
    value.type = TensorType(shape, type_.element_type)
    return True
