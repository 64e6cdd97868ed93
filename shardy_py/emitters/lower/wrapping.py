"""Places that begin again while a loop goes on."""

from __future__ import annotations

import re
from collections.abc import Mapping

_VALUE = re.compile(r"%[\w.]+")
_WRAPS = re.compile(r"(urem|and|trunc|shl) (?!i1 )(?!nuw)(?!i\d+ %strip,)")
_PLACE = re.compile(r"getelementptr ")
_REMAINDER = re.compile(r"(?P<op>urem|and) i\d+ (?P<of>%[\w.]+), (?P<number>\d+)$")
_ELEMENTS = re.compile(r"getelementptr (?:inbounds )?(?:nuw )?(?P<type>\w+)")
_BYTES = {"i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}
_VECTOR = 64
"""The bytes of the widest vectors, and the most elements that one has."""
_SUM = re.compile(r"(?:add|sub|or) .*?(?P<left>%[\w.]+|-?\d+), (?P<right>%[\w.]+|-?\d+)$")
_PRODUCT = re.compile(r"(?:mul|shl) .*?%[\w.]+, (?P<factor>\d+)$")
_CAST = re.compile(r"(?:sext|zext|trunc|freeze) .*?(?P<of>%[\w.]+)")
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
    """Return whether a place may begin again within a vector of threads, of which LLVM takes it at the first one.

    That is a remainder by less than a vector has elements, or of a number that is no multiple of these at the first
    thread of a vector. Products of remainders are no neighbours, which LLVM would take at once.

    Args:
        text: A module for LLVM.
    """
    return any(_function_wraps_soon(function) for function in text.split("define internal ")[1:])


def _function_wraps_soon(function: str) -> bool:
    made: dict[str, str] = {}
    pending: list[tuple[str, int]] = []
    for line in function.partition("\n}")[0].splitlines():
        result, is_value, instruction = line.strip().partition(" = ")
        made[result] = instruction if is_value else ""
        access = _ELEMENTS.match(instruction)
        if is_value and access is not None:
            size = _BYTES.get(access["type"], 1)
            pending += [(name, size) for name in _VALUE.findall(instruction)]
        elif _CALL.match(instruction if is_value else result):
            pending += [(name, 1) for name in _INTEGERS.findall(instruction if is_value else result)]
    seen: set[tuple[str, int]] = set()
    while pending:
        name, size = pending.pop()
        instruction = made.get(name, "")
        if (name, size) in seen:
            continue
        seen.add((name, size))
        remainder = _REMAINDER.match(instruction)
        if remainder is not None and not _follows_from_block(instruction, made):
            count = int(remainder["number"]) + (remainder["op"] == "and")
            is_digit = count > 1 and count & (count - 1) == 0
            if is_digit and (count * size < _VECTOR or not _begins_vectors(remainder["of"], made)):
                return True
        if _PASSED_ON.match(instruction):
            pending += [(item, size) for item in _VALUE.findall(instruction)]
    return False


def _begins_vectors(name: str, made: Mapping[str, str]) -> bool:
    """Return whether a number is a multiple of a vector's elements at the first thread of each vector."""
    if not name.startswith("%"):
        return int(name) % _VECTOR == 0
    instruction = made.get(name)
    if instruction is None:
        return True
    product, sum_, cast = (pattern.match(instruction) for pattern in (_PRODUCT, _SUM, _CAST))
    if product is not None:
        factor = int(product["factor"])
        return (1 << factor if instruction.startswith("shl") else factor) % _VECTOR == 0
    if sum_ is not None:
        return _begins_vectors(sum_["left"], made) and _begins_vectors(sum_["right"], made)
    return cast is not None and _begins_vectors(cast["of"], made)


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
