"""Sharding rules from indexing maps: how the loops over an op's elements index its tensors.

A dialect whose ops carry affine maps, as MLIR's structured ops do, gets their rules from `rule_from_indexing_maps`; one
that describes its ops from the index of the result gets them from `rule_from_op_maps`. Both are one derivation.
`op_indexing_from_maps` gives the second description of an op with the first.
"""

from shardy_py.sharding.derivation.from_maps import (
    PARALLEL,
    REDUCTION,
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
