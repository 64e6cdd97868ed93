"""The operators of PyTorch: the dialects aten and higher_order, as `torch.export` writes them.

Pointwise operators, and users' own that carry the tag ``pointwise``, get their rule from the tag; see
`shardy_py.frontends.torch`. Operators without a rule are reported by coverage. Nothing here imports PyTorch.
"""

from shardy_dialects.aten import contractions, control_flow, creation, indexing, normalizations, reductions, shapes
from shardy_py.plugins import Dialect, hookimpl

aten = Dialect("aten")
for _rules in (shapes, contractions, reductions, normalizations, indexing, creation):
    _rules.register(aten)

higher_order = Dialect("higher_order")
control_flow.register(higher_order)


@hookimpl
def shardy_register_dialects() -> list[Dialect]:
    """Return the dialects aten and higher_order."""
    return [aten, higher_order]
