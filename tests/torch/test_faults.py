"""Faults of rules: arithmetic finds a rule that is dropped, and a factor that is of another kind."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from attrs import evolve

import shardy_py as sdy
from shardy_dialects.aten import aten
from shardy_dialects.aten.attention import ON_GPUS
from shardy_dialects.aten.creation import CONSTANTS, RANDOM
from shardy_py.plugins import Registry
from shardy_py.testing import RuleReport, check_rule_numerically
from tests.conformance.sample import sample
from tests.torch.further_calls import ON_OTHER_DEVICES
from tests.torch.random_calls import UNKNOWN
from tests.torch.rule_calls import CALLS
from tests.torch.rule_checks import flipped_rules, function_of, op_and_arrays

pytestmark = pytest.mark.torch
EQUALLY_RIGHT = {
    "isin.Tensor_Tensor": "what is found among a part of the elements is found",
    "_histogramdd_from_bin_tensors.default": "the counts of parts add up",
    "bucketize.Tensor": "the places among parts of the boundaries add up",
    "searchsorted.Tensor": "the places among parts of a row add up",
    "upsample_nearest1d.vec": "parts that divide are resized each by itself",
    "upsample_nearest2d.vec": "parts that divide are resized each by itself",
    "upsample_nearest3d.vec": "parts that divide are resized each by itself",
    "new_zeros.default": "zeros add up to zeros",
    "_adaptive_avg_pool2d_backward.default": "windows of parts that divide do not overlap",
}
"""Operators in which a factor could be of another kind, as long as all sizes divide."""


@pytest.fixture(autouse=True)
def _few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for missing factors among dimensions of one size where there are many."""
    monkeypatch.setattr("shardy_py.testing.numeric.factors.MOST_CANDIDATES", 128)


@cache
def _registry() -> Registry:
    return sdy.propagate("func.func @main() { return }", {"x": 2}).registry


def _checked(name: str) -> tuple[Any, Any]:
    """Return the rule of an op, and what checks a rule of it."""
    op, arrays = op_and_arrays(name)
    rule = _registry().get_sharding_rule(op)
    types, run = [value.type for value in op.results], function_of(op)

    def check(tried: Any) -> RuleReport:
        return check_rule_numerically(tried, run, arrays, types, trials=1)

    return rule, check


def _is_found(check: Any, rule: Any, missing: set[str]) -> bool:
    try:
        report = check(rule)
    except sdy.RuleError:
        return True
    return bool(report.wrong or {str(item) for item in report.missing} - missing)


def test_every_rule_has_a_call() -> None:
    """All operators with a rule are called, but those without operands, and those that CPUs do not have."""
    named = {item.name.removeprefix("aten.") for item in aten.definitions}
    assert named - {*CONSTANTS, *RANDOM, *ON_GPUS, *ON_OTHER_DEVICES} == CALLS.keys() | UNKNOWN.keys()


@pytest.mark.parametrize("name", sample(CALLS, 20))
def test_a_factor_of_another_kind_is_found(name: str) -> None:
    """A rule holds; with any factor of another kind it is wrong, or a factor is missing."""
    rule, check = _checked(name)
    base = check(rule)
    assert not base.wrong, str(base)
    known = {str(item) for item in base.missing}
    flipped = dict(flipped_rules(rule))
    assert flipped
    unseen = [what for what, other in flipped.items() if not _is_found(check, other, known)]
    assert bool(unseen) == (name in EQUALLY_RIGHT), unseen


@pytest.mark.parametrize("name", sample([*CALLS, *UNKNOWN], 32))
def test_a_dropped_rule_is_found(name: str) -> None:
    """A strict propagation refuses the op, and says its name."""
    op, _ = op_and_arrays(name)
    sdy.propagate(op.program, {"x": 2}, strict=True)
    other_definitions = tuple(item for item in _registry().definitions if item.name != op.name)
    with pytest.raises(sdy.ShardyError, match=op.name):
        sdy.propagate(op.program, {"x": 2}, strict=True, registry=evolve(_registry(), definitions=other_definitions))
