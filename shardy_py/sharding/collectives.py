"""The attributes of collectives: which axes they gather, slice, reduce or move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import field

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.tensor import ReductionOp
from shardy_py.values import frozen

Axes = tuple[AxisRef, ...]

_REDUCTION_OP = "#sdy<reduction_op "
_REDUCTION_OPS: tuple[ReductionOp, ...] = ("sum", "max", "min")
"""In the order of upstream's enumeration, ``shardy/dialect/sdy/ir/enums.td``."""


def reduction_op_text(reduction: ReductionOp) -> str:
    """Return the attribute of a collective that says how it combines."""
    return f"{_REDUCTION_OP}{reduction}>"


def reduction_op_code(text: str) -> int | None:
    """Return the number by which the enumeration is written in generic form; None for another attribute.

    Upstream writes ``sdy.all_reduce max``. MLIR that does not know the word yet, as that of jaxlib 0.10.2, keeps the
    number.

    >>> reduction_op_code("#sdy<reduction_op max>")
    1
    """
    word = text.removeprefix(_REDUCTION_OP).removesuffix(">")
    codes: dict[str, int] = {known: code for code, known in enumerate(_REDUCTION_OPS)}
    return codes.get(word) if text.startswith(_REDUCTION_OP) else None


def parse_reduction_op(attribute: object) -> ReductionOp:
    """Return the reduction of a collective, from its attribute: the word or the number; a sum where there is none."""
    if isinstance(attribute, int):
        return _REDUCTION_OPS[attribute] if 0 <= attribute < len(_REDUCTION_OPS) else "sum"
    code = None if attribute is None else reduction_op_code(str(attribute))
    return "sum" if code is None else _REDUCTION_OPS[code]


def _braces(axes: Iterable[AxisRef]) -> str:
    return "{" + ", ".join(str(axis) for axis in axes) + "}"


@frozen(cache_hash=True)
class AxisRefList:
    """A list of axes, for example those an all-reduce sums over.

    >>> str(AxisRefList((AxisRef("x"), AxisRef("y"))))
    '{"x", "y"}'
    """

    axes: Axes = ()

    def __str__(self) -> str:
        return _braces(self.axes)


@frozen(cache_hash=True)
class ListOfAxisRefLists:
    """A list of axes per dimension, for example those an all-gather gathers.

    >>> str(ListOfAxisRefLists(((AxisRef("x"),), ())))
    '[{"x"}, {}]'
    """

    axes_per_dim: tuple[Axes, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if no dimension has any axis."""
        return not any(self.axes_per_dim)

    def axes(self) -> Iterator[AxisRef]:
        """Iterate over the axes of all dimensions."""
        for axes in self.axes_per_dim:
            yield from axes

    def __str__(self) -> str:
        return "[" + ", ".join(_braces(axes) for axes in self.axes_per_dim) + "]"


@frozen(cache_hash=True)
class AllToAllParam:
    """Axes that an all-to-all moves from the end of one dimension to the end of another.

    >>> str(AllToAllParam((AxisRef("x"),), 0, 2))
    '{"x"}: 0->2'
    """

    axes: Axes
    src_dim: int
    tgt_dim: int

    def __str__(self) -> str:
        return f"{_braces(self.axes)}: {self.src_dim}->{self.tgt_dim}"


@frozen(cache_hash=True)
class AllToAllParamList:
    """The moves of one all-to-all, sorted by source dimension; no dimension is mentioned twice."""

    params: tuple[AllToAllParam, ...] = field(default=())

    def overlaps(self, other: AllToAllParamList) -> bool:
        """Return whether some dimension is mentioned twice in both lists together."""
        dims = [dim for param in self.params + other.params for dim in (param.src_dim, param.tgt_dim)]
        return len(set(dims)) != len(dims)

    def combined_with(self, other: AllToAllParamList) -> AllToAllParamList:
        """Return both lists as one, sorted by source dimension; they must not overlap."""
        return AllToAllParamList(tuple(sorted(self.params + other.params, key=lambda param: param.src_dim)))

    def __str__(self) -> str:
        return "[" + ", ".join(str(param) for param in self.params) + "]"
