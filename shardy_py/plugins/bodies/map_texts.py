"""Indexing maps of the ops of dialects: those given as texts, ``(i, j)[k] -> (i, k)``, and those of elementwise ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, ParseError, PluginError
from shardy_py.indexing import AffineMap, IndexingMap, OpIndexing, VariableKind, op_maps
from shardy_py.indexing.expressions import Variable, divides_by_zero
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.plugins.argument_checks import refuse
from shardy_py.values import frozen

_EXAMPLE = 'indexing=["(i, j)[k] -> (i, k)", "(i, j)[k] -> (k, j)"]'
_DOMAIN = "domain"


@frozen
class MapTexts:
    """The indexing maps of an op as texts; dimensions and symbols run over the shapes of the op.

    Args:
        texts: The texts, one per operand.
        maps: What they say: with a domain an indexing map, else an affine one.
    """

    texts: tuple[str, ...]
    maps: tuple[IndexingMap | AffineMap, ...] = field(eq=False, repr=False)

    def __call__(self, op: Op) -> Sequence[IndexingMap] | None:
        """Return the map of every operand, or None for shapes that are not known.

        Raises:
            PluginError: no operand tells over what a symbol runs, or two do so differently.
        """
        shapes = [static_shape(value.type) for value in (*op.operands, *op.results[:1])]
        if len(self.maps) != len(op.operands) or not op.results:
            message = f"{len(self.maps)} indexing maps are given for {len(op.operands)} operands"
            raise PluginError(Diagnostic("indexing-failed", message, hint="give one per operand, or a function"))
        if any(shape is None for shape in shapes):
            return None
        known = [shape or () for shape in shapes]
        symbols = self._symbols(known[:-1])
        return [self._bounded(number, known[-1], symbols) for number in range(len(self.maps))]

    def _symbols(self, shapes: Sequence[Sequence[int]]) -> dict[int, int]:
        """Return over how many values each symbol runs: the size of a dimension that it indexes alone."""
        sizes: dict[int, int] = {}
        for text, map_, shape in zip(self.texts, self.maps, shapes, strict=True):
            if not isinstance(map_, AffineMap) or len(map_.results) != len(shape):
                continue
            for result, size in zip(map_.results, shape, strict=True):
                if not isinstance(result, Variable) or result.kind is not VariableKind.RANGE:
                    continue
                other = sizes.setdefault(result.number, size)
                if other != size:
                    message = (
                        f"the symbol {result.number} of {text!r} runs over {size} elements here, {other} elsewhere"
                    )
                    raise PluginError(Diagnostic("indexing-failed", message, hint="the shapes of the op do not fit"))
        return sizes

    def _bounded(self, number: int, shape: Sequence[int], symbols: dict[int, int]) -> IndexingMap:
        map_, text = self.maps[number], self.texts[number]
        if isinstance(map_, IndexingMap):
            return map_
        if map_.num_dims != len(shape):
            message = f"{text!r} has {map_.num_dims} dimensions, the result of the op {len(shape)}"
            hint = "maps go from the index of the first result to that of an operand"
            raise PluginError(Diagnostic("indexing-failed", message, hint=hint))
        missing = [item for item in range(map_.num_symbols) if item not in symbols]
        if missing:
            message = f"nothing tells over what the symbol {missing[0]} of {text!r} runs"
            hint = "some operand has a dimension that it indexes alone; or give the domain: ..., domain: k in [0, 3]"
            raise PluginError(Diagnostic("indexing-failed", message, hint=hint))
        return map_.bounded(shape, [symbols[item] for item in range(map_.num_symbols)])


def parse_maps(argument: str | Sequence[Any], *, op: str) -> MapTexts:
    """Return the maps of texts as a function of the op.

    Args:
        argument: The text, or the texts.
        op: The name of the op, for errors.

    Raises:
        PluginError: one is not a map.
    """
    texts = (argument,) if isinstance(argument, str) else argument
    wrong = [type(item).__name__ for item in texts if not isinstance(item, str)]
    if wrong:
        message = f"indexing is a list with {wrong[0]}, not with texts"
        raise refuse("invalid-indexing", message, op, hint=f"{_EXAMPLE}, or a function of the op")
    return MapTexts(tuple(texts), tuple(_parse(text, op) for text in texts))


def _parse(text: str, name: str) -> IndexingMap | AffineMap:
    try:
        parsed = IndexingMap.parse(text) if _DOMAIN in text.partition("->")[2] else AffineMap.parse(text)
    except ParseError as error:
        (item,) = error.diagnostics
        raise PluginError(
            Diagnostic("invalid-indexing", item.message, op=name, hint=item.hint or _EXAMPLE, excerpt=item.excerpt)
        ) from None
    constraints = [item for item, _ in parsed.constraints] if isinstance(parsed, IndexingMap) else []
    if divides_by_zero((*parsed.results, *constraints)):
        raise refuse("invalid-indexing", f"{text!r} divides by zero", name, hint="give another divisor")
    return parsed


def elementwise_indexing(op: Op) -> OpIndexing | None:
    """Return the identity maps of an elementwise op; scalars are read at their only element.

    None for other shapes, and for those that are not known.
    """
    output = static_shape(op.results[0].type) if op.results else None
    shapes = [static_shape(value.type) for value in op.operands]
    if output is None or any(shape not in (output, ()) for shape in shapes):
        return None
    identity = op_maps.identity(output)
    return OpIndexing([identity if shape == output else op_maps.scalar(output) for shape in shapes])
