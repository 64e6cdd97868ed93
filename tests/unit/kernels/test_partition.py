"""The partition of fusions into functions."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")

from shardy_py.ir.graph.program import Op
from shardy_py.kernels.device import H100
from shardy_py.kernels.fusion.choose import choose
from shardy_py.kernels.partition import partition
from tests.unit.kernels.fusions import ADD_SLICE_PAD, LOG_TRANSPOSE_ADD, NEGATE, fusion_of


def functions(text: str) -> list[list[str]]:
    """The ops of every function that is emitted; parameters by their number."""
    fusion = fusion_of(text)
    actual = partition(fusion, choose(fusion, H100)).emitted(fusion)
    return [
        [node.name.partition(".")[2] if isinstance(node, Op) else f"arg{node.index}" for node in function.nodes]
        for function in actual
    ]


def test_one_function_where_all_is_read_at_one_place() -> None:
    """Ops that are read at one place join their user."""
    assert functions(NEGATE.format(shape="9")) == [["arg0", "negate"]]


def test_two_functions_where_an_op_is_read_at_two_places() -> None:
    """What a transpose and an add read at different indices is a function of its own."""
    actual = functions(LOG_TRANSPOSE_ADD.format(n=9))
    assert sorted(actual) == [["arg0", "log"], ["transpose", "add"]]


def test_heroes_and_their_operands_have_functions_of_their_own() -> None:
    """The transpose emitter makes the transpose and its operand roots of functions."""
    assert sorted(functions(LOG_TRANSPOSE_ADD.format(n=512))) == [["add"], ["arg0", "log"], ["transpose"]]


def test_constraints_tell_maps_apart() -> None:
    """An op that a pad reads at the same index, but only inside its bounds, is read by two maps."""
    actual = functions(ADD_SLICE_PAD)
    assert len(actual) == 2
    assert [nodes[-1] for nodes in actual] == ["multiply", "add"]


def test_names_are_identifiers_and_functions_are_found() -> None:
    """Every op is in the function that the partition says, and every name is an identifier."""
    fusion = fusion_of(ADD_SLICE_PAD)
    actual = partition(fusion, choose(fusion, H100))
    for function in actual.functions:
        assert function.name.isidentifier()
        assert all(actual.function_of(node) is function for node in function.nodes)


def test_slices_at_starts_of_their_own_read_at_two_places() -> None:
    """What two slices read at different run-time starts is a function of its own; at one start it is not."""
    chain = """
func.func @main(%x: tensor<9xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<5xf32> {
  %0 = stablehlo.negate %x : tensor<9xf32>
  %1 = stablehlo.dynamic_slice %0, %i, sizes = [5] : (tensor<9xf32>, tensor<i32>) -> tensor<5xf32>
  %2 = stablehlo.dynamic_slice %0, OTHER, sizes = [5] : (tensor<9xf32>, tensor<i32>) -> tensor<5xf32>
  %3 = stablehlo.add %1, %2 : tensor<5xf32>
  return %3 : tensor<5xf32>
}"""
    same, other = functions(chain.replace("OTHER", "%i")), functions(chain.replace("OTHER", "%j"))
    assert ["arg0", "negate"] in other
    assert not any("negate" in function and len(function) < 5 for function in same)
