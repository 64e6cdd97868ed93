"""Sharding propagation for tensor programs of any dialect.

    import shardy_py as sdy

    result = sdy.propagate(module, {"data": 4, "model": 2}, in_shardings={0: ("data", None)})
    print(result.sharding("arg0"), result.summary)

Importing the package imports neither a frontend nor a dialect: they come when a module is propagated. The engine
comes when `propagate` is looked up first.
"""

from typing import TYPE_CHECKING, Any

from shardy_py.errors import (
    Diagnostic,
    OptionError,
    ParseError,
    PluginError,
    RuleError,
    ShardyError,
    UnsupportedError,
    VerificationError,
)
from shardy_py.plugins import (
    Broadcast,
    ConstantFoldable,
    ConstantLike,
    Dialect,
    Elementwise,
    ForwardPassThrough,
    IsTerminator,
    LoopDataFlow,
    OpDefinition,
    PassThrough,
    Pure,
    RecursiveMemoryEffects,
    Registry,
    RuleOptions,
    ShardableDataFlowOpInterface,
    ShardingRuleOpInterface,
    Trait,
    hookimpl,
)
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.einsum import RuleSpec, rule
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding

if TYPE_CHECKING:
    from shardy_py.api.coverage import Coverage, MissingRule
    from shardy_py.api.propagate import propagate
    from shardy_py.api.result import Result
    from shardy_py.api.summary import Summary

__all__ = [
    # A run
    "propagate",
    "Result",
    "Summary",
    "Coverage",
    "MissingRule",
    # The vocabulary
    "Mesh",
    "MeshAxis",
    "AxisRef",
    "SubAxis",
    "DimensionSharding",
    "TensorSharding",
    "OpShardingRule",
    "OpShardingRuleBuilder",
    "FactorKind",
    # What plugins are made of
    "Dialect",
    "OpDefinition",
    "Registry",
    "RuleOptions",
    "rule",
    "RuleSpec",
    "hookimpl",
    "ShardingRuleOpInterface",
    "ShardableDataFlowOpInterface",
    "LoopDataFlow",
    "Trait",
    "Broadcast",
    "ConstantFoldable",
    "ConstantLike",
    "Elementwise",
    "ForwardPassThrough",
    "IsTerminator",
    "PassThrough",
    "Pure",
    "RecursiveMemoryEffects",
    # Errors
    "Diagnostic",
    "ShardyError",
    "OptionError",
    "ParseError",
    "PluginError",
    "RuleError",
    "UnsupportedError",
    "VerificationError",
]

_LATE = {
    "Coverage": "shardy_py.api.coverage",
    "MissingRule": "shardy_py.api.coverage",
    "Result": "shardy_py.api.result",
    "Summary": "shardy_py.api.summary",
    "propagate": "shardy_py.api.propagate",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_LATE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
