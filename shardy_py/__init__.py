"""Sharding propagation for tensor programs of any dialect.

    import shardy_py as sdy

    result = sdy.propagate(module, {"data": 4, "model": 2}, in_shardings={0: ("data", None)})
    print(result.sharding("arg0"), result.summary)

Importing the package imports nothing else: each name comes, with what it needs, when it is looked up first. Frontends
and dialects come when a module is propagated.
"""

import gc
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardy_py import mpmd
    from shardy_py.api.coverage import Coverage, MissingRule
    from shardy_py.api.propagate import propagate
    from shardy_py.api.result import Result
    from shardy_py.api.summary import Summary
    from shardy_py.cost.advice.advise import advise
    from shardy_py.cost.session import Session
    from shardy_py.cost.sweeps.comparison import compare_schedules
    from shardy_py.cost.sweeps.search import search_schedule
    from shardy_py.errors import (
        Diagnostic,
        OptionError,
        ParseError,
        PluginError,
        RuleError,
        RuleWarning,
        ShardyError,
        UnsupportedError,
        VerificationError,
        WorkerError,
    )
    from shardy_py.explain.diff import diff_schedules
    from shardy_py.ir.graph.builder import Builder
    from shardy_py.ir.graph.program import Program, Value
    from shardy_py.ir.graph.types import tensor
    from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
    from shardy_py.jax.jit import jit
    from shardy_py.plans.planning import plan
    from shardy_py.plugins import (
        AsSdyConstant,
        Bitcast,
        BranchCost,
        BranchDataFlow,
        Broadcast,
        CombinerOf,
        Concatenation,
        ConstantFoldable,
        ConstantLike,
        ContextOf,
        Contraction,
        CostOpInterface,
        CountedLoopCost,
        CrossDeviceReduction,
        DataFlowShardingTransformType,
        Dialect,
        Direction,
        DynamicSlice,
        DynamicUpdate,
        Elementwise,
        Entry,
        FoldsIntoConstant,
        ForwardPassThrough,
        InitialOf,
        IsolatedFromAbove,
        IsTerminator,
        Level,
        LoopDataFlow,
        Maximum,
        MeshReferenceOpInterface,
        Minimum,
        OpDefinition,
        OpOperand,
        OpPriority,
        OpSemantics,
        OwnCollective,
        Pass,
        PassContext,
        PassThrough,
        PropagationBarrier,
        Pure,
        RecursiveMemoryEffects,
        Reduction,
        Registry,
        Reshape,
        ReturnLike,
        Rule,
        RuleOptions,
        Scatter,
        Schedule,
        Selector,
        ShardableDataFlowOpInterface,
        ShardingRuleOpInterface,
        Sort,
        Sum,
        Trait,
        TraitsOf,
        UnitedByMlir,
        Unpartitioned,
        hookimpl,
        local_by_types,
        no_local_form,
        with_window,
    )
    from shardy_py.sharding import rules
    from shardy_py.sharding.axes import AxisRef, SubAxis
    from shardy_py.sharding.combiner import Combiner
    from shardy_py.sharding.einsum import RuleSpec, rule
    from shardy_py.sharding.mesh import Mesh, MeshAxis
    from shardy_py.sharding.rule import FactorKind, OpShardingRule
    from shardy_py.sharding.rule_builder import OpShardingRuleBuilder
    from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
    from shardy_py.torch.modules.parallelize import parallelize

__all__ = [
    # A run
    "propagate",
    "advise",
    "plan",
    "mpmd",
    "compare_schedules",
    "diff_schedules",
    "search_schedule",
    "Session",
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
    "Combiner",
    # Programs of one's own
    "Builder",
    "Program",
    "Value",
    "tensor",
    "Frontend",
    "PrintedName",
    # What plugins are made of
    "Dialect",
    "OpDefinition",
    "Registry",
    "RuleOptions",
    "rule",
    "rules",
    "RuleSpec",
    "hookimpl",
    "local_by_types",
    "no_local_form",
    "with_window",
    "ShardingRuleOpInterface",
    "ShardableDataFlowOpInterface",
    "LoopDataFlow",
    "BranchDataFlow",
    "Trait",
    "Bitcast",
    "Broadcast",
    "ConstantFoldable",
    "ConstantLike",
    "Elementwise",
    "ForwardPassThrough",
    "IsTerminator",
    "PassThrough",
    "Pure",
    "RecursiveMemoryEffects",
    # What fewer plugins need
    "AsSdyConstant",
    "BranchCost",
    "CombinerOf",
    "ContextOf",
    "Concatenation",
    "Contraction",
    "CostOpInterface",
    "CountedLoopCost",
    "CrossDeviceReduction",
    "DataFlowShardingTransformType",
    "Direction",
    "DynamicSlice",
    "DynamicUpdate",
    "Entry",
    "FoldsIntoConstant",
    "InitialOf",
    "IsolatedFromAbove",
    "Level",
    "Maximum",
    "MeshReferenceOpInterface",
    "Minimum",
    "OpOperand",
    "OpPriority",
    "OpSemantics",
    "OwnCollective",
    "Pass",
    "PassContext",
    "PropagationBarrier",
    "Reduction",
    "Reshape",
    "ReturnLike",
    "Rule",
    "Scatter",
    "Schedule",
    "Selector",
    "Sort",
    "Sum",
    "TraitsOf",
    "UnitedByMlir",
    "Unpartitioned",
    # Errors
    "Diagnostic",
    "ShardyError",
    "OptionError",
    "ParseError",
    "PluginError",
    "RuleError",
    "RuleWarning",
    "UnsupportedError",
    "VerificationError",
    "WorkerError",
    "jit",
    "parallelize",
    "torch",
]

_HOMES = {
    "shardy_py.cost.advice.advise": "advise",
    "shardy_py.explain.diff": "diff_schedules",
    "shardy_py.jax.jit": "jit",
    "shardy_py.cost.session": "Session",
    "shardy_py.mpmd": "mpmd",
    "shardy_py.plans.planning": "plan",
    "shardy_py.cost.sweeps.comparison": "compare_schedules",
    "shardy_py.cost.sweeps.search": "search_schedule",
    "shardy_py.api.coverage": "Coverage MissingRule",
    "shardy_py.api.propagate": "propagate",
    "shardy_py.api.result": "Result",
    "shardy_py.api.summary": "Summary",
    "shardy_py.errors": (
        "Diagnostic OptionError ParseError PluginError RuleError RuleWarning ShardyError UnsupportedError "
        "VerificationError WorkerError"
    ),
    "shardy_py.ir.graph.builder": "Builder",
    "shardy_py.ir.interfaces.frontend": "Frontend PrintedName",
    "shardy_py.ir.graph.program": "Program Value",
    "shardy_py.ir.graph.types": "tensor",
    "shardy_py.plugins": (
        "AsSdyConstant Bitcast BranchCost BranchDataFlow Broadcast CombinerOf Concatenation ConstantFoldable "
        "ConstantLike ContextOf Contraction CostOpInterface CountedLoopCost CrossDeviceReduction "
        "DataFlowShardingTransformType Dialect Direction DynamicSlice DynamicUpdate Elementwise Entry "
        "FoldsIntoConstant ForwardPassThrough InitialOf IsTerminator IsolatedFromAbove Level LoopDataFlow Maximum "
        "MeshReferenceOpInterface Minimum OpDefinition OpOperand OpPriority OpSemantics OwnCollective Pass "
        "PassContext PassThrough PropagationBarrier Pure RecursiveMemoryEffects Reduction Registry "
        "Reshape ReturnLike Rule RuleOptions Scatter Schedule Selector ShardableDataFlowOpInterface "
        "ShardingRuleOpInterface Sort Sum Trait TraitsOf UnitedByMlir Unpartitioned hookimpl "
        "local_by_types no_local_form with_window "
    ),
    "shardy_py.torch": "torch",
    "shardy_py.torch.modules.parallelize": "parallelize",
    "shardy_py.sharding.rules": "rules",
    "shardy_py.sharding.axes": "AxisRef SubAxis",
    "shardy_py.sharding.combiner": "Combiner",
    "shardy_py.sharding.einsum": "RuleSpec rule",
    "shardy_py.sharding.mesh": "Mesh MeshAxis",
    "shardy_py.sharding.rule": "FactorKind OpShardingRule",
    "shardy_py.sharding.rule_builder": "OpShardingRuleBuilder",
    "shardy_py.sharding.tensor": "DimensionSharding TensorSharding",
}
"""Module to the public names that it has."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _import(_HOME_OF[name])
    # A module that is public itself is its own home.
    value = globals()[name] = getattr(home, name, home)
    return value


def _import(name: str) -> ModuleType:
    """Import a module while the garbage collector, which would find nothing in modules and classes, pauses."""
    if not gc.isenabled():
        return import_module(name)
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.enable()


def __dir__() -> list[str]:
    return sorted(__all__)


class _FormerNames:
    """Find modules by the names that they had before version 0.2; what it takes is imported for such a name only."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("shardy_py."):
            return None
        from shardy_py.moved_modules import find_moved

        return find_moved(name)


sys.meta_path.append(_FormerNames)
