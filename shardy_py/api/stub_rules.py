"""Stub plugins: a guessed rule or data flow for each op kind without one, as text to start from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from keyword import iskeyword

from attrs import fields

from shardy_py.errors import RuleError
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.ir.graph.types import TensorType, Type, static_shape
from shardy_py.plugins import BranchDataFlow, LoopDataFlow
from shardy_py.plugins.check_data_flow import data_flow_problems
from shardy_py.values import frozen

_HEADER = "import shardy_py as sdy\n"
_FOOTER = """

@sdy.hookimpl
def shardy_register_dialects():
    return [{dialects}]
"""

_Place = tuple[str, int, int]
"""``operand`` or ``result``, its number, and the dimension."""


@frozen
class _Factor:
    """A guessed factor: one dimension per tensor, and the text that says its size."""

    operand_dims: tuple[int | None, ...]
    result_dims: tuple[int | None, ...]
    size: str

    @property
    def is_reduction(self) -> bool:
        """True where only operands have it."""
        return all(dim is None for dim in self.result_dims)


Condition = tuple[tuple[str, str | int], ...]
"""The attributes that tell an op from others of its name, with their values."""
Made = dict[tuple[str, Condition, int], str]
"""The stub of each name and condition, and for how many ops it was made."""


def condition_of(op: Op, told_apart_by: str) -> Condition:
    """Return the attribute, with its value, that distinguishes an op from others of its name, if any."""
    value = op.attributes.get(told_apart_by) if told_apart_by else None
    return ((told_apart_by, value),) if isinstance(value, (str, int)) else ()


def stub_rules(
    ops: Iterable[Op], *, stubs: Made | None = None, condition: Callable[[Op], Condition] = lambda op: ()
) -> str:
    """Return the text of a plugin for some ops: guessed rules, data flow of ops with regions, traits of terminators.

    Dimensions of equal size are taken for the same factor, from left to right; factors that no result has, for
    reductions. A dimension without a partner propagates nothing. Rules are on one line where sizes are known, and one
    guess fits all ops of the name; otherwise a function tells the types apart.

    Args:
        ops: The ops.
        stubs: Stubs of ops of the same program, all of a name or a part of them; the new ones are added.
        condition: Returns what tells an op from others of its name that need another rule.
    """
    stubs = {} if stubs is None else stubs
    by_dialect: dict[str, dict[tuple[str, Condition], list[Op]]] = {}
    for op in ops:
        by_dialect.setdefault(op.name.split(".", 1)[0], {}).setdefault((op.name, condition(op)), []).append(op)
    parts = [_HEADER]
    for namespace, members in by_dialect.items():
        dialect = _identifier(namespace)
        parts.append(f"\n{dialect} = sdy.Dialect({_quoted(namespace)})\n")
        for (name, op_condition), same in members.items():
            key = name, op_condition, len(same)
            if key not in stubs:
                stubs[key] = _stub(dialect, same, op_condition)
            parts.append(stubs[key])
    return "".join(parts) + _FOOTER.format(dialects=", ".join(_identifier(name) for name in by_dialect))


def _stub(dialect: str, ops: Sequence[Op], condition: Condition) -> str:
    name = _quoted(ops[0].name)
    if is_unmarked_terminator(ops[0]):
        return f"\n{dialect}.op({name}, traits=[sdy.IsTerminator])\n"
    if has_tensors_inside(ops[0]):
        flow = guess_data_flow(ops)
        if flow:
            comment = f"# Guessed from the types of {_types(ops[0])}; check which values are the same."
            return f"\n{comment}\n{dialect}.op({name}, data_flow={flow}, traits=[sdy.RecursiveMemoryEffects])\n"
        return f"\n# {ops[0].name} has regions: write its data flow, see sdy.ShardableDataFlowOpInterface.\n"
    return _line(dialect, ops, condition) or _function(dialect, ops, condition)


def _when(condition: Condition) -> str:
    """Return the argument that says which ops of the name a definition is about."""
    if not condition:
        return ""
    items = ", ".join(
        f"{_quoted(name)}: {_quoted(value) if isinstance(value, str) else value}" for name, value in condition
    )
    return f", when={{{items}}}"


def _quoted(name: str) -> str:
    import json

    return json.dumps(name, ensure_ascii=False)


def has_tensors_inside(op: Op) -> bool:
    """Return whether tensors with dimensions are in the regions of an op."""
    blocks = [block for region in op.regions for block in region.blocks]
    inside = [inner for block in blocks for inner in block.walk()]
    values = [value for block in blocks for value in block.arguments]
    values += [value for inner in inside for value in (*inner.operands, *inner.results)]
    return any(isinstance(value.type, TensorType) and value.type.rank > 0 for value in values)


def _has_known_sizes(value: Value) -> bool:
    return not isinstance(value.type, TensorType) or value.type.is_static


def _line(dialect: str, ops: Sequence[Op], condition: Condition) -> str:
    """Return a stub with the rule as a text, "" where none fits all of the ops."""
    if not all(_has_known_sizes(value) for op in ops for value in (*op.operands, *op.results)):
        return ""
    arguments = _rule_arguments(ops[0])
    if not all(_fits(arguments, op) for op in _one_per_types(ops)):
        return ""
    comment = f"# Guessed from the sizes of {_types(ops[0])}; check every factor."
    return f"\n{comment}\n{dialect}.op({_quoted(ops[0].name)}{_when(condition)}, rule={_written(arguments)})\n"


def _one_per_types(ops: Iterable[Op]) -> Iterable[Op]:
    """Return the last op of each list of types."""
    return {(len(op.operands), *[value.type for value in (*op.operands, *op.results)]): op for op in ops}.values()


def _rule_arguments(op: Op) -> tuple[str, str, str]:
    """Return the text of a guessed rule, its reduction factors, and those that only one operand has.

    Nobody knows how an op combines what is along the latter, so that they need replication.
    """
    factors = _guess(op)
    names = _names()
    letters: dict[_Place, str] = {}
    for kind, tensors in _sides(op):
        for number, value in enumerate(tensors):
            for dim in range(len(_sizes(value))):
                if (kind, number, dim) not in letters:
                    letters.update(dict.fromkeys(_places_of(factors, (kind, number, dim)), next(names)))
    text = " -> ".join(_tensors(kind, tensors, letters) for kind, tensors in _sides(op)).strip()
    reduced = [letters[_places(factor)[0]] for factor in factors if factor.is_reduction]
    operand_letters = dict.fromkeys(letter for (kind, _, _), letter in letters.items() if kind == "operand")
    has_it = {letter for (kind, _, _), letter in letters.items() if kind == "result"}
    alone = [letter for letter in operand_letters if letter not in has_it and letter not in reduced]
    return text, ", ".join(reduced), ", ".join(alone)


def _written(arguments: tuple[str, str, str]) -> str:
    text, reduced, alone = arguments
    kinds = f', reduction="{reduced}"' if reduced else ""
    return f'"{text}"{kinds}' + (f', need_replication="{alone}"' if alone else "")


def _fits(arguments: tuple[str, str, str], op: Op) -> bool:
    from shardy_py.sharding.einsum import rule

    try:
        rule(arguments[0], reduction=arguments[1], need_replication=arguments[2])(op)
    except RuleError:
        return False
    return True


def _sides(op: Op) -> tuple[tuple[str, Sequence[Value]], tuple[str, Sequence[Value]]]:
    return ("operand", op.operands), ("result", op.results)


def _tensors(kind: str, tensors: Sequence[Value], letters: Mapping[_Place, str]) -> str:
    """Return one side of the arrow."""
    dims = [[letters[kind, number, dim] for dim in range(len(_sizes(value)))] for number, value in enumerate(tensors)]
    return ", ".join(map(" ".join, dims))


def _places(factor: _Factor) -> list[_Place]:
    """Return all dimensions of a factor."""
    sides = (("operand", factor.operand_dims), ("result", factor.result_dims))
    return [(kind, number, dim) for kind, dims in sides for number, dim in enumerate(dims) if dim is not None]


def _places_of(factors: list[_Factor], place: _Place) -> list[_Place]:
    """Return all dimensions that share the factor of one; a dimension without a factor is alone."""
    return next((places for places in map(_places, factors) if place in places), [place])


def _names() -> Iterator[str]:
    """Yield names of factors, the usual ones first."""
    yield from "ijklmnopqrstuvwxyzabcdefgh"
    yield from (f"d{number}" for number in count())


def _function(dialect: str, ops: Sequence[Op], condition: Condition) -> str:
    """Return a stub with a function that makes the rules."""
    by_types: dict[tuple[str, ...], Op] = {}
    for op in ops:
        by_types.setdefault(tuple(str(value.type) for value in (*op.operands, *op.results)), op)
    lines = [
        f"\n\n@{dialect}.op({_quoted(ops[0].name)}{_when(condition)})",
        f"def {_identifier(_function_name(ops[0], condition))}(op):",
        f'    """Guessed from the sizes of {_types(ops[0])}; check every factor."""',
    ]
    if len(by_types) == 1:
        return "\n".join([*lines, *_body(ops[0], "    "), ""])
    lines.append("    types = tuple(str(value.type) for value in (*op.operands, *op.results))")
    for types, op in by_types.items():
        lines.append(f"    if types == {types!r}:")
        lines += _body(op, "        ")
    return "\n".join([*lines, "    return None", ""])


def _function_name(op: Op, condition: Condition) -> str:
    return str(condition[0][1]) if condition else op.name.split(".", 1)[-1]


def _body(op: Op, indent: str) -> list[str]:
    """Return the lines of a function that return the rule of one op."""
    arguments = _rule_arguments(op)
    if all(map(_has_known_sizes, (*op.operands, *op.results))) and _fits(arguments, op):
        return [f"{indent}return sdy.rule({_written(arguments)})"]
    calls = [f"{indent}{_call(factor)}" for factor in _guess(op)]
    return [f"{indent}rule = sdy.OpShardingRuleBuilder.for_op(op)", *calls, f"{indent}return rule.build()"]


def _types(op: Op) -> str:
    operands, results = (", ".join(str(value.type) for value in side) or "()" for side in (op.operands, op.results))
    return f"{operands} -> {results}"


def _call(factor: _Factor) -> str:
    kind = ", kind=sdy.FactorKind.REDUCTION" if factor.is_reduction else ""
    return f"rule.add_factor({list(factor.operand_dims)}, {list(factor.result_dims)}, {factor.size}{kind})"


def _guess(op: Op) -> list[_Factor]:
    """Tie dimensions of equal size: those of each result to operands, then the rest among operands."""
    operands, results = [_sizes(value) for value in op.operands], [_sizes(value) for value in op.results]
    used: set[_Place] = set()
    factors = []
    for kind, tensors in (("result", results), ("operand", operands)):
        for number, sizes in enumerate(tensors):
            for dim, size in enumerate(sizes):
                if size <= 1 or (kind, number, dim) in used:
                    continue
                factor = _Factor(
                    _take(operands, "operand", size, used),
                    _take(results, "result", size, used),
                    f"op.{kind}s[{number}].type.shape[{dim}]",
                )
                if sum(dim_of_tensor is not None for dim_of_tensor in (*factor.operand_dims, *factor.result_dims)) > 1:
                    factors.append(factor)
    return factors


def _take(tensors: list[tuple[int, ...]], kind: str, size: int, used: set[_Place]) -> tuple[int | None, ...]:
    """Take the first free dimension of a size from each tensor."""
    dims: list[int | None] = []
    for number, sizes in enumerate(tensors):
        free = (dim for dim, other in enumerate(sizes) if other == size and (kind, number, dim) not in used)
        dim = next(free, None)
        dims.append(dim)
        if dim is not None:
            used.add((kind, number, dim))
    return tuple(dims)


def _sizes(value: Value) -> tuple[int, ...]:
    return static_shape(value.type) or ()


def _identifier(name: str) -> str:
    identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
    reserved = iskeyword(identifier) or identifier in ("op", "rule", "sdy") or identifier[:1].isdigit()
    return f"_{identifier}" if reserved else identifier


def is_unmarked_terminator(op: Op) -> bool:
    """Return whether an op ends the block of an op with regions, other than a function, and hands something out."""
    block = op.parent
    parent = None if block is None else block.parent_op
    if parent is None or parent.name == FUNCTION or op.next is not None:
        return False
    return bool(op.operands) and not op.results and not op.regions


def guess_data_flow(ops: Sequence[Op]) -> str:
    """Return a text that makes a data flow that is valid for all of some ops of one name, "" where none is found.

    Operands, arguments, what regions hand back and results are tied where their types are the same, in order.
    """
    for flow in _candidates(ops[0]):
        is_loop = isinstance(flow, LoopDataFlow)
        if all((_is_loop(op, flow) if is_loop else _is_branch(op, flow)) for op in ops) and _is_valid(ops, flow):
            return _text(flow)
    return ""


def _is_valid(ops: Sequence[Op], flow: LoopDataFlow | BranchDataFlow) -> bool:
    return not any(list(data_flow_problems(op, flow)) for op in ops)


def _candidates(op: Op) -> Iterator[LoopDataFlow | BranchDataFlow]:
    """Yield loops and branches, the ordinary ones first: carried values come last."""
    count = len(op.results)
    blocks = _blocks(op)
    arguments = max((len(block.arguments) for block in blocks), default=0)
    yielded = max((len(_yielded(block)) for block in blocks), default=0)
    for yielding in (None, *((number,) for number in range(len(op.regions)))) if count else ():
        for first_operand in _offsets(len(op.operands), count):
            for first_argument in _offsets(arguments, count):
                for first_yielded in _offsets(yielded, count):
                    yield LoopDataFlow(first_operand, first_argument, first_yielded, yielding=yielding)
    for first_yielded in _offsets(yielded, count):
        for first_operand in _offsets(len(op.operands), arguments) if arguments else ():
            yield BranchDataFlow(first_yielded, first_operand=first_operand)
        yield BranchDataFlow(first_yielded)


def _offsets(available: int, count: int) -> list[int]:
    """Return where so many values may begin, the last place first."""
    return list(range(max(available - count, 0), -1, -1))


def _is_loop(op: Op, flow: LoopDataFlow | BranchDataFlow) -> bool:
    if not isinstance(flow, LoopDataFlow):
        return False
    wanted = _types_of(op.results)
    if not wanted or _slice(op.operands, flow.first_operand, len(wanted)) != wanted:
        return False
    blocks = _blocks(op)
    has_arguments = any(block.arguments for block in blocks)
    if not has_arguments and len(op.operands) != len(wanted):
        return False
    if has_arguments and any(_slice(block.arguments, flow.first_argument, len(wanted)) != wanted for block in blocks):
        return False
    numbers = range(len(op.regions)) if flow.yielding is None else flow.yielding
    ends = [
        _yielded(region.blocks[0]) for number, region in enumerate(op.regions) if region.blocks and number in numbers
    ]
    return bool(ends) and all(_slice(end, flow.first_yielded, len(wanted)) == wanted for end in ends)


def _is_branch(op: Op, flow: LoopDataFlow | BranchDataFlow) -> bool:
    wanted, first_operand = _types_of(op.results), getattr(flow, "first_operand", None)
    ends = [_yielded(block) for block in _blocks(op)]
    if first_operand is not None:
        operand_types = _types_of(op.operands[first_operand:])
        if any(_types_of(block.arguments) != operand_types for block in _blocks(op)):
            return False
    return all(_slice(end, flow.first_yielded, len(wanted)) == wanted for end in ends)


def _blocks(op: Op) -> list[Block]:
    return [region.blocks[0] for region in op.regions if region.blocks]


def _yielded(block: Block) -> Sequence[Value]:
    return block.terminator.operands if block.terminator is not None else ()


def _types_of(values: Sequence[Value]) -> list[Type]:
    return [value.type for value in values]


def _slice(values: Sequence[Value], first: int, count: int) -> list[Type]:
    return _types_of(values[first : first + count])


def _text(flow: LoopDataFlow | BranchDataFlow) -> str:
    values = ((item.name, getattr(flow, item.name), item.default) for item in fields(type(flow)))
    arguments = [f"{name}={value!r}" for name, value, default in values if value != default]
    return f"sdy.{type(flow).__name__}({', '.join(arguments)})"
