"""Places that begin again while a loop goes on."""

from __future__ import annotations

import re
from collections.abc import Mapping

_VALUE = re.compile(r"%[\w.]+")
_WRAPS = re.compile(r"(urem|and|trunc|shl) (?!i1 )(?!nuw)(?!i\d+ %strip,)")
_PLACE = re.compile(r"getelementptr ")
_SOON = re.compile(r"(?:urem i\d+ (%[\w.]+), (?:2|4|8)|and i\d+ (%[\w.]+), (?:1|3|7))$")
_PASSED_ON = re.compile(r"(add|sub|sext|zext|trunc|freeze) ")
_CALL = re.compile(r"(tail )?call \S+ @(?!llvm\.)")
_BLOCK = re.compile(r"%block\.[xyz]")
_INTEGERS = re.compile(r"\b(?:i32|i64|ptr) (%[\w.]+)")


def may_wrap(text: str) -> bool:
    """Return whether a place in memory follows from a remainder that grows and begins again from thread to thread.

    Args:
        text: A module for LLVM. Integers that functions are given count as places; what is loaded does not wrap. The
            function that is not internal goes over blocks and calls the others.
    """
    return any(_function_may_wrap(function) for function in text.split("define internal ")[1:])


def _function_may_wrap(function: str) -> bool:
    made: dict[str, str] = {}
    pending: list[str] = []
    for line in function.partition("\n}")[0].splitlines():
        result, is_value, instruction = line.strip().partition(" = ")
        instruction = instruction if is_value else result
        if is_value:
            made[result] = instruction
        if _PLACE.match(instruction):
            pending += _VALUE.findall(instruction)
        elif _CALL.match(instruction):
            pending += _INTEGERS.findall(instruction)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        instruction = made.get(name, "")
        if name in seen or instruction.startswith("load "):
            continue
        seen.add(name)
        if _WRAPS.match(instruction) and not _follows_from_block(instruction, made):
            return True
        pending += _VALUE.findall(instruction)
    return False


def wraps_soon(text: str) -> bool:
    """Return whether a place begins again after so few threads that a vector of them may have it twice.

    Args:
        text: A module for LLVM. Products of such a remainder are no neighbours, which LLVM would take at once.
    """
    return any(_function_wraps_soon(function) for function in text.split("define internal ")[1:])


def _function_wraps_soon(function: str) -> bool:
    made: dict[str, str] = {}
    pending: list[str] = []
    for line in function.partition("\n}")[0].splitlines():
        result, is_value, instruction = line.strip().partition(" = ")
        made[result] = instruction if is_value else ""
        if is_value and _PLACE.match(instruction):
            pending += _VALUE.findall(instruction)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        instruction = made.get(name, "")
        if name in seen:
            continue
        seen.add(name)
        if _SOON.match(instruction) and not _follows_from_block(instruction, made):
            return True
        if _PASSED_ON.match(instruction):
            pending += _VALUE.findall(instruction)
    return False


def _follows_from_block(instruction: str, made: Mapping[str, str]) -> bool:
    """Return whether a value follows from the block's numbers alone, so that it is the same for all threads."""
    seen: set[str] = set()
    pending = _VALUE.findall(instruction)
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in made:
            pending += _VALUE.findall(made[name])
        elif not _BLOCK.fullmatch(name):
            return False
    return True
