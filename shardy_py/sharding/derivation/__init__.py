"""Sharding rules from indexing maps: how the loops over an op's elements index its tensors.

A dialect whose ops carry affine maps, as MLIR's structured ops do, gets their rules from `rule_from_indexing_maps`; one
that describes its ops from the index of the result gets them from `rule_from_op_maps`. Both are one derivation.
`op_indexing_from_maps` gives the second description of an op with the first.
"""

from typing import TYPE_CHECKING

from shardy_py.sharding.derivation.iterators import PARALLEL, REDUCTION
from shardy_py.support.homes import look_up_in

if TYPE_CHECKING:
    from shardy_py.sharding.derivation.from_maps import (
        rule_from_indexing_maps,
        rule_from_op_maps,
        with_whole_dims,
    )
    from shardy_py.sharding.derivation.op_indexing import op_indexing_from_maps

__all__ = [
    "PARALLEL",
    "REDUCTION",
    "op_indexing_from_maps",
    "rule_from_indexing_maps",
    "rule_from_op_maps",
    "with_whole_dims",
]

__getattr__ = look_up_in(
    __name__,
    {
        f"{__name__}.from_maps": "rule_from_indexing_maps rule_from_op_maps with_whole_dims",
        f"{__name__}.op_indexing": "op_indexing_from_maps",
    },
)
