"""Operands in which operators of PyTorch take partial results, so that their result is partial, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from shardy_py.ir.graph.program import Op
from shardy_py.sharding.combiner import Combiner

_Groups = Sequence[Collection[int]]
_BOTH, _EACH, _FIRST = ((0, 1),), ((0,), (1,)), ((0,),)
_MOVING: Mapping[str, _Groups] = dict.fromkeys(
    (
        *("aten.clone.default", "aten.expand.default", "aten.permute.default", "aten.reshape.default"),
        "aten.t.default",
        *("aten.transpose.int", "aten.unsqueeze.default", "aten.view.default", "aten._unsafe_view.default"),
        *("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.slice.Tensor", "aten.alias.default"),
        *("aten.select.int", "aten.flip.default", "aten.roll.default", "aten.gather.default"),
        *("aten.index_select.default", "aten.detach.default"),
    ),
    _FIRST,
)
"""Operators that move elements, which is the same before and after they are combined."""
_WITH_ZEROS: Mapping[str, _Groups] = dict.fromkeys(
    ("aten.select_backward.default", "aten.slice_backward.default", "aten.tril.default", "aten.triu.default"), _FIRST
)
"""Operators that put elements among zeros, which sums of them keep."""
_SUMS = frozenset(("aten.add.Tensor", "aten.sub.Tensor", "aten.add.Scalar", "aten.sub.Scalar"))
_DISTRIBUTING: Mapping[Combiner, Mapping[str, _Groups]] = {
    Combiner.ADD: {
        **_MOVING,
        **_WITH_ZEROS,
        **dict.fromkeys(("aten.add.Tensor", "aten.sub.Tensor"), _BOTH),
        **dict.fromkeys(("aten.bmm.default", "aten.matmul.default", "aten.mm.default", "aten.mul.Tensor"), _EACH),
        **dict.fromkeys(("aten.div.Tensor", "aten.mul.Scalar", "aten.div.Scalar", "aten.neg.default"), _FIRST),
        **dict.fromkeys(("aten.sum.default", "aten.sum.dim_IntList"), _FIRST),
    },
    Combiner.MAX: {**_MOVING, "aten.maximum.default": _BOTH},
    Combiner.MIN: {**_MOVING, "aten.minimum.default": _BOTH},
}


def partial_operands(op: Op, combiner: Combiner) -> _Groups:
    """Return the groups of operands in which an operator may take partial results of a combiner.

    A number in the place of a tensor is not an operand: a sum with it is not linear unless it is 0, with which Python's
    `sum` begins; a product is.
    """
    groups = _DISTRIBUTING.get(combiner, {}).get(op.name, ())
    count = len(op.operands)
    if op.name in _SUMS and count == 1 and combiner is Combiner.ADD:
        groups = _FIRST if op.attributes.get("other") == 0 else ()
    elif groups is _BOTH and count < 2:
        return ()
    return tuple(group for group in groups if max(group) < count and _is_float(op, group))


def _is_float(op: Op, group: Collection[int]) -> bool:
    """Return whether an operator makes no integers of some operands, and no wider type; others may be indices."""
    values = (*(op.operands[number] for number in group), *op.results)
    return all(getattr(value.type, "element_type", "").startswith(("f", "bf")) for value in values)
