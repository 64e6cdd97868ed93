"""Elements and bytes in memory."""

from __future__ import annotations

import pytest

from shardy_py.errors import VerificationError
from shardy_py.layout import array_size, footprint, padded_bytes, padded_elements, parse_array, parse_shape, shard_shape
from shardy_py.support.element_types import mlir_element_bits, xla_element_type


@pytest.mark.parametrize(
    ("text", "elements", "size"),
    [
        ("f32[3,5]{1,0:T(2,2)}", 24, 96),
        ("f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}", 12432, 49728),
        ("bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}", 167772160, 335544320),
        ("s4[64,128]{1,0:T(64,128)(8,1)E(4)}", 8192, 4096),
        ("f32[6,4,5]{0,2,1:T(2,3)}", 144, 576),
        ("f32[10]{0:L(16)}", 16, 64),
        ("f32[0,3]{1,0:T(2,2)}", 0, 0),
        ("u32[]{:T(128)}", 128, 512),
        ("s4[3]", 3, 3),
        ("s4[3]{0:E(4)}", 3, 2),
        ("pred[9]", 9, 9),
        ("c128[2]", 2, 32),
        ("f32[<=4,2]", 8, 32),
    ],
)
def test_exact_bytes(text: str, elements: int, size: int) -> None:
    """Every tile pads, then the tail; an element takes the bits the layout says, else whole bytes."""
    shape = parse_array(text)
    assert (padded_elements(shape), padded_bytes(shape)) == (elements, size)


def test_the_two_sizes_differ() -> None:
    """XLA's own count leaves out what all tiles but the first pad, and counts the largest piece of a split."""
    deep = parse_array("f32[4,4]{1,0:T(2,2)(3,1,1,1)}")
    assert (padded_elements(deep), padded_bytes(deep), array_size(deep)) == (24, 96, 64)
    split = parse_array("f32[8,128]{1,0:T(8,128)SC(1:100)}")
    assert (padded_bytes(split), array_size(split)) == (4096, 4096)
    assert array_size(parse_array("f32[16,128]{1,0:T(8,128)SC(0:8)}")) == 4096


def test_footprint() -> None:
    """Waste is what padding takes; a tuple takes what its arrays take, a token nothing."""
    actual = footprint(parse_shape("(f32[3,5]{1,0:T(2,2)}, token[], (s4[3]))"))
    assert (actual.elements, actual.logical_bytes, actual.padded_elements, actual.padded_bytes) == (18, 62, 27, 99)
    assert actual.wasted_bytes == 37
    assert actual.waste == pytest.approx(37 / 99)
    assert footprint(parse_shape("f32[0]")).waste == 0


def test_unbounded_sizes_have_no_bytes() -> None:
    """Memory cannot be laid out for a dimension without a bound."""
    with pytest.raises(VerificationError, match="dimension 1 of f32"):
        padded_bytes(parse_shape("f32[4,?]"))


@pytest.mark.parametrize(
    ("order", "counts", "size"),
    [
        ("{0,1:T(8,128)}", (1, 1), 1245184),
        ("{0,1:T(8,128)}", (2, 1), 622592),
        ("{0,1:T(8,128)}", (1, 4), 327680),
        ("{0,1:T(8,128)}", (2, 4), 163840),
        ("{0,1:T(8,128)}", (8, 1), 155648),
        ("{1,0:T(8,128)}", (2, 4), 258048),
    ],
)
def test_shards(order: str, counts: tuple[int, int], size: int) -> None:
    """A shard keeps the layout; the order of dimensions decides how much of it is padding."""
    assert padded_bytes(shard_shape(parse_array(f"f32[1000,300]{order}"), counts)) == size


def test_shards_of_dynamic_sizes() -> None:
    """Bounds are divided, unbounded sizes stay unbounded."""
    assert str(shard_shape(parse_array("f32[<=5,?,0]{0,1,2:S(1)}"), (2, 2, 2))) == "f32[<=3,?,0]{0,1,2:S(1)}"


@pytest.mark.parametrize("counts", [(2,), (2, 0), (1, 2, 3)])
def test_bad_counts(counts: tuple[int, ...]) -> None:
    """There is one positive count per dimension."""
    with pytest.raises(VerificationError):
        shard_shape(parse_array("f32[4,4]"), counts)


@pytest.mark.parametrize(
    ("name", "bits", "xla"),
    [
        ("f64", 64, "f64"),
        ("bf16", 16, "bf16"),
        ("i1", 8, "pred"),
        ("i4", 4, "s4"),
        ("ui2", 2, "u2"),
        ("si8", 8, "s8"),
        ("index", 64, "s64"),
        ("tf32", 32, "f32"),
        ("f8E5M2", 8, "f8e5m2"),
        ("f8E4M3B11FNUZ", 8, "f8e4m3b11fnuz"),
        ("f4E2M1FN", 4, "f4e2m1fn"),
        ("f6E2M3FN", 6, None),
        ("complex<f32>", 64, "c64"),
        ("!quant.uniform<i8:f32, 2.0>", 8, "s8"),
        ("!toy.number", None, None),
    ],
)
def test_element_types(name: str, bits: int | None, xla: str | None) -> None:
    """Each element type of MLIR has its width in memory and its name in XLA; unknown ones have none."""
    assert mlir_element_bits(name) == bits
    assert xla_element_type(name) == xla
