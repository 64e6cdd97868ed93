"""Loops over threads on the host: strips between the changes of a quotient, and index expressions that wrap.

Inside of a strip a quotient is the same for all threads and a remainder grows with them, so that LLVM sees that
neighbours read neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Operation

from shardy_py.kernels.dialect.gpu import ThreadIdOp
from shardy_py.kernels.lower.writer import FunctionWriter
from shardy_py.kernels.passes.base import constant_value

STRIP, LANE = "%strip", "%lane"
_LEAST = 8


def strip_width(ops: Iterable[Operation], threads: int, *, within: int = 0) -> int:
    """Return the number of threads of a strip; divisors that would make strips shorter than a vector are ignored.

    Args:
        ops: What threads run.
        threads: The threads along x.
        within: A number that strips are parts of, if there is one.
    """
    width = threads
    divisors = {candidate for op in ops if (candidate := _divisor(op)) is not None}
    for divisor in (*([within] if within else []), *sorted(divisors, reverse=True)):
        shared = gcd(width, divisor)
        width = shared if shared >= _LEAST else width
    return width


def write_in_strip(op: Operation, writer: FunctionWriter, width: int) -> bool:
    """Write a quotient or a remainder of the thread's number by the strip's number and the place in it.

    Args:
        op: An op.
        writer: The function that it is part of.
        width: The threads of a strip.

    Returns:
        Whether the op is such a quotient or remainder.
    """
    divisor = _divisor(op)
    if divisor is None or divisor % width:
        return False
    strips = divisor // width
    if isinstance(op, arith.DivUIOp):
        writer.let(op.result, f"udiv i32 {STRIP}, {strips}")
        return True
    before = writer.new(f"urem i32 {STRIP}, {strips}")
    writer.let(op.results[0], f"add nuw nsw i32 {writer.new(f'mul nuw nsw i32 {before}, {width}')}, {LANE}")
    return True


def _divisor(op: Operation) -> int | None:
    """Return the constant by which an op divides the thread id along x, or None."""
    if not isinstance(op, arith.DivUIOp | arith.RemUIOp):
        return None
    dividend = op.lhs.owner
    is_thread = isinstance(dividend, ThreadIdOp) and dividend.dimension.data.value == "x"
    return constant_value(op.rhs) or None if is_thread else None


_VALUE = re.compile(r"%[\w.]+")
_WRAPS = re.compile(r"(urem (?!i\d+ \S+, 1$)|(and|trunc|shl) (?!i1 )(?!nuw))")
_PLACE = re.compile(r"getelementptr ")
_CALL = re.compile(r"(?:tail )?call .*?@(?!llvm\.)(?P<callee>[^(]+)\(")
_BLOCK = re.compile(r"%block\.[xyz]")
_INTEGERS = re.compile(r"\b(?:i8|i16|i32|i64|ptr) (%[\w.]+)")


def may_wrap(text: str) -> bool:
    """Return whether a place in memory follows from a remainder that grows and begins again from thread to thread.

    Args:
        text: A module for LLVM. Integers that functions with memory are given count as places, and what functions
            return where a place follows from it; what is loaded does not wrap. The function that is not internal goes
            over blocks and calls the others.
    """
    functions = [_Function(item.partition("\n}")[0]) for item in text.split("define internal ")[1:]]
    with_memory = {function.name for function in functions if function.places}
    callers = {function.name: set(function.callees) for function in functions}
    while more := {name for name, callees in callers.items() if callees & with_memory} - with_memory:
        with_memory |= more
    returning: set[str] = set()
    while True:
        reached = set(returning)
        for function in functions:
            if function.may_wrap(with_memory, function.name in returning, reached):
                return True
        if reached == returning:
            return False
        returning = reached


class _Function:
    """The instructions of a function.

    Args:
        text: The text, from its type on.
    """

    def __init__(self, text: str) -> None:
        first, *lines = text.splitlines()
        self.name = first.partition("@")[2].partition("(")[0]
        self.places: list[str] = []
        self.returned: list[str] = []
        self.callees: dict[str, list[str]] = {}
        self._definitions: dict[str, str] = {}
        for line in lines:
            result, is_value, instruction = line.strip().partition(" = ")
            instruction = instruction if is_value else result
            if is_value:
                self._definitions[result] = instruction
            called = _CALL.match(instruction)
            if _PLACE.match(instruction):
                self.places += _VALUE.findall(instruction)
            elif called is not None:
                self.callees.setdefault(called["callee"], []).extend(_INTEGERS.findall(instruction))
            elif instruction.startswith("ret "):
                self.returned += _VALUE.findall(instruction)

    def may_wrap(self, with_memory: Set[str], returns_place: bool, reached: set[str]) -> bool:
        """Return whether a place follows from a remainder; add the functions from whose results one follows.

        Args:
            with_memory: The functions that read or write.
            returns_place: Whether a place follows from what this one returns.
            reached: Where functions are added.
        """
        pending = self.places + (self.returned if returns_place else [])
        for callee in self.callees.keys() & with_memory:
            pending += self.callees[callee]
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            instruction = self._definitions.get(name, "")
            if name in seen or instruction.startswith("load "):
                continue
            seen.add(name)
            if _WRAPS.match(instruction) and not _follows_from_block(instruction, self._definitions):
                return True
            called = _CALL.match(instruction)
            if called is not None:
                reached.add(called["callee"])
            pending += _VALUE.findall(instruction)
        return False


def _follows_from_block(instruction: str, definitions: Mapping[str, str]) -> bool:
    """Return whether a value depends on block ids only, so that it is uniform over the threads."""
    seen: set[str] = set()
    pending = _VALUE.findall(instruction)
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in definitions:
            pending += _VALUE.findall(definitions[name])
        elif not _BLOCK.fullmatch(name):
            return False
    return True
