"""The fuzzer."""

import pytest

pytest.importorskip("jaxlib")

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.oracle import fuzz
from shardy_py.oracle.generate import generate
from shardy_py.oracle.reference import Reference

BAD = "func.func @f() { return }\nfunc.func @g() { return }"


@pytest.fixture(scope="module")
def reference():
    """The reference."""
    with Reference() as reference:
        yield reference


def _refuse(text, pipeline):
    raise UnsupportedError(Diagnostic("no", "not today"))


def _fail(text, pipeline):
    return {}[text]


@pytest.mark.parametrize(
    ("run", "kind"), [(lambda text, pipeline: text, "different"), (_refuse, "refused"), (_fail, "exception")]
)
def test_a_failure_has_a_kind(reference, run, kind):
    """Another result, an error and an exception are told apart."""
    verdict = fuzz.judge(generate(5), "sdy-basic-propagate", reference=reference, run=run, seed=5)
    assert (verdict.kind, verdict.failed) == (kind, True)
    assert verdict.subject


def test_the_same_result_is_equal(reference):
    """The output of the reference itself is equal."""
    verdict = fuzz.judge(
        generate(5), "sdy-basic-propagate", reference=reference, run=lambda *args: reference.run(*args).text
    )
    assert (verdict.kind, verdict.failed) == ("equal", False)


@pytest.mark.parametrize(("run", "failed"), [(lambda text, pipeline: text, False), (_refuse, False), (_fail, True)])
def test_where_the_reference_crashes_an_answer_is_enough(reference, run, failed):
    """A result or a clear error is right there, any other exception is not."""
    verdict = fuzz.judge(BAD, "sdy-propagation-pipeline", reference=reference, run=run)
    assert verdict.failed == failed


def test_the_command_reports_and_exits(monkeypatch, capsys, tmp_path):
    """Failures are counted, written to a folder and give exit code 1; none give 0."""
    arguments = ["--seeds", "3:5", "--pipeline", "sdy-basic-propagate", "--jobs", "1", "--size", "4"]
    monkeypatch.setattr(fuzz, "ours", _refuse)
    assert fuzz.main([*arguments, "--out", str(tmp_path)]) == 1
    assert "2 refused" in capsys.readouterr().out
    assert len(list(tmp_path.glob("seed-*.mlir"))) == 1
    with Reference() as reference:
        monkeypatch.setattr(fuzz, "ours", lambda *args: reference.run(*args).text)
        assert fuzz.main(arguments) == 0
    assert "2 equal" in capsys.readouterr().out


def test_an_unknown_feature_is_a_usage_error(capsys):
    """A wrong name is told before anything runs."""
    with pytest.raises(SystemExit):
        fuzz.main(["--features", "nonsense"])
    assert "unknown feature 'nonsense'" in capsys.readouterr().err
