"""Checks of the factors of a rule by arithmetic: those that it has, and those that it could have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import gcd, prod

from attrs import evolve

from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import FactorKind, OpShardingRule, factor_symbol
from shardy_py.testing.numeric.bench import Bench, splits
from shardy_py.testing.numeric.pieces import Piece
from shardy_py.testing.numeric.report import FactorCheck, MissingFactor, Verdict
from shardy_py.testing.rules import kind_name, places
from shardy_py.values import frozen

GATHERED = (FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)


def judge(bench: Bench, rule: OpShardingRule, pieces: Sequence[Piece], factor: int) -> FactorCheck:
    """Check what a rule says of a factor."""
    factor_pieces = [piece for piece in pieces if piece.factor == factor]
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
    obstacle = _obstacle(bench, rule, factor_pieces, factor)
    if obstacle:
        return check(Verdict.UNCHECKED, obstacle)
    if all(piece.tensor >= bench.num_operands for piece in factor_pieces):
        # Every device has all operands whole, and can make any part of the results.
        return check(Verdict.HOLDS)
    reason = bench.attempt(factor_pieces, kind, combiner)
    if reason is None:
        return check(Verdict.HOLDS)
    return check(Verdict.WRONG, reason, _advice(bench, factor_pieces, kind, combiner))


def _obstacle(bench: Bench, rule: OpShardingRule, factor_pieces: Sequence[Piece], factor: int) -> str:
    """Return why the dimensions of a factor cannot be split alike, or ""."""
    for tensor, mapping in enumerate(rule.mappings):
        for dim, factors in enumerate(mapping):
            covered_size, size = prod(rule.factor_sizes[item] for item in factors), bench.shapes[tensor][dim]
            if factor in factors and len(factors) > 1 and covered_size != size:
                place = Piece(tensor, dim, 1, size, 1).place(bench.num_operands)
                return f"{place} has size {size}, but its factors make {covered_size}"
    sizes = [piece.size for piece in factor_pieces]
    return "" if splits(sizes) else f"its dimensions, of sizes {', '.join(map(str, sizes))}, have no common parts"


def _advice(bench: Bench, factor_pieces: Sequence[Piece], kind: FactorKind, combiner: Combiner) -> str:
    """Return a kind of factor that holds in place of a wrong one, in words."""
    in_results = any(piece.tensor >= bench.num_operands for piece in factor_pieces)
    if kind is FactorKind.REDUCTION and bench.attempt(factor_pieces, FactorKind.PASS_THROUGH) is None:
        return "it passes through"
    if not in_results:
        others = (other for other in Combiner if kind is not FactorKind.REDUCTION or other is not combiner)
        fitting = [other for other in others if bench.attempt(factor_pieces, FactorKind.REDUCTION, other) is None]
        if fitting:
            return "it is a reduction" + ("" if fitting[0] is Combiner.ADD else f" by {fitting[0].value}")
        start = _start(bench, factor_pieces, combiner)
        if kind is FactorKind.REDUCTION and start is not None:
            return f"it holds if operand {start} is an initial one, that counts once: initial={start}"
    return "it needs replication" if kind is FactorKind.REDUCTION else "as it stands it needs replication"


def _start(bench: Bench, factor_pieces: Sequence[Piece], combiner: Combiner) -> int | None:
    """Return the operand that must be initial, on the first device only, for a reduction to hold; None without one."""
    for number in range(bench.num_operands):
        if number not in bench.initial and all(piece.tensor != number for piece in factor_pieces):
            other = evolve(bench, initial=(*bench.initial, number))
            if other.attempt(factor_pieces, FactorKind.REDUCTION, combiner) is None:
                return number
    return None


MOST_CANDIDATES = 4096


@frozen
class Search:
    """The missing factors, and whether all combinations of dimensions were tried."""

    missing: tuple[MissingFactor, ...]
    is_complete: bool = True


def find_missing(bench: Bench, rule: OpShardingRule, pieces: Sequence[Piece], checks: Sequence[FactorCheck]) -> Search:
    """Try to connect the pieces of dimensions that no factor explains.

    These are dimensions without a factor that says anything, with a wrong one, with one that is gathered, and those
    of results whose factor no operand has. The combination of most tensors that works is taken, and so on.
    """
    open_ = [piece for piece in pieces if piece.size > 1 and _is_open(bench, pieces, piece, checks)]
    missing: list[MissingFactor] = []
    is_complete = True
    while any(piece.tensor < bench.num_operands for piece in open_):
        candidates, all_of_them = _candidates(bench, open_)
        is_complete = is_complete and all_of_them
        match = next(filter(None, (_try(bench, candidate) for candidate in candidates)), None)
        if match is None:
            break
        chosen, size, kind, combiner = match
        missing.append(_missing(bench, rule, chosen, size, kind, combiner))
        open_ = [item for piece in open_ for item in ([piece] if piece not in chosen else _rest(piece, size))]
    return Search(tuple(missing), is_complete)


def _is_open(bench: Bench, pieces: Sequence[Piece], piece: Piece, checks: Sequence[FactorCheck]) -> bool:
    if piece.factor is None:
        return True
    check = checks[piece.factor]
    if check.verdict is Verdict.UNCHECKED:
        return False
    if check.verdict is not Verdict.HOLDS or check.size == 1:
        return True
    return all(other.tensor >= bench.num_operands for other in pieces if other.factor == piece.factor)


def _candidates(bench: Bench, open_: Sequence[Piece]) -> tuple[list[tuple[Piece, ...]], bool]:
    """Return combinations of at most one piece per tensor, those of most tensors first; and whether these are all."""
    by_tensor = [[piece for piece in open_ if piece.tensor == tensor] for tensor in range(len(bench.shapes))]
    combinations = islice(_combinations(bench, by_tensor), MOST_CANDIDATES + 1)
    candidates = list(combinations)
    is_complete = len(candidates) <= MOST_CANDIDATES
    if not is_complete:
        # Dimensions of one size are the likely ones.
        groups = (
            [[piece for piece in pieces if piece.size == size] for pieces in by_tensor]
            for size in sorted({piece.size for piece in open_})
        )
        candidates = list(islice((item for group in groups for item in _combinations(bench, group)), MOST_CANDIDATES))
    return sorted(candidates, key=_rank), is_complete


def _combinations(bench: Bench, by_tensor: Sequence[Sequence[Piece]]) -> Iterator[tuple[Piece, ...]]:
    for chosen in product(*([*pieces, None] for pieces in by_tensor)):
        candidate = tuple(piece for piece in chosen if piece is not None)
        has_operand = any(piece.tensor < bench.num_operands for piece in candidate)
        if has_operand and gcd(*(piece.size for piece in candidate)) > 1:
            yield candidate


def _rank(candidate: tuple[Piece, ...]) -> tuple[int, int, int]:
    return -len(candidate), len({piece.size for piece in candidate}), len({piece.dim for piece in candidate})


def _try(bench: Bench, candidate: tuple[Piece, ...]) -> tuple[tuple[Piece, ...], int, FactorKind, Combiner] | None:
    """Return the largest size and the kind with which a combination works, or None."""
    in_results = any(piece.tensor >= bench.num_operands for piece in candidate)
    kinds = [(FactorKind.PASS_THROUGH, Combiner.ADD)]
    if not in_results:
        kinds = [(FactorKind.REDUCTION, Combiner.ADD), *kinds]
        kinds += [(FactorKind.REDUCTION, other) for other in Combiner if other is not Combiner.ADD]
    common = gcd(*(piece.size for piece in candidate))
    for size in (size for size in range(common, 1, -1) if common % size == 0):
        majors = [_major(piece, size) for piece in candidate]
        for kind, combiner in kinds:
            if bench.attempt(majors, kind, combiner) is None:
                return candidate, size, kind, combiner
    return None


def _major(piece: Piece, size: int) -> Piece:
    return evolve(piece, size=size, inner=piece.inner * (piece.size // size))


def _rest(piece: Piece, size: int) -> list[Piece]:
    """Return what is left of a piece whose major part is taken."""
    return [evolve(piece, outer=piece.outer * size, size=piece.size // size)] if piece.size > size else []


def _missing(
    bench: Bench, rule: OpShardingRule, chosen: Sequence[Piece], size: int, kind: FactorKind, combiner: Combiner
) -> MissingFactor:
    places = ", ".join(_major(piece, size).place(bench.num_operands) for piece in chosen)
    factors = list(dict.fromkeys(piece.factor for piece in chosen if piece.factor is not None))
    descriptions = [
        f"{factor_symbol(factor)} is "
        + (
            kind_name(rule.kind(factor), rule.combiner(factor))
            if rule.factor_sizes[factor] > 1
            else "of size 1, which says nothing"
        )
        for factor in factors
    ]
    replaces = tuple(map(factor_symbol, factors))
    return MissingFactor(size, kind, places, replaces, ", ".join(descriptions) or "no factor fits", combiner)
