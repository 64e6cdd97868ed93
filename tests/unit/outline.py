"""Programs as short texts, for tests that look at what stands where."""

from __future__ import annotations

from shardy_py.ir.graph import Block, Op, Program, Value


def outline(function: Op) -> list[str]:
    """Return one line per op of a function: its number, its name, and what it uses.

    Values are called by the number of their op, ``2#1`` for other results than the first, ``a0`` for arguments.
    """
    lines: list[str] = []
    names: dict[int, str] = {}
    _outline(function, lines, names, 0)
    return lines


def _outline(op: Op, lines: list[str], names: dict[int, str], depth: int) -> None:
    for region in op.regions:
        for block in region.blocks:
            _name_arguments(block, names)
            for inner in block.ops:
                number = str(len(lines))
                for value in inner.results:
                    names[value.id] = f"{number}#{value.index}" if value.index else number
                used = " ".join(names[value.id] for value in inner.operands)
                lines.append(f"{'  ' * depth}{number} {inner.name} {used}".rstrip())
                _outline(inner, lines, names, depth + 1)


def _name_arguments(block: Block, names: dict[int, str]) -> None:
    taken = sum(1 for name in names.values() if name.startswith("a"))
    for value in block.arguments:
        names[value.id] = f"a{taken + value.index}"


def sharding_of(program: Program, value: Value) -> str | None:
    """Return the sharding of a value as text, or None."""
    sharding = program.sharding(value)
    return None if sharding is None else str(sharding)
