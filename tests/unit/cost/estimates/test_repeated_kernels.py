"""What several kernels compute, each for itself; the figures are those of jaxlib 0.10.2 for programs of one device."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.session import Session

T = "tensor<64x64xf32>"
PRODUCT = 2 * 64**3
ELEMENTS = 64 * 64
HEAD = f"""
func.func @main(%x: {T}, %z: {T}, %w: {T}, %r: tensor<64xf32>) -> ({T}, {T}) {{
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %two = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {T}
  %row = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<64xf32>) -> {T}
"""
USE = f"%p = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}"


def _cost(text):
    return Session.open(text).evaluate(profile="xla-cpu", partitioner="xla").cost


def _shared(producer, use=USE, returned="%p"):
    """Return the cost of a program that stores the made value %y, and has a kernel of hyperbolic tangents of it."""
    return _cost(f"{HEAD}  {producer}\n  {use}\n  %t = stablehlo.tanh %y : {T}\n  return {returned}, %t : {T}, {T}\n}}")


@pytest.mark.parametrize(
    ("producer", "flops", "bytes_accessed"),
    [
        (f"%y = stablehlo.multiply %x, %two : {T}", 532480, 114704),
        (f"%y = stablehlo.add %x, %row : {T}", 532480, 115216),
        (f"%y = stablehlo.multiply %x, %z : {T}", 528384, 131088),
        (f"%a = stablehlo.multiply %x, %z : {T}\n  %y = stablehlo.multiply %a, %two : {T}", 540672, 147472),
        (f"%y = stablehlo.divide %x, %z : {T}", 528384, 131088),
        (f"%y = stablehlo.sine %x : {T}", 524288, 114704),
        (f"%y = stablehlo.exponential %x : {T}", 524288, 114704),
    ],
)
def test_what_is_stored_for_one_user_is_computed_again_by_another_where_it_reads_little(
    producer, flops, bytes_accessed
):
    """A product needs its operand in memory; a kernel computes it again from one tensor, not from two."""
    cost = _shared(producer)
    assert cost.flops.value == flops
    assert cost.memory_traffic_bytes.value == pytest.approx(bytes_accessed, abs=20)


def test_sines_are_computed_again_and_exponentials_are_not():
    """XLA counts both sines of each element, and one exponential, besides the hyperbolic tangents."""
    assert _shared(f"%y = stablehlo.sine %x : {T}").transcendentals.value == 3 * ELEMENTS
    assert _shared(f"%y = stablehlo.exponential %x : {T}").transcendentals.value == 2 * ELEMENTS


def test_what_is_returned_is_computed_again():
    """The result of the program is one kernel, the hyperbolic tangents of it are another one."""
    assert _shared(f"%y = stablehlo.multiply %x, %two : {T}", "", "%y").flops.value == 2 * ELEMENTS
    assert _shared(f"%y = stablehlo.multiply %x, %z : {T}", "", "%y").flops.value == ELEMENTS


def _rotated(name, source, dim, by):
    """Return text that rotates a square by one place along a dimension."""
    size = 1 if by < 0 else 63
    bounds = [["0:64", "0:64"], ["0:64", "0:64"]]
    bounds[0][dim], bounds[1][dim] = f"{size}:64", f"0:{size}"
    types = [[64, 64], [64, 64]]
    types[0][dim], types[1][dim] = 64 - size, size
    parts = [f"tensor<{rows}x{columns}xf32>" for rows, columns in types]
    lines = [
        f"%{name}{number} = stablehlo.slice %{source} [{', '.join(bounds[number])}] : ({T}) -> {parts[number]}"
        for number in (0, 1)
    ]
    joined = f"%{name} = stablehlo.concatenate %{name}0, %{name}1, dim = {dim} : ({parts[0]}, {parts[1]}) -> {T}"
    return "\n".join((*lines, joined))


def _smoothed(steps):
    """Return a program that takes sums of neighbours, less four times the middle, several times."""
    lines, source = [], "x"
    for step in range(steps):
        places = [(dim, by) for dim in (0, 1) for by in (1, -1)]
        for number, (dim, by) in enumerate(places):
            lines.append(_rotated(f"s{step}r{number}", source, dim, by))
        lines.append(f"%s{step}a0 = stablehlo.add %s{step}r0, %s{step}r1 : {T}")
        lines.append(f"%s{step}a1 = stablehlo.add %s{step}a0, %s{step}r2 : {T}")
        lines.append(f"%s{step}a2 = stablehlo.add %s{step}a1, %s{step}r3 : {T}")
        lines.append(f"%s{step}m = stablehlo.multiply %four, %{source} : {T}")
        lines.append(f"%s{step} = stablehlo.subtract %s{step}a2, %s{step}m : {T}")
        source = f"s{step}"
    constant = "%c = stablehlo.constant dense<4.0> : tensor<f32>\n%four = stablehlo.broadcast_in_dim %c, dims = []"
    head = f"func.func @main(%x: {T}) -> {T} {{\n{constant} : (tensor<f32>) -> {T}\n"
    return f"{head}{chr(10).join(lines)}\nreturn %{source} : {T}\n}}"


@pytest.mark.parametrize(
    ("steps", "flops", "bytes_accessed"), [(1, 20480, 98304), (2, 40960, 229376), (3, 143360, 688128)]
)
def test_rotations_are_stored_where_kernels_would_read_them_at_several_places(steps, flops, bytes_accessed):
    """What joins parts is no part of a kernel that reads it twice, nor is what is read at more than 15 places."""
    cost = _cost(_smoothed(steps))
    assert (cost.flops.value, cost.memory_traffic_bytes.value) == (flops, bytes_accessed)


def _joined(count, columns, dim):
    part_type, rows = f"tensor<8x{columns}xf32>", 8 * count if dim == 0 else 8
    wide_type = f"tensor<{rows}x{columns if dim == 0 else columns * count}xf32>"
    negated = "\n".join(f"%n{i} = stablehlo.negate %x{i} : {part_type}" for i in range(count))
    names, types = ", ".join(f"%n{i}" for i in range(count)), ", ".join([part_type] * count)
    arguments = ", ".join(f"%x{i}: {part_type}" for i in range(count))
    joined = f"%y = stablehlo.concatenate {names}, dim = {dim} : ({types}) -> {wide_type}"
    return _cost(f"func.func @main({arguments}) -> {wide_type} {{\n{negated}\n{joined}\nreturn %y : {wide_type}\n}}")


@pytest.mark.parametrize(("count", "columns", "dim"), [(8, 16, 0), (2, 63, 1), (2, 128, 0)])
def test_a_few_tensors_are_joined_in_the_kernel_that_makes_them(count, columns, dim):
    """All is read once and written once."""
    assert _joined(count, columns, dim).memory_traffic_bytes.value == 2 * 4 * count * 8 * columns


@pytest.mark.parametrize(("count", "columns", "dim"), [(9, 16, 0), (2, 64, 1)])
def test_many_tensors_and_long_rows_are_joined_by_copies(count, columns, dim):
    """All is written and read once more: from nine tensors, and from 128 elements of a row on."""
    assert _joined(count, columns, dim).memory_traffic_bytes.value == 4 * 4 * count * 8 * columns


def test_a_slice_of_all_and_a_tensor_joined_with_nothing_are_what_they_were():
    """As ``jnp.roll`` makes them of dimensions that it does not rotate."""
    text = f"""
func.func @main(%x: {T}) -> {T} {{
  %0 = stablehlo.slice %x [0:64, 0:64] : ({T}) -> {T}
  %1 = stablehlo.slice %x [0:0, 0:64] : ({T}) -> tensor<0x64xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : ({T}, tensor<0x64xf32>) -> {T}
  %3 = stablehlo.add %2, %x : {T}
  return %3 : {T}
}}"""
    assert _cost(text).memory_traffic_bytes.value == 2 * 4 * ELEMENTS
