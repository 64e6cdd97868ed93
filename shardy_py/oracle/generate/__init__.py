"""Random valid StableHLO + Shardy programs, by seed.

    generate(seed, size=25, features=ALL_FEATURES) -> text

One file per family of features; each says in its first line which switches it serves. A switch that is off removes
what it names, so a failing case can be narrowed. The switches:

* ops: ``elementwise``, ``transpose``, ``reshape``, ``broadcast``, ``reverse``, ``bitcast``, ``dot``, ``convolution``,
  ``reduce``, ``window``, ``sort``, ``slice``, ``concatenate``, ``pad``, ``dynamic_slice``, ``gather``, ``scatter``,
  ``linalg``, ``constants``, ``sdy_constant``, ``rng``, ``custom_calls``, ``custom_rules``, ``collectives``,
  ``sdy_collectives``, ``unknown_ops``, ``ruleless_ops``, ``tokens``
* regions and functions: ``while``, ``case``, ``optimization_barrier``, ``data_flow_edges``, ``manual_computation``,
  ``named_computation``, ``unknown_regions``, ``unknown_region_arguments``, ``calls``,
  ``func_data_flow_edges``
* Shardy's own ops: ``sharding_constraint``, ``reshard``, ``propagation_barrier``, ``sharding_group``
* shardings: ``sub_axes``, ``priorities``, ``replicated``, ``unreduced``, ``non_divisible``, ``several_meshes``,
  ``inlined_meshes``,
  ``device_ids``, ``maximal``, ``zero_sizes``

See docs/reference/generator.md.
"""

from shardy_py.oracle.generate.choices import Choices
from shardy_py.oracle.generate.generator import (
    ALL_FEATURES,
    DEFAULT_FEATURES,
    RARE_FEATURES,
    Generated,
    generate,
    generate_from,
    generate_program,
    parse_features,
)

__all__ = [
    "ALL_FEATURES",
    "DEFAULT_FEATURES",
    "RARE_FEATURES",
    "Choices",
    "Generated",
    "generate",
    "generate_from",
    "generate_program",
    "parse_features",
]
