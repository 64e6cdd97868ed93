"""Explanation of a tensor, by names."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.explain.answer.moves import Chain, chain_lines
from shardy_py.explain.answer.refusals import MissingAxis, refusal_lines
from shardy_py.trace.places import at_place
from shardy_py.values import frozen


@frozen
class DimensionExplanation:
    """The sharding of a dimension, with the chains of its axes and the refusals of the others.

    Args:
        dimension: The number of the dimension.
        size: Its size; -1 where it is unknown.
        sharding: Its sharding after propagation.
        present: The chains of its axes.
        missing: The other axes of the mesh, with refusals.
    """

    dimension: int
    size: int
    sharding: str
    present: tuple[Chain, ...]
    missing: tuple[MissingAxis, ...]


@frozen
class ValueExplanation:
    """The sharding of a tensor, explained dimension by dimension.

    Args:
        value: Its name.
        type: Its type.
        op: The op that makes it, or "".
        location: The place of that op in the source, or "".
        sharding: Its sharding after propagation, or "" for none.
        final: Its sharding in the result, or "" where the result does not have it.
        carrier: The tensor that carries its sharding, where that is another one of the same data-flow edge, or "".
        dimensions: The dimensions that were asked for.
        printed: Its name in the text, where that is another one, or "".
    """

    value: str
    type: str
    op: str
    location: str
    sharding: str
    final: str
    carrier: str
    dimensions: tuple[DimensionExplanation, ...]
    printed: str = ""

    def __str__(self) -> str:
        return "\n".join(_value_lines(self))


def _value_lines(explanation: ValueExplanation) -> Iterator[str]:
    made = f", made by {explanation.op}" if explanation.op else ""
    place = at_place(explanation.location)
    printed = f" = {explanation.printed}" if explanation.printed else ""
    yield f"{explanation.value}{printed}: {explanation.type}{made}{place}"
    if explanation.carrier:
        yield f"  its sharding is that of the data-flow edge of {explanation.carrier}"
    yield f"  sharding: {explanation.sharding or 'none'}"
    if explanation.final and _placed(explanation.final) != _placed(explanation.sharding):
        yield f"  in the result: {explanation.final}"
    for dimension in explanation.dimensions:
        yield ""
        yield from _dimension_lines(dimension)


def _placed(sharding: str) -> str:
    """Return a sharding without what only says whether it may change."""
    return sharding.replace(", ?", "").replace("?", "")


def _dimension_lines(one: DimensionExplanation) -> Iterator[str]:
    size = f" of size {one.size}" if one.size >= 0 else ""
    yield f"dimension {one.dimension}{size}: {one.sharding or 'no sharding'}"
    for chain in one.present:
        yield f"  {chain.axis} comes from {chain.origin.annotation}, dimension {chain.origin.dimension}"
        yield from (f"    {line}" for line in chain_lines(chain))
    for missing in one.missing:
        yield f"  {missing.axis} is not there"
        yield from (f"    {line}" for line in refusal_lines(missing.reasons))
