"""Labels of rows: what an op computes, in which layer and with which parameter: ``nd,df->nf  layer_3/mlp/up``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import field

from shardy_py.explain.explore.equations import equation_of, letters_of
from shardy_py.explain.explore.scopes import BACKWARD, NameStack, parse_scope
from shardy_py.explain.explore.updates import OPTIMIZER, Updates
from shardy_py.explain.explore.value_paths import is_layout_op, join_numbers, parse_path, short_name, source_of
from shardy_py.ir.graph.op_names import CALL
from shardy_py.ir.graph.program import Op
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import frozen


@frozen
class RowLabel:
    """The label of an op.

    Args:
        what: What it computes: the equation of a product, else the name of its primitive.
        where: The layer, with the parameter that it uses.
    """

    what: str
    where: str


@frozen(eq=False)
class Labeller:
    """Labels of the ops of a program.

    Args:
        names: Value id of an argument of the main function to its name.
        rule_of: Gives the rule of an op, or None.
        updates: The updates of parameters.
    """

    names: Mapping[int, str]
    rule_of: Callable[[Op], OpShardingRule | None]
    updates: Updates
    _sizes: dict[tuple[tuple[str, ...], str], dict[str, int]] = field(factory=dict, init=False)

    def label(self, op: Op) -> RowLabel:
        """Return the label of an op."""
        stack = parse_scope(op.scope)
        rule = self.rule_of(op)
        equation = "" if rule is None else self._equation(rule, stack)
        return RowLabel(equation or _primitive(op, stack), "/".join(self._where(op, stack)))

    def _equation(self, rule: OpShardingRule, stack: NameStack) -> str:
        """Return the equation of a product; gradients have the letters, and their sizes, of what they differentiate."""
        if not stack.equation:
            return equation_of(rule)
        key = (stack.layers, stack.equation)
        if stack.phase == BACKWARD:
            return equation_of(rule, stack.equation, is_backward=True, sizes=self._sizes.get(key, {}))
        equation = equation_of(rule, stack.equation)
        letters = next(letters_of(rule, stack.equation), None)
        # Other ops of an einsum, such as the transpose of its result, say nothing about the sizes of its letters.
        if equation and letters is not None:
            self._sizes[key] = {letter: rule.factor_sizes[factor] for factor, letter in letters.items()}
        return equation

    def _where(self, op: Op, stack: NameStack) -> Iterator[str]:
        if op.id in self.updates.parameters:
            yield OPTIMIZER
            yield from join_numbers(self.updates.parameters[op.id])
            return
        if stack.phase == BACKWARD:
            yield BACKWARD
        yield from stack.layers
        if op.id in self.updates.gradients:
            path = join_numbers(self.updates.gradients[op.id])
            yield f"{'/'.join(path[-1:] if stack.layers else path)} gradient"
            return
        parameters = self._parameters(op, in_layer=bool(stack.layers))
        if parameters:
            yield ", ".join(parameters)

    def _parameters(self, op: Op, *, in_layer: bool) -> tuple[str, ...]:
        """Return the names of the arguments among the operands; those of trees, where there are any."""
        names = [self.names[source.id] for source in map(source_of, op.operands) if source.id in self.names]
        leaves = [name for name in names if len(parse_path(name)) > 1]
        return tuple(dict.fromkeys(short_name(name, in_layer=in_layer) for name in leaves or names))


def _primitive(op: Op, stack: NameStack) -> str:
    """Return the name of a primitive of JAX, or that of the op behind the name of its dialect."""
    if op.name == CALL:
        return f"call @{op.attributes['callee'].name}"
    if is_layout_op(op.name):
        # JAX names a broadcast after the op that it is for.
        return op.name.partition(".")[2]
    return stack.primitive if stack.primitive and "/" in op.scope else op.name.partition(".")[2] or op.name


def distinguish(labels: Iterable[RowLabel], results: Iterable[str]) -> list[str]:
    """Return a mark for each op that distinguishes it from ops with an equal label: its result, or a number.

    Args:
        labels: The labels.
        results: The name of the first result of each op, or "".
    """
    pairs = list(zip(labels, results, strict=True))
    counts = Counter(label for label, _ in pairs)
    seen: Counter[Any] = Counter()
    marks = []
    for label, result in pairs:
        mark = ""
        if counts[label] > 1:
            seen[label] += 1
            seen[label, result] += 1
            mark = result if result and seen[label, result] == 1 else f"#{seen[label]}"
        marks.append(mark)
    return marks
