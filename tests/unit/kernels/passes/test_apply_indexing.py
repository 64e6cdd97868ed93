"""Index expressions of passes as maps of the values that they use."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from xdsl.dialects import builtin
from xdsl.ir import Block

from shardy_py.indexing import Bound, IndexingMap, Interval
from shardy_py.kernels.passes import apply_indexing
from shardy_py.kernels.passes.apply_indexing import AffineValue, single_map


def test_unused_variables_take_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simplifying one of many indices costs no more for the others; what was given of equal values is met."""
    sizes: list[int] = []
    simplify = apply_indexing.simplify

    def counted(map_: IndexingMap) -> IndexingMap:
        sizes.append(len(map_.dims))
        return simplify(map_)

    monkeypatch.setattr(apply_indexing, "simplify", counted)
    values = Block(arg_types=[builtin.IndexType()] * 50).args
    affine = AffineValue()
    variables = [affine.variable(value, Bound(Interval(0, 9))) for value in values]
    assert affine.variable(values[7], Bound(Interval(3, 20))) == variables[7]
    map_, operands = single_map(variables[7] + 1, affine)
    assert (str(map_), operands) == ("(d0) -> (d0 + 1), domain: d0 in [3, 9]", [values[7]])
    assert max(sizes) == 1
