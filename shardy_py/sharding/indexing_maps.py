"""Sharding rules from indexing maps: how the loops over an op's elements index its tensors.

Any dialect whose ops say for each tensor which loop indexes which dimension, as MLIR's structured ops do, gets its
rules from `rule_from_indexing_maps`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.sharding.rule import DimMapping, FactorKind, OpShardingRule, TensorMapping
from shardy_py.sharding.rule_builder import Shape

PARALLEL = "parallel"
REDUCTION = "reduction"


@frozen
class Linear:
    """A sum of loop indices, each times a number, and an offset: ``d0 * 4 + d1``, ``-d0 + 7``, ``0``."""

    terms: tuple[tuple[int, int], ...]
    offset: int = 0


@frozen
class Part:
    """The quotient or the remainder of one loop index and a number: ``d0 floordiv 4``, ``d0 mod 4``."""

    dim: int
    divisor: int
    is_remainder: bool


@frozen
class Opaque:
    """An expression that no factors stand for, over some loop indices."""

    dims: tuple[int, ...]


Expression = Linear | Part | Opaque


@frozen(cache_hash=True)
class IndexingMap:
    """How loops index one tensor.

    Args:
        num_loops: The number of loops.
        results: One expression per dimension of the tensor.
    """

    num_loops: int
    results: tuple[Expression, ...]

    @classmethod
    def of_loops(cls, num_loops: int, loops: Iterable[int]) -> IndexingMap:
        """Return the map of a tensor each of whose dimensions is indexed by one loop."""
        return cls(num_loops, tuple(Linear(((loop, 1),)) for loop in loops))


_MAP = re.compile(r"^\s*(?:affine_map<)?\s*\(([^()]*)\)\s*(?:\[[^\]]*\])?\s*->\s*\((.*)\)\s*>?\s*$", re.DOTALL)


def parse_indexing_map(text: str) -> IndexingMap:
    """Return an indexing map in MLIR's notation for affine maps, with or without ``affine_map<>``.

    Raises:
        RuleError: the text is no affine map.

    >>> parse_indexing_map("(d0, d1) -> (d1, 0)").results
    (Linear(terms=((1, 1),), offset=0), Linear(terms=(), offset=0))
    """
    match = _MAP.match(text)
    if match is None:
        raise _malformed(text)
    loops = {name.strip(): number for number, name in enumerate(filter(str.strip, match[1].split(",")))}
    # Python has the same operators under other names; there is none left for ceildiv, which is opaque anyway.
    source = re.sub(r"\bceildiv\b", "|", re.sub(r"\bmod\b", "%", re.sub(r"\bfloordiv\b", "//", match[2])))
    try:
        tree = ast.parse(f"({source.strip()},)" if source.strip() else "()", mode="eval").body
    except SyntaxError:
        raise _malformed(text) from None
    if not isinstance(tree, ast.Tuple):
        raise _malformed(text)
    return IndexingMap(len(loops), tuple(_expression(node, loops) for node in tree.elts))


def _malformed(text: str) -> RuleError:
    return RuleError(Diagnostic("malformed-indexing-map", "this is no affine map", hint=f"the text is {text[:200]}"))


def _expression(node: ast.expr, loops: dict[str, int]) -> Expression:
    linear = _linear(node, loops)
    if linear is not None:
        terms, offset = linear
        return Linear(tuple(sorted((dim, factor) for dim, factor in terms.items() if factor)), offset)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        inside, divisor = _expression(node.left, loops), _linear(node.right, loops)
        if isinstance(inside, Linear) and len(inside.terms) == 1 and divisor is not None and not divisor[0]:
            ((dim, factor),) = inside.terms
            if factor == 1 and not inside.offset and divisor[1] > 0:
                return Part(dim, divisor[1], isinstance(node.op, ast.Mod))
    names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
    return Opaque(tuple(sorted(loops[name] for name in names if name in loops)))


def _linear(node: ast.expr, loops: dict[str, int]) -> tuple[dict[int, int], int] | None:
    """Return the factors of the loops and the offset of a linear expression, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return {}, node.value
    if isinstance(node, ast.Name) and node.id in loops:
        return {loops[node.id]: 1}, 0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _scaled(_linear(node.operand, loops), -1)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _linear(node.left, loops), _linear(node.right, loops)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Mult):
        return _scaled(left, right[1]) if not right[0] else _scaled(right, left[1]) if not left[0] else None
    if not isinstance(node.op, (ast.Add, ast.Sub)):
        return None
    sign = -1 if isinstance(node.op, ast.Sub) else 1
    terms = {dim: left[0].get(dim, 0) + sign * right[0].get(dim, 0) for dim in {**left[0], **right[0]}}
    return terms, left[1] + sign * right[1]


def _scaled(linear: tuple[dict[int, int], int] | None, factor: int) -> tuple[dict[int, int], int] | None:
    if linear is None:
        return None
    return {dim: item * factor for dim, item in linear[0].items()}, linear[1] * factor


def rule_from_indexing_maps(
    maps: Sequence[IndexingMap],
    shapes: Sequence[Shape],
    *,
    num_results: int,
    iterator_types: Sequence[str] = (),
) -> OpShardingRule | None:
    """Return the rule of an op from its indexing maps.

    Each loop is a factor; one that some tensor takes apart by ``floordiv`` and ``mod`` is two. A dimension indexed by a
    combination of loops such as ``d0 * 4 + d1`` has their factors, major first, if the loops fill it without gaps and
    overlaps. Loops that run backwards or are shifted need a permutation, those in any other expression replication.

    Args:
        maps: One map per operand, then one per result.
        shapes: The sizes, in the same order; () for a scalar.
        num_results: How many of them are results.
        iterator_types: One per loop, ``parallel`` or ``reduction``; all parallel by default.

    Returns:
        The rule, or None where no dimension tells the size of a loop.

    Raises:
        RuleError: the maps do not fit the shapes or each other.

    >>> maps = [parse_indexing_map(f"(d0, d1, d2) -> {text}") for text in ("(d0, d2)", "(d2, d1)", "(d0, d1)")]
    >>> kinds = ["parallel", "parallel", "reduction"]
    >>> str(rule_from_indexing_maps(maps, [(8, 4), (4, 16), (8, 16)], num_results=1, iterator_types=kinds))
    '<([i, k], [k, j])->([i, j]) {i=8, j=16, k=4} reduction={k}>'
    """
    _check(maps, shapes, iterator_types)
    pairs = [
        (expression, size)
        for map_, shape in zip(maps, shapes, strict=True)
        for expression, size in zip(map_.results, shape, strict=True)
    ]
    num_loops = max((map_.num_loops for map_ in maps), default=0)
    sizes = _loop_sizes(pairs, num_loops)
    if sizes is None:
        return None
    return _Derivation(sizes, pairs, iterator_types).rule(maps, shapes, num_results)


def _check(maps: Sequence[IndexingMap], shapes: Sequence[Shape], iterator_types: Sequence[str]) -> None:
    if len(maps) != len(shapes):
        raise _unfit(f"there are {len(maps)} maps for {len(shapes)} tensors")
    for number, (map_, shape) in enumerate(zip(maps, shapes, strict=True)):
        if len(map_.results) != len(shape):
            raise _unfit(f"map {number} has {len(map_.results)} results, its tensor has {len(shape)} dimensions")
        if map_.num_loops != maps[0].num_loops:
            raise _unfit(f"map {number} is over {map_.num_loops} loops, map 0 over {maps[0].num_loops}")
    if iterator_types and maps and len(iterator_types) != maps[0].num_loops:
        raise _unfit(f"there are {len(iterator_types)} iterator types for {maps[0].num_loops} loops")


def _unfit(message: str) -> RuleError:
    return RuleError(Diagnostic("indexing-maps", message))


def _loop_sizes(pairs: Iterable[tuple[Expression, int]], num_loops: int) -> tuple[int, ...] | None:
    """Return the number of iterations of every loop, from the dimensions that it indexes alone."""
    sizes: list[int | None] = [None] * num_loops
    parts: dict[tuple[int, int, bool], int] = {}
    for expression, size in pairs:
        if isinstance(expression, Part):
            parts[expression.dim, expression.divisor, expression.is_remainder] = size
        elif isinstance(expression, Linear) and len(expression.terms) == 1 and not expression.offset:
            ((dim, factor),) = expression.terms
            if factor == 1:
                sizes[dim] = size if sizes[dim] is None else min(size, sizes[dim])  # type: ignore[type-var]
    for (dim, divisor, is_remainder), size in parts.items():
        if sizes[dim] is None and not is_remainder:
            sizes[dim] = size * divisor
    return None if None in sizes else tuple(sizes)  # type: ignore[arg-type]


class _Derivation:
    """The factors of the loops, and what tells their kinds."""

    def __init__(self, sizes: Sequence[int], pairs: Sequence[tuple[Expression, int]], iterators: Sequence[str]) -> None:
        self._sizes = sizes
        self._factors: list[DimMapping] = []
        self.factor_sizes: list[int] = []
        self._kinds: list[FactorKind] = [
            FactorKind.REDUCTION if kind == REDUCTION else FactorKind.PASS_THROUGH for kind in iterators
        ] or [FactorKind.PASS_THROUGH] * len(sizes)
        for loop, size in enumerate(sizes):
            self._factors.append(tuple(map(self._new_factor, _split(loop, size, pairs))))
        for expression, size in pairs:
            for loop, kind in self._demands(expression, size):
                if kind is FactorKind.NEED_REPLICATION or self._kinds[loop] is FactorKind.PASS_THROUGH:
                    self._kinds[loop] = kind

    def rule(self, maps: Sequence[IndexingMap], shapes: Sequence[Shape], num_results: int) -> OpShardingRule:
        """Return the rule; dimensions without factors get one of size 1."""
        mappings = [self._mapping(map_, shape) for map_, shape in zip(maps, shapes, strict=True)]
        first_result = len(maps) - num_results
        return OpShardingRule(
            factor_sizes=tuple(self.factor_sizes),
            operand_mappings=tuple(mappings[:first_result]),
            result_mappings=tuple(mappings[first_result:]),
            reduction_factors=self._of_kind(FactorKind.REDUCTION),
            need_replication_factors=self._of_kind(FactorKind.NEED_REPLICATION),
            permutation_factors=self._of_kind(FactorKind.PERMUTATION),
        )

    def _new_factor(self, size: int) -> int:
        self.factor_sizes.append(size)
        return len(self.factor_sizes) - 1

    def _of_kind(self, kind: FactorKind) -> tuple[int, ...]:
        return tuple(factor for loop, own in enumerate(self._kinds) if own is kind for factor in self._factors[loop])

    def _mapping(self, map_: IndexingMap, shape: Shape) -> TensorMapping:
        dims = zip(map_.results, shape, strict=True)
        return tuple(self._factors_of(expression, size) or (self._new_factor(1),) for expression, size in dims)

    def _factors_of(self, expression: Expression, size: int) -> DimMapping:
        """Return the factors of a dimension, major first; () where there are none."""
        if isinstance(expression, Part):
            factors = self._factors[expression.dim]
            if len(factors) != 2 or self.factor_sizes[factors[1]] != expression.divisor:
                return ()
            return factors[1:] if expression.is_remainder else factors[:1]
        if not isinstance(expression, Linear):
            return ()
        if len(expression.terms) == 1 and abs(expression.terms[0][1]) == 1:
            return self._factors[expression.terms[0][0]]
        if not self._is_dense(expression, size):
            return ()
        ordered = sorted(expression.terms, key=lambda term: -term[1])
        factors = tuple(factor for dim, _ in ordered for factor in self._factors[dim])
        return tuple(factor for factor in factors if self.factor_sizes[factor] > 1) or factors[:1]

    def _is_dense(self, expression: Linear, size: int) -> bool:
        """Return whether loops fill a dimension without gaps and overlaps."""
        inner = 1
        for dim, factor in sorted(expression.terms, key=lambda term: (term[1], self._sizes[term[0]])):
            if factor != inner:
                return False
            inner *= self._sizes[dim]
        return expression.offset == 0 and inner == size

    def _demands(self, expression: Expression, size: int) -> Iterator[tuple[int, FactorKind]]:
        """Yield the loops that an expression makes more expensive, and what they need."""
        if isinstance(expression, Opaque):
            yield from ((dim, FactorKind.NEED_REPLICATION) for dim in expression.dims)
        elif isinstance(expression, Part):
            if not self._factors_of(expression, size):
                yield expression.dim, FactorKind.NEED_REPLICATION
        elif len(expression.terms) == 1 and abs(expression.terms[0][1]) == 1:
            ((dim, factor),) = expression.terms
            if factor < 0 or expression.offset or size != self._sizes[dim]:
                yield dim, FactorKind.PERMUTATION
        elif not self._is_dense(expression, size):
            yield from ((dim, FactorKind.NEED_REPLICATION) for dim, _ in expression.terms)


def _split(loop: int, size: int, pairs: Iterable[tuple[Expression, int]]) -> tuple[int, ...]:
    """Return the sizes of the factors of a loop: two where all tensors that take it apart do so at the same place."""
    divisors = {item.divisor for item, _ in pairs if isinstance(item, Part) and item.dim == loop}
    if len(divisors) != 1:
        return (size,)
    (divisor,) = divisors
    return (size,) if size % divisor else (size // divisor, divisor)
