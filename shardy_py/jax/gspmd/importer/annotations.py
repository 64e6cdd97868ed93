"""Shardings of GSPMD on the ops, arguments and results of a module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import evolve

from shardy_py.errors import ParseError
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.jax.gspmd.importer.annotated import INTERFACE, SHARDING, dictionaries
from shardy_py.sharding.hlo import HloSharding, parse_hlo_sharding

TARGET = "call_target_name"
SHARDING_CALL = "Sharding"
FULL_TO_SHARD = "SPMDFullToShardShape"
SHARD_TO_FULL = "SPMDShardToFullShape"
TARGETS = frozenset((SHARDING_CALL, FULL_TO_SHARD, SHARD_TO_FULL))

_UNSPECIFIED = re.compile(r"unspecified_dims=\[([\d,\s]*)\]")


class Annotations:
    """Reads the shardings of a program, each distinct text once."""

    def __init__(self, program: Program) -> None:
        self._known: dict[str, HloSharding] = {}
        self._program = program

    def all_shardings(self, ops: Iterable[Op]) -> list[HloSharding]:
        """Return the shardings at some ops.

        Raises:
            ParseError: one cannot be read.
        """
        return [sharding for op in ops for sharding in self._at(op)]

    def _at(self, op: Op) -> Iterator[HloSharding]:
        sharding = self.of(op)
        if sharding is not None:
            yield sharding
        if op.name == FUNCTION:
            for name in INTERFACE:
                for item in dictionaries(op, name):
                    if SHARDING in item:
                        yield self.read(item[SHARDING], op)

    def of(self, op: Op) -> HloSharding | None:
        """Return the sharding of an op, or None."""
        text = op.attributes.get(SHARDING)
        return None if text is None else self.read(text, op)

    def of_value(self, value: Value) -> tuple[HloSharding | None, frozenset[int]]:
        """Return the sharding of a value and its unspecified dimensions; of a function argument, its own."""
        op = value.defining_op
        if op is not None:
            sharding = self.of(op)
            if sharding is not None and sharding.kind == "tuple":
                sharding = sharding.elements[value.index] if value.index < len(sharding.elements) else None
            return sharding, unspecified_dims(op)
        block = value.owner
        function = block.parent_op if isinstance(block, Block) else None
        if function is None or function.name != FUNCTION:
            return None, frozenset()
        items = dictionaries(function, "arg_attrs")
        text = items[value.index].get(SHARDING) if value.index < len(items) else None
        return None if text is None else self.read(text, function), frozenset()

    def read(self, text: Any, op: Op) -> HloSharding:
        """Return the sharding in an attribute.

        Raises:
            ParseError: it is not a valid sharding.
        """
        sharding = self._known.get(str(text))
        if sharding is None:
            try:
                sharding = self._known[str(text)] = parse_hlo_sharding(str(text))
            except ParseError as error:
                raise ParseError(
                    *(evolve(item, location=op.location, op=op.name) for item in error.diagnostics)
                ) from None
        return sharding


def target_of(op: Op) -> str | None:
    """Return the target of a custom call about shardings, or None for any other op."""
    target = op.attributes.get(TARGET)
    return target if target in TARGETS and len(op.operands) == len(op.results) == 1 else None


def unspecified_dims(op: Op) -> frozenset[int]:
    """Return the unspecified dimensions of the sharding of a custom call."""
    match = _UNSPECIFIED.search(str(op.attributes.get("backend_config", "")))
    return frozenset(map(int, match[1].split(","))) if match and match[1].strip() else frozenset()
