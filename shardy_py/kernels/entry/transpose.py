"""Entry functions of transposes while they are built: what tiled and packed ones have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import builtin, tensor
from xdsl.ir import SSAValue

from shardy_py.indexing import IndexingMap, compose, simplify
from shardy_py.kernels.dialect.memory_ops import AllocateSharedOp, SyncThreadsOp
from shardy_py.kernels.dialect.types import element_dtype, scalar_type
from shardy_py.kernels.elemental.builder import Scope
from shardy_py.kernels.elemental.epilogues import Epilogue, call_epilogue, emit_epilogue
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.arguments import EntryBuilder
from shardy_py.kernels.entry.scopes import called_element
from shardy_py.kernels.fusion.choose import Choice
from shardy_py.kernels.fusion.fusion import shape_of
from shardy_py.kernels.fusion.transposes import tiled_heroes
from shardy_py.kernels.launch.grid import Launch

MapToShape = Callable[[Sequence[int]], IndexingMap]
"""Returns the map to the index in a tensor of a shape."""


class TransposeEntry:
    """An entry function of transposes while it is built.

    Roots behind a transpose go through its epilogue, all others are side outputs.

    Args:
        functions: The functions.
        choice: The emitter, with the hero of every root.
        launch: The grid.
    """

    def __init__(self, functions: FunctionEmitter, choice: Choice, launch: Launch) -> None:
        self.functions = functions
        self.fusion = functions.fusion
        self.entry = EntryBuilder(functions.fusion, launch)
        found = tiled_heroes(functions.fusion, choice.heroes)
        self.heroes = tuple({hero.id: hero for hero in found.values()}.values())
        self.side = [number for number in range(len(self.fusion.roots)) if number not in found]
        self._behind = found

    @property
    def side_targets(self) -> list[SSAValue]:
        """The results that are side outputs, before anything is written."""
        return [self.entry.outputs[number] for number in self.side]

    def outputs(self, side: Sequence[SSAValue]) -> list[SSAValue]:
        """Return all results, the side outputs written."""
        written = dict(zip(self.side, side, strict=True))
        return [written.get(number, value) for number, value in enumerate(self.entry.outputs)]

    def allocate(self, tile: Sequence[int]) -> list[SSAValue]:
        """Allocate a tile for every transpose."""
        found: list[SSAValue] = []
        for hero in self.heroes:
            op = AllocateSharedOp(builtin.TensorType(scalar_type(element_dtype(hero.results[0])), tile))
            self.entry.builder.insert(op)
            found.append(op.output)
        return found

    def operand_element(self, scope: Scope, number: int, index: Sequence[SSAValue]) -> SSAValue:
        """Return an element of what a transpose reads."""
        operand = self.heroes[number].operands[0]
        return called_element(self.functions, scope, operand, self.entry.parameters, index)

    def insert_side_outputs(
        self, scope: Scope, input_map: MapToShape, symbols: Sequence[SSAValue], targets: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Write the elements of the side outputs at the places in memory where transposes read theirs."""
        found = []
        for number, target in zip(self.side, targets, strict=True):
            root = self.fusion.roots[number]
            index = scope.apply(input_map(shape_of(root)), self.entry.ids, symbols)
            element = called_element(self.functions, scope, root, self.entry.parameters, index)
            found.append(scope.add(tensor.InsertOp(element, target, index)))
        return found

    def synchronize(self, tiles: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Wait until all threads have written the tiles."""
        barrier = SyncThreadsOp(*tiles)
        self.entry.builder.insert(barrier)
        return barrier.outputs

    def emit_epilogue(self, output_map: MapToShape) -> None:
        """Emit the function from transposed elements to those of the roots; those of side outputs give what they get.

        Args:
            output_map: The map from threads, blocks and loops to the index in a transpose.
        """
        maps = {}
        for number, hero in self._behind.items():
            root, result = self.fusion.roots[number], hero.results[0]
            maps[root] = simplify(compose(output_map(shape_of(result)), self.fusion.same_place(result, root)))
        self._epilogue = Epilogue(tuple(hero.results[0] for hero in self.heroes), maps)
        self._epilogue_name = emit_epilogue(self.functions, self._epilogue)
        for number in self.side:
            emit_epilogue(self.functions, Epilogue.at_root(self.fusion.roots[number], self.fusion.roots[number]))

    def insert_roots(
        self, scope: Scope, symbols: Sequence[SSAValue], values: Sequence[SSAValue], targets: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Return the results with what the epilogue computes of transposed elements.

        Args:
            scope: Where the epilogue is called.
            symbols: The loops.
            values: An element of every transpose.
            targets: The results so far.
        """
        epilogue, parameters = self._epilogue, self.entry.parameters
        indices = [*self.entry.ids, *symbols]
        found = call_epilogue(scope, self._epilogue_name, epilogue, parameters, indices, values)
        results = list(targets)
        for number in self._behind:
            root = self.fusion.roots[number]
            index = scope.apply(epilogue.maps[root], self.entry.ids, symbols)
            results[number] = scope.add(tensor.InsertOp(found[root], results[number], index))
        return results
