"""Reports for people and for programs, those of reshards among them."""

from __future__ import annotations

import io
import json

import pytest

from shardy_py.api.coverage import survey_rules
from shardy_py.api.main_function import find_main
from shardy_py.api.result import Result
from shardy_py.explain.explain_reshard import CommunicationLine, ReshardExplanation
from shardy_py.explain.reports import explanation_data, format_reshard, print_reshard
from shardy_py.explain.reshard_proposals import Trial
from shardy_py.jax.report.running import print_run
from shardy_py.jax.run_report import ResultLine, RunReport
from shardy_py.plugins import Registry
from shardy_py.report.data import report_data, report_json
from shardy_py.report.summary import print_report, rule_text
from shardy_py.sharding.parse import parse_op_sharding_rule
from shardy_py.sharding.unknown_size import STAND_IN_SIZE
from shardy_py.support.texts import format_bytes
from tests.unit.api.programs import program, registry


def result() -> Result:
    """Return a result without a native module."""
    module = program()
    known = registry()
    surveyed = survey_rules(module, known)
    return Result(module=None, program=module, main=find_main(module), registry=known, surveyed=surveyed)


def test_data_is_plain() -> None:
    """The report is plain data: JSON gives it back."""
    assert json.loads(report_json(result())) == report_data(result())


def test_data_has_every_argument() -> None:
    """Each argument has its name, type and sharding, or null for none."""
    assert report_data(result())["arguments"] == [
        {"name": "arg0", "type": "tensor<8x16xf32>", "sharding": '<@mesh, [{"a"}, {}]>'},
        {"name": "arg1", "type": "tensor<16x4xf32>", "sharding": None},
    ]


def test_table_has_every_number() -> None:
    """The table shows the axes, the bytes and the op without a rule."""
    pytest.importorskip("rich")
    out = io.StringIO()
    print_report(result(), file=out)
    for text in ('along "a"', "768 B", "512 B", "1 of 2", "toy.matmul"):
        assert text in out.getvalue()


def test_table_of_plugins() -> None:
    """The table of plugins shows a broken one with its problem."""
    tables = pytest.importorskip("shardy_py.report.tables", exc_type=ImportError)
    from shardy_py.errors import Diagnostic
    from shardy_py.plugins import PluginInfo

    problem = Diagnostic("plugin-import", "cannot import [red]it[/red]")
    known = Registry(plugins=(PluginInfo("toy", "toy 1.0", status="broken", problems=(problem,)),))
    out = io.StringIO()
    tables.print_plugins(known, file=out)
    assert "broken" in out.getvalue()
    assert "warning: cannot import [red]it[/red]" in out.getvalue()


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1 << 41, "2.0 TiB")])
def test_format_bytes(count: int, text: str) -> None:
    """Bytes are shown in the largest unit that keeps the number at one or more."""
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ((), "not compared: --compare runs the program without shardings, too\n"),
        (("it has manual computations",), "note: it has manual computations\n"),
    ],
)
def test_a_run_that_could_not_be_compared_says_why(notes: tuple[str, ...], message: str) -> None:
    """The option is named where it was not given, and the reason where it was."""
    file = io.StringIO()
    print_run(RunReport(2, "cpu", (ResultLine("y", "f32[8]", "", 1.0, 0),), 0.5, notes=notes), file=file)
    assert file.getvalue().splitlines(keepends=True)[-1] == message
    assert ("--compare" in file.getvalue()) == (not notes)


def explanation(kind: str, before: str, after: str, *trials: Trial) -> ReshardExplanation:
    """Return the explanation of something that moves no dimension."""
    return ReshardExplanation(
        CommunicationLine(3, kind, "%1", before, after, "operand 0 of toy.add %2"), (), (), trials
    )


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        ("sdy.reshard", "<@mesh, [{}]>", "<@mesh, [{}]>", "nothing has to be sent"),
        ("sdy.reshard", '<@mesh, [{}], unreduced={"a"}>', "<@mesh, [{}]>", "unreduced axes"),
        ("sdy.all_reduce", "<@mesh, [{}]>", "<@mesh, [{}]>", "unreduced axes"),
    ],
)
def test_what_moves_no_dimension_says_so(kind: str, before: str, after: str, expected: str) -> None:
    """A constraint that is met already sends nothing."""
    assert expected in format_reshard(explanation(kind, before, after))


def test_the_table_counts_by_kind_and_shows_failures(capsys: pytest.CaptureFixture[str]) -> None:
    """Kinds that did not change are left out; a proposal that cannot be solved says why."""
    counts = {"sdy.all_reduce": 1, "sdy.reshard": 2}
    trials = (
        Trial("open", "open it", True, counts, {"sdy.all_reduce": 1}, 4),
        Trial("constrain", "constrain it", False, counts, {}, 0, "error: no"),
    )
    single = explanation("sdy.reshard", "a", "b", *trials)
    print_reshard(single)
    text = capsys.readouterr().out
    assert "3 -> 1 (reshard 2 -> 0)" in text
    assert "fails" in text
    assert "error: no" in text
    assert explanation_data(single)["trials"][0]["values_changed"] == 4


def test_sizes_that_are_not_known_are_shown_as_such() -> None:
    """Also one whose number begins with that of another."""
    rule = parse_op_sharding_rule(f"<([i, j, k])->([i, j, k]) {{i={STAND_IN_SIZE // 10}, j={STAND_IN_SIZE}, k=8}}>")
    assert rule_text(rule) == "<([i, j, k])->([i, j, k]) {i=?, j=?, k=8}>"
