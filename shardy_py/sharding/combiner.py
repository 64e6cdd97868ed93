"""Combiners of partial results, of the reductions of a rule and of collectives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.sharding.tensor import ReductionOp
from shardy_py.support.late_patterns import late_pattern

NOT = "not"
"""The word for a reduction whose partial results cannot be combined: its factor needs replication."""

_SYNONYMS = {"sum": "add", "prod": "mul", "product": "mul", "any": "or", "all": "and", "mean": NOT, "none": NOT}
_WORDS: dict[str, ReductionOp] = {"add": "sum", "min": "min", "max": "max"}
_SPACED_COLON = late_pattern(r"\s*:\s*")
_BOOLEAN_WORDS: dict[str, ReductionOp] = {"and": "min", "mul": "min", "min": "min", "or": "max", "max": "max"}


class Combiner(Enum):
    """The function that combines the partial results of two shards.

    ``AND`` and ``OR`` are bitwise on integers, logical on booleans. ``MIN`` and ``MAX`` compare as the element type
    does: signless integers count as signed.
    """

    ADD = "add"
    MUL = "mul"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"

    @property
    def is_idempotent(self) -> bool:
        """True if combining a value with itself changes nothing, so that an initial value may count several times."""
        return self not in (Combiner.ADD, Combiner.MUL)

    def collective_word(self, element_type: str) -> ReductionOp | None:
        """Return the reduction of Shardy's collectives and unreduced axes that does the same, or None.

        Shardy has ``sum``, ``max`` and ``min``; on booleans the last two are the logical ones.

        Args:
            element_type: The element type in MLIR's notation.

        >>> Combiner.ADD.collective_word("f32"), Combiner.OR.collective_word("i1"), Combiner.OR.collective_word("i32")
        ('sum', 'max', None)
        """
        return (_BOOLEAN_WORDS if element_type == "i1" else _WORDS).get(self.value)


def parse_combiner(word: object) -> Combiner | None:
    """Return the combiner of a word, or None for ``not``; a combiner is returned as it is.

    Raises:
        RuleError: it is another word.

    >>> parse_combiner("max"), parse_combiner("not")
    (<Combiner.MAX: 'max'>, None)
    """
    if isinstance(word, Combiner) or word is None:
        return word
    if isinstance(word, str):
        if word == NOT:
            return None
        for combiner in Combiner:
            if combiner.value == word:
                return combiner
    from difflib import get_close_matches

    known = [*(combiner.value for combiner in Combiner), NOT]
    close = _SYNONYMS.get(str(word).lower()) or next(iter(get_close_matches(str(word).lower(), known, 1)), "")
    hint = f"the words are {', '.join(known)}" + (f"; did you mean {close!r}?" if close else "")
    raise RuleError(Diagnostic("unknown-combiner", f"a reduction cannot combine by {word!r}", hint=hint))


def split_words(reduction: str | Iterable[str] | Mapping[str, str | Combiner]) -> list[tuple[str, Combiner | None]]:
    """Return the factors of a ``reduction=`` mark, each with its combiner; None for ``not``.

    Raises:
        RuleError: a word is none.

    >>> split_words("k, cols:max"), split_words({"k": "mul"})
    ([('k', <Combiner.ADD: 'add'>), ('cols', <Combiner.MAX: 'max'>)], [('k', <Combiner.MUL: 'mul'>)])
    """
    if isinstance(reduction, Mapping):
        return [(name, parse_combiner(word)) for name, word in reduction.items()]
    items = _SPACED_COLON.sub(":", reduction).replace(",", " ").split() if isinstance(reduction, str) else reduction
    words = []
    for item in items:
        name, colon, word = item.partition(":")
        words.append((name, parse_combiner(word) if colon else Combiner.ADD))
    return words


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
