"""Errors of passes that finish name a place, be it that of the op before one that a pass made."""

import pytest

import shardy_py as sdy
from shardy_py.errors import VerificationError

pytest.importorskip("jaxlib", reason="the program is written in MLIR")

PARTIAL = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"a"}>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"b"}>}) {
  %0 = sdy.sharding_constraint %x <@mesh, [{}, {}], unreduced={"b"}> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_a_reshard_that_a_pass_made_has_a_place():
    """It stands where the constraint stood that it was made of, or behind the op before that."""
    with pytest.raises(VerificationError) as caught:
        sdy.propagate(PARTIAL, explicit_collectives=True)
    assert all(item.location.startswith("-:") for item in caught.value.diagnostics)
