"""Judging the factors that a rule has."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import evolve

from shardy_py.sharding.combiner import Combiner
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
    combiner = rule.combiner(factor)

    def check(verdict: Verdict, reason: str = "", advice: str = "") -> FactorCheck:
        size = rule.factor_sizes[factor]
        return FactorCheck(factor, size, kind, places(rule, factor), verdict, reason, advice, combiner)

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
    reason = bench.attempt(own, kind, combiner)
    if reason is None:
        return check(Verdict.HOLDS)
    return check(Verdict.WRONG, reason, _advice(bench, own, kind, combiner))


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


def _advice(bench: Bench, own: Sequence[Piece], kind: FactorKind, combiner: Combiner) -> str:
    """Say as what a wrong factor would hold."""
    in_results = any(piece.tensor >= bench.num_operands for piece in own)
    if kind is FactorKind.REDUCTION and bench.attempt(own, FactorKind.PASS_THROUGH) is None:
        return "it passes through"
    if not in_results:
        others = (other for other in Combiner if kind is not FactorKind.REDUCTION or other is not combiner)
        fitting = [other for other in others if bench.attempt(own, FactorKind.REDUCTION, other) is None]
        if fitting:
            return "it is a reduction" + ("" if fitting[0] is Combiner.ADD else f" by {fitting[0].value}")
        start = _start(bench, own, combiner)
        if kind is FactorKind.REDUCTION and start is not None:
            return f"it holds if operand {start} is an initial one, that counts once: initial={start}"
    return "it needs replication" if kind is FactorKind.REDUCTION else "as it stands it needs replication"


def _start(bench: Bench, own: Sequence[Piece], combiner: Combiner) -> int | None:
    """Return the operand without which all devices but the first would have to do, so that a reduction holds."""
    for number in range(bench.num_operands):
        if number not in bench.initial and all(piece.tensor != number for piece in own):
            other = evolve(bench, initial=(*bench.initial, number))
            if other.attempt(own, FactorKind.REDUCTION, combiner) is None:
                return number
    return None
