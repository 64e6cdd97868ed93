"""Every sharding of a program is checked, each problem with its place."""

import pytest

from shardy_py.errors import VerificationError
from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.verify_shardings import diagnose_shardings, verify_shardings
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding

T = tensor(8, 8)


def sharding(*dims, mesh="mesh", **others):
    """Return a sharding with one tuple of axis names per dimension."""
    return TensorSharding(mesh, tuple(DimensionSharding(tuple(map(AxisRef, dim))) for dim in dims), **others)


def program(result_sharding):
    """Return a program of one op whose result has the given sharding."""
    b = Builder(mesh=Mesh.of(x=2, y=2))
    with b.function("main", [T]) as (value,):
        result = b.op("toy.neg", [value], [T])
        b.program.shardings[result.id] = result_sharding
        b.return_(result)
    return b.program


def test_a_right_sharding_is_right():
    """Nothing is said about what is as it should be."""
    assert list(diagnose_shardings(program(sharding(("x",), ("y",))))) == []


@pytest.mark.parametrize(
    ("result_sharding", "code"),
    [
        (sharding(("x",), ("x",)), "duplicate-axis"),
        (sharding(("z",), ()), "unknown-axis"),
        (sharding(("x",)), "sharding-rank"),
        (sharding((), (), mesh="other"), "unknown-mesh"),
        (sharding(("x",), (), unreduced_axes=(AxisRef("x"),)), "duplicate-axis"),
    ],
)
def test_what_is_wrong_is_said_with_the_op(result_sharding, code):
    """A sharding that its mesh or its value does not allow is named with the op and the result."""
    with pytest.raises(VerificationError) as caught:
        verify_shardings(program(result_sharding))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.op) == (code, "toy.neg")
    assert diagnostic.message.startswith("result 0: ")


def test_arguments_and_function_results_are_checked():
    """So are arguments of functions and their results."""
    b = Builder(mesh=Mesh.of(x=2))
    with b.function("main", [T]) as (value,):
        b.return_(value)
    function = b.program.functions["main"]
    for entry in (value, function.function_results[0]):
        b.program.shardings[entry.id] = sharding(("x",), ("x",))
    assert [item.message[:10] for item in diagnose_shardings(b.program)] == ["argument 0", "result 0: "]
