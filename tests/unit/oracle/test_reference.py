"""The reference in its worker process."""

import pytest

pytest.importorskip("jaxlib")

from shardy_py.oracle.reference import Reference, full_pipeline, split_passes

PROGRAM = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
TWO_WITHOUT_MAIN = "func.func @f() { return }\nfunc.func @g() { return }"


@pytest.fixture(scope="module")
def reference():
    """One worker for all tests of this file."""
    with Reference() as reference:
        yield reference


def test_a_module_is_propagated(reference):
    """The passes run and the result is printed."""
    outcome = reference.run(PROGRAM, "sdy-basic-propagate")
    assert outcome.ok
    assert '#sdy.sharding_per_value<[<@mesh, [{"a", ?}]>]>' in outcome.text


def test_an_empty_pipeline_only_prints(reference):
    """Without passes the module comes back as it is."""
    outcome = reference.run(PROGRAM)
    assert outcome.ok
    assert "sharding_per_value" not in outcome.text


@pytest.mark.parametrize(
    ("text", "pipeline", "stage"), [("nonsense", "", "parse"), (PROGRAM, "no-such-pass", "pipeline")]
)
def test_an_error_names_its_stage(reference, text, pipeline, stage):
    """A diagnostic is an outcome, not an exception."""
    outcome = reference.run(text, pipeline)
    assert (outcome.kind, outcome.stage) == ("error", stage)


def test_an_abort_is_survived(reference):
    """An abort of the C++ code is an outcome, and the next run gets a new worker."""
    outcome = reference.run(TWO_WITHOUT_MAIN, "sdy-propagation-pipeline")
    assert outcome.kind == "crash"
    assert "Check failed" in outcome.text
    assert reference.run(PROGRAM, "sdy-basic-propagate").ok


def test_a_timeout_is_survived(reference):
    """A run that takes too long is an outcome, and the next run gets a new worker."""
    assert reference.run(PROGRAM, "sdy-basic-propagate", timeout=1e-9).kind == "timeout"
    assert reference.run(PROGRAM, "sdy-basic-propagate").ok


def test_unknown_dialects_are_accepted(reference):
    """An op in generic form needs no registered dialect."""
    assert reference.run('%0 = "nobody.knows"() : () -> tensor<8xf32>').ok


def test_an_interpreter_without_jaxlib_is_told(tmp_path):
    """A worker that does not start is a clear error."""
    with Reference(python="false") as reference, pytest.raises(RuntimeError, match="does not start"):
        reference.run(PROGRAM)


def test_function_passes_are_nested():
    """Passes on functions are anchored there, options stay with their pass, a full pipeline stays as it is."""
    pipeline = "-sdy-basic-propagate{keep-sharding-rules=true a=b},sdy-sink-data-flow-edges"
    assert split_passes(pipeline) == ["sdy-basic-propagate{keep-sharding-rules=true a=b}", "sdy-sink-data-flow-edges"]
    full = "builtin.module(sdy-basic-propagate{keep-sharding-rules=true a=b},func.func(sdy-sink-data-flow-edges))"
    assert full_pipeline(pipeline) == full
    assert full_pipeline(full) == full
    assert full_pipeline("") == ""
