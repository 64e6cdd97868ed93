"""Bytes on a device with the layout of a policy."""

from __future__ import annotations

import pytest

from shardy_py.cost.memory import device_shape, padded_tensor_bytes, policy_of
from shardy_py.errors import OptionError
from shardy_py.ir.graph.types import OpaqueType, tensor
from shardy_py.layout import ROW_MAJOR, TPU_V5E
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding

MESH = Mesh.of(a=4, b=3)


def test_the_shard_decides_the_layout() -> None:
    """The layout is chosen for the local shape: the compiler divides the program before it chooses layouts."""
    sharding = parse_tensor_sharding('<@mesh, [{"a"}, {"b"}]>')
    assert str(device_shape(tensor(20, 3), sharding, MESH, TPU_V5E)) == "f32[5,1]{0,1:T(1,128)}"
    assert padded_tensor_bytes(tensor(20, 3), sharding, MESH, TPU_V5E) == 512
    assert padded_tensor_bytes(tensor(20, 3), sharding, MESH, ROW_MAJOR) == 20
    assert padded_tensor_bytes(tensor(3, 3, dtype="i4"), None, None, ROW_MAJOR) == 5


@pytest.mark.parametrize("type_", [OpaqueType("!stablehlo.token"), tensor(None, 2), tensor(2, dtype="!toy.t")])
def test_unknown_sizes(type_: object) -> None:
    """A type whose size is not known takes no known number of bytes."""
    assert padded_tensor_bytes(type_, None, None, TPU_V5E) is None  # type: ignore[arg-type]


def test_policies_by_name() -> None:
    """A policy is given by its name or as a value."""
    assert policy_of("tpu-v5e") is TPU_V5E
    assert policy_of(ROW_MAJOR) is ROW_MAJOR
    with pytest.raises(OptionError, match="tpu-v5e, row-major"):
        policy_of("gpu")


def test_results_report_memory() -> None:
    """A result tells what each input and output takes on a device, and which of them have no known size."""
    pytest.importorskip("jaxlib", reason="the program is MLIR")
    from shardy_py import propagate

    text = """
    sdy.mesh @mesh = <["a"=4, "b"=3]>
    func.func @main(%arg0: tensor<20x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                    %arg1: !stablehlo.token) -> tensor<20x3xf32> {
      return %arg0 : tensor<20x3xf32>
    }"""
    result = propagate(text).memory("tpu-v5e")
    (argument,) = result.arguments
    assert (argument.logical_bytes, argument.shard_bytes, argument.padded_bytes) == (240, 20, 512)
    assert (argument.wasted_bytes, argument.memory_space) == (492, "HBM")
    assert argument.waste == pytest.approx(492 / 512)
    assert [item.name for item in result.results] == ["result0"]
    assert result.unknown == ("arg1",)
