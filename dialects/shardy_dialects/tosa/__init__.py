"""TOSA, the operator set that TFLite, PyTorch and ONNX are lowered to; the extra ``stablehlo`` has MLIR to read it.

Shapes are operands of the type ``!tosa.shape``, made by ``tosa.const_shape``; zero points are tensors of one element.
"""

from typing import Any

from shardy_dialects.tosa import elementwise, images, moves, products, reductions, windows
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import (
    BranchCost,
    BranchDataFlow,
    ConstantLike,
    Dialect,
    IsTerminator,
    LoopDataFlow,
    Pure,
    RecursiveMemoryEffects,
    hookimpl,
)

tosa = Dialect("tosa")
tosa.type("!tosa.shape")
tosa.op("tosa.const", traits=[ConstantLike, Pure])
tosa.op("tosa.const_shape", traits=[Pure])
tosa.op("tosa.cond_if", traits=[RecursiveMemoryEffects], data_flow=BranchDataFlow(first_operand=1), cost=BranchCost())
tosa.op("tosa.while_loop", traits=[RecursiveMemoryEffects], data_flow=LoopDataFlow(yielding=(1,)))
tosa.op("tosa.yield", traits=[IsTerminator, Pure])
for _family in (elementwise, products, reductions, images, windows, moves):
    _family.register(tosa)
for _definition in tosa.definitions:
    # Numbers among the attributes are axes, strides and the like, no sizes of operands.
    if _definition.rule is not None and _definition.local is None:
        tosa.replace(_definition.with_parts({"local": local_by_types}))


def __getattr__(name: str) -> Any:
    """Return the functions of numpy, which are loaded when asked for."""
    if name != "FUNCTIONS":
        raise AttributeError(name)
    from shardy_dialects.tosa.functions import FUNCTIONS

    return FUNCTIONS


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Return the dialect tosa."""
    return [tosa]
