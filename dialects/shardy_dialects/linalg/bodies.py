"""Bodies of linalg's ops: the combiners of their iterations, and their initial values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.program import Block, Op, Value
from shardy_py.sharding.combiner import Combiner
from shardy_py.values import frozen

_COMBINERS = {
    Combiner.ADD: ("arith.addf", "arith.addi"),
    Combiner.MUL: ("arith.mulf", "arith.muli"),
    Combiner.MAX: ("arith.maximumf", "arith.maxnumf", "arith.maxsi"),
    Combiner.MIN: ("arith.minimumf", "arith.minnumf", "arith.minsi"),
    Combiner.AND: ("arith.andi",),
    Combiner.OR: ("arith.ori",),
}
COMBINER_OF = {name: combiner for combiner, names in _COMBINERS.items() for name in names}
"""Unsigned comparisons of signless integers are not among them: collectives do not know that they are unsigned."""
_DIFFERENCES = ("arith.subf", "arith.subi")
_IDENTITIES = {Combiner.ADD: 0, Combiner.MUL: 1}


@frozen(slots=False)
class Body:
    """The region of an op that runs once per iteration: the arguments are elements of the inputs, then of the outputs.

    Args:
        block: Its only block.
        num_outputs: The number of the outputs.
    """

    block: Block
    num_outputs: int

    @classmethod
    def of(cls, op: Op) -> Body | None:
        """Return the body of an op, None where it has none."""
        if not op.regions or len(op.regions[0].blocks) != 1 or not op.results:
            return None
        return cls(op.regions[0].blocks[0], len(op.results))

    @property
    def outputs(self) -> list[Value]:
        """The arguments that are elements of the outputs."""
        return self.block.arguments[len(self.block.arguments) - self.num_outputs :]

    @cached_property
    def combiner(self) -> Combiner | None:
        """The combiner of iterations: each yielded value is one op of the output's element and of the inputs'.

        None where this is not so, or where outputs combine by other ops: the position of the largest element is no sum.
        """
        terminator = self.block.terminator
        yielded = terminator.operands if terminator is not None else ()
        if len(yielded) != self.num_outputs:
            return None
        combiners = {self._combiner_of(value, output) for value, output in zip(yielded, self.outputs, strict=True)}
        return combiners.pop() if len(combiners) == 1 else None

    @cached_property
    def contributions(self) -> list[Value]:
        """The values that an iteration combines with the elements of the outputs; of use where there is a combiner."""
        terminator = self.block.terminator
        pairs = zip(terminator.operands if terminator is not None else (), self.outputs, strict=True)
        return [other for value, output in pairs if (other := self._contribution(value, output)) is not None]

    def _combiner_of(self, value: Value, output: Value) -> Combiner | None:
        producer, other = value.defining_op, self._contribution(value, output)
        if producer is None or other is None or self._depends_on_outputs(other):
            return None
        is_difference = producer.name in _DIFFERENCES and producer.operands[0] is output
        return Combiner.ADD if is_difference else COMBINER_OF.get(producer.name)

    def _contribution(self, value: Value, output: Value) -> Value | None:
        """Return the other operand of the op of two operands that makes a value of an output's element, or None."""
        producer = value.defining_op
        if (
            producer is None
            or len(producer.operands) != 2
            or producer.parent is not self.block
            or output not in producer.operands
        ):
            return None
        first, second = producer.operands
        return second if first is output else first

    def _depends_on_outputs(self, value: Value) -> bool:
        """Return whether a value depends on elements of the outputs within the block."""
        outputs = {output.id for output in self.outputs}
        return any(source.id in outputs for source in _sources(value, self.block))

    @cached_property
    def read_loops(self) -> frozenset[int]:
        """The loops whose number of the iteration the body asks for: a shard would count its own iterations."""
        return frozenset(
            op.attributes["dim"]
            for op in self.block.walk()
            if op.name == "linalg.index" and isinstance(op.attributes.get("dim"), int)
        )


def _sources(value: Value, block: Block) -> Iterator[Value]:
    """Yield a value and all that it is made of within a block; regions count with all that they use."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if current.id in seen:
            continue
        seen.add(current.id)
        yield current
        producer = current.defining_op
        if producer is not None and producer.parent is block:
            waiting.extend(operand for inner in producer.walk() for operand in inner.operands)


def initial_outputs(op: Op, combiner: Combiner | None) -> list[int]:
    """Return the numbers of the output operands that a reduction starts from, but for those that change nothing.

    The largest or smallest may be taken of an initial value as often as one likes. Zeros of a sum do not count.

    Args:
        op: The op; its last operands are the outputs.
        combiner: How it combines.
    """
    identity = None if combiner is None else _IDENTITIES.get(combiner)
    if identity is None:
        return []
    first = len(op.operands) - len(op.results)
    return [number for number in range(first, len(op.operands)) if not _is_full_of(op.operands[number], identity)]


def _is_full_of(value: Value, number: int) -> bool:
    """Return whether all elements of a tensor are known to be a number, or to be undefined."""
    producer = value.defining_op
    while producer is not None and producer.name.startswith("sdy.") and len(producer.operands) == 1:
        producer = producer.operands[0].defining_op
    if producer is None:
        return False
    if producer.name in ("linalg.fill", "tensor.splat"):
        return _is_full_of(producer.operands[0], number)
    return producer.name == "tensor.empty" or (producer.name == "arith.constant" and _is_splat(producer, number))


def _is_splat(constant: Op, number: int) -> bool:
    elements: object = constant.attributes.get("value")
    if isinstance(elements, (int, float)):
        return elements == number
    if isinstance(elements, DenseElements):
        return bool(elements.values) and all(item == number for item in elements.values)
    text = str(elements).removeprefix("dense<").partition(">")[0]
    try:
        return float(text) == number
    except ValueError:
        return text == ("true" if number else "false")
