"""Last trips that alone have a constraint."""

from __future__ import annotations

import numpy as np
import pytest

from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes.loops import PeelLoops
from tests.unit.kernels.module_texts import after, run

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

LOOP = """func.func @main(%x: tensor<SIZExf32>, %o: tensor<SIZExf32>) -> tensor<SIZExf32> attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %r = xla_gpu.loop (%t)[%s] -> (%p) in #xla_gpu.indexing_map<"(t)[s] -> (s * 32 + t), "
      "domain: t in [0, 31], s in [0, LAST], s * 32 + t in [0, BOUND]"> iter_args(%a = %o) -> (tensor<SIZExf32>) {
    %v = tensor.extract %x[%p] : tensor<SIZExf32>
    %w = tensor.insert %v into %a[%p] : tensor<SIZExf32>
    xla_gpu.yield %w : tensor<SIZExf32>
  }
  func.return %r : tensor<SIZExf32>
}"""


def loop(size: int, trips: int) -> str:
    """A loop of 32 threads over some elements."""
    return LOOP.replace("SIZE", str(size)).replace("LAST", str(trips - 1)).replace("BOUND", str(size - 1))


def test_the_last_trip_is_split_off() -> None:
    """The first loop has no constraint and one trip less; both together do what one did."""
    text = loop(100, 4)
    actual = after(text, PeelLoops())
    first, second = [line for line in actual.splitlines() if "xla_gpu.loop" in line]
    assert "s in [0, 2]" in first
    assert "s * 32" not in first.split("domain")[1]
    assert "t in [0, 3]" in second
    x = np.arange(100, dtype=np.float32)
    for each in (text, actual):
        np.testing.assert_array_equal(run(each, x, launch=Launch((1, 1, 1), (32, 1, 1))), x)


@pytest.mark.parametrize(("size", "trips"), [(128, 4), (100, 5)])
def test_other_loops_stay(size: int, trips: int) -> None:
    """A loop without a constraint, or with two trips that need it, is not split."""
    assert after(loop(size, trips), PeelLoops()).count("xla_gpu.loop") == 1


def test_many_trips_inside_stop_the_splitting() -> None:
    """A loop of any length is split, but for one around 64 trips, whose body would be there twice."""
    assert after(loop(3000, 94), PeelLoops()).count("xla_gpu.loop") == 2
    nested = loop(100, 4).replace("[%s]", "[%s, %u]").replace("[s]", "[s, u]")
    for trips, loops in ((63, 2), (64, 1)):
        text = nested.replace("s in [0, 3], ", f"s in [0, 3], u in [0, {trips - 1}], ")
        assert after(text, PeelLoops()).count("xla_gpu.loop") == loops
