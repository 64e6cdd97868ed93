"""The operators of PyTorch, as `torch.export` writes them: the dialects aten, higher_order, quantized_decomposed,
transformers and those of functional collectives.

Pointwise operators, and users' own that carry the tag ``pointwise``, get their rule from the tag; see
`shardy_py.torch.frontend`. Operators without a rule are reported by coverage. Nothing here imports PyTorch.
"""

from shardy_dialects.aten import (
    attention,
    communication,
    contractions,
    control_flow,
    creation,
    gradients,
    indexing,
    matrices,
    normalizations,
    pointwise,
    products,
    quantized,
    recurrent,
    reductions,
    shapes,
    slicing,
)
from shardy_dialects.aten.local_ops import TorchLocalOps
from shardy_py.ir.interfaces.local import local_by_types, local_constant
from shardy_py.plugins import ConstantLike, Dialect, hookimpl

aten = Dialect("aten", local_ops=TorchLocalOps())
for _rules in (
    *(pointwise, shapes, slicing, contractions, attention, matrices, reductions),
    *(normalizations, indexing, creation, recurrent, products, gradients),
):
    _rules.register(aten)
_WITH_FORMS = (contractions, creation, gradients, indexing, matrices, normalizations, reductions, shapes, slicing)
FORMS = {f"aten.{name}": form for family in _WITH_FORMS for name, form in family.FORMS.items()}
quantized.register_aten(aten)
transformers = Dialect("transformers")
products.register_transformers(transformers)
quantized_decomposed = Dialect("quantized_decomposed")
quantized.register(quantized_decomposed)
collectives = tuple(map(Dialect, communication.DIALECTS))
for _dialect in collectives:
    communication.register(_dialect)
for _dialect in (aten, transformers, quantized_decomposed, *collectives):
    for _definition in _dialect.definitions:
        _default = local_constant if ConstantLike in _definition.traits else local_by_types
        _dialect.replace(_definition.with_parts({"local": FORMS.get(_definition.name, _default)}))

higher_order = Dialect("higher_order")
control_flow.register(higher_order)


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Return the dialects aten, higher_order, quantized_decomposed, transformers, and those of collectives."""
    return [aten, higher_order, quantized_decomposed, transformers, *collectives]
