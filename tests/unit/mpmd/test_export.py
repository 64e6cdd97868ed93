"""Rules about fragments, and what the passes of export refuse."""

from __future__ import annotations

import pytest

from shardy_py.api.registries import load_registry
from shardy_py.cli.opt_passes import parse_arguments, transform
from shardy_py.errors import OptionError, ShardyError
from shardy_py.mpmd.passes.inference.constraints import parse_constraints
from shardy_py.mpmd.passes.scheduling.fragment_rules import parse_merge_rules, parse_schedule_rules
from shardy_py.plugins import RuleOptions


def run(text: str, flags: str) -> str:
    """Return what `shardy-opt` prints."""
    return transform(text, "-", parse_arguments([flags]), load_registry(options=RuleOptions()))


TENSOR = '!mpmd.mesh_tensor<"{}", tensor<16xf32>{}>'


@pytest.mark.parametrize(
    "text",
    [
        'FragmentMergeRule(sources=[FragmentInfo(origins=["f"(1)],stage=0,mesh_name="m0")],'
        'target=FragmentInfo(origins=["f"],call_counter=2,split_type=kDropTransferred,mesh_name="m0"))',
        'FragmentScheduleRule(ordered_fragments=[FragmentInfo(origins=["f","g"],mesh_name="m1")->'
        'FragmentInfo(origins=["h"],mesh_name="m1")])',
        'FragmentScheduleRule(ordered_fragments=[FragmentInfo(origins=["step 2 (last) of [a]"],mesh_name="m 1")])',
    ],
)
def test_a_rule_is_what_its_text_says(text: str) -> None:
    """The text of a parsed rule is the text that was parsed, also of two rules."""
    parse = parse_merge_rules if text.startswith("FragmentMerge") else parse_schedule_rules
    assert [str(rule) for rule in parse(f"{text}, {text}")] == [text, text]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("FragmentMergeRule(", "closing parenthesis"),
        ("MergeRule()", "FragmentMergeRule"),
        ('FragmentMergeRule(sources=[FragmentInfo(mesh_name="m")],target=FragmentInfo())', "origins"),
        (
            'FragmentMergeRule(sources=[],target=FragmentInfo(origins=["f"],split_type=half,mesh_name="m"))',
            "kKeepTransferred",
        ),
    ],
)
def test_a_malformed_rule_is_refused(text: str, hint: str) -> None:
    """The error says what was expected."""
    with pytest.raises(OptionError) as error:
        parse_merge_rules(text)
    assert hint in str(error.value)


def test_a_malformed_constraint_is_refused() -> None:
    """Two numbers are expected."""
    assert parse_constraints(("0:1", "2:0")) == ((0, 1), (2, 0))
    with pytest.raises(OptionError, match="argument:result"):
        parse_constraints(("0-1",))


PROGRAM = """
func.func @main(%arg0: {0} {2}) -> ({1} {3})
    attributes {{topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>}} {{
  %0 = mpmd.fragment<mesh="m0", origin=["a"], stage=0> (%arg0) (%x: tensor<16xf32>) {{
    mpmd.return %x : tensor<16xf32>
  }} : ({0}) -> {0}
  %1 = mpmd.transfer %0 : ({0}) -> {1}
  %2 = mpmd.fragment<mesh="m1", origin=["b"], stage=1> (%1) (%x: tensor<16xf32>) {{
    mpmd.return %x : tensor<16xf32>
  }} : ({1}) -> {1}
  return %2 : {1}
}}
"""


@pytest.mark.parametrize(
    ("flags", "argument", "result", "message"),
    [
        (
            "-mpmd-mark-offloaded-input-output",
            '{mhlo.memory_kind = "pinned_host"}',
            "",
            'Memory kind mismatch between arg 0 and users: "pinned_host" vs <<NULL ATTRIBUTE>>',
        ),
        (
            "-mpmd-infer-mesh-assign-using-input-output-constraints=constraints=0:3",
            "",
            "",
            "does not fit a function with 1 results",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused(flags: str, argument: str, result: str, message: str) -> None:
    """The error names the argument or result."""
    text = PROGRAM.format(TENSOR.format("m0", ""), TENSOR.format("m1", ""), argument, result)
    with pytest.raises(ShardyError) as error:
        run(text, flags)
    assert message in str(error.value)


def test_a_call_that_does_not_fit_its_function_is_refused() -> None:
    """MLIR does not compare the numbers of operands."""
    text = """
    func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>>} {
      %0 = mpmd.call @f(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32>
        attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>>} {
      return %arg0 : tensor<4xf32>
    }
    """
    with pytest.raises(ShardyError, match="1 operands and 1 results; the function has 2 arguments"):
        run(text, "-mpmd-infer-mesh-pipeline")


def test_fragments_of_two_meshes_are_not_merged() -> None:
    """The reference ends the process."""
    infos = ",".join(f'FragmentInfo(origins=["{name}"],stage={n},mesh_name="m{n}")' for n, name in enumerate("ab"))
    rule = f'FragmentMergeRule(sources=[{infos}],target=FragmentInfo(origins=["c"],mesh_name="m0"))'
    text = PROGRAM.format(TENSOR.format("m0", ""), TENSOR.format("m1", ""), "", "")
    with pytest.raises(OptionError, match="different"):
        run(text, f"-mpmd-rule-based-merge=rules={rule}")


@pytest.mark.parametrize("kind", ["merge", "schedule"])
def test_a_rule_that_matches_nothing_is_warned_about(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The stage of the fragment is missing in the rule."""
    info = 'FragmentInfo(origins=["a"],mesh_name="m0")'
    rule = f"FragmentScheduleRule(ordered_fragments=[{info}])"
    if kind == "merge":
        rule = f"FragmentMergeRule(sources=[{info}],target={info})"
    text = PROGRAM.format(TENSOR.format("m0", ""), TENSOR.format("m1", ""), "", "")
    run(text, f"-mpmd-rule-based-{kind}=rules={rule}")
    assert f"no fragment matches {info}" in capsys.readouterr().err
