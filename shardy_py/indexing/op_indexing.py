"""Indexing maps of one op, in both directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import Factory, field

from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.indexing.indexing_map import IndexingMap


def _maps(values: Iterable[IndexingMap]) -> tuple[IndexingMap, ...]:
    return tuple(values)


def _maps_where_known(values: Iterable[IndexingMap | None]) -> tuple[IndexingMap | None, ...]:
    return tuple(values)


@frozen
class OpIndexing:
    """Indexing maps between the operands of an op and its first result.

    Args:
        output_to_input: Per operand, the map from an index of the result to the elements of the operand that are read.
        input_to_output: Per operand, the map from its index to the elements of the result that read it; None where
            there is no such map.
    """

    output_to_input: tuple[IndexingMap, ...] = field(converter=_maps)
    input_to_output: tuple[IndexingMap | None, ...] = field(
        default=Factory(lambda self: (None,) * len(self.output_to_input), takes_self=True), converter=_maps_where_known
    )
