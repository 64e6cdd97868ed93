"""The choice of an emitter, and the launch."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")

import shardy_py as sdy
from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit
from shardy_py.kernels.device import H100, DeviceSpec
from shardy_py.kernels.fusion.choose import EmitterKind, choose
from shardy_py.kernels.fusion.reductions import canonical
from shardy_py.kernels.fusion.transposes import normalized, packed
from shardy_py.kernels.launch.grid import Launch, loop_map
from shardy_py.kernels.launch.launches import launch_of
from shardy_py.testing import assert_emits
from tests.unit.kernels.fusions import LOG_TRANSPOSE_ADD, NEGATE, SUM, TRANSPOSE, UPDATE, fusion_of


def emitted(text: str, device: DeviceSpec = H100) -> tuple[EmitterKind, tuple[int, ...], tuple[int, ...]]:
    """The emitter, the blocks and the threads of a fusion."""
    fusion = fusion_of(text)
    choice = choose(fusion, device)
    launch = launch_of(fusion, choice, device)
    return choice.kind, launch.blocks, launch.threads


@pytest.mark.parametrize(
    ("shape", "blocks", "threads"),
    [("270337", 2113, 128), ("270338", 1057, 128), ("9x9", 1, 81), ("6x512x4096", 24576, 128), ("129", 2, 128)],
)
def test_loops(shape: str, blocks: int, threads: int) -> None:
    """A loop has a thread per step, unrolled where there are more elements than the device has threads."""
    assert emitted(NEGATE.format(shape=shape)) == (EmitterKind.LOOP, (blocks, 1, 1), (threads, 1, 1))


def test_a_device_with_fewer_threads_unrolls_earlier() -> None:
    """The number of elements from which loops are unrolled is that of the device's threads."""
    small = DeviceSpec(name="small", cores=1)
    assert emitted(NEGATE.format(shape="4096"), small)[1] == (8, 1, 1)
    assert emitted(NEGATE.format(shape="4096"))[1] == (32, 1, 1)


@pytest.mark.parametrize(("size", "kind"), [(9, EmitterKind.LOOP), (512, EmitterKind.TRANSPOSE)])
def test_transposes_are_tiled_where_they_are_large(size: int, kind: EmitterKind) -> None:
    """A transpose decides over the fusion where its dimensions fill tiles."""
    assert emitted(LOG_TRANSPOSE_ADD.format(n=size))[0] is kind


@pytest.mark.parametrize(
    ("shape", "result", "dims", "dtype", "blocks"),
    [
        ("20x160x170", "170x160x20", "2, 1, 0", "f32", 960),
        ("1024x1024", "1024x1024", "1, 0", "bf16", 256),
        ("17x17", "17x17", "1, 0", "f32", 1),
    ],
)
def test_transposes(shape: str, result: str, dims: str, dtype: str, blocks: int) -> None:
    """A tiled transpose has a block per tile; elements of less than 32 bits are packed."""
    text = TRANSPOSE.format(shape=shape, result=result, dims=dims, dtype=dtype)
    assert emitted(text) == (EmitterKind.TRANSPOSE, (blocks, 1, 1), (128, 1, 1))


@pytest.mark.parametrize(
    ("shape", "dim", "result", "blocks", "threads"),
    [
        ("1024x4096", 1, "1024", 1024, 256),
        ("76800x16", 1, "76800", 2400, 256),
        ("2048x64", 0, "64", 1, 1024),
        ("2048x8", 0, "8", 1, 128),
    ],
)
def test_reductions(shape: str, dim: int, result: str, blocks: int, threads: int) -> None:
    """Rows, several rows a warp, columns and small columns have launches of their own."""
    text = SUM.format(shape=shape, dim=dim, result=result)
    assert emitted(text) == (EmitterKind.REDUCTION, (blocks, 1, 1), (threads, 1, 1))


def test_short_columns_are_loops() -> None:
    """A reduction of few elements that are far apart is left to the loop emitter."""
    assert emitted(SUM.format(shape="8x100", dim=0, result="100"))[0] is EmitterKind.LOOP


def test_updates_in_place() -> None:
    """A dynamic update writes in place if nothing else reads its operand at other places."""
    plain = emitted(UPDATE.format(read="", update="%u"))
    assert plain == (EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE, (1, 1, 1), (30, 1, 1))
    read = "%0 = stablehlo.slice %x [0:5, 0:6] : (tensor<20x30xf32>) -> tensor<5x6xf32>"
    assert emitted(UPDATE.format(read=read, update="%0"))[0] is EmitterKind.LOOP


def test_dynamic_shapes_are_refused() -> None:
    """A kernel takes tensors of static shapes only."""
    with pytest.raises(UnsupportedError, match="no-static-shape"):
        fusion_of(NEGATE.format(shape="?"))


def test_normal_forms() -> None:
    """Transposes lose dimensions of size one and merge neighbours; reductions have three dimensions."""
    assert normalized((1, 4, 5, 6), (0, 3, 1, 2), 32).shape == (20, 6)
    assert packed(normalized((1024, 1024), (1, 0), 32)) is None
    rows = canonical((4, 5, 6, 7), (2, 3))
    assert rows is not None
    assert (rows.is_row, rows.dims) == (True, (1, 20, 42))
    assert canonical((2, 3, 4, 5), (0, 2)) is None


def test_the_map_of_a_large_grid_has_a_second_dimension() -> None:
    """Blocks beyond what a device has along x go on along y."""
    map_ = loop_map(Launch((4, 3, 1), (2, 1, 1)), (24,))
    assert str(map_).startswith("(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> (bl_x * 2 + bl_y * 8 + th_x), domain")


@pytest.mark.parametrize(
    ("emission", "sign", "kind"),
    [
        ("x -> x", 1, EmitterKind.TRANSPOSE),
        (lambda b, op: b.operand(0), 1, EmitterKind.TRANSPOSE),
        ("x -> -x", -1, EmitterKind.LOOP),
        (lambda b, op: b.op("arith.negf", b.operand(0)), -1, EmitterKind.LOOP),
    ],
)
def test_what_moves_elements_and_computes_is_no_transpose(emission: Any, sign: int, kind: EmitterKind) -> None:
    """Elements go through tiles as they are: an op of a dialect that moves and computes is a loop."""
    pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
    odd = sdy.Dialect("odd")
    odd.op("odd.turn", indexing="(i, j) -> (j, i)", emission=emission)
    registry = sdy.Registry.of([odd])
    turned = [sdy.tensor(32, 40)]
    kernel = assert_emits("odd.turn", lambda x: sign * x.T, [(40, 32)], turned, registry=registry)
    assert kernel.choice.kind is kind


def transposes(count: int, element_type: str) -> str:
    """A module that transposes some tensors."""
    read, written = f"tensor<64x96x{element_type}>", f"tensor<96x64x{element_type}>"
    names = range(count)
    body = "".join(f"%r{n} = stablehlo.transpose %p{n}, dims = [1, 0] : ({read}) -> {written}\n" for n in names)
    arguments, types = ", ".join(f"%p{n}: {read}" for n in names), ", ".join([written] * count)
    results = ", ".join(f"%r{n}" for n in names)
    return f"func.func @main({arguments}) -> ({types}) {{\n{body} return {results} : {types}\n}}"


@pytest.mark.parametrize(("count", "element_type"), [(12, "f64"), (20, "f32")])
def test_tiles_that_do_not_fit_the_device(count: int, element_type: str) -> None:
    """Transposes whose tiles need more shared memory than the device has are a loop, in which each is read directly."""
    kernel = emit(fusion_of(transposes(count, element_type)))
    assert kernel.choice.kind is EmitterKind.LOOP
    assert "more than the 49152 of h100" in kernel.choice.reason
    assert emit(fusion_of(transposes(2, element_type))).choice.kind is EmitterKind.TRANSPOSE


def test_reductions_that_do_not_fit_the_device() -> None:
    """Column reductions whose tiles need more shared memory than the device has are refused."""
    count = 9
    read, written = "tensor<4096x256xf32>", "tensor<256xf32>"
    body = "".join(
        f"%r{n} = stablehlo.reduce(%p{n} init: %z) applies stablehlo.add across dimensions = [0]"
        f" : ({read}, tensor<f32>) -> {written}\n"
        for n in range(count)
    )
    arguments, types = ", ".join(f"%p{n}: {read}" for n in range(count)), ", ".join([written] * count)
    zero, results = "%z = stablehlo.constant dense<0.0> : tensor<f32>", ", ".join(f"%r{n}" for n in range(count))
    text = f"func.func @main({arguments}) -> ({types}) {{\n{zero}\n{body} return {results} : {types}\n}}"
    with pytest.raises(UnsupportedError, match="expected at most 49152 bytes of shared memory on h100, got 74880"):
        _ = emit(fusion_of(text)).stages


def test_a_thread_writes_all_elements_of_a_byte_of_every_root() -> None:
    """A thread of updates or of joined operands takes as many elements as a byte of the narrowest root has."""
    updates = emit(
        fusion_of("""
func.func @main(%x: tensor<64xf32>, %y: tensor<64xi4>, %u: tensor<6xf32>, %v: tensor<6xi4>, %i: tensor<i32>)
    -> (tensor<64xf32>, tensor<64xi4>) {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<64xf32>, tensor<6xf32>, tensor<i32>) -> tensor<64xf32>
  %1 = stablehlo.dynamic_update_slice %y, %v, %i : (tensor<64xi4>, tensor<6xi4>, tensor<i32>) -> tensor<64xi4>
  return %0, %1 : tensor<64xf32>, tensor<64xi4>
}""")
    )
    assert updates.choice.kind is EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE
    assert updates.launch == Launch((1, 1, 1), (3, 1, 1), 2)
    joined = emit(
        fusion_of("""
func.func @main(%x: tensor<6xi32>, %y: tensor<4xi32>) -> tensor<10xi4> {
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<6xi32>, tensor<4xi32>) -> tensor<10xi32>
  %1 = stablehlo.convert %0 : (tensor<10xi32>) -> tensor<10xi4>
  return %1 : tensor<10xi4>
}""")
    )
    assert joined.choice.kind is EmitterKind.CONCATENATE
    assert joined.launch == Launch((1, 1, 1), (3, 1, 1), 2)
