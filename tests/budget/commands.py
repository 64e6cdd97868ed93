"""The public commands as functions of the text of a module, with what they print."""

from __future__ import annotations

import io
from collections.abc import Callable

import shardy_py as sdy
from shardy_py.cost.communications import name_transfers
from shardy_py.cost.report.advice import advice_json, print_advice
from shardy_py.cost.report.comparison import comparison_json, print_comparison
from shardy_py.cost.report.cost import cost_json, print_cost
from shardy_py.cost.sweeps.random_schedules import choose_schedules
from shardy_py.explain.diff import diff_schedules
from shardy_py.explain.reports import diff_json, format_diff
from shardy_py.jax.report.local import local_json, print_local
from shardy_py.report.data import report_json
from shardy_py.report.summary import print_report


def propagate(text: str) -> None:
    """Do what ``shardy propagate`` does."""
    result = sdy.propagate(text)
    print_report(result, file=io.StringIO())
    assert result.text
    assert report_json(result)


def explain(text: str) -> None:
    """Do what ``shardy explain`` does, for the first argument and for what the main function returns."""
    result = sdy.propagate(text, trace=True)
    returned = list(result.main.regions[0].blocks[0].ops)[-1].operands
    for value in (0, returned[0], returned[-1]):
        assert str(result.explain(value))
    assert result.not_settled is not None


def cost(text: str) -> None:
    """Do what ``shardy cost`` does."""
    session = sdy.Session.open(text, keep_names=True)
    evaluation = name_transfers(session, session.evaluate(None, None, partitioner="xla"))
    print_cost(evaluation, file=io.StringIO())
    assert cost_json(evaluation, transfers=True, ops=True)


def local(text: str) -> None:
    """Do what ``shardy local`` does."""
    actual = sdy.propagate(text, local=True).local()
    print_local(actual, file=io.StringIO())
    assert actual.text
    assert local_json(actual)


def compare(text: str) -> None:
    """Do what ``shardy compare`` does."""
    comparison = sdy.compare_schedules(text, ["default", "flat"], random=1)
    print_comparison(comparison, file=io.StringIO())
    assert comparison_json(comparison)


def diff(text: str) -> None:
    """Do what ``shardy diff`` does."""
    session = sdy.Session.open(text, keep_names=True)
    actual = diff_schedules(session, *choose_schedules(session, ["default", "flat"]))
    assert format_diff(actual)
    assert diff_json(actual)


def advise(text: str) -> None:
    """Do what ``shardy advise`` does, for a few trials."""
    advice = sdy.advise(text, trials=3)
    print_advice(advice, file=io.StringIO())
    assert advice_json(advice)


def explore(text: str) -> None:
    """Do what ``shardy explore`` does."""
    assert sdy.propagate(text, trace=True).explore()


def run(text: str) -> None:
    """Do what ``shardy run`` does before XLA compiles the program."""
    assert sdy.propagate(text).for_xla()


COMMANDS: dict[str, Callable[[str], None]] = {
    command.__name__: command for command in (propagate, explain, cost, local, compare, diff, advise, explore, run)
}
