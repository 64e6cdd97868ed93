"""The layouts a policy chooses; those of the TPU were asked of its compiler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardy_py.errors import VerificationError
from shardy_py.layout import ROW_MAJOR, TPU_V5E, apply_policy, find_policy, padded_bytes, parse_array, parse_shape

TABLE = Path(__file__).resolve().parents[3].parent / "shared" / "reference" / "tpu_v5e_layouts.json"
_CHOSEN = """
f32[]{:T(128)} f32[7]{0:T(128)} f32[129]{0:T(256)} f32[385]{0:T(512)} f32[100000]{0:T(1024)}
bf16[]{:T(256)} bf16[1]{0:T(256)(128)(2,1)} bf16[257]{0:T(512)(128)(2,1)} bf16[2049]{0:T(1024)(128)(2,1)}
s8[]{:T(512)} s8[300]{0:T(512)(128)(4,1)} pred[513]{0:T(1024)(128)(4,1)}
s4[]{:T(1024)E(4)} u4[1]{0:T(1024)(128)(8,1)E(4)} s2[]{:T(2048)E(2)} s2[1]{0:T(2048)(128)(16,1)E(2)}
c64[3,5]{1,0:T(4,128)} f64[5,1]{0,1:T(1,128)} s64[300]{0:T(512)} c128[33,257]{1,0:T(8,128)}
f32[0]{0} f32[2,0,4]{2,1,0} s4[3,0]{1,0:E(4)}
f32[2,1]{0,1:T(1,128)} f32[3,2]{0,1:T(2,128)} f32[8,8]{1,0:T(8,128)} f32[9,8]{0,1:T(8,128)}
f32[65,129]{0,1:T(8,128)} f32[130,129]{1,0:T(8,128)} f32[100,300]{0,1:T(8,128)}
bf16[2,1]{1,0:T(2,128)(2,1)} bf16[3,1]{0,1:T(2,128)(2,1)} bf16[64,256]{1,0:T(8,128)(2,1)}
s8[32,100]{1,0:T(32,128)(4,1)} s8[48,100]{1,0:T(8,128)(4,1)} s4[32,100]{1,0:T(8,128)(8,1)E(4)}
s4[64,100]{1,0:T(64,128)(8,1)E(4)} f4e2m1fn[5,1]{1,0:T(8,128)(8,1)E(4)}
f32[2,12,3]{1,0,2:T(2,128)} f32[128,200,64,7,3]{0,2,4,3,1:T(8,128)} f32[8,3,32,1]{2,3,1,0:T(1,128)}
f32[16,4,7]{0,1,2:T(4,128)} f32[1,16,1]{1,2,0:T(1,128)} f32[256,4,256,300,7]{2,1,4,3,0:T(4,128)}
bf16[16,1,100]{2,0,1:T(8,128)(2,1)} bf16[300,100,2]{1,2,0:T(2,128)(2,1)} bf16[3,5,1,1,1]{1,0,4,3,2:T(4,128)(2,1)}
s8[2,33,32]{1,2,0:T(32,128)(4,1)} s8[3,33,2,300,33]{3,4,2,1,0:T(8,128)(4,1)} s8[256,32,3]{0,1,2:T(32,128)(4,1)}
s4[7,1,1]{2,0,1:T(8,128)(8,1)E(4)} s4[1,2,1,1,1]{4,1,3,2,0:T(8,128)(8,1)E(4)}
"""
CHOSEN = _CHOSEN.split()


@pytest.mark.parametrize("text", CHOSEN)
def test_tpu(text: str) -> None:
    """Among the layouts with the least padding, the TPU's compiler takes the one nearest to the usual order."""
    assert str(apply_policy(TPU_V5E, parse_shape(text.partition("{")[0]))) == text


def test_table() -> None:
    """Every row of the table of the TPU compiler's choices comes out, with its bytes."""
    if not TABLE.exists():
        pytest.skip("no table of layouts: ../shared/reference/tpu_v5e_layouts.json is missing")
    rows = json.loads(TABLE.read_text())
    chosen = [apply_policy(TPU_V5E, parse_shape(row["layout"].partition("{")[0])) for row in rows]
    assert [str(shape) for shape in chosen] == [row["layout"] for row in rows]
    assert [padded_bytes(shape) for shape in chosen] == [row["padded_bytes"] for row in rows]


def test_what_a_policy_keeps() -> None:
    """The given layout is replaced, but for the memory space; all arrays of a tuple get one."""
    assert str(apply_policy(TPU_V5E, parse_shape("f32[5,1]{1,0:T(8,128)S(1)}"))) == "f32[5,1]{0,1:T(1,128)S(1)}"
    actual = apply_policy(ROW_MAJOR, parse_shape("(f32[5,1]{0,1:T(1,128)}, (s4[3], pred[2]), token[])"))
    assert str(actual) == "(f32[5,1]{1,0}, (s4[3]{0:E(4)}, pred[2]{0}), token[])"


def test_bounds_count() -> None:
    """A bounded size is laid out for its bound; without a bound there is nothing to choose by."""
    assert TPU_V5E.choose(parse_array("f32[<=5,1]")) == TPU_V5E.choose(parse_array("f32[5,1]"))
    with pytest.raises(VerificationError, match="unbounded"):
        TPU_V5E.choose(parse_array("f32[?,1]"))


def test_unknown_policies() -> None:
    """The error names the policies there are."""
    assert find_policy("row-major") is ROW_MAJOR
    with pytest.raises(VerificationError, match="tpu-v5e, row-major"):
        find_policy("tpu")
