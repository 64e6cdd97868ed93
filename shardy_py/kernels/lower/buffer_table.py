"""Tables of pointers for kernels with more buffers than a device takes parameters: the address of all is passed."""

from __future__ import annotations

from typing import final

from xdsl.dialects import func
from xdsl.ir import Block, SSAValue

from shardy_py.kernels.entry.arguments import MOST_PARAMETERS
from shardy_py.kernels.lower.writer import FunctionWriter

TABLE = "%buffers"
_POINTER_BYTES = 8


def takes_table(count: int) -> bool:
    """Return whether a kernel with a number of buffers is passed a table of their pointers.

    >>> takes_table(544), takes_table(545)
    (False, True)
    """
    return count > MOST_PARAMETERS


@final
class BufferTable:
    """The pointers of an entry function, each loaded from the table by the blocks that use it.

    Args:
        function: The entry function.
        writer: Where the loads are written.
    """

    def __init__(self, function: func.FuncOp, writer: FunctionWriter) -> None:
        self._writer = writer
        self._first = function.body.blocks[0]
        self._numbers: dict[SSAValue, int] = {value: number for number, value in enumerate(self._first.args)}
        # A value that is passed to a block is named where that block begins, behind all of them.
        self._passed = [
            value for value in self._numbers if any(use.operation.name.startswith("cf.") for use in value.uses)
        ]

    @property
    def parameter(self) -> str:
        """The parameter of the entry function."""
        size = _POINTER_BYTES * len(self._numbers)
        return f"{self._type} noalias align {_POINTER_BYTES} dereferenceable({size}) readonly {TABLE}"

    @property
    def _type(self) -> str:
        space = self._writer.target.memory_space
        return f"ptr addrspace({space})" if space else "ptr"

    def load(self, block: Block) -> None:
        """Load the pointers that the ops of a block use."""
        if block is self._first:
            for value in self._passed:
                self._load(value)
        used = dict.fromkeys(value for op in block.ops for value in op.operands if value in self._numbers)
        for value in used:
            if value not in self._passed:
                self._load(value)

    def _load(self, value: SSAValue) -> None:
        entry = self._writer.new(f"getelementptr inbounds ptr, {self._type} {TABLE}, i64 {self._numbers[value]}")
        pointer = self._writer.type(value)
        text = f"load {pointer}, {self._type} {entry}, align {_POINTER_BYTES}, !invariant.load !0"
        self._writer.let(value, text)
