"""Places that begin again while a loop goes on."""

from __future__ import annotations

import re

_VALUE = re.compile(r"%[\w.]+")
_WRAPS = re.compile(r"(urem|and|trunc|shl) (?!i1 )(?!nuw)(?!i\d+ %strip,)")
_USES = re.compile(r"(tail )?call \S+ @(?!llvm\.)|getelementptr ")


def may_wrap(text: str) -> bool:
    """Return whether a place in memory follows from a remainder that grows and begins again from thread to thread.

    Args:
        text: A module for LLVM. What functions are given counts as a place; what is loaded does not wrap. The function
            that is not internal goes over blocks and calls the others.
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
        if _USES.match(instruction):
            pending += _VALUE.findall(instruction)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        instruction = made.get(name, "")
        if name in seen or instruction.startswith("load "):
            continue
        seen.add(name)
        if _WRAPS.match(instruction):
            return True
        pending += _VALUE.findall(instruction)
    return False
