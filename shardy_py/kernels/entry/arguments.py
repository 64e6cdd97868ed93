"""The arguments of an entry function: the buffers of parameters, then of results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import builtin, func
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from shardy_py.ir.graph.program import Value
from shardy_py.kernels.dialect.gpu import BlockIdOp, ThreadIdOp
from shardy_py.kernels.dialect.types import tensor_type
from shardy_py.kernels.elemental.functions import RANGE, range_attribute
from shardy_py.kernels.fusion.fusion import Fusion, bytes_of
from shardy_py.kernels.launch.grid import Launch

INPUT_ALIGN, OUTPUT_ALIGN = 16, 256
SLICE = "xla.slice_index"
MOST_PARAMETERS = 544
"""The most pointers that a device takes as parameters: 4,352 bytes before version 8.1 of PTX."""
ENTRY = "xla.entry"


class EntryBuilder:
    """An entry function while it is built.

    Args:
        fusion: The fusion.
        launch: The grid.
        slices: The number of the buffer of every parameter, then of every root; by default each has its own.
    """

    def __init__(self, fusion: Fusion, launch: Launch, slices: Sequence[int] = ()) -> None:
        self.fusion = fusion
        self.launch = launch
        self._slices = tuple(slices) or tuple(range(len(fusion.parameters) + len(fusion.roots)))
        values = (*fusion.parameters, *fusion.roots)
        types = [tensor_type(value, fusion.layout_of(value)) for value in values]
        self.block = Block(arg_types=types)
        self.builder = Builder(InsertPoint.at_end(self.block))
        count = len(fusion.parameters)
        self.parameters: tuple[SSAValue, ...] = tuple(self.block.args[:count])
        self.outputs: tuple[SSAValue, ...] = tuple(self.block.args[count:])
        self.ids = self._ids()

    def add(self, op: Operation) -> SSAValue:
        """Add an op and return its first result."""
        self.builder.insert(op)
        return op.results[0]

    def _ids(self) -> tuple[SSAValue, ...]:
        """Add the ids of thread and block, with their ranges."""
        ids: list[SSAValue] = []
        for class_, sizes in ((ThreadIdOp, self.launch.threads), (BlockIdOp, self.launch.blocks)):
            for dimension, size in zip("xyz", sizes, strict=True):
                op = class_(dimension, {RANGE: range_attribute(0, size - 1)})
                self.builder.insert(op)
                ids.append(op.output)
        return tuple(ids)

    def finished(self, results: tuple[SSAValue, ...]) -> func.FuncOp:
        """Return the function, which returns the tensors that were written."""
        self.builder.insert(func.ReturnOp(*results))
        types = [value.type for value in self.block.args]
        function = func.FuncOp(
            self.fusion.name,
            (types, [value.type for value in results]),
            Region(self.block),
            arg_attrs=builtin.ArrayAttr(self._attributes()),
        )
        function.attributes[ENTRY] = builtin.UnitAttr()
        return function

    def _attributes(self) -> list[builtin.DictionaryAttr]:
        count = len(self.fusion.parameters)
        written = self._slices[count:]
        values = (*self.fusion.parameters, *self.fusion.roots)
        return [
            _attributes(value, slice_, is_input=number < count, is_written=slice_ in written)
            for number, (value, slice_) in enumerate(zip(values, self._slices, strict=True))
        ]


def _attributes(value: Value, slice_: int, *, is_input: bool, is_written: bool) -> builtin.DictionaryAttr:
    size = max(1, bytes_of(value))
    attributes: dict[str, Attribute] = {
        "llvm.align": builtin.IntegerAttr(INPUT_ALIGN if is_input else OUTPUT_ALIGN, builtin.IndexType()),
        "llvm.dereferenceable": builtin.IntegerAttr(size, builtin.IndexType()),
        SLICE: builtin.IntegerAttr(slice_, builtin.IndexType()),
    }
    if not is_written:
        attributes["xla.invariant"] = builtin.UnitAttr()
    return builtin.DictionaryAttr(attributes)
