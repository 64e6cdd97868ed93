"""One model per operator that the quantizer and the optimizer of onnxruntime write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from tests.unit.onnx.onnx_models import ModelBuilder

ROWS, IMAGE, TOKENS = ("x", (4, 8)), ("x", (4, 8, 6, 6)), ("x", (4, 6, 8))
CASES: dict[str, Callable[[], Any]] = {}


def _case(name: str, build: Callable[[FusedBuilder], Any], *inputs: Any) -> None:
    def model() -> Any:
        builder = FusedBuilder(*(inputs or (ROWS,)))
        results = build(builder)
        return builder.build(*([results] if isinstance(results, str) else results))

    CASES[name] = model


class FusedBuilder(ModelBuilder):
    """A model with nodes of the domain ``com.microsoft``."""

    def fused(self, kind: str, *inputs: str, **attributes: Any) -> Any:
        """Add a node of the domain."""
        return self.node(kind, *inputs, domain="com.microsoft", **attributes)

    def scale(self, number: float = 0.1) -> tuple[str, str]:
        """Return a scale and a zero point of bytes."""
        return self.tensor(np.float32(number)), self.tensor(np.uint8(128))

    def quantized(self, name: str = "x") -> tuple[str, str, str]:
        """Return a tensor in bytes, its scale and its zero point."""
        scale, zero = self.scale()
        return self.node("QuantizeLinear", name, scale, zero), scale, zero

    def kernel(self, *shape: int) -> tuple[str, str, str]:
        """Return weights in bytes, with a scale and a zero point per member of the first dimension."""
        count = shape[0]
        numbers = (np.arange(int(np.prod(shape))) % 15 - 7).astype(np.int8).reshape(shape)
        scales = np.linspace(0.1, 0.2, count, dtype=np.float32)
        return self.tensor(numbers), self.tensor(scales), self.tensor(np.zeros(count, np.int8))

    def matrix(self, *, whole_scale: bool = False) -> tuple[str, str, str]:
        """Return a matrix of eight rows and four columns in bytes, with a scale and a zero point, or of each column."""
        numbers = (np.arange(32) % 13).astype(np.int8).reshape(8, 4)
        scales = np.float32(0.2) if whole_scale else np.linspace(0.1, 0.2, 4, dtype=np.float32)
        zeros = np.int8(1) if whole_scale else np.zeros(4, np.int8)
        return self.tensor(numbers), self.tensor(scales), self.tensor(zeros)


for _name in ("Gelu", "QuickGelu"):
    _case(_name, lambda b, kind=_name: b.fused(kind, "x"))
for _name in ("BiasGelu", "FastGelu"):
    _case(_name, lambda b, kind=_name: b.fused(kind, "x", b.weight(8)))
for _name in ("QLinearAdd", "QLinearMul"):
    _case(_name, lambda b, kind=_name: b.fused(kind, *b.quantized(), *b.quantized("y"), *b.scale(0.3)), ROWS,
          ("y", (8,)))  # fmt: skip
_case("QLinearSigmoid", lambda b: b.fused("QLinearSigmoid", *b.quantized(), *b.scale(0.01)))
_case("QLinearLeakyRelu", lambda b: b.fused("QLinearLeakyRelu", *b.quantized(), *b.scale(), alpha=0.1))
_case(
    "QLinearWhere",
    lambda b: b.fused("QLinearWhere", b.node("Greater", "x", "y"), *b.quantized(), *b.quantized("y"), *b.scale(0.3)),
    ROWS,
    ("y", (8,)),
)
_case("QLinearConcat", lambda b: b.fused("QLinearConcat", *b.scale(0.2), *b.quantized(), *b.quantized("y"), axis=0),
      ROWS, ("y", (2, 8)))  # fmt: skip
_case("QLinearSoftmax", lambda b: b.fused("QLinearSoftmax", *b.quantized(), *b.scale(0.01), axis=-1, opset=21))
for _last in (0, 1):
    _case(
        f"QLinearAveragePool_{_last}",
        lambda b, last=_last: b.fused(
            "QLinearAveragePool", *b.quantized(), *b.scale(), kernel_shape=[2, 2], channels_last=last
        ),
        IMAGE,
    )
    _case(
        f"QLinearGlobalAveragePool_{_last}",
        lambda b, last=_last: b.fused("QLinearGlobalAveragePool", *b.quantized(), *b.scale(), channels_last=last),
        IMAGE,
    )
_case("NhwcMaxPool", lambda b: b.fused("NhwcMaxPool", b.quantized()[0], kernel_shape=[2, 2]), IMAGE)
_case(
    "QLinearConv",
    lambda b: b.fused("QLinearConv", *b.quantized(), *b.kernel(4, 6, 3, 3), *b.scale(), channels_last=1),
    IMAGE,
)
_case(
    "QLinearConv_depthwise",
    lambda b: b.fused("QLinearConv", *b.quantized(), *b.kernel(6, 1, 3, 3), *b.scale(), channels_last=1, group=6),
    IMAGE,
)
_case(
    "QLinearConv_depthwise_of_onnx",
    lambda b: b.node("QLinearConv", *b.quantized(), *b.kernel(8, 1, 3, 3), *b.scale(), pads=[1] * 4, group=8),
    IMAGE,
)
_case(
    "ConvInteger_depthwise",
    lambda b: b.node("ConvInteger", b.quantized()[0], b.kernel(8, 1, 3, 3)[0], b.tensor(np.uint8(128)), group=8),
    IMAGE,
)
_case("QGemm", lambda b: b.fused("QGemm", *b.quantized(), *b.matrix(), b.tensor(np.arange(4, dtype=np.int32)),
                                 *b.scale(0.3)))  # fmt: skip
_case("QGemm_real", lambda b: b.fused("QGemm", *b.quantized(), *b.matrix(whole_scale=True)))
_case("MatMulIntegerToFloat", lambda b: _scaled_matmul(b, b.weight(4)))
_case("MatMulIntegerToFloat_sum", lambda b: _scaled_matmul(b, ""), TOKENS)
_case("DynamicQuantizeMatMul", lambda b: b.fused("DynamicQuantizeMatMul", "x", *b.matrix(), b.weight(4)))


def _scaled_matmul(b: FusedBuilder, bias: str) -> Any:
    x, scale, zero = b.quantized()
    weight, scales, zeros = b.matrix()
    return b.fused("MatMulIntegerToFloat", x, weight, scale, scales, zero, zeros, bias)


_case("FusedMatMul", lambda b: b.fused("FusedMatMul", "x", b.weight(4, 8), transB=1, alpha=0.5), TOKENS)
_case("FusedMatMul_left", lambda b: b.fused("FusedMatMul", "x", "y", transA=1), TOKENS, ("y", (4, 6, 2)))
_case("FusedGemm", lambda b: b.fused("FusedGemm", "x", b.weight(4, 8), b.weight(4), transB=1, activation="Relu"))
_case("FusedGemm_rows", lambda b: b.fused("FusedGemm", "x", b.weight(4, 2), b.weight(8, 2), transA=1,
                                          activation="Tanh"))  # fmt: skip
_case(
    "FusedConv",
    lambda b: b.fused("FusedConv", "x", b.weight(4, 8, 3, 3), b.weight(4), "y", pads=[1] * 4, activation="Relu"),
    IMAGE,
    ("y", (4, 4, 6, 6)),
)
_case("FusedConv_depthwise", lambda b: b.fused("FusedConv", "x", b.weight(8, 1, 1, 1), b.weight(8), group=8,
                                               activation="Relu"), IMAGE)  # fmt: skip
_case(
    "SkipLayerNormalization",
    lambda b: b.fused("SkipLayerNormalization", "x", "y", b.weight(8), b.weight(8), b.weight(8)),
    TOKENS,
    ("y", (4, 6, 8)),
)
_case(
    "SkipSimplifiedLayerNormalization",
    lambda b: b.fused("SkipSimplifiedLayerNormalization", "x", "y", b.weight(8)),
    TOKENS,
    ("y", (6, 8)),
)
_case("SimplifiedLayerNormalization", lambda b: b.node("SimplifiedLayerNormalization", "x", b.weight(8), axis=-1),
      TOKENS)  # fmt: skip
_case(
    "EmbedLayerNormalization",
    lambda b: b.fused(
        *("EmbedLayerNormalization", _numbers(b), "", b.weight(6, 8), b.weight(8, 8), "", b.weight(8), b.weight(8)),
        outputs=2,
    )[0],
)


def _numbers(b: FusedBuilder, most: float = 5) -> str:
    rows = b.node("Clip", b.node("Abs", "x"), "", b.tensor(np.float32(most)))
    return str(b.node("Cast", rows, to=TensorProto.INT32))


_case("Attention", lambda b: b.fused("Attention", "x", b.weight(8, 24), b.weight(24), num_heads=2), TOKENS)
_case(
    "Attention_masked",
    lambda b: b.fused("Attention", "x", b.weight(8, 24), b.weight(24), b.tensor(_MASK), num_heads=2),
    TOKENS,
)
_case(
    "Attention_masked_by_ends",
    lambda b: b.fused(
        "Attention", "x", b.weight(8, 24), b.weight(24), b.tensor(np.array([6, 4, 5, 6, 0, 1, 0, 2], np.int32)),
        num_heads=2,
    ),
    TOKENS,
)  # fmt: skip
_MASK = (np.arange(6) < np.array([[6], [4], [5], [3]])).astype(np.int32)
_case(
    "MultiHeadAttention",
    lambda b: b.fused("MultiHeadAttention", "x", "y", "y", b.weight(24), num_heads=2),
    TOKENS,
    ("y", (4, 5, 8)),
)
_case(
    "GroupQueryAttention",
    lambda b: b.fused(
        *("GroupQueryAttention", b.node("MatMul", "x", b.weight(8, 32)), "y", "y", "", ""),
        *(b.tensor(np.full(4, 5, np.int32)), b.tensor(np.array(6, np.int32))),
        num_heads=4,
        kv_num_heads=2,
        outputs=3,
    ),
    TOKENS,
    ("y", (4, 6, 16)),
)
_case(
    "QAttention",
    lambda b: b.fused("QAttention", *_attention_inputs(b), num_heads=2),
    TOKENS,
)


def _attention_inputs(b: FusedBuilder) -> list[str]:
    x, scale, zero = b.quantized()
    weight = b.tensor((np.arange(192) % 11 - 5).astype(np.int8).reshape(8, 24))
    return [x, weight, b.weight(24), scale, b.tensor(np.float32(0.02)), "", zero, b.tensor(np.int8(0))]


_case(
    "RotaryEmbedding",
    lambda b: b.fused("RotaryEmbedding", "x", b.tensor(np.tile(np.arange(6), (4, 1))), b.weight(8, 4), b.weight(8, 4)),
    ("x", (4, 2, 6, 8)),
)


def _block_quantized(b: FusedBuilder, *scales: int) -> Any:
    """Add a product with four columns of 32 numbers, packed in two blocks of 16 half bytes each."""
    packed = b.tensor((np.arange(64) * 7 % 256).astype(np.uint8).reshape(4, 2, 8))
    return b.fused("MatMulNBits", "x", packed, b.weight(*scales), K=32, N=4, bits=4, block_size=16)


for _shape in ((8,), (4, 2)):
    _case(f"MatMulNBits_{len(_shape)}", lambda b, shape=_shape: _block_quantized(b, *shape), ("x", (2, 6, 32)))
_case(
    "GatherBlockQuantized",
    lambda b: b.fused(
        *("GatherBlockQuantized", b.tensor((np.arange(128) % 256).astype(np.uint8).reshape(8, 16)), _numbers(b)),
        b.weight(8, 2),
        bits=4,
        block_size=16,
    ),
)
_case(
    "DynamicQuantizeLSTM",
    lambda b: b.fused(
        *("DynamicQuantizeLSTM", "x", _gates(b, 8), _gates(b, 4), b.weight(1, 32), "", "", "", ""),
        *(b.tensor(np.array([0.1], np.float32)), b.tensor(np.zeros(1, np.int8))) * 2,
        outputs=3,
        hidden_size=4,
    ),
    TOKENS,
)


def _gates(b: FusedBuilder, rows: int) -> str:
    return b.tensor((np.arange(rows * 16) % 9 - 4).astype(np.int8).reshape(1, rows, 16))


_case("Inverse", lambda b: b.fused("Inverse", "x"), ("x", (2, 4, 3, 3)))
_case("Trilu", lambda b: b.fused("Trilu", "x"), TOKENS)
