"""The local forms of StableHLO's ops: what one device runs, on its shards.

Their modules are imported when a program becomes local, as most programs never do.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from shardy_dialects.stablehlo.local import by_types
from shardy_dialects.stablehlo.local.ops import StablehloLocalOps
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard, local_constant
from shardy_py.plugins import OpDefinition
from shardy_py.values import frozen

__all__ = ["HOMES", "StablehloLocalOps", "describe"]

HOMES = {
    "constants": "iota",
    "convolution": "convolution",
    "custom_calls": "custom_call",
    "dynamic_shapes": (
        "broadcast dynamic_broadcast_in_dim dynamic_gather dynamic_pad dynamic_reshape real_dynamic_slice"
    ),
    "dynamic_slicing": "dynamic_slice dynamic_update_slice",
    "gathering": "gather torch_index_select",
    "padding": "pad",
    "random": "rng rng_bit_generator",
    "reduce_window": "reduce_window",
    "reduction": "reduce",
    "scattering": "scatter",
    "select_and_scatter": "select_and_scatter",
    "shaping": "get_dimension_size reshape",
    "slicing": "concatenate reverse slice",
    "sorting": "sort",
    "top_k": "chlo.top_k mhlo.topk",
}
"""Module to the ops whose local forms it has, without the name of the dialect StableHLO."""


@frozen
class LaterForm:
    """A local form that is imported when an op needs it.

    Args:
        home: The module, one of `HOMES`.
    """

    home: str

    def localize(self, op: Op, shard: Shard) -> Sequence[Value]:
        """Return the results on one device."""
        found: Sequence[Value] = import_module(f"{__name__}.{self.home}").FORMS[op.name](op, shard)
        return found


@frozen
class CallForm(LaterForm):
    """The local form of custom calls whose target is known."""

    def applies(self, op: Op) -> bool:
        """Return whether it is known what a call computes."""
        is_known: bool = import_module(f"{__name__}.{self.home}").is_known(op)
        return is_known


_FORMS: dict[str, Any] = {
    **by_types.FORMS,
    "stablehlo.constant": local_constant,
    **{
        name if "." in name else f"stablehlo.{name}": LaterForm(home)
        for home, names in HOMES.items()
        for name in names.split()
    },
    "stablehlo.custom_call": CallForm("custom_calls"),
}


def describe(definition: OpDefinition) -> dict[str, Any]:
    """Return the local form of an op."""
    form = _FORMS.get(definition.name)
    return {} if form is None else {"local": form}
