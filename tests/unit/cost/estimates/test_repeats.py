"""Ops whose code would stand in a kernel too often, and ops that are what they read.

The numbers are those of XLA:CPU of jaxlib 0.10.2 for the same programs.
"""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session

ROW = 4 * 32


def _cost(text, profile="xla-cpu"):
    return Session.open(text).evaluate(profile=profile, partitioner="xla").cost


def _joined(second):
    return f"""
func.func @main(%a: tensor<64x32xf32>, %b: tensor<64x32xf32>) -> tensor<128x32xf32> {{
  %n = stablehlo.negate %a : tensor<64x32xf32>
  %0 = stablehlo.concatenate %n, %b, dim = 0 : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<128x32xf32>
  %1 = stablehlo.exponential %0 : tensor<128x32xf32>
  %2 = {second} : tensor<128x32xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<128x32xf32>
  return %3 : tensor<128x32xf32>
}}"""


@pytest.mark.parametrize(
    ("second", "profile", "rows"),
    [
        ("stablehlo.cosine %0", "xla-cpu", 4 * 128),
        ("stablehlo.cosine %1", "xla-cpu", 2 * 128),
        ("stablehlo.cosine %0", "none", 2 * 128),
    ],
)
def test_joined_tensors_are_stored_where_two_ops_of_a_kernel_read_them(second, profile, rows):
    """The branches would stand there twice; with one reader they are part of the kernel."""
    assert _cost(_joined(second), profile).memory_traffic_bytes.value == rows * ROW


def _tower(levels):
    """Return a program whose levels each multiply the level below with itself moved by two places."""
    size = 256
    lines = ["  %x0 = stablehlo.add %a, %b : tensor<256xf32>"]
    for level in range(1, levels + 1):
        below, size = size, size - 2
        slices = (("l", f"[0:{size}]"), ("r", f"[2:{below}]"))
        lines += [
            f"  %{name}{level} = stablehlo.slice %x{level - 1} {place} : (tensor<{below}xf32>) -> tensor<{size}xf32>"
            for name, place in slices
        ]
        lines.append(f"  %x{level} = stablehlo.multiply %l{level}, %r{level} : tensor<{size}xf32>")
    head = f"func.func @main(%a: tensor<256xf32>, %b: tensor<256xf32>) -> tensor<{size}xf32> {{"
    return "\n".join((head, *lines, f"  return %x{levels} : tensor<{size}xf32>", "}"))


@pytest.mark.parametrize(("levels", "moved"), [(3, 3048), (4, 6096), (6, 6032)])
def test_what_a_kernel_would_compute_at_more_than_fifteen_places_is_stored(levels, moved):
    """Each level doubles the places of the one below: the sum at the bottom of four has sixteen."""
    assert _cost(_tower(levels)).memory_traffic_bytes.value == moved


def test_a_rotation_by_nothing_is_no_op():
    """`jnp.roll` by 0 slices everything and joins it with nothing."""
    cost = _cost("""
func.func @main(%a: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %n = stablehlo.negate %a : tensor<64x32xf32>
  %0 = stablehlo.slice %n [0:64, 0:32] : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %1 = stablehlo.slice %n [0:0, 0:32] : (tensor<64x32xf32>) -> tensor<0x32xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<64x32xf32>, tensor<0x32xf32>) -> tensor<64x32xf32>
  %3 = stablehlo.exponential %2 : tensor<64x32xf32>
  %4 = stablehlo.cosine %2 : tensor<64x32xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<64x32xf32>
  return %5 : tensor<64x32xf32>
}""")
    assert cost.memory_traffic_bytes.value == 2 * 64 * ROW
