"""The entry function of scatters: threads update elements at places that indices say, one element or window each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import arith, builtin, func, scf, tensor
from xdsl.ir import Attribute, Region, SSAValue

from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.dialect.arith_and_llvm import IndexCastUIOp
from shardy_py.kernels.dialect.memory_ops import AtomicRMWOp
from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.elemental.epilogues import Epilogue, emit_epilogue
from shardy_py.kernels.elemental.functions import FunctionEmitter, region_elements
from shardy_py.kernels.elemental.scope import Scope
from shardy_py.kernels.entry.arguments import EntryBuilder
from shardy_py.kernels.entry.scopes import called_element, entry_scope
from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
from shardy_py.kernels.fusion.scatters import RootScatter, has_unique_indices
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.launch.scatters import window_map


class Scattering:
    """Parts that all kernels of a scatter share.

    Args:
        functions: The functions of the fusion.
        scatter: The scatter.
        parameters: The parameters of the entry function.
    """

    def __init__(self, functions: FunctionEmitter, scatter: RootScatter, parameters: Sequence[SSAValue]) -> None:
        self.functions = functions
        self.scatter = scatter
        self.parameters = parameters
        self.op: Op = scatter.op
        functions.region_function(self.op)
        for root in functions.fusion.roots:
            emit_epilogue(functions, Epilogue.at_root(root, root))
        self.form = scatter.form
        self._operand = shape_of(self.op.operands[0])
        self.window = self.form.window
        self.components = self.form.components

    def offsets(self, scope: Scope, number: SSAValue) -> list[SSAValue]:
        """Return the start of a window along the dimensions that the scatter indices address."""
        indices = self.scatter.indices
        cast = IndexCastUIOp if element_type_of(indices).startswith("ui") else arith.IndexCastOp
        offsets = []
        for component in range(self.components):
            at: Sequence[SSAValue] = (number, scope.index(component))
            if not self.form.has_canonical_indices:
                at = scope.apply(self.form.indices, at)
            element = called_element(self.functions, scope, indices, self.parameters, at)
            offsets.append(element if isinstance(element.type, builtin.IndexType) else scope.add(cast(element, INDEX)))
        return offsets

    def padded(self, scope: Scope, offsets: Sequence[SSAValue], number: SSAValue | None = None) -> list[SSAValue]:
        """Return offsets along all dimensions: the given ones, the window's batch along batched dimensions, else zeros.

        Args:
            scope: The scope.
            offsets: The components of the index.
            number: The number of the window, where dimensions are batched.
        """
        zero = scope.index(0)
        all_offsets = [zero] * len(self._operand)
        for target, offset in zip(self.form.targets, offsets, strict=True):
            all_offsets[target] = offset
        for target, map_ in self.form.batches:
            assert number is not None
            (all_offsets[target],) = scope.apply(map_, (number,))
        return all_offsets

    def inside(self, scope: Scope, offsets: Sequence[SSAValue]) -> SSAValue:
        """Return whether a window is inside the operand: one comparison without a sign per dimension."""
        # Mirrors XLA, which folds the comparisons of dimensions without indices and leaves their constants.
        total = scope.add(arith.ConstantOp(builtin.IntegerAttr(-1, builtin.i1)))
        is_always = True
        for number, (offset, size, width) in enumerate(zip(offsets, self._operand, self.window, strict=True)):
            last = scope.index(size - width)
            if number not in self.form.targets and width <= size:
                scope.add(arith.ConstantOp(builtin.IntegerAttr(-1, builtin.i1)))
                continue
            condition = scope.add(arith.CmpiOp(offset, last, "ule"))
            total = condition if is_always else scope.add(arith.AndIOp(total, condition))
            is_always = False
        return total

    def update(self, scope: Scope, index: Sequence[SSAValue], updates: Value | None = None) -> SSAValue:
        """Return an element of the updates, by default of those for the first operand."""
        if not self.form.has_canonical_updates:
            index = scope.apply(self.form.updates, index)
        return called_element(self.functions, scope, updates or self.scatter.updates[0], self.parameters, index)

    def combined(self, builder: Builder, current: SSAValue, update: SSAValue) -> SSAValue:
        """Return what the region of a scatter into one operand makes of an element and an update."""
        (new,) = region_elements(self.functions.fusion.registry, self.op, builder, (current, update))
        return new

    def write(self, scope: Scope, target: SSAValue, place: Sequence[SSAValue], update: SSAValue) -> SSAValue:
        """Update an element of the only operand: at once for other threads, unless no other one updates it."""
        (written,) = self.write_all(scope, (target,), place, (update,))
        return written

    def write_all(
        self, scope: Scope, targets: Sequence[SSAValue], place: Sequence[SSAValue], updates: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Update an element of every operand whose result is a root, each at once for other threads.

        Args:
            scope: The scope.
            targets: The tensors that are written, one per root.
            place: The index of the element.
            updates: The update for every operand.
        """
        fusion = self.functions.fusion
        numbers = [self.op.results.index(root) for root in fusion.roots]
        if has_unique_indices(self.op):
            operands = [fusion.updated(value) for value in self.op.operands[: len(updates)]]
            currents = [called_element(self.functions, scope, value, self.parameters, place) for value in operands]
            new = region_elements(fusion.registry, self.op, scope.builder, (*currents, *updates))
            return [
                scope.add(tensor.InsertOp(new[number], target, list(place)))
                for number, target in zip(numbers, targets, strict=True)
            ]
        written = []
        for number, target in zip(numbers, targets, strict=True):
            op = AtomicRMWOp(target, list(place))
            inner = Builder(InsertPoint.at_end(op.body.block))
            arguments: list[SSAValue | None] = [None] * (2 * len(updates))
            arguments[number], arguments[len(updates) + number] = op.body.block.args[0], updates[number]
            inner.insert(YieldOp(*region_elements(fusion.registry, self.op, inner, arguments, result=number)))
            written.append(scope.add(op))
        return written

    def place(self, scope: Scope, offsets: Sequence[SSAValue], index: Sequence[SSAValue]) -> list[SSAValue]:
        """Return the index in the operand of an element of a window."""
        pairs = zip(index, offsets, strict=True)
        return [scope.add(arith.AddiOp(inside, offset)) for inside, offset in pairs]


def choose_values(
    scope: Scope,
    condition: SSAValue,
    otherwise: Sequence[SSAValue] | Callable[[Scope], Sequence[SSAValue]],
    then: Callable[[Scope], Sequence[SSAValue]],
) -> list[SSAValue]:
    """Return values that a branch computes where a condition holds, else others.

    Args:
        scope: The scope around.
        condition: The condition.
        otherwise: The others, or what computes them in a branch.
        then: The values where the condition holds, computed in the scope of the branch.
    """
    regions = []
    types: list[Attribute] = []
    for values in (then, otherwise):
        with scope.block() as (inner, block):
            elements = values(inner) if callable(values) else values
            inner.builder.insert(scf.YieldOp(*elements))
        types = [value.type for value in elements]
        regions.append(Region(block))
    branch = scf.IfOp(condition, types, regions[0], regions[1])
    scope.builder.insert(branch)
    return list(branch.results)


def scatter_entry(
    functions: FunctionEmitter, scatter: RootScatter, slices: Sequence[int], launch: Launch, map_: IndexingMap
) -> func.FuncOp:
    """Return the entry function of a scatter whose threads take elements of the updates and add nothing up.

    Mirrors ``EmitNaiveImplementation`` of XLA.

    Args:
        functions: The functions of the fusion.
        scatter: The scatter.
        slices: The number of the buffer of every argument.
        launch: The grid.
        map_: The map from threads, blocks and loops to the index of an element of the updates.
    """
    fusion = functions.fusion
    entry = EntryBuilder(fusion, launch, slices)
    scattering = Scattering(functions, scatter, entry.parameters)
    scope = entry_scope(functions, entry.block)
    (number,) = scope.apply(window_map(map_, launch), entry.ids)
    count = scope.index(scattering.form.count)
    is_window = scope.add(arith.CmpiOp(number, count, "ult"))

    def windows(inner: Scope) -> list[SSAValue]:
        offsets = scattering.padded(inner, scattering.offsets(inner, number), number)
        is_inside = scattering.inside(inner, offsets)
        return choose_values(inner, is_inside, entry.outputs, lambda innermost: elements(innermost, offsets))

    def elements(inner: Scope, offsets: Sequence[SSAValue]) -> list[SSAValue]:
        loop = LoopOp(map_, entry.ids, entry.outputs)
        inner.builder.insert(loop)
        body = entry_scope(functions, loop.body.block)
        updates = [scattering.update(body, loop.indices, value) for value in scatter.updates]
        place = scattering.place(body, offsets, loop.indices[1:])
        body.builder.insert(YieldOp(*scattering.write_all(body, loop.carried, place, updates)))
        return list(loop.outputs)

    return entry.finished(tuple(choose_values(scope, is_window, entry.outputs, windows)))
