"""The partition of a fusion into functions, each of which computes one element of its roots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from attrs import field

from shardy_py.indexing import IndexingMap, compose, op_maps
from shardy_py.indexing.composition import without_unused_symbols
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.fusion.body_indices import number_values
from shardy_py.kernels.fusion.choose import Choice, EmitterKind
from shardy_py.kernels.fusion.fusion import Fusion, shape_of
from shardy_py.values import frozen

MAX_OPS = 2000

Node = Op | Value
"""An op, or a parameter."""

Read = tuple[IndexingMap, tuple[int, ...]]
"""Index at which a function reads a node: the map, and the ops of its run-time variables, by their first results."""


@frozen(eq=False)
class Subgraph:
    """Ops of one function.

    Args:
        name: The name of the function.
        roots: The values that it returns.
        nodes: Its ops and parameters, each after its operands.
    """

    name: str
    roots: tuple[Value, ...]
    nodes: tuple[Node, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape over which its index runs: that of its first root."""
        return shape_of(self.roots[0])


@frozen(eq=False, slots=False)
class Partition:
    """The functions of a fusion.

    Args:
        functions: The functions; callers before those that they call.
        heroes: The ops that the entry function emits itself.
    """

    functions: tuple[Subgraph, ...]
    heroes: tuple[Op, ...] = field(default=())

    @cached_property
    def _owners(self) -> Mapping[int, Subgraph]:
        return {_key(node): function for function in self.functions for node in function.nodes}

    def emitted(self, fusion: Fusion) -> tuple[Subgraph, ...]:
        """Return the functions that are emitted: all but those of heroes that nothing else uses."""
        unused = {hero.id for hero in self.heroes if not any(fusion.users.get(value.id) for value in hero.results)}
        several = len({_key(fusion.producer(root) or root) for root in fusion.roots}) > 1
        return tuple(
            function
            for function in self.functions
            if several or not (isinstance(function.nodes[-1], Op) and function.nodes[-1].id in unused)
        )

    def function_of(self, node: Node) -> Subgraph:
        """Return the function in which an op or a parameter is."""
        return self._owners[_key(node)]


def partition(fusion: Fusion, choice: Choice) -> Partition:
    """Return the functions of a fusion.

    Walks from the roots to the parameters. An op or parameter starts a function of its own if it is forced to (heroes
    and their operands, but for the loop emitter), if its users lie in several functions or in none, or if they read it
    at different indices; otherwise it joins the function of its users.
    """
    heroes = heroes_of(choice)
    return Partition(tuple(PartitionWalk(fusion, heroes).functions()), heroes)


def heroes_of(choice: Choice) -> tuple[Op, ...]:
    """Return the ops that an entry function emits itself."""
    if choice.kind in (EmitterKind.LOOP, EmitterKind.PLUGIN):
        return ()
    return tuple({hero.id: hero for hero in choice.heroes if hero is not None}.values())


def _key(node: Node) -> int:
    """Return a number for an op or a parameter; those of parameters are negative."""
    return node.id if isinstance(node, Op) else -1 - node.id


class PartitionWalk:
    """The walk from roots to parameters; remembers from where and at which indices each node is read.

    Args:
        fusion: The fusion.
        heroes: The ops that the entry function emits itself.

    Attributes:
        reads: Per node, by its key, the functions that read it, by the key of their first node, and where.
        places: Per node the function that it is in, and where it is read there.
    """

    def __init__(self, fusion: Fusion, heroes: tuple[Op, ...]) -> None:
        self._fusion = fusion
        self._forced = {_key(hero) for hero in heroes}
        self._forced |= {_key(self._node(value)) for hero in heroes for value in fusion.operands[hero.id]}
        self.reads: dict[int, dict[tuple[int, Read], None]] = {}
        self.places: dict[int, tuple[int, Read]] = {}
        self._members: dict[int, list[Node]] = {}
        self._roots: dict[int, tuple[Value, ...]] = {}

    def functions(self) -> Iterator[Subgraph]:
        """Yield the functions, callers first."""
        fusion = self._fusion
        if len({_key(self._node(root)) for root in fusion.roots}) > 1:
            self._members[TUPLE], self._roots[TUPLE] = [], fusion.roots
            for root in fusion.roots:
                # Emitters with heroes drop the tuple; there roots may have any number of elements.
                shape = shape_of(root)
                index = op_maps.identity(shape) if self._forced else fusion.same_place(fusion.roots[0], root)
                self.reads.setdefault(_key(self._node(root)), {})[TUPLE, (index, ())] = None
        for op in reversed(fusion.ops):
            function, at = self.places[op.id] = self._place(op, op.results)
            for number, operand in enumerate(fusion.operands[op.id]):
                read = self._read(op, number, *at)
                self.reads.setdefault(_key(self._node(operand)), {})[function, read] = None
        for parameter in fusion.parameters:
            if _key(parameter) in self.reads or parameter.id in fusion.root_ids:
                self._place(parameter, (parameter,))
        # With a hero, the entry function computes each root itself from its hero.
        if self._forced:
            self._members.pop(TUPLE, None)
        for first, members in self._members.items():
            roots = self._roots[first]
            # The first root has a function of its own where another root reads it.
            is_taken = first == TUPLE and _key(self._node(roots[0])) in self._members
            name = function_name(fusion, roots[0], kind="tuple" if is_taken else "")
            yield Subgraph(name, roots, tuple(reversed(members)))

    def _node(self, value: Value) -> Node:
        return self._fusion.producer(value) or value

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return number_values(self._fusion)

    def _place(self, node: Node, values: Sequence[Value]) -> tuple[int, Read]:
        """Assign a node to a function; return the function and the index at which it reads the node."""
        key = _key(node)
        reads = self.reads.get(key, {})
        functions = {function for function, _ in reads}
        known = [read for _, read in reads if not (read[0].is_undefined or read[0].is_known_empty)]
        joins = key not in self._forced and len(functions) == 1 and len(set(known)) <= 1
        if joins:
            (target,) = functions
            # A function of its own for a parameter takes all parameters: of many there would be their square.
            if len(self._members[target]) < MAX_OPS or not isinstance(node, Op):
                self._members[target].append(node)
                return target, known[0] if known else (IndexingMap.undefined(), ())
        self._members[key], self._roots[key] = [node], tuple(values)
        return key, (op_maps.identity(shape_of(values[0])), ())

    def _read(self, op: Op, number: int, index: IndexingMap, starts: tuple[int, ...]) -> Read:
        """Return where an operand is read, from where the function reads the op.

        Slices at starts of their own have equal maps, as a map does not say which values its run-time variables are.
        """
        if self._fusion.facts[op.id].is_scatter:
            return op_maps.identity(shape_of(op.operands[number])), ()
        if index.is_undefined:
            return index, ()
        map_ = self._fusion.facts[op.id].maps[number]
        read = without_unused_symbols(compose(index, map_))
        if map_.runtimes:
            starts = (*starts, self._numbers[op.results[0].id])
        return read, starts if read.runtimes else ()


def function_name(fusion: Fusion, root: Value, *, kind: str = "") -> str:
    """Return the name of a function: that of the fusion, its kind where it has one, and its first root.

    Args:
        fusion: The fusion.
        root: The root.
        kind: The kind, such as ``epilogue``.
    """
    op = fusion.producer(root)
    if op is None:
        value = f"param_{fusion.parameter_numbers[root.id]}"
    else:
        value = f"{op.name.rpartition('.')[2]}_{fusion.numbers[op.id]}"
    return re.sub(r"\W", "_", f"{fusion.name}__{kind}__{value}" if kind else f"{fusion.name}_{value}")


TUPLE = 1 << 62
