"""Judging the factors that a rule has."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.testing.numeric.bench import Bench, splits
from shardy_py.testing.numeric.pieces import Piece
from shardy_py.testing.numeric.report import FactorCheck, Verdict
from shardy_py.testing.rule_differences import places

GATHERED = (FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)


def judge(bench: Bench, rule: OpShardingRule, pieces: Sequence[Piece], factor: int) -> FactorCheck:
    """Check what a rule says of one factor."""
    own = [piece for piece in pieces if piece.factor == factor]
    kind = rule.kind(factor)

    def check(verdict: Verdict, reason: str = "", advice: str = "") -> FactorCheck:
        size = rule.factor_sizes[factor]
        return FactorCheck(factor, size, kind, places(rule, factor), verdict, reason, advice)

    if kind in GATHERED:
        return check(Verdict.GATHERED)
    if rule.factor_sizes[factor] == 1:
        # A factor of size 1 says nothing, not even where its dimension is larger.
        return check(Verdict.HOLDS)
    obstacle = _obstacle(bench, rule, own, factor)
    if obstacle:
        return check(Verdict.UNCHECKED, obstacle)
    if all(piece.tensor >= bench.num_operands for piece in own):
        # Every device has all operands whole, and can make any part of the results.
        return check(Verdict.HOLDS)
    reason = bench.attempt(own, kind)
    if reason is None:
        return check(Verdict.HOLDS)
    return check(Verdict.WRONG, reason, _advice(bench, own, kind))


def _obstacle(bench: Bench, rule: OpShardingRule, own: Sequence[Piece], factor: int) -> str:
    """Return why the dimensions of a factor cannot be split alike, or ""."""
    for tensor, mapping in enumerate(rule.mappings):
        for dim, factors in enumerate(mapping):
            made, size = prod(rule.factor_sizes[item] for item in factors), bench.shapes[tensor][dim]
            if factor in factors and len(factors) > 1 and made != size:
                place = Piece(tensor, dim, 1, size, 1).place(bench.num_operands)
                return f"{place} has size {size}, but its factors make {made}"
    sizes = [piece.size for piece in own]
    return "" if splits(sizes) else f"its dimensions, of sizes {', '.join(map(str, sizes))}, have no common parts"


def _advice(bench: Bench, own: Sequence[Piece], kind: FactorKind) -> str:
    """Say as what a wrong factor would hold."""
    in_results = any(piece.tensor >= bench.num_operands for piece in own)
    if kind is FactorKind.REDUCTION:
        return "it passes through" if bench.attempt(own, FactorKind.PASS_THROUGH) is None else "it needs replication"
    if not in_results and bench.attempt(own, FactorKind.REDUCTION) is None:
        return "it is a reduction"
    return "as it stands it needs replication"
