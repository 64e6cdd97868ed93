"""Erase private functions and other symbols that nothing refers to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import ClassVar

from shardy_py.ir.graph.graphs import callee_of, main_function
from shardy_py.ir.graph.op_names import FUNCTION, MESH
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.symbols import SYMBOL_NAME, calls_by_function
from shardy_py.ir.graph.walk import all_ops, own_values, remove_with_content
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import frozen

VISIBILITY = "sym_visibility"


@frozen
class SymbolDcePass:
    """Erase symbols that are not public, unless a public symbol or another op needs them, if only indirectly.

    Args:
        keep_main: Whether the main function stays although it is private, where no function is public.
    """

    name: ClassVar[str] = "symbol-dce"

    keep_main: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Erase the dead symbols of a program.

        Raises:
            UnsupportedError: there is no main function, but it should be kept.
        """
        dead, alive = _without_references(program)
        if not dead:
            return
        if self.keep_main and not any(op.name == FUNCTION for op in alive):
            main = main_function(program)
            alive += [op for op in dead.values() if op is main]
            dead = {name: op for name, op in dead.items() if op is not main}
        # Calls keep nearly all functions alive; where they keep all, there is no need to look at all other ops.
        calls = calls_by_function(program)
        _revive(alive, dead, lambda op: filter(None, map(callee_of, calls.get(op, ()))))
        if dead:
            meshes = {name for name, op in dead.items() if op.name == MESH}
            _revive(alive, dead, _references(program, meshes).__getitem__)
            _erase(program, dead.values())


def _without_references(program: Program) -> tuple[dict[str, Op], list[Op]]:
    """Return the symbols that would go if nothing referred to them, by name, and all other top-level ops."""
    private: dict[str, Op] = {}
    others: list[Op] = []
    for op in program.body.ops:
        name = op.attributes.get(SYMBOL_NAME)
        if name is None or op.attributes.get(VISIBILITY, "public") == "public":
            others.append(op)
        else:
            private[name] = op
    return private, others


def _revive(alive: list[Op], dead: dict[str, Op], references: Callable[[Op], Iterable[str]]) -> None:
    """Move from the dead to the living what the living refer to, if only indirectly."""
    waiting = list(alive)
    while dead and waiting:
        for name in references(waiting.pop()):
            op = dead.pop(name, None)
            if op is not None:
                waiting.append(op)
                alive.append(op)


def _erase(program: Program, symbols: Collection[Op]) -> None:
    """Erase symbols; of functions, which use nothing from outside, the ops inside need not be taken apart."""
    table = program.shardings
    for op in remove_with_content(program, [symbol for symbol in symbols if symbol.name == FUNCTION]):
        for value in own_values(op) if op.regions else op.results:
            table.pop(value.id, None)
    for symbol in symbols:
        if symbol.name != FUNCTION:
            symbol.erase()


def _references(program: Program, meshes: Collection[str]) -> dict[Op, set[str]]:
    """Return top-level op to the names of the symbols to which it and the ops inside refer.

    Args:
        program: The program.
        meshes: The names of the meshes that are looked for in the table of shardings.
    """
    from shardy_py.ir.graph.attributes import symbols_in

    referenced: dict[Op, set[str]] = {}
    names: set[str] = set()
    # Ops share what most of their attributes are based on, and most of that refers to nothing.
    without: set[object] = set()
    body = program.body
    for op in all_ops(program):
        if op.parent is body:
            names = referenced[op] = set()
        attributes = op.attributes
        # As `shared_key`, without a call.
        base = getattr(attributes, "key", None)
        if base in without:
            continue
        symbols = symbols_in(attributes)
        if symbols:
            names.update(symbols)
        elif base is not None:
            without.add(base)
    if meshes:
        for root, names in referenced.items():
            names.update(_in_shardings(program, root))
    return referenced


def _in_shardings(program: Program, root: Op) -> Iterator[str]:
    for op in root.walk():
        for value in own_values(op):
            sharding = program.shardings.get(value.id)
            if sharding is not None and isinstance(sharding.mesh, str):
                yield sharding.mesh
