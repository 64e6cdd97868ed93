"""Loops over threads on the host: strips between the changes of a quotient, and index expressions that wrap.

Inside of a strip a quotient is the same for all threads and a remainder grows with them, so that LLVM sees that
neighbours read neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from shardy_py.kernels.dialect.gpu import BlockIdOp, ThreadIdOp
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


_AT_MOST = (2, 3, 6, 7)
"""The predicates of ``arith.cmpi`` for less and for at most, signed and unsigned."""


def write_for_last_lane(op: arith.CmpiOp, writer: FunctionWriter, width: int) -> None:
    """Let a check of a bound hold for all threads of a strip where it holds for the last one.

    The threads of most strips all lie inside. What is known of the last one does not change within the strip, so that
    LLVM makes a loop of its own, without the check, for these.

    Args:
        op: A comparison, which is written already.
        writer: The function that it is part of.
        width: The threads of a strip.
    """
    if op.predicate.value.data not in _AT_MOST or constant_value(op.rhs) is None:
        return
    lines = len(writer.lines)
    last = _LastLane(writer, width)
    bound = last.value(op.lhs)
    if bound is None or not last.is_apart:
        del writer.lines[lines:]
        return
    type_ = writer.type(op.lhs)
    predicate = ("slt", "sle", "ult", "ule")[_AT_MOST.index(op.predicate.value.data)]
    holds = writer.new(f"icmp {predicate} {type_} {bound}, {writer.get(op.rhs)}")
    writer.bind(op.result, writer.new(f"or i1 {holds}, {writer.get(op.result)}"))


class _LastLane:
    """Values that grow with the thread's number within a strip, as the last thread of the strip has them.

    Args:
        writer: The function that they are written into.
        width: The threads of a strip.
    """

    def __init__(self, writer: FunctionWriter, width: int) -> None:
        self._writer = writer
        self._width = width
        # The thread's number is part of a value, so that the last one's differs from the others'.
        self.is_apart = False

    def value(self, value: SSAValue) -> str | None:
        """Write a value; None where it may shrink within a strip."""
        op, constant = value.owner, constant_value(value)
        if self._writer.type(value) != "i32":
            return None
        if constant is not None:
            return str(constant)
        if isinstance(op, BlockIdOp | ThreadIdOp):
            kind, dimension = ("block" if isinstance(op, BlockIdOp) else "thread"), op.dimension.data.value
            return self._lane(STRIP) if (kind, dimension) == ("thread", "x") else f"%{kind}.{dimension}"
        if isinstance(op, arith.DivUIOp | arith.RemUIOp):
            return self._part(op)
        if not isinstance(op, arith.AddiOp | arith.MuliOp) or not _never_wraps(op):
            return None
        # Nothing is negative, so that each summand and each factor grows or stays.
        left, right = self.value(op.lhs), self.value(op.rhs)
        if left is None or right is None:
            return None
        name = "add" if isinstance(op, arith.AddiOp) else "mul"
        return self._writer.new(f"{name} nuw nsw i32 {left}, {right}")

    def _part(self, op: arith.DivUIOp | arith.RemUIOp) -> str | None:
        divisor = _divisor(op)
        if divisor is None or divisor % self._width:
            return None
        if isinstance(op, arith.DivUIOp):
            return self._writer.new(f"udiv i32 {STRIP}, {divisor // self._width}")
        return self._lane(self._writer.new(f"urem i32 {STRIP}, {divisor // self._width}"))

    def _lane(self, strip: str) -> str:
        """Return the number of the last thread of a strip."""
        self.is_apart = True
        before = self._writer.new(f"mul nuw nsw i32 {strip}, {self._width}")
        return self._writer.new(f"add nuw nsw i32 {before}, {self._width - 1}")


def _never_wraps(op: arith.AddiOp | arith.MuliOp) -> bool:
    """Return whether a sum or product wraps neither with nor without signs."""
    flags = op.overflow_flags
    return flags is not None and {arith.IntegerOverflowFlag.NSW, arith.IntegerOverflowFlag.NUW} <= set(flags.data)


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
