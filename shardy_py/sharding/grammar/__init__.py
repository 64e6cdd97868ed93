"""The grammar: one function per form, from a cursor on tokens to a value."""

from shardy_py.sharding.grammar.attributes import attribute
from shardy_py.sharding.grammar.rules import op_sharding_rule
from shardy_py.sharding.grammar.shardings import (
    axis_list,
    axis_ref,
    dim_sharding,
    manual_axes,
    mesh,
    tensor_sharding,
    tensor_sharding_per_value,
)

__all__ = [
    "attribute",
    "axis_list",
    "axis_ref",
    "dim_sharding",
    "manual_axes",
    "mesh",
    "op_sharding_rule",
    "tensor_sharding",
    "tensor_sharding_per_value",
]
