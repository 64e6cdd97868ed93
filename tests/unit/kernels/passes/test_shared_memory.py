"""Allocations of shared memory, and barriers that not all threads reach."""

from __future__ import annotations

import pytest

from shardy_py.errors import UnsupportedError
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.passes.shared_memory import LowerShared, check_barriers
from tests.unit.kernels.module_texts import after, function

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

TILE = function(
    """%r = scf.if %c -> (tensor<64xf32>) {
      %s = xla_gpu.allocate_shared : tensor<32x33xf32>
      %t = xla_gpu.allocate_shared : tensor<8xf32>
      scf.yield %o : tensor<64xf32>
    } else {
      scf.yield %o : tensor<64xf32>
    }"""
)


def test_allocations_stand_at_the_begin() -> None:
    """Tiles are allocated once, before any branch, in the order in which they were."""
    actual = after(TILE, LowerShared())
    places = [actual.index(text) for text in ("tensor<32x33xf32>", "tensor<8xf32>", "scf.if")]
    assert places == sorted(places)
    assert actual.count("allocate_shared") == 2


pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

MODULE = """builtin.module {{
  func.func @main(%n: index) attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 127 : index]}}
    %one = gpu.thread_id y {{xla.range = [0 : index, 0 : index]}}
    %bl = gpu.block_id x {{xla.range = [0 : index, 9 : index]}}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    {body}
    func.return
  }}
}}"""

IF = """%c = arith.cmpi slt, {value}, %c8 : index
    scf.if %c {{
      gpu.barrier
    }}"""

FOR = """scf.for %i = %c0 to {end} step %c1 {{
      gpu.barrier
    }}"""

CARRIED = """%last = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %c0) -> (index) {{
      %b = arith.addi %a, {value} : index
      scf.yield %b : index
    }}
    scf.for %i = %c0 to %last step %c1 {{
      gpu.barrier
    }}"""

CHOSEN = """%c = arith.cmpi slt, {value}, %c8 : index
    %end = scf.if %c -> (index) {{
      scf.yield %c1 : index
    }} else {{
      scf.yield %c8 : index
    }}
    scf.for %i = %c0 to %end step %c1 {{
      gpu.barrier
    }}"""

LOOP = """%r = xla_gpu.loop (%th)[%i] -> (%j) in
      #xla_gpu.indexing_map<"(d0)[s0] -> (d0 + s0), domain: d0 in [0, 127], s0 in [0, 3]{constraint}">
      iter_args(%a = %c0) -> (index) {{
      gpu.barrier
      xla_gpu.yield %a : index
    }}"""


def check(body: str) -> None:
    """Check the barriers of a module."""
    check_barriers(parse_kernel_module(MODULE.format(body=body)))


@pytest.mark.parametrize("value", ["%bl", "%n", "%one", "%c1"])
@pytest.mark.parametrize("body", [IF, FOR, CARRIED, CHOSEN])
def test_uniform_control(body: str, value: str) -> None:
    """Branches and loops that depend on the block, on arguments and on constants are the same for all threads."""
    check(body.format(value=value, end=value))


@pytest.mark.parametrize("body", [IF, FOR, CARRIED, CHOSEN])
def test_control_by_thread(body: str) -> None:
    """A branch or a loop that depends on the thread, however far away, is refused around a barrier."""
    with pytest.raises(UnsupportedError, match="depends on the thread") as caught:
        check(body.format(value="%th", end="%th"))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.op) == ("non-uniform-barrier", "gpu.barrier")


def test_loops_over_maps() -> None:
    """A loop over a map is the same for all threads unless the map has constraints."""
    check(LOOP.format(constraint=""))
    with pytest.raises(UnsupportedError, match="xla_gpu"):
        check(LOOP.format(constraint=", d0 + s0 in [0, 100]"))


def test_barriers_outside_of_branches() -> None:
    """A barrier behind a branch that depends on the thread is reached by all."""
    check(IF.format(value="%th").replace("gpu.barrier", "%x = arith.constant 3 : index") + "\n    gpu.barrier")


def test_all_places_are_named() -> None:
    """Every barrier in every branch around it is an error of its own."""
    with pytest.raises(UnsupportedError) as caught:
        check(IF.format(value="%th").replace("gpu.barrier", "gpu.barrier\n      gpu.barrier"))
    assert len(caught.value.diagnostics) == 2
