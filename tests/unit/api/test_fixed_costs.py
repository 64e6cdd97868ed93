"""What a run costs whatever the size of its program."""

import sys

import pytest

import shardy_py as sdy

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

ONE_OP = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def calls_of(run: object) -> int:
    """Return how many Python functions a call enters."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        run()  # type: ignore[operator]
    finally:
        sys.setprofile(None)
    return count


def test_a_program_of_one_op_costs_little() -> None:
    """A run of one op enters fewer than 2,500 functions; looking for plugins alone entered 50,000."""
    sdy.propagate(ONE_OP)
    assert calls_of(lambda: sdy.propagate(ONE_OP).text) < 2_500
