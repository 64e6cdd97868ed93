"""For the tests of dialects: rules, numeric checks, snapshots, strategies, and the tools of this project's own tests.

Nothing is imported before it is looked up. The numeric check needs numpy, `strategies` needs Hypothesis, the plugin
for pytest pytest: all come with the extra ``testing``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardy_py.testing import strategies
    from shardy_py.testing.data_flow import assert_data_flow
    from shardy_py.testing.emission import assert_emits
    from shardy_py.testing.numeric.check import assert_rule_holds, check_rule_numerically
    from shardy_py.testing.numeric.pieces import Local, TensorShard
    from shardy_py.testing.numeric.report import FactorCheck, MissingFactor, RuleReport, Verdict
    from shardy_py.testing.ops import make_op
    from shardy_py.testing.rules import assert_rule
    from shardy_py.testing.sharded.pipelines import run_pipeline
    from shardy_py.testing.sharded.run import ShardedRun, assert_runs_sharded, run_sharded
    from shardy_py.testing.snapshots import assert_sharding_snapshot, sharding_snapshot

__all__ = [
    # Rules
    "make_op",
    "assert_rule",
    # Rules against arithmetic
    "check_rule_numerically",
    "assert_rule_holds",
    "RuleReport",
    "FactorCheck",
    "MissingFactor",
    "Verdict",
    "Local",
    "TensorShard",
    # Kernels
    "assert_emits",
    # Data flow
    "assert_data_flow",
    # Local programs on virtual devices
    "run_sharded",
    "assert_runs_sharded",
    "ShardedRun",
    "run_pipeline",
    # Whole programs
    "assert_sharding_snapshot",
    "sharding_snapshot",
    # Random values
    "strategies",
]

_LATE = {
    "FactorCheck": "numeric.report",
    "Local": "numeric.pieces",
    "MissingFactor": "numeric.report",
    "RuleReport": "numeric.report",
    "TensorShard": "numeric.pieces",
    "ShardedRun": "sharded.run",
    "Verdict": "numeric.report",
    "assert_data_flow": "data_flow",
    "assert_emits": "emission",
    "assert_rule": "rules",
    "assert_rule_holds": "numeric.check",
    "assert_runs_sharded": "sharded.run",
    "assert_sharding_snapshot": "snapshots",
    "check_rule_numerically": "numeric.check",
    "make_op": "ops",
    "run_pipeline": "sharded.pipelines",
    "run_sharded": "sharded.run",
    "sharding_snapshot": "snapshots",
    "strategies": "",
}
_EXTRA = ("hypothesis", "numpy", "pytest")


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    path = _LATE[name]
    try:
        module = import_module(f"{__name__}.{path or name}")
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        message = f"{__name__}.{name} needs {error.name}: pip install 'shardy_py[testing]'"
        raise ModuleNotFoundError(message, name=error.name) from error
    value = globals()[name] = getattr(module, name) if path else module
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
