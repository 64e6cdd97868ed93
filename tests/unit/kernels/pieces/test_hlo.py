"""Fusions in HLO text: with and without a fusion instruction, and in layouts that are not row-major."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="HLO is read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit, read_fusion, read_fusions

COLUMN_MAJOR = """HloModule m
fused {
  p0 = f32[4,6]{0,1} parameter(0)
  n = f32[4,6]{0,1} negate(p0)
  b = f32[6,4]{1,0} bitcast(n)
  c = f32[4,6]{1,0} copy(n)
  d = f32[6,4]{1,0} add(b, b)
  ROOT t = (f32[6,4]{1,0}, f32[4,6]{1,0}, f32[4,6]{0,1}) tuple(d, c, n)
}
ENTRY e {
  p0 = f32[4,6]{0,1} parameter(0)
  q = f32[4,6]{0,1} abs(p0)
  f.1 = (f32[6,4]{1,0}, f32[4,6]{1,0}, f32[4,6]{0,1}) fusion(q), kind=kLoop, calls=fused
  h = f32[4,6]{1,0} get-tuple-element(f.1), index=1
  ROOT s = f32[4,6]{1,0} sine(h)
}
"""

FLAT = """HloModule wrapped_add.1, entry_computation_layout={(f32[4,6]{0,1})->f32[4,6]{0,1}}
ENTRY e {
  p0 = f32[4,6]{0,1} parameter(0)
  ROOT n = f32[4,6]{0,1} add(p0, p0)
}
"""

ONE_FUSION = """HloModule m
fused {
  p0 = f32[100] parameter(0)
  ROOT n = f32[100] exponential(p0)
}
ENTRY e {
  p0 = f32[100] parameter(0)
  ROOT loop.exp = f32[100] fusion(p0), kind=kLoop, calls=fused
}
"""

TRANSPOSED = """HloModule m
ENTRY e {
  p0 = f32[64,128]{0,1} parameter(0)
  ROOT n = f32[128,64]{1,0} transpose(p0), dimensions={1,0}
}
"""

TUPLE = """HloModule m
ENTRY e {{
  p0 = f32[4] parameter(0)
  {inner}
}}
"""


@pytest.mark.parametrize("stage", [None, "initial", "flatten-tensors"])
def test_column_major(stage: str | None) -> None:
    """A fusion with column-major parameters and results, a bitcast between layouts and a copy computes the right."""
    absolute, fusion, sine = read_fusions(COLUMN_MAJOR)
    assert [item.name for item in (absolute, fusion, sine)] == ["abs_0", "f_1", "sine_1"]
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
    (actual,) = emit(absolute).run(x, stage=stage)
    np.testing.assert_array_equal(actual, np.abs(x))
    doubled, copied, negated = emit(fusion).run(x, stage=stage)
    np.testing.assert_array_equal(doubled, -2 * x.T)
    np.testing.assert_array_equal(copied, -x)
    np.testing.assert_array_equal(negated, -x)


def test_layouts_are_encodings() -> None:
    """A tensor that is not row-major has its layout as encoding; threads go through it in the order of memory."""
    kernel = emit(read_fusion(FLAT))
    assert kernel.name == "wrapped_add_1"
    assert "tensor<4x6xf32, dense<[0, 1]> : tensor<2xi64>>" in kernel.stage("initial")
    assert "tensor<24xf32>" in kernel.stage("flatten-tensors")
    assert str(kernel.maps[0]).split(" -> ")[1].startswith("(th_x mod 4, th_x / 4)")


def test_the_only_fusion() -> None:
    """A module that only calls one fusion is that fusion, by its name; one with more needs a choice."""
    assert read_fusion(ONE_FUSION).name == "loop_exp"
    with pytest.raises(UnsupportedError, match="1 fusions and 2 other ops"):
        read_fusion(COLUMN_MAJOR)


def test_a_transpose_that_moves_nothing() -> None:
    """A transpose between layouts that is a copy of memory needs no tiles."""
    kernel = emit(read_fusion(TRANSPOSED))
    assert kernel.choice.kind.value == "loop"
    x = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    (actual,) = kernel.run(x)
    np.testing.assert_array_equal(actual, x.T)


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        ("t = (f32[4], f32[4]) tuple(p0, p0)\n ROOT g = f32[4] get-tuple-element(t), index=0", "internal-tuple"),
        ("p1 = (f32[4], f32[]) parameter(1)\n ROOT g = f32[4] get-tuple-element(p1), index=0", "internal-tuple"),
        ("t = (f32[4]) tuple(p0)\n ROOT g = ((f32[4]), f32[4]) tuple(t, p0)", "nested-tuple"),
    ],
)
def test_tuples_are_refused(inner: str, code: str) -> None:
    """A fused computation has no tuple but that of its results, which holds no other."""
    with pytest.raises(UnsupportedError) as caught:
        read_fusion(TUPLE.format(inner=inner))
    assert code in {item.code for item in caught.value.diagnostics}


@pytest.mark.parametrize(
    "inner",
    [
        "z = f32[] constant(0)\n ROOT r = f32[4] rng(z, z), distribution=rng_uniform",
        "ROOT r = f32[4] all-reduce(p0), replica_groups={{0,1}}, to_apply=add",
        "ROOT r = f32[4] sort(p0), dimensions={0}, to_apply=less",
    ],
)
def test_ops_that_are_not_elemental(inner: str) -> None:
    """What computes more than single elements is refused in HLO, too."""
    text = TUPLE.format(inner=inner).replace(
        "ENTRY",
        "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
        "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] compare(a, b), direction=LT }\n"
        "ENTRY",
    )
    with pytest.raises(UnsupportedError) as caught:
        read_fusion(text)
    assert {item.code for item in caught.value.diagnostics} == {"no-emission"}


def test_tiles_are_refused() -> None:
    """Layouts with tiles are those of TPUs."""
    with pytest.raises(UnsupportedError, match="tiles"):
        read_fusion(FLAT.replace("{0,1}", "{0,1:T(2,2)}"))
