"""Attention of onnxruntime's optimizer is sharded by heads, where queries, keys and values are tensors of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("onnx", reason="models are made by the package onnx: pip install 'shardy_py[onnx]'")
pytest.importorskip("onnxruntime", reason="models are run by onnxruntime: pip install 'shardy_py[onnx]'")

import numpy as np
from onnx import TensorProto, helper

import shardy_py as sdy
from tests.unit.onnx.microsoft_cases import FusedBuilder
from tests.unit.onnx.onnx_models import assert_runs_sharded

_WEIGHTS = dict.fromkeys(("w0", "w1", "w2"), (None, "m"))


def multi_head() -> Any:
    """Return attention of four heads, between products by columns and by rows."""
    b = FusedBuilder(("x", (4, 6, 8)), ("y", (4, 6, 8)))
    ends = [b.node("MatMul", name, b.weight(8, 16)) for name in ("x", "y", "y")]
    return b.build(b.node("MatMul", b.fused("MultiHeadAttention", *ends, num_heads=4), b.weight(16, 8)))


def grouped() -> Any:
    """Return attention in which each of four heads of keys serves two of queries."""
    b = FusedBuilder(("x", (4, 6, 8)), ("y", (4, 6, 8)))
    ends = [b.node("MatMul", name, b.weight(8, width)) for name, width in (("x", 64), ("y", 32), ("y", 32))]
    lengths = b.tensor(np.full(4, 5, np.int32)), b.tensor(np.array(6, np.int32))
    mixed, keys, _ = b.fused("GroupQueryAttention", *ends, "", "", *lengths, num_heads=8, kv_num_heads=4, outputs=3)
    return b.build(b.node("MatMul", mixed, b.weight(64, 8)), keys)


@pytest.mark.parametrize(("make", "attribute"), [(multi_head, "num_heads"), (grouped, "kv_num_heads")])
@pytest.mark.parametrize("parts", [2, 4])
def test_heads_are_computed_where_they_are(make: Callable[[], Any], attribute: str, parts: int) -> None:
    """Each device has its heads, and one sum behind them is all that is sent."""
    local = assert_runs_sharded(make(), {"m": parts}, _WEIGHTS)
    assert [item.kind for item in local.collectives] == ["all_reduce"]
    (node,) = [node for node in local.module.graph.node if node.op_type.endswith("Attention")]
    assert {item.name: item.i for item in node.attribute}[attribute] == 4 // parts


@pytest.mark.parametrize("make", [multi_head, grouped])
def test_a_part_of_a_head_is_gathered(make: Callable[[], Any]) -> None:
    """Eight devices for four heads of keys: the numbers are right all the same."""
    local = assert_runs_sharded(make(), {"m": 8}, _WEIGHTS)
    assert "all_gather" in {item.kind for item in local.collectives}


def test_heads_with_one_bias_for_all_are_whole() -> None:
    """A bias has queries, keys and values one behind the other, so that no part of it is that of a device."""
    b = FusedBuilder(("x", (4, 6, 8)))
    model = b.build(b.fused("MultiHeadAttention", "x", "x", "x", b.weight(24), num_heads=2))
    result = sdy.propagate(model, {"m": 2}, in_shardings={"x": (None, None, "m")})
    assert result.results[0] is None or result.results[0].is_fully_replicated


def test_weights_of_attention_have_the_heads_of_the_device() -> None:
    """The fourth result, the weights of queries and keys, is sharded by heads, as the keys and values are."""
    b = FusedBuilder(("x", (4, 6, 8)), ("y", (4, 6, 8)))
    ends = [b.node("MatMul", name, b.weight(8, 16)) for name in ("x", "y", "y")]
    names = b.fused("MultiHeadAttention", *ends, num_heads=4, outputs=4)
    model = b.build(*names)
    for output, shape in zip(model.graph.output, ((4, 6, 16), (4, 4, 6, 4), (4, 4, 6, 4), (4, 4, 6, 6)), strict=True):
        output.CopyFrom(helper.make_tensor_value_info(output.name, TensorProto.FLOAT, shape))
    result = sdy.propagate(model, {"m": 2}, in_shardings=_WEIGHTS, explicit_collectives=True)
    assert [str(item) for item in result.results[1:]] == ['<@mesh, [{}, {"m"}, {}, {}]>'] * 3
    local = result.local()
    assert local.collectives == ()
    assert [dim.dim_value for dim in local.module.graph.output[3].type.tensor_type.shape.dim] == [4, 2, 6, 6]
