"""Affine maps: results over dimensions and symbols without bounds, in MLIR's notation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.indexing.expressions import Expression, Variable, VariableKind, dim
from shardy_py.indexing.indexing_map import IndexingMap, bounds_of
from shardy_py.indexing.text import MapParser, print_expression, unique_names
from shardy_py.support.texts import refuse_bad_text, require_text
from shardy_py.values import frozen

_WRAPPED = re.compile(r"\s*+affine_map\s*+<(.*)>\s*+$", re.DOTALL)


@frozen(cache_hash=True)
class AffineMap:
    """A map from dimensions and symbols to indices, as structured ops carry it: the bounds follow from shapes.

    Args:
        num_dims: The number of dimensions ``d0``, ``d1``...: the loops of a structured op.
        results: One expression per index.
        num_symbols: The number of symbols ``s0``...

    >>> print(AffineMap.parse("affine_map<(i, j) -> (j, i floordiv 4)>"))
    (d0, d1) -> (d1, d0 floordiv 4)
    """

    num_dims: int
    results: tuple[Expression, ...]
    num_symbols: int = 0

    @classmethod
    def of_dims(cls, num_dims: int, dims: Iterable[int]) -> AffineMap:
        """Return the map each of whose results is one dimension."""
        return cls(num_dims, tuple(map(dim, dims)))

    @classmethod
    def parse(cls, text: str) -> AffineMap:
        """Return the map of a text, with or without ``affine_map<>`` around it.

        Raises:
            ParseError: the text is not a valid affine map; the error shows the column.
        """
        require_text(text, "the affine map", code="malformed-affine-map")
        with refuse_bad_text("the affine map", code="malformed-affine-map"):
            return cls._parse(text)

    @classmethod
    def _parse(cls, text: str) -> AffineMap:
        wrapped = _WRAPPED.match(text)
        parser = MapParser(wrapped[1] if wrapped else text, kind="affine map")
        groups = [parser.listed_names("(", ")"), parser.listed_names("[", "]")]
        twice = unique_names(groups)
        if twice is not None:
            raise parser.error(f"the name {twice!r} stands twice")
        for kind, names in zip((VariableKind.DIM, VariableKind.RANGE), groups, strict=True):
            parser.names.update({name: Variable(kind, number) for number, name in enumerate(names)})
        parser.expect("->")
        results = parser.expressions()
        if parser.ahead:
            raise parser.error("the map has ended here")
        return cls(len(groups[0]), tuple(results), len(groups[1]))

    def bounded(self, sizes: Sequence[int], symbol_sizes: Sequence[int] = ()) -> IndexingMap:
        """Return the indexing map whose dimensions and symbols run over sizes.

        Raises:
            VerificationError: not one size per dimension and symbol.
        """
        if (len(sizes), len(symbol_sizes)) != (self.num_dims, self.num_symbols):
            message = (
                f"the map has {self.num_dims} dimensions and {self.num_symbols} symbols, "
                f"{len(sizes)} and {len(symbol_sizes)} sizes are given"
            )
            raise VerificationError(Diagnostic("affine-map-sizes", message))
        return IndexingMap(self.results, bounds_of(sizes), bounds_of(symbol_sizes))

    def __str__(self) -> str:
        counts = ((VariableKind.DIM, self.num_dims), (VariableKind.RANGE, self.num_symbols))
        names = {Variable(kind, n): f"{kind.prefix}{n}" for kind, count in counts for n in range(count)}
        dims, symbols = ([f"{kind.prefix}{n}" for n in range(count)] for kind, count in counts)
        results = ", ".join(print_expression(result, names, spelling="floordiv") for result in self.results)
        return f"({', '.join(dims)})" + (f"[{', '.join(symbols)}]" if symbols else "") + f" -> ({results})"
