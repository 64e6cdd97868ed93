"""The vocabulary: meshes, axes, shardings and sharding rules, as frozen values."""

from typing import TYPE_CHECKING

from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.parse import (
    format_attribute,
    parse_attribute,
    parse_axis_ref,
    parse_dim_sharding,
    parse_manual_axes,
    parse_mesh,
    parse_op_sharding_rule,
    parse_tensor_sharding,
    parse_tensor_sharding_per_value,
)
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.tensor import (
    CLOSED,
    OPEN,
    DimensionSharding,
    ManualAxes,
    TensorSharding,
    TensorShardingPerValue,
)
from shardy_py.sharding.verify import NoShape, verify_mesh, verify_tensor_sharding, verify_tensor_shardings
from shardy_py.sharding.verify_rule import verify_op_sharding_rule
from shardy_py.support.homes import look_up_in

if TYPE_CHECKING:
    from shardy_py.sharding.verify_manual import ManualValues, verify_manual_computation_shardings

__all__ = [
    # meshes and axes
    "AxisRef",
    "Mesh",
    "MeshAxis",
    "SubAxis",
    # shardings
    "CLOSED",
    "OPEN",
    "DimensionSharding",
    "ManualAxes",
    "TensorSharding",
    "TensorShardingPerValue",
    # rules
    "FactorKind",
    "OpShardingRule",
    # text
    "format_attribute",
    "parse_attribute",
    "parse_axis_ref",
    "parse_dim_sharding",
    "parse_manual_axes",
    "parse_mesh",
    "parse_op_sharding_rule",
    "parse_tensor_sharding",
    "parse_tensor_sharding_per_value",
    # invariants
    "ManualValues",
    "NoShape",
    "verify_manual_computation_shardings",
    "verify_mesh",
    "verify_op_sharding_rule",
    "verify_tensor_sharding",
    "verify_tensor_shardings",
]

__getattr__ = look_up_in(__name__, {f"{__name__}.verify_manual": "ManualValues verify_manual_computation_shardings"})
