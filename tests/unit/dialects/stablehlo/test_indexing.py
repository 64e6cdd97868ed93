"""Indexing maps of StableHLO's ops in both directions."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from shardy_py import tensor
from shardy_py.indexing import IndexingMap, OpIndexing
from shardy_py.ir.graph.attributes import DenseElements
from tests.unit.dialects.stablehlo.ops import REGISTRY, make_op

COLUMNS = DenseElements((2,), (0, 1))

CASES: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("add", [(2, 3), (2, 3)], [(2, 3)], {}),
    ("clamp", [(), (2, 3), ()], [(2, 3)], {}),
    ("broadcast_in_dim", [(3,)], [(2, 3, 4)], {"broadcast_dimensions": (1,)}),
    ("broadcast_in_dim", [(2, 1)], [(2, 3)], {"broadcast_dimensions": (0, 1)}),
    ("transpose", [(2, 3, 4)], [(4, 2, 3)], {"permutation": (2, 0, 1)}),
    ("reshape", [(4, 6)], [(2, 3, 4)], {}),
    ("slice", [(7, 5)], [(3, 4)], {"start_indices": (1, 0), "limit_indices": (6, 4), "strides": (2, 1)}),
    ("reverse", [(3, 4)], [(3, 4)], {"dimensions": (1,)}),
    ("concatenate", [(2, 3), (2, 1), (2, 4)], [(2, 8)], {"dimension": 1}),
    ("reduce", [(2, 3, 4), ()], [(3,)], {"dimensions": (0, 2)}),
    ("mhlo.bitcast", [(4, 6)], [(6, 4)], {"source_layout": COLUMNS}),
    ("bitcast_convert", [(2, 3)], [(2, 3)], {}),
    ("bitcast_convert", [(2, 3)], [tensor(2, 3, 4, dtype="i8")], {}),
    ("bitcast_convert", [tensor(2, 3, 2, dtype="bf16")], [(2, 3)], {}),
]


def indexing_of(name: str, operands: list[Any], results: list[Any], attributes: dict[str, Any]) -> OpIndexing:
    """Return the maps of one op."""
    actual = REGISTRY.get_indexing(make_op(name, operands, results, **attributes))
    assert actual is not None
    return actual


def pairs(map_: IndexingMap) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return all pairs of an index and one that it is mapped to."""
    bounds = [range(bound.interval.lower, bound.interval.upper + 1) for bound in map_.variables.values()]
    rank = len(map_.dims)
    return {
        (point[:rank], tuple(map_.evaluate(point[:rank], point[rank:])))
        for point in product(*bounds)
        if map_.holds(point[:rank], point[rank:])
    }


@pytest.mark.parametrize(("name", "operands", "results", "attributes"), CASES, ids=lambda value: str(value))
def test_both_directions_say_the_same(name: str, operands: list[Any], results: list[Any], attributes: Any) -> None:
    """An element of the result reads an element of an operand just where the map back goes from this one to that."""
    indexing = indexing_of(name, operands, results, attributes)
    for read, written in zip(indexing.output_to_input, indexing.input_to_output, strict=True):
        assert written is not None
        assert {(source, target) for target, source in pairs(read)} == pairs(written)


def test_some_ops_have_one_direction() -> None:
    """Elements that pads and dynamic slices read have no map back."""
    pad = {"edge_padding_low": (1,), "edge_padding_high": (1,), "interior_padding": (0,)}
    assert indexing_of("pad", [(3,), ()], [(5,)], pad).input_to_output == (None, None)
    dynamic = indexing_of("dynamic_slice", [(8,), ()], [(4,)], {"slice_sizes": (4,)})
    assert dynamic.input_to_output == (None, None)
