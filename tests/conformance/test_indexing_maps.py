"""Indexing maps agree with those of XLA, in values and in text."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy
import pytest

from shardy_py.indexing import IndexingMap, compose, op_maps, simplify

DEFAULT = Path(__file__).parents[3] / "shared" / "reference" / "xla_gpu" / "indexing_maps.json"
FILE = Path(os.environ.get("SHARDY_INDEXING_MAPS", DEFAULT))
REQUIRED = 0.95
RANDOM_FROM = 55

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's indexing maps are not beside the project"),
]


def cases(kind: str) -> list[Mapping[str, Any]]:
    """The cases of a kind."""
    return [case for case in json.loads(FILE.read_text())["cases"] if case["kind"] == kind]


def maps_of(case: Mapping[str, Any]) -> list[IndexingMap]:
    """The maps of an op's operands, made by us."""
    output = case.get("output", ())
    backwards = case["direction"] == "input_to_output"
    match case["op"]:
        case "elementwise":
            return [op_maps.identity(output) if shape else op_maps.scalar(output) for shape in case["operands"]]
        case "broadcast" if backwards:
            return [op_maps.broadcast_to_output(case["input"], output, case["dimensions"])]
        case "broadcast":
            return [op_maps.broadcast(output, case["dimensions"])]
        case "transpose" if backwards:
            return [op_maps.transpose_to_output(case["input"], case["permutation"])]
        case "transpose":
            return [op_maps.transpose(output, case["permutation"])]
        case "reshape":
            return [op_maps.reshape(*((case["input"], output) if backwards else (output, case["input"])))]
        case "slice" if backwards:
            return [op_maps.slice_to_output(case["input"], output, case["starts"], case["strides"])]
        case "slice":
            return [op_maps.slice_(output, case["starts"], case["strides"])]
        case "reverse":
            return [op_maps.reverse(output or case["input"], case["dimensions"])]
        case "pad":
            return [op_maps.pad(output, case["low"], case["high"], case["interior"]), op_maps.scalar(output)]
        case "concatenate" if backwards:
            return [op_maps.concatenate_to_output(case["input"], case["dimension"], case["offset"])]
        case "concatenate":
            return list(_concatenated(case))
        case "reduce" if backwards:
            return [op_maps.reduce_to_output(case["input"], case["dimensions"])]
        case "reduce":
            half = len(case["maps"]) // 2
            operand = op_maps.reduce(output, case["input"], case["dimensions"])
            return [operand] * half + [op_maps.scalar(output)] * half
        case "dot_general":
            fields = ("lhs_batch", "rhs_batch", "lhs_contracting", "rhs_contracting")
            numbers = op_maps.DotDimensions(**{name: tuple(case[name]) for name in fields})
            return list(op_maps.dot(output, case["lhs"], case["rhs"], numbers))
        case "reduce_window":
            fields = ("strides", "window_dilations", "base_dilations", "low", "high")
            window = op_maps.SlidingWindow(size=tuple(case["window"]), **{name: tuple(case[name]) for name in fields})
            return [op_maps.reduce_window(output, case["input"], window), op_maps.scalar(output)]
        case "dynamic_slice":
            return [op_maps.dynamic_slice(output, case["input"])] + [op_maps.scalar(output)] * len(output)
        case "dynamic_update_slice":
            update = op_maps.dynamic_update(output, case["update"])
            return [op_maps.identity(output), update, *[op_maps.scalar(output)] * len(output)]
        case "gather":
            return list(op_maps.gather(output, case["operand"], case["slice_sizes"], case["start_index_map"]))
    raise AssertionError(f"no maps for {case['op']}")


def _concatenated(case: Mapping[str, Any]) -> Iterator[IndexingMap]:
    offset = 0
    for shape in case["inputs"]:
        size = shape[case["dimension"]]
        yield op_maps.concatenate(case["output"], case["dimension"], offset, size)
        offset += size


def same_values(ours: IndexingMap, theirs: IndexingMap) -> bool:
    """Whether two maps over the same variables have the same domain and values, at up to some 20,000 points.

    Their bounds may differ where constraints say the same.
    """
    if ours.is_known_empty or theirs.is_known_empty:
        return ours.is_known_empty == theirs.is_known_empty
    if [len(ours.dims), len(ours.ranges), len(ours.runtimes)] != [
        len(theirs.dims),
        len(theirs.ranges),
        len(theirs.runtimes),
    ]:
        return False
    random = numpy.random.default_rng(0)
    both = zip(ours.variables.values(), theirs.variables.values(), strict=True)
    hulls = [(min(a.interval.lower, b.interval.lower), max(a.interval.upper, b.interval.upper)) for a, b in both]
    values = [numpy.concatenate([random.integers(low, high + 1, 20_000), [low, high]]) for low, high in hulls]
    ends = len(ours.dims), len(ours.dims) + len(ours.ranges)
    groups = values[: ends[0]], values[ends[0] : ends[1]], values[ends[1] :]
    inside, expected = numpy.asarray(ours.holds(*groups)), numpy.asarray(theirs.holds(*groups))
    if not (inside == expected).all():
        return False
    pairs = zip(ours.evaluate(*groups), theirs.evaluate(*groups), strict=True)
    return all((numpy.where(inside, left, 0) == numpy.where(inside, right, 0)).all() for left, right in pairs)


def check(collected: list[tuple[str, IndexingMap, str]], *, text_counts: int) -> None:
    """Check values of all maps, and the texts of those that count."""
    wrong = [
        (name, str(ours), theirs)
        for name, ours, theirs in collected
        if not same_values(ours, IndexingMap.parse(theirs))
    ]
    assert wrong == []
    texts = [(name, str(ours), theirs) for name, ours, theirs in collected[:text_counts] if str(ours) != theirs]
    assert len(texts) <= (1 - REQUIRED) * text_counts, texts


def test_maps_of_ops() -> None:
    """The maps of ops have XLA's values, and its text in 95 % of the cases."""
    collected = []
    for case in cases("op"):
        if case["op"] == "loop_launch":
            continue
        ours = maps_of(case)
        assert len(ours) == len(case["maps"]), case["name"]
        collected += [(case["name"], map_, text) for map_, text in zip(ours, case["maps"], strict=True)]
    assert len(collected) > 50
    check(collected, text_counts=len(collected))


def test_compositions() -> None:
    """Compositions have XLA's values, and its text in 95 % of the cases."""
    collected = [
        (case["name"], compose(IndexingMap.parse(case["first"]), IndexingMap.parse(case["second"])), case["composed"])
        for case in cases("compose")
    ]
    assert collected
    check(collected, text_counts=len(collected))


def test_simplifications() -> None:
    """Simplified maps have XLA's values, and for the written cases its text in 95 %."""
    every = cases("simplify")
    actual = [(case["name"], simplify(IndexingMap.parse(case["map"])), case["simplified"]) for case in every]
    assert actual
    written = [number for number, case in enumerate(every) if int(case["name"].rsplit("_", 1)[1]) < RANDOM_FROM]
    check(actual, text_counts=len(written))
