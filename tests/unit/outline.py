"""Programs as short texts, for tests that look at what stands where."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shardy_py.ir.graph.program import Block, Op, Program, Value


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


def listing(program: Program, *, ids: bool = False) -> list[str]:
    """Return everything a program consists of, one line per op and block.

    Args:
        program: The program.
        ids: Whether values are called by their ids; otherwise by their order, so that programs can be compared whose
            ids differ.
    """
    names: dict[int, int] = {}

    def call(values: list[Value]) -> list[str]:
        return [
            f"%{value.id if ids else names.setdefault(value.id, len(names))} {program.sharding(value)} {value.type}"
            for value in values
        ]

    return [line for op in program.body.ops for line in _list(op, call, 0)]


def _list(op: Op, call: Callable[[list[Value]], list[str]], depth: int) -> Iterator[str]:
    attributes = {name: op.attributes[name] for name in sorted(op.attributes)}
    uses = [[(user.name, number) for user, number in value.uses] for value in op.results]
    result_names, results, used = call(op.results), call(op.function_results), call(op.operands)
    yield f"{' ' * depth}{result_names} {results} = {op.name} {used} {attributes} {uses}"
    for region in op.regions:
        for block in region.blocks:
            yield f"{' ' * depth}block {call(block.arguments)}"
            for inner in block.ops:
                yield from _list(inner, call, depth + 1)
