"""Stub plugins: a guessed rule for each op kind without one, as text to start from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from keyword import iskeyword

from attrs import frozen

from shardy_py.ir.graph import Op, Value
from shardy_py.ir.types import TensorType, static_shape

_HEADER = "import shardy_py as sdy\n"
_FOOTER = """

@sdy.hookimpl
def shardy_register_dialects():
    return [{dialects}]
"""

_Place = tuple[str, int, int]
"""``operand`` or ``result``, its number, and the dimension."""


@frozen
class _Factor:
    """A guessed factor: one dimension per tensor, and the text that says its size."""

    operand_dims: tuple[int | None, ...]
    result_dims: tuple[int | None, ...]
    size: str

    @property
    def is_reduction(self) -> bool:
        """Whether only operands have it."""
        return all(dim is None for dim in self.result_dims)


def stub_rules(ops: Iterable[Op]) -> str:
    """Return the text of a plugin with a guessed rule for each op.

    Dimensions of equal size are taken for the same factor, from left to right; factors that no result has, for
    reductions. A dimension without a partner propagates nothing. Rules are on one line where sizes are known.
    """
    by_dialect: dict[str, list[Op]] = {}
    for op in ops:
        by_dialect.setdefault(op.name.split(".", 1)[0], []).append(op)
    parts = [_HEADER]
    for namespace, members in by_dialect.items():
        dialect = _identifier(namespace)
        parts.append(f'\n{dialect} = sdy.Dialect("{namespace}")\n')
        parts += (_stub(dialect, op) for op in members)
    return "".join(parts) + _FOOTER.format(dialects=", ".join(_identifier(name) for name in by_dialect))


def _stub(dialect: str, op: Op) -> str:
    return _line(dialect, op) if all(map(_has_known_sizes, (*op.operands, *op.results))) else _function(dialect, op)


def _has_known_sizes(value: Value) -> bool:
    return not isinstance(value.type, TensorType) or value.type.is_static


def _line(dialect: str, op: Op) -> str:
    """Return a stub with the rule as a text."""
    factors = _guess(op)
    names = _names()
    letters: dict[_Place, str] = {}
    for kind, tensors in _sides(op):
        for number, value in enumerate(tensors):
            for dim in range(len(_sizes(value))):
                if (kind, number, dim) not in letters:
                    letters.update(dict.fromkeys(_places_of(factors, (kind, number, dim)), next(names)))
    text = " -> ".join(_tensors(kind, tensors, letters) for kind, tensors in _sides(op)).strip()
    reduced = [letters[_places(factor)[0]] for factor in factors if factor.is_reduction]
    kinds = f', reduction="{", ".join(reduced)}"' if reduced else ""
    comment = f"# Guessed from the sizes of {_types(op)}; check every factor."
    return f'\n{comment}\n{dialect}.op("{op.name}", rule="{text}"{kinds})\n'


def _sides(op: Op) -> tuple[tuple[str, Sequence[Value]], tuple[str, Sequence[Value]]]:
    return ("operand", op.operands), ("result", op.results)


def _tensors(kind: str, tensors: Sequence[Value], letters: Mapping[_Place, str]) -> str:
    """Return one side of the arrow."""
    dims = [[letters[kind, number, dim] for dim in range(len(_sizes(value)))] for number, value in enumerate(tensors)]
    return ", ".join(map(" ".join, dims))


def _places(factor: _Factor) -> list[_Place]:
    """Return all dimensions of a factor."""
    sides = (("operand", factor.operand_dims), ("result", factor.result_dims))
    return [(kind, number, dim) for kind, dims in sides for number, dim in enumerate(dims) if dim is not None]


def _places_of(factors: list[_Factor], place: _Place) -> list[_Place]:
    """Return all dimensions that share the factor of one; a dimension without a factor is alone."""
    return next((places for places in map(_places, factors) if place in places), [place])


def _names() -> Iterator[str]:
    """Yield names of factors, the usual ones first."""
    yield from "ijklmnopqrstuvwxyzabcdefgh"
    yield from (f"d{number}" for number in count())


def _function(dialect: str, op: Op) -> str:
    """Return a stub with a function that makes the rule."""
    lines = [
        f'\n\n@{dialect}.op("{op.name}")',
        f"def {_identifier(op.name.split('.', 1)[-1])}(op):",
        f'    """Guessed from the sizes of {_types(op)}; check every factor."""',
        "    rule = sdy.OpShardingRuleBuilder.for_op(op)",
        *(f"    {_call(factor)}" for factor in _guess(op)),
        "    return rule.build()\n",
    ]
    return "\n".join(lines)


def _types(op: Op) -> str:
    return ", ".join(str(value.type) for value in op.operands) + " -> " + ", ".join(str(v.type) for v in op.results)


def _call(factor: _Factor) -> str:
    kind = ", kind=sdy.FactorKind.REDUCTION" if factor.is_reduction else ""
    return f"rule.add_factor({list(factor.operand_dims)}, {list(factor.result_dims)}, {factor.size}{kind})"


def _guess(op: Op) -> list[_Factor]:
    """Tie dimensions of equal size: those of each result to operands, then the rest among operands."""
    operands, results = [_sizes(value) for value in op.operands], [_sizes(value) for value in op.results]
    taken: set[_Place] = set()
    factors = []
    for kind, tensors in (("result", results), ("operand", operands)):
        for number, sizes in enumerate(tensors):
            for dim, size in enumerate(sizes):
                if size <= 1 or (kind, number, dim) in taken:
                    continue
                factor = _Factor(
                    _take(operands, "operand", size, taken),
                    _take(results, "result", size, taken),
                    f"op.{kind}s[{number}].type.shape[{dim}]",
                )
                if sum(found is not None for found in (*factor.operand_dims, *factor.result_dims)) > 1:
                    factors.append(factor)
    return factors


def _take(tensors: list[tuple[int, ...]], kind: str, size: int, taken: set[_Place]) -> tuple[int | None, ...]:
    """Take the first free dimension of a size from each tensor."""
    found: list[int | None] = []
    for number, sizes in enumerate(tensors):
        free = (dim for dim, other in enumerate(sizes) if other == size and (kind, number, dim) not in taken)
        dim = next(free, None)
        found.append(dim)
        if dim is not None:
            taken.add((kind, number, dim))
    return tuple(found)


def _sizes(value: Value) -> tuple[int, ...]:
    return static_shape(value.type) or ()


def _identifier(name: str) -> str:
    identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
    reserved = iskeyword(identifier) or identifier in ("op", "rule", "sdy") or identifier[:1].isdigit()
    return f"_{identifier}" if reserved else identifier
