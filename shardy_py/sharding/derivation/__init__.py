"""Sharding rules from indexing maps: how the loops over an op's elements index its tensors.

A dialect whose ops carry affine maps, as MLIR's structured ops do, gets their rules from `rule_from_indexing_maps`; one
that describes its ops from the index of the result gets them from `rule_from_op_maps`. Both are one derivation.
`op_indexing_from_maps` gives the second description of an op with the first.
"""

from typing import TYPE_CHECKING

from shardy_py.support.homes import look_up_in

if TYPE_CHECKING:
    from shardy_py.sharding.derivation.from_maps import (
        op_indexing_from_maps,
        rule_from_indexing_maps,
        rule_from_op_maps,
        with_whole_dims,
    )

__all__ = [
    "PARALLEL",
    "REDUCTION",
    "op_indexing_from_maps",
    "rule_from_indexing_maps",
    "rule_from_op_maps",
    "with_whole_dims",
]

PARALLEL = "parallel"
"""The kind of a loop whose iterations compute different elements, in MLIR's words."""
REDUCTION = "reduction"
"""The kind of a loop over which elements are combined."""

__getattr__ = look_up_in(
    __name__,
    {
        f"{__name__}.from_maps": ("op_indexing_from_maps rule_from_indexing_maps rule_from_op_maps with_whole_dims"),
    },
)
