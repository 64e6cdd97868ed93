"""Hypothesis strategies for the vocabulary; all shrink.

Those called ``sloppy`` draw values that may break invariants, for tests of what checks them.
"""

from shardy_py.testing.strategies.arrays import any_shapes, array_shapes, layouts, tiles
from shardy_py.testing.strategies.axes import (
    axis_lists,
    axis_refs,
    coexisting_pairs,
    divisors,
    factorisations,
    merged,
    meshes,
    names,
    partitions,
    plain_names,
    special_meshes,
)
from shardy_py.testing.strategies.rules import (
    op_sharding_rules,
    rule_shapes,
    rule_shardings,
    rules_with_shapes,
    sloppy_op_sharding_rules,
)
from shardy_py.testing.strategies.tensors import (
    dim_shardings,
    manual_axes,
    priorities,
    shardings_per_value,
    sloppy_tensor_shardings,
    tensor_shardings,
)

__all__ = [
    # Meshes and axes
    "meshes",
    "special_meshes",
    "names",
    "plain_names",
    "axis_refs",
    "axis_lists",
    "coexisting_pairs",
    "factorisations",
    "partitions",
    "divisors",
    "merged",
    # Shardings
    "dim_shardings",
    "tensor_shardings",
    "sloppy_tensor_shardings",
    "shardings_per_value",
    "manual_axes",
    "priorities",
    # Rules
    "op_sharding_rules",
    "sloppy_op_sharding_rules",
    "rules_with_shapes",
    "rule_shardings",
    "rule_shapes",
    # Shapes and layouts
    "array_shapes",
    "any_shapes",
    "layouts",
    "tiles",
]
