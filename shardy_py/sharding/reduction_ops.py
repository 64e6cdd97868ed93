"""The combination that a collective makes, as an attribute of its op."""

from __future__ import annotations

from shardy_py.sharding.tensor import ReductionOp

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
