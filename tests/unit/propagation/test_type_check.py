"""Check of the types that can be sharded."""

from __future__ import annotations

import pytest

from shardy_py.errors import UnsupportedError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import OpaqueType, tensor
from shardy_py.propagation.type_check import check_types
from shardy_py.sharding import Mesh
from tests.unit.propagation.toy import propagate

T = tensor(8, 8)


@pytest.mark.parametrize(
    ("type_", "fragment"),
    [
        (tensor(None, 8), "static shape"),
        (OpaqueType("tuple<tensor<8xf32>>"), "tuples"),
        (OpaqueType("tensor<*xf32>"), "ranked tensors"),
    ],
)
def test_types_that_cannot_be_sharded_are_refused(type_: object, fragment: str) -> None:
    """Dynamic shapes, unranked tensors and tuples are errors that name the op."""
    b = Builder(mesh=Mesh.of(a=2))
    with b.function("main", [T]) as (x,):
        b.op("toy.odd", [x], [type_])
        b.return_(x)
    with pytest.raises(UnsupportedError, match=fragment) as caught:
        propagate(b)
    assert caught.value.diagnostics[0].op == "toy.odd"


def test_every_op_with_such_a_type_is_listed() -> None:
    """One error names all ops, in program order, each as often as it has such results."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        b.op("toy.odd", [x], [tensor(None), T, tensor(None)])
        b.op("toy.even", [x], [T])
        b.op("toy.strange", [x], [OpaqueType("tuple<tensor<8xf32>>")])
        b.return_(x)
    with pytest.raises(UnsupportedError) as caught:
        check_types(b.program)
    assert [item.op for item in caught.value.diagnostics] == ["toy.odd", "toy.odd", "toy.strange"]


def test_arguments_are_checked_where_it_is_asked_for() -> None:
    """The reference leaves an argument of a dynamic shape without a sharding; the check may refuse it."""
    b = Builder()
    with b.function("main", [tensor(None, 8)]) as (x,):
        b.return_(x)
    check_types(b.program)
    with pytest.raises(UnsupportedError, match="argument 0: ") as caught:
        check_types(b.program, arguments=True)
    assert caught.value.diagnostics[0].op == "func.func"
