"""Results of the numeric check of a rule, as values."""

from __future__ import annotations

from enum import Enum

from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import FactorKind, OpShardingRule, factor_symbol
from shardy_py.testing.rules import kind_name
from shardy_py.values import frozen


class Verdict(Enum):
    """Verdict on the claim of one factor.

    ``HOLDS`` the op on shards gives the shards of the op, or their combination does; ``WRONG`` it does not;
    ``GATHERED`` the factor needs replication or is permuted, so that the op itself is not said to work on shards;
    ``UNCHECKED`` its dimensions cannot be split alike.
    """

    HOLDS = "holds"
    WRONG = "wrong"
    GATHERED = "gathered"
    UNCHECKED = "unchecked"


@frozen
class FactorCheck:
    """One factor of the rule.

    Args:
        factor: Its index.
        size: Its size in the rule.
        kind: Its kind.
        places: The dimensions that have it, in words.
        verdict: What became of its claim.
        reason: Why it is wrong, or could not be checked; else "".
        advice: What would hold instead, or "".
        combiner: How partial results combine, where the factor is reduced.
    """

    factor: int
    size: int
    kind: FactorKind
    places: str
    verdict: Verdict
    reason: str = ""
    advice: str = ""
    combiner: Combiner = Combiner.ADD

    @property
    def symbol(self) -> str:
        """The factor as the text of the rule names it."""
        return factor_symbol(self.factor)

    def __str__(self) -> str:
        head = f"factor {self.symbol}={self.size}, {kind_name(self.kind, self.combiner)} ({self.places})"
        return head + (f": {self.reason}" if self.reason else "") + (f"; {self.advice}" if self.advice else "")


@frozen
class MissingFactor:
    """A factor that the rule could have.

    Args:
        size: Its size.
        kind: ``PASS_THROUGH`` or ``REDUCTION``.
        places: The dimensions that would have it, in words.
        replaces: The symbols of the factors that these dimensions have now, in order.
        now: What the rule says of them, in words.
        combiner: How partial results would combine, in a reduction.
    """

    size: int
    kind: FactorKind
    places: str
    replaces: tuple[str, ...]
    now: str
    combiner: Combiner = Combiner.ADD

    def __str__(self) -> str:
        return f"{kind_name(self.kind, self.combiner)} factor of size {self.size} ({self.places}); now {self.now}"


@frozen
class RuleReport:
    """Results of the numeric check of a rule.

    Args:
        rule: The rule.
        operands: The shapes of the operands.
        results: The shapes of the results.
        factors: One check per factor, by index.
        missing: Factors that the rule could have and does not.
        is_search_complete: Whether all combinations of dimensions were tried for missing factors.
    """

    rule: OpShardingRule
    operands: tuple[tuple[int, ...], ...]
    results: tuple[tuple[int, ...], ...]
    factors: tuple[FactorCheck, ...]
    missing: tuple[MissingFactor, ...]
    is_search_complete: bool = True

    @property
    def wrong(self) -> tuple[FactorCheck, ...]:
        """The factors whose claim is wrong."""
        return self._with(Verdict.WRONG)

    @property
    def unchecked(self) -> tuple[FactorCheck, ...]:
        """The factors that could not be checked."""
        return self._with(Verdict.UNCHECKED)

    @property
    def ok(self) -> bool:
        """True if no claim is wrong and no factor is missing."""
        return not self.wrong and not self.missing

    def __str__(self) -> str:
        lines = [
            str(self.rule),
            f"  operands {_shapes(self.operands)}; results {_shapes(self.results)}",
            *(f"  wrong: {item}" for item in self.wrong),
            *(f"  missing: {item}" for item in self.missing),
            *(f"  unchecked: {item}" for item in self.unchecked),
        ]
        if not self.is_search_complete:
            lines.append("  there are too many dimensions to look for all missing factors")
        return "\n".join(lines if len(lines) > 2 else [*lines, "  every factor holds and none is missing"])

    def _with(self, verdict: Verdict) -> tuple[FactorCheck, ...]:
        return tuple(item for item in self.factors if item.verdict is verdict)


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> str:
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes) or "none"
