"""The record of how axes came onto the tensors of one op: which operand or result passed them to which others."""

from __future__ import annotations

from typing import ClassVar, Literal

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.sdy_attribute import SdyAttribute
from shardy_py.values import frozen

EdgeNodeType = Literal["operand", "result"]


@frozen(cache_hash=True)
class EdgeValueRef:
    """An operand or a result of an op.

    >>> str(EdgeValueRef("operand", 1))
    'operand-1'
    """

    type: EdgeNodeType
    index: int

    def __str__(self) -> str:
        return f"{self.type}-{self.index}"


@frozen(cache_hash=True)
class AxisToPropagationDetails:
    """One axis, where it came from and where it went."""

    axis: AxisRef
    source: EdgeValueRef
    targets: tuple[EdgeValueRef, ...]

    def __str__(self) -> str:
        targets = ", ".join(map(str, self.targets))
        return f"{{{self.axis} = {self.source} -> [{targets}]}}"


@frozen(cache_hash=True)
class PropagationOneStep:
    """Edges of one propagation step of the op; steps are numbered over the whole run."""

    step_index: int
    axis_entries: tuple[AxisToPropagationDetails, ...]

    def __str__(self) -> str:
        entries = ", ".join(map(str, self.axis_entries))
        return f"{{step-{self.step_index} = [{entries}]}}"


@frozen(cache_hash=True)
class PropagationEdges(SdyAttribute):
    """All steps that changed shardings of one op, in order.

    >>> moved = AxisToPropagationDetails(AxisRef("x"), EdgeValueRef("operand", 0), (EdgeValueRef("result", 0),))
    >>> str(PropagationEdges((PropagationOneStep(3, (moved,)),)))
    '<[{step-3 = [{"x" = operand-0 -> [result-0]}]}]>'
    """

    mnemonic: ClassVar[str] = "propagation_edges"

    steps: tuple[PropagationOneStep, ...] = ()

    def __str__(self) -> str:
        return "<[" + ", ".join(map(str, self.steps)) + "]>"
