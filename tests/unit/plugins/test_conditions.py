"""Definitions that are about some of the ops of a name: those with given values of attributes."""

from __future__ import annotations

from types import ModuleType

import pytest

pytest.importorskip("jaxlib")

import shardy_py as sdy
from shardy_py import Dialect, PluginError, propagate
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import Pure

TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.custom_call @rms_norm(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.custom_call @other(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.custom_call @Cholesky(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0, %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}
"""
TARGET = {"call_target_name": "rms_norm"}


def plugin(name: str, *dialects: Dialect) -> ModuleType:
    """Return a plugin with some dialects."""
    module = ModuleType(name)
    module.shardy_register_dialects = sdy.hookimpl(lambda: list(dialects))
    return module


def calls(name: str = "calls", **arguments: object) -> ModuleType:
    """Return a plugin that defines the calls of one target."""
    dialect = Dialect("stablehlo")
    dialect.op("stablehlo.custom_call", when=TARGET, **arguments)
    return plugin(name, dialect)


def test_a_rule_for_one_target() -> None:
    """Beside the built-in definition of all calls, a rule for one target holds for it alone."""
    result = propagate(TEXT, plugins=[calls(rule="i j -> i j")])
    assert [str(item) for item in result.results[:2]] == ['<@mesh, [{"x"}, {}]>', "None"]
    assert [item.name for item in result.coverage.missing] == ["stablehlo.custom_call @other"]


def test_what_a_definition_does_not_give_is_that_of_all_ops() -> None:
    """Rules of built-in targets and traits that depend on the op stay; traits of a condition are added."""
    result = propagate(TEXT, plugins=[calls(traits=[sdy.Elementwise])])
    by_target = {op.attributes["call_target_name"]: op for op in result.program.walk() if op.name.endswith("_call")}
    registry = result.registry
    assert {name: sdy.Elementwise in registry.get_traits(op) for name, op in by_target.items()} == {
        "rms_norm": True,
        "other": False,
        "Cholesky": False,
    }
    assert all(Pure in registry.get_traits(op) for op in by_target.values())
    assert registry.get_sharding_rule(by_target["Cholesky"]) is not None


def test_stubs_are_for_targets() -> None:
    """Each target without a rule has a stub of its own, which holds once it is loaded; strict runs name the targets."""
    with pytest.raises(sdy.UnsupportedError, match=r"the op @rms_norm has no sharding rule") as caught:
        propagate(TEXT, strict=True)
    assert len(caught.value.diagnostics) == 2
    coverage = propagate(TEXT).coverage
    assert sorted(item.name for item in coverage.missing) == [
        "stablehlo.custom_call @other",
        "stablehlo.custom_call @rms_norm",
    ]
    names: dict[str, object] = {}
    exec(coverage.stubs, names)
    stub = plugin("stub", *names["shardy_register_dialects"]())  # type: ignore[operator]
    result = propagate(TEXT, plugins=[stub], strict=True)
    assert [str(item) for item in result.results[:2]] == ['<@mesh, [{"x"}, {}]>'] * 2


def test_the_condition_with_most_attributes_counts() -> None:
    """Of two conditions that hold, the one that says more decides; a function may be the rule."""
    toy = Dialect("toy")
    toy.op("toy.call", rule="i -> i")
    toy.op("toy.call", when={"kind": "sum"}, rule="i -> i", need_replication="i")

    @toy.op("toy.call", when={"kind": "sum", "safe": True})
    def safe(op):
        """Replicated by a function."""
        return sdy.rule("i -> i", permutation="i")

    builder = sdy.Builder()
    with builder.function("main", [TensorType((8,), "f32")]) as (x,):
        for attributes in ({}, {"kind": "sum"}, {"kind": "sum", "safe": True}, {"kind": "max"}):
            x = builder.op("toy.call", [x], [x.type], attributes)
        builder.return_(x)
    registry = sdy.Registry.of([toy])
    ops = [op for op in builder.program.walk() if op.name == "toy.call"]
    rules = [registry.get_sharding_rule(op) for op in ops]
    assert [len(rule.need_replication_factors) for rule in rules] == [0, 1, 0, 0]
    assert [len(rule.permutation_factors) for rule in rules] == [0, 0, 1, 0]


def test_clashes_are_of_equal_conditions() -> None:
    """Two plugins may not define the same calls; other targets are no clash."""
    other = Dialect("stablehlo")
    other.op("stablehlo.custom_call", when={"call_target_name": "other"}, rule="i j -> i j")
    assert propagate(TEXT, plugins=[calls(rule="i j -> i j"), plugin("other", other)]).coverage.is_complete
    with pytest.raises(PluginError, match="op-clash"):
        propagate(TEXT, plugins=[calls(rule="i j -> i j"), calls("more", rule="i j -> i j")], strict_plugins=True)
    dialect = Dialect("stablehlo")
    dialect.op("stablehlo.custom_call", when=TARGET)
    with pytest.raises(PluginError, match="defines the op twice"):
        dialect.op("stablehlo.custom_call", when=TARGET)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("toy.*", {"when": {"a": 1}}, "wildcards cannot depend on attributes"),
        ("toy.a", {"when": "rms_norm"}, "when is 'rms_norm', not a mapping"),
        ("toy.a", {"when": {"a": [1]}}, r"not the name of an attribute with a text or a number"),
        ("toy.a", {"when": {"a": 1}, "data_flow": sdy.LoopDataFlow()}, "those of all ops of a name"),
    ],
)
def test_unfit_conditions(name: str, arguments: dict[str, object], message: str) -> None:
    """Conditions that cannot hold are refused where they are written."""
    with pytest.raises(PluginError, match=message):
        Dialect("toy").op(name, **arguments)
