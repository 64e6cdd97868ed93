"""The ways of values to their users, through the collectives of a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import field

from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    REDUCE_SCATTER,
    RESHARD,
)
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen

SUMS = frozenset((ALL_REDUCE, REDUCE_SCATTER))
"""The collectives that combine partial results."""
STEPS = SUMS | {ALL_GATHER, ALL_SLICE, ALL_TO_ALL, COLLECTIVE_PERMUTE, RESHARD}
"""The collectives, and reshards that are to become some."""


@frozen(eq=False)
class Route:
    """The way of a value to one operand of an op that is not a collective.

    Args:
        user: The op.
        number: The number of the operand.
        sharding: The sharding that the operand has there; None where it is whole.
        steps: The collectives on the way, in order.
        summed_axes: The axes along which partial results are combined on the way.
    """

    user: Op
    number: int
    sharding: TensorSharding | None
    steps: tuple[Op, ...]
    summed_axes: tuple[AxisRef, ...]


@define(eq=False)
class Routes:
    """The routes of all values of a program.

    Attributes:
        program: The program.
        semantics: What is known about ops.
        is_fixed: Whether no sharding changes while the routes are in use. Equal shardings are one object then.
        one_object: That object for each sharding; routes that come later may know it, too.
    """

    program: Program
    semantics: OpSemantics
    is_fixed: bool = False
    one_object: dict[TensorSharding | None, TensorSharding | None] = field(factory=dict)
    _known: dict[int, Sequence[Route]] = field(factory=dict, init=False)
    _shardings: dict[int, TensorSharding | None] = field(factory=dict, init=False)

    def sharding(self, value: Value) -> TensorSharding | None:
        """Return the sharding of a value, also of one on a data-flow edge that another value owns."""
        if value.id in self._shardings:
            return self._shardings[value.id]
        carrier = shardable_value(value, self.semantics)
        sharding = self.program.sharding(value if carrier is None else carrier)
        if self.is_fixed:
            sharding = self._shardings[value.id] = self.same(sharding)
        return sharding

    def same(self, sharding: TensorSharding | None) -> TensorSharding | None:
        """Return the one object for equal shardings."""
        return self.one_object.setdefault(sharding, sharding)

    def of(self, value: Value) -> Sequence[Route]:
        """Return the routes of a value that is not the result of a collective."""
        if value.id not in self._known:
            self._known[value.id] = tuple(self._from(value, ()))
        return self._known[value.id]

    def _from(self, value: Value, steps: tuple[Op, ...]) -> Iterator[Route]:
        for user, number in value.uses:
            if user.name in STEPS:
                yield from self._from(user.results[0], (*steps, user))
            else:
                summed = tuple(axis for step in steps if step.name in SUMS for axis in _summed_axes(step))
                yield Route(user, number, self.sharding(value), steps, summed)


def source_of(value: Value) -> Value:
    """Return the value from which collectives made another one."""
    producer = value.defining_op
    while producer is not None and producer.name in STEPS:
        value = producer.operands[0]
        producer = value.defining_op
    return value


def erase_unused_steps(routes: Iterable[Route]) -> None:
    """Erase the steps of routes whose results nothing uses any more, the last ones first."""
    depths = {step: depth for route in routes for depth, step in enumerate(route.steps)}
    for step in sorted(depths, key=lambda step: -depths[step]):
        if not step.results[0].uses:
            step.erase()


def _summed_axes(step: Op) -> Iterator[AxisRef]:
    if step.name == ALL_REDUCE:
        yield from step.attributes["reduction_axes"].axes
    else:
        yield from step.attributes["reduce_scatter_axes"].axes()
