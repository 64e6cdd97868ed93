"""The operators of ONNX, which `shardy_py.onnx` reads from models; nothing here imports ONNX.

Operands of nodes that hold sizes, axes and positions as constants are attributes of the ops: ``shape`` of a reshape,
``axes`` of a reduction. Operators without a rule are reported by coverage.
"""

from shardy_dialects.onnx import contractions, control_flow, elementwise, microsoft, reductions, shapes
from shardy_dialects.onnx.local_ops import OnnxLocalOps
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import Dialect, hookimpl

onnx = Dialect("onnx", local_ops=OnnxLocalOps())
FAMILIES = (elementwise, contractions, reductions, shapes, control_flow, microsoft)
for _family in FAMILIES:
    _family.register(onnx)
FORMS = {
    f"onnx.{name}": form
    for family in (contractions, shapes, control_flow, microsoft)
    for name, form in family.FORMS.items()
}
for _definition in onnx.definitions:
    if _definition.data_flow is not None or _definition.name == "onnx.yield":
        continue
    onnx.replace(_definition.with_parts({"local": FORMS.get(_definition.name, local_by_types)}))


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Return the dialect onnx."""
    return [onnx]
