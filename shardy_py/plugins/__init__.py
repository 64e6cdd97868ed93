"""The plugin surface: all that a dialect outside this package needs besides the vocabulary."""

from shardy_py.errors import PluginError, RuleError
from shardy_py.ir.interfaces import (
    Broadcast,
    ConstantFoldable,
    ConstantLike,
    DataFlowShardingTransformType,
    Elementwise,
    ForwardPassThrough,
    IsTerminator,
    OpOperand,
    OpSemantics,
    PassThrough,
    PropagationBarrier,
    Pure,
    RecursiveMemoryEffects,
    RuleOptions,
    ShardableDataFlowOpInterface,
    ShardingRuleOpInterface,
    Trait,
)
from shardy_py.plugins.dialect import Dialect, OpDefinition, Rule, TraitsOf
from shardy_py.plugins.registry import PluginInfo, Registry
from shardy_py.plugins.specs import ENTRY_POINT_GROUP, PROJECT, hookimpl, hookspec

__all__ = [
    "ENTRY_POINT_GROUP",
    "PROJECT",
    "Broadcast",
    "ConstantFoldable",
    "ConstantLike",
    "DataFlowShardingTransformType",
    "Dialect",
    "Elementwise",
    "ForwardPassThrough",
    "IsTerminator",
    "OpDefinition",
    "OpOperand",
    "OpSemantics",
    "PassThrough",
    "PluginError",
    "PluginInfo",
    "PropagationBarrier",
    "Pure",
    "RecursiveMemoryEffects",
    "Registry",
    "Rule",
    "RuleError",
    "RuleOptions",
    "ShardableDataFlowOpInterface",
    "ShardingRuleOpInterface",
    "Trait",
    "TraitsOf",
    "hookimpl",
    "hookspec",
]
