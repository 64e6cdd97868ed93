"""Pipelines: their text, and what they do to a program."""

import pytest

pytest.importorskip("jaxlib", reason="the programs are written in MLIR")

from shardy_py.errors import OptionError
from shardy_py.oracle.conformance import run
from shardy_py.transforms.pipeline import PassPipeline
from shardy_py.transforms.run import PASSES, get_pass, parse_pipeline

TEXT = """\
sdy.mesh @m = <["x"=2]>
func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    "text",
    [
        "sdy-add-data-flow-edges,sdy-basic-propagate{keep-sharding-rules=true}",
        " builtin.module( sdy-add-data-flow-edges , sdy-basic-propagate{ keep-sharding-rules } ) ",
        "builtin.module(func.func(sdy-add-data-flow-edges),sdy-basic-propagate{keep-sharding-rules=1})",
        "any(sdy-add-data-flow-edges),sdy-basic-propagate{keep-sharding-rules=true conservative-propagation=false}",
    ],
)
def test_anchors_and_spaces_make_no_difference(text):
    """Every way to write a pipeline gives the same passes."""
    first, second = parse_pipeline(text)
    assert type(first).name == "sdy-add-data-flow-edges"
    assert second == get_pass("sdy-basic-propagate")(keep_sharding_rules=True)


def test_no_pass_is_a_pipeline_too():
    """With or without the anchor."""
    assert parse_pipeline("") == parse_pipeline("builtin.module()") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sdy-basic-propogate", "did you mean sdy-basic-propagate"),
        ("sdy-basic-propagate{keep=true}", "has no option 'keep'"),
        ("sdy-basic-propagate{", "closing parenthesis or brace is missing"),
        ("sdy-basic-propagate)", r"'\)' too many"),
        ("sdy-basic-propagate,,canonicalize", "a pass name is missing"),
        ("sdy-basic-propagate{x=1}y", "no closing brace"),
        ("gpu.module(canonicalize)", "there is no pass"),
    ],
)
def test_malformed_pipelines_are_errors(text, message):
    """The message says what is wrong and what may have been meant."""
    with pytest.raises(OptionError, match=message):
        parse_pipeline(text)


@pytest.mark.parametrize("name", PASSES)
def test_every_listed_pass_exists_under_its_name(name):
    """The table and the classes agree, and defaults suffice."""
    class_ = get_pass(name)
    assert class_.name == name
    item = class_()
    assert parse_pipeline(name) == (item.passes if isinstance(item, PassPipeline) else (item,))


def test_rules_are_written_on_ops_that_have_one():
    """A rule that is there already stays."""
    custom = "#sdy.op_sharding_rule<([i], [i])->([j]) {i=4, j=4}, custom>"
    text = TEXT.replace("%arg0, %arg0 :", f"%arg0, %arg0 {{sdy.sharding_rule = {custom}}} :")
    assert "sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i])->([i]) {i=4}>" in run(
        TEXT, "sdy-populate-op-sharding-rules"
    )
    assert f"sdy.sharding_rule = {custom}" in run(text, "sdy-populate-op-sharding-rules")


def test_conservative_rules_leave_uneven_factors_out():
    """The option reaches the rules."""
    text = """func.func @main(%a: tensor<2x4xf32>) -> tensor<8xf32> {
      %0 = stablehlo.reshape %a : (tensor<2x4xf32>) -> tensor<8xf32>
      %1 = stablehlo.slice %0 [0:6] : (tensor<8xf32>) -> tensor<6xf32>
      return %0 : tensor<8xf32>
    }"""
    loose = run(text, "sdy-populate-op-sharding-rules")
    tight = run(text, "sdy-populate-op-sharding-rules{conservative-propagation=true}")
    assert loose != tight
    assert "sdy.sharding_rule" in tight


def test_generic_passes_run_between_ours():
    """Shardings survive canonicalization, and what it erases is gone."""
    text = TEXT.replace("  return", "  %1 = stablehlo.subtract %arg0, %arg0 : tensor<4xf32>\n  return").replace(
        "func.func", "func.func private @unused()\nfunc.func"
    )
    result = run(text, "sdy-basic-propagate,canonicalize,symbol-dce")
    assert "subtract" not in result
    assert "@unused" not in result
    assert 'stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x", ?}]>]>}' in result
