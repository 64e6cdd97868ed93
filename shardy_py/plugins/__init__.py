"""The plugin surface: all that a dialect outside this package needs besides the vocabulary."""

from typing import TYPE_CHECKING

from shardy_py.errors import PluginError, RuleError
from shardy_py.ir.interfaces.costs import CostOpInterface, OpShapes, OpWork, OwnCollective, Window
from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
from shardy_py.ir.interfaces.ops import (
    AsSdyConstant,
    Bitcast,
    Broadcast,
    Concatenation,
    ConstantFoldable,
    ConstantLike,
    Contraction,
    CrossDeviceReduction,
    DataFlowShardingTransformType,
    DynamicSlice,
    DynamicUpdate,
    Elementwise,
    FoldsIntoConstant,
    ForwardPassThrough,
    IsolatedFromAbove,
    IsTerminator,
    LibraryCall,
    Maximum,
    MeshReferenceOpInterface,
    Minimum,
    Nondeterministic,
    OpOperand,
    OpSemantics,
    PassThrough,
    Product,
    PropagationBarrier,
    Pure,
    ReadsSizes,
    RecursiveMemoryEffects,
    Reduction,
    Reshape,
    ReturnLike,
    RuleOptions,
    Scatter,
    ShardableDataFlowOpInterface,
    ShardingRuleOpInterface,
    Sort,
    Sum,
    Trait,
    UnitedByMlir,
    Unpartitioned,
    UpstreamDataFlow,
)
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.plugins.dialect import Dialect
from shardy_py.plugins.hookspecs import ENTRY_POINT_GROUP, PROJECT, hookimpl, hookspec
from shardy_py.plugins.op_definition import CombinerOf, ContextOf, InitialOf, OpDefinition, Rule, TraitsOf
from shardy_py.plugins.plugin_info import PluginInfo
from shardy_py.plugins.region_ops import BranchCost, BranchDataFlow, CountedLoopCost, LoopDataFlow
from shardy_py.plugins.registry import Registry
from shardy_py.schedule.model import Direction, Entry, Level, OpPriority, Schedule, Selector
from shardy_py.support.homes import look_up_in

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.emission import ElementBuilder, Emission, KernelEmitter, KernelModulePass, Scalar
    from shardy_py.ir.interfaces.local import (
        Combined,
        Localize,
        LocalOpInterface,
        LocalOps,
        Shard,
        local_by_types,
        no_local_form,
    )
    from shardy_py.ir.interfaces.local_ops import LocalEmitter
    from shardy_py.ir.interfaces.local_windows import with_window
    from shardy_py.ir.interfaces.named_collectives import NamedCollectives
    from shardy_py.ir.interfaces.result_sizes import ResultSizes, SizesOf
    from shardy_py.plugins.plugin_files import load_plugin_file
    from shardy_py.sharding.einsum import RuleSpec, rule
    from shardy_py.sharding.tensor import TensorShardingPerValue

__all__ = [
    "ENTRY_POINT_GROUP",
    "PROJECT",
    "AsSdyConstant",
    "BranchCost",
    "BranchDataFlow",
    "Bitcast",
    "Broadcast",
    "Concatenation",
    "DynamicSlice",
    "DynamicUpdate",
    "ReadsSizes",
    "Combined",
    "CombinerOf",
    "ContextOf",
    "ElementBuilder",
    "Emission",
    "Scalar",
    "ConstantFoldable",
    "ConstantLike",
    "Contraction",
    "CostOpInterface",
    "CountedLoopCost",
    "CrossDeviceReduction",
    "DataFlowShardingTransformType",
    "Dialect",
    "Direction",
    "Elementwise",
    "Entry",
    "FoldsIntoConstant",
    "ForwardPassThrough",
    "Frontend",
    "InitialOf",
    "IsTerminator",
    "KernelEmitter",
    "KernelModulePass",
    "IsolatedFromAbove",
    "Level",
    "LocalEmitter",
    "LocalOpInterface",
    "LocalOps",
    "Localize",
    "LoopDataFlow",
    "LibraryCall",
    "Maximum",
    "MeshReferenceOpInterface",
    "Minimum",
    "Nondeterministic",
    "NamedCollectives",
    "OpDefinition",
    "OpOperand",
    "OpPriority",
    "OpSemantics",
    "OpShapes",
    "OpWork",
    "OwnCollective",
    "Pass",
    "PassContext",
    "PassThrough",
    "PluginError",
    "PluginInfo",
    "PrintedName",
    "PropagationBarrier",
    "Product",
    "Pure",
    "RecursiveMemoryEffects",
    "Reduction",
    "Registry",
    "Reshape",
    "ReturnLike",
    "Scatter",
    "ResultSizes",
    "SizesOf",
    "Rule",
    "RuleError",
    "RuleOptions",
    "RuleSpec",
    "Schedule",
    "Selector",
    "ShardableDataFlowOpInterface",
    "ShardingRuleOpInterface",
    "Shard",
    "Sort",
    "Sum",
    "TensorShardingPerValue",
    "Trait",
    "TraitsOf",
    "UnitedByMlir",
    "Unpartitioned",
    "UpstreamDataFlow",
    "Window",
    "hookimpl",
    "hookspec",
    "load_plugin_file",
    "local_by_types",
    "no_local_form",
    "with_window",
    "rule",
]

# What few programs need: local forms, kernels, rules as texts.
__getattr__ = look_up_in(
    __name__,
    {
        "shardy_py.ir.interfaces.emission": "ElementBuilder Emission KernelEmitter KernelModulePass Scalar",
        "shardy_py.ir.interfaces.local": (
            "Combined LocalOpInterface LocalOps Localize Shard local_by_types no_local_form"
        ),
        "shardy_py.ir.interfaces.local_ops": "LocalEmitter",
        "shardy_py.ir.interfaces.local_windows": "with_window",
        "shardy_py.ir.interfaces.named_collectives": "NamedCollectives",
        "shardy_py.ir.interfaces.result_sizes": "ResultSizes SizesOf",
        "shardy_py.plugins.plugin_files": "load_plugin_file",
        "shardy_py.sharding.einsum": "RuleSpec rule",
        "shardy_py.sharding.tensor": "TensorShardingPerValue",
    },
)
