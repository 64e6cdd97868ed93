"""The native side of a program: its module, codec and attribute sets."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir import ir

from shardy_py.frontends.mlir.attributes import AttributeSets, NativeAttributes
from shardy_py.frontends.mlir.codec import Codec
from shardy_py.ir.graph.program import Op, Value
from shardy_py.values import define


class BlockHandle:
    """The native block of a block, and the ops it has there."""

    __slots__ = ("native", "ops")

    def __init__(self, native: ir.Block, ops: list[Op]) -> None:
        self.native = native
        self.ops = ops


@define
class NativeProgram:
    """The native side of a program, as `write_back` needs it.

    Args:
        module: The native module.
        codec: The codec of its context.
        sets: The attribute sets seen.
        name: What locations call a source without a name of its own.
    """

    module: ir.Module
    codec: Codec
    sets: AttributeSets
    name: str = "-"

    @property
    def changed(self) -> dict[int, NativeAttributes]:
        """The attributes that changed since the last `write_back`, by identity."""
        return self.sets.changed

    def attributes_of(self, native: ir.Operation, operands: Sequence[Value] = ()) -> NativeAttributes:
        """Return the attributes of a native op as a mapping."""
        return NativeAttributes(self.sets.of(native), native, operands)
