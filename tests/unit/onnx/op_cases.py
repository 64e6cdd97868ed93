"""One model per operator: inputs with their shapes, further operands, and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.unit.onnx.onnx_models import ModelBuilder

Case = Callable[[], Any]
CASES: dict[str, Case] = {}
X = ("x", (4, 6, 8))
IMAGE = ("x", (4, 8, 6, 6))


def _case(name: str, build: Callable[[ModelBuilder], Any], *inputs: Any) -> None:
    def model() -> Any:
        builder = ModelBuilder(*(inputs or (X,)))
        results = build(builder)
        return builder.build(*([results] if isinstance(results, str) else results))

    CASES[name] = model


def _unary(kind: str, **attributes: Any) -> None:
    _case(kind, lambda b: b.node(kind, "x", **attributes))


for _name in (
    *("Abs", "Asinh", "Atan", "Ceil", "Celu", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
    *("Identity", "LeakyRelu", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign"),
    *("Sin", "Sinh", "Softplus", "Softsign", "Tan", "Tanh", "ThresholdedRelu", "Cosh"),
):
    _unary(_name)
for _name in ("IsNaN", "IsInf"):
    _unary(_name)


def _of_positive(kind: str) -> None:
    _case(kind, lambda b: b.node(kind, b.node("Sigmoid", "x")))


for _name in ("Log", "Sqrt", "Acos", "Asin", "Atanh"):
    _of_positive(_name)
_case("Acosh", lambda b: b.node("Acosh", b.node("Add", b.node("Exp", "x"), b.tensor(np.float32(1)))))
_case("Not", lambda b: b.node("Not", b.node("Greater", "x", b.tensor(np.float32(0)))))
_case("Cast", lambda b: b.node("Cast", "x", to=TensorProto.INT32))
_case("CastLike", lambda b: b.node("CastLike", "x", b.ints(1, 2)))
_case("Clip", lambda b: b.node("Clip", "x", b.tensor(np.float32(-0.5)), b.tensor(np.float32(0.5))))
_case("Dropout", lambda b: b.node("Dropout", "x"))
for _name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum"):
    _case(_name, lambda b, kind=_name: b.node(kind, "x", b.weight(6, 1)))
for _name in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
    _case(_name, lambda b, kind=_name: b.node(kind, "x", "y"), X, ("y", (4, 1, 8)))
_case("Pow", lambda b: b.node("Pow", b.node("Sigmoid", "x"), b.weight(8)))
_case("Mod", lambda b: b.node("Mod", "x", b.tensor(np.full((8,), 0.7, np.float32)), fmod=1))
_case("PRelu", lambda b: b.node("PRelu", "x", b.weight(6, 1)))
for _name in ("And", "Or", "Xor"):
    _case(
        _name,
        lambda b, kind=_name: b.node(kind, b.node("Greater", "x", "y"), b.node("Less", "x", b.weight(8))),
        X,
        ("y", (6, 8)),
    )


def _integers(b: ModelBuilder) -> str:
    return str(b.node("Cast", b.node("Mul", "x", b.tensor(np.float32(8))), to=TensorProto.INT32))


for _name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    _case(_name, lambda b, kind=_name: b.node(kind, _integers(b), b.tensor(np.arange(8, dtype=np.int32))))
_case("BitwiseNot", lambda b: b.node("BitwiseNot", _integers(b)))
_case(
    "BitShift",
    lambda b: b.node(
        "BitShift",
        b.node("Cast", b.node("Abs", "x"), to=TensorProto.UINT32),
        b.tensor(np.arange(8, dtype=np.uint32) % 3),
        direction="LEFT",
    ),
)
_case("Where", lambda b: b.node("Where", b.node("Greater", "x", "y"), "x", b.weight(8)), X, ("y", (6, 8)))
_case("MatMul", lambda b: b.node("MatMul", "x", b.weight(8, 4)))
_case("MatMul_batch", lambda b: b.node("MatMul", "x", "y"), ("x", (2, 4, 6, 8)), ("y", (4, 8, 2)))
_case("MatMul_vector", lambda b: b.node("MatMul", "x", b.weight(8)))
_case("Gemm", lambda b: b.node("Gemm", "x", b.weight(4, 8), b.weight(4), transB=1, alpha=0.5), ("x", (6, 8)))
_case("Gemm_beta", lambda b: b.node("Gemm", "x", b.weight(8, 4), b.weight(4), beta=0.5), ("x", (6, 8)))
_case("Einsum", lambda b: b.node("Einsum", "x", b.weight(2, 8, 6), equation="bij,hjk->bhik"))
_case("Conv", lambda b: b.node("Conv", "x", b.weight(4, 8, 3, 3), b.weight(4), pads=[1] * 4, strides=[2, 2]), IMAGE)
_case("Conv_1x1", lambda b: b.node("Conv", "x", b.weight(4, 8, 1, 1), b.weight(4)), IMAGE)
_case("Conv_depthwise", lambda b: b.node("Conv", "x", b.weight(8, 1, 3, 3), group=8, pads=[1] * 4), IMAGE)
_case("Conv_groups", lambda b: b.node("Conv", "x", b.weight(8, 4, 3, 3), group=2), IMAGE)
_case("ConvTranspose", lambda b: b.node("ConvTranspose", "x", b.weight(8, 4, 3, 3), b.weight(4), strides=[2, 2]), IMAGE)
_case("MaxPool", lambda b: b.node("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2]), IMAGE)
_case("AveragePool", lambda b: b.node("AveragePool", "x", kernel_shape=[3, 3], pads=[1] * 4), IMAGE)
_case("LpPool", lambda b: b.node("LpPool", "x", kernel_shape=[2, 2]), IMAGE)
for _name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
    _case(_name, lambda b, kind=_name: b.node(kind, "x"), IMAGE)
_case(
    "BatchNormalization",
    lambda b: b.node(
        "BatchNormalization", "x", b.weight(8), b.weight(8), b.weight(8), b.tensor(np.arange(1, 9, dtype=np.float32))
    ),
    IMAGE,
)
_case("InstanceNormalization", lambda b: b.node("InstanceNormalization", "x", b.weight(8), b.weight(8)), IMAGE)
_case("GroupNormalization", lambda b: b.node("GroupNormalization", "x", b.weight(8), b.weight(8), num_groups=2), IMAGE)
_case("LayerNormalization", lambda b: b.node("LayerNormalization", "x", b.weight(8), b.weight(8)))
_case("LayerNormalization_two", lambda b: b.node("LayerNormalization", "x", b.weight(6, 8), axis=1))
_case("LpNormalization", lambda b: b.node("LpNormalization", "x", axis=1))
_case("MeanVarianceNormalization", lambda b: b.node("MeanVarianceNormalization", "x"), IMAGE)
_case("LRN", lambda b: b.node("LRN", "x", size=3), IMAGE)
for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    _case(_name, lambda b, kind=_name: b.node(kind, "x", axis=1))
for _name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"):
    _case(_name, lambda b, kind=_name: b.node(kind, "x", b.ints(0, -1), keepdims=0))
for _name in ("ReduceSumSquare", "ReduceLogSumExp"):
    _case(_name, lambda b, kind=_name: b.node(kind, "x", b.ints(1), keepdims=1))
_case("ReduceLogSum", lambda b: b.node("ReduceLogSum", b.node("Exp", "x"), b.ints(1)))
_case("ReduceSum_all", lambda b: b.node("ReduceSum", "x", keepdims=0))
_case("ArgMax", lambda b: b.node("ArgMax", "x", axis=1, keepdims=0))
_case("ArgMin", lambda b: b.node("ArgMin", "x", axis=-1))
_case("CumSum", lambda b: b.node("CumSum", "x", b.tensor(np.int64(1))))
_case("Trilu", lambda b: b.node("Trilu", "x", upper=0))
_case("TopK", lambda b: b.node("TopK", "x", b.ints(3), outputs=2))
_case("ReverseSequence", lambda b: b.node("ReverseSequence", "x", b.ints(2, 3, 4, 1, 2, 3)))
_case(
    "GridSample",
    lambda b: b.node("GridSample", "x", b.node("Tanh", "y"), align_corners=0),
    IMAGE,
    ("y", (4, 2, 4, 2)),
)
_case(
    "RoiAlign",
    lambda b: b.node(
        *("RoiAlign", "x", b.tensor(np.array([[0, 0, 4, 4], [1, 1, 5, 5]], np.float32)), b.ints(1, 3)),
        output_height=2,
        output_width=2,
    ),
    IMAGE,
)
_case("Reshape_merge", lambda b: b.node("Reshape", "x", b.ints(24, 8)))
_case("Reshape_split", lambda b: b.node("Reshape", "x", b.ints(4, 6, 2, -1)))
_case("Reshape_zero", lambda b: b.node("Reshape", "x", b.ints(0, -1)))
_case("Flatten", lambda b: b.node("Flatten", "x", axis=2))
_case("Squeeze", lambda b: b.node("Squeeze", "x", b.ints(1)), ("x", (4, 1, 8)))
_case("Unsqueeze", lambda b: b.node("Unsqueeze", "x", b.ints(0, 2)))
_case("Transpose", lambda b: b.node("Transpose", "x", perm=[2, 0, 1]))
_case("Expand", lambda b: b.node("Expand", "x", b.ints(2, 4, 6, 8)), ("x", (4, 1, 8)))
_case("Tile", lambda b: b.node("Tile", "x", b.ints(1, 2, 1)))
_case("Concat", lambda b: b.node("Concat", "x", "y", axis=1), X, ("y", (4, 2, 8)))
_case("Split", lambda b: b.node("Split", "x", b.ints(2, 4), axis=1, outputs=2))
_case("Split_equal", lambda b: b.node("Split", "x", axis=2, num_outputs=2, outputs=2))
_case("Slice", lambda b: b.node("Slice", "x", b.ints(1, 0), b.ints(5, 2**31), b.ints(1, 2)))
_case("Slice_reverse", lambda b: b.node("Slice", "x", b.ints(-1), b.ints(-(2**31)), b.ints(1), b.ints(-1)))
_case("Pad", lambda b: b.node("Pad", "x", b.ints(0, 1, 0, 0, 2, 0), b.tensor(np.float32(3))))
_case("Pad_axes", lambda b: b.node("Pad", "x", b.ints(1, 1), b.tensor(np.float32(0)), b.ints(1)))
_case("DepthToSpace", lambda b: b.node("DepthToSpace", "x", blocksize=2), IMAGE)
_case("SpaceToDepth", lambda b: b.node("SpaceToDepth", "x", blocksize=2), IMAGE)
_case(
    "Resize",
    lambda b: b.node("Resize", "x", "", b.tensor(np.array([1, 1, 2, 2], np.float32)), mode="nearest"),
    IMAGE,
)
_case("Resize_sizes", lambda b: b.node("Resize", "x", "", "", b.ints(4, 8, 12, 3), mode="linear"), IMAGE)
_case("Gather", lambda b: b.node("Gather", "x", b.tensor(np.array([[0, 5], [2, 3]], np.int64)), axis=1))
_case("Gather_embedding", lambda b: b.node("Gather", b.weight(8, 4), b.tensor(np.arange(6) % 8)), ("x", (2,)))
_case("GatherElements", lambda b: b.node("GatherElements", "x", b.tensor(np.zeros((4, 2, 8), np.int64)), axis=1))
_case(
    "ScatterElements",
    lambda b: b.node("ScatterElements", "x", b.tensor(np.ones((4, 1, 8), np.int64)), b.weight(4, 1, 8), axis=1),
)
_case("GatherND", lambda b: b.node("GatherND", "x", b.tensor(np.array([[0, 1], [3, 5]], np.int64))))
_case(
    "ScatterND",
    lambda b: b.node("ScatterND", "x", b.tensor(np.array([[0, 1], [3, 5]], np.int64)), b.weight(2, 8)),
)
_case("OneHot", lambda b: b.node("OneHot", b.ints(0, 2, 1, 3), b.tensor(np.int64(4)), b.weight(2)), ("x", (2,)))
_case("ConstantOfShape", lambda b: b.node("Add", "x", b.node("ConstantOfShape", b.ints(6, 8))))
_case("Constant", lambda b: b.node("Add", "x", b.node("Constant", value_floats=[float(n) for n in range(8)])))
_case("NonZero", lambda b: b.node("Add", "x", b.node("Cast", b.node("Size", "x"), to=TensorProto.FLOAT)))
_case(
    "QuantizeLinear",
    lambda b: b.node(
        "DequantizeLinear",
        b.node("QuantizeLinear", "x", b.tensor(np.full(6, 0.1, np.float32)), b.tensor(np.zeros(6, np.int8)), axis=1),
        b.tensor(np.full(6, 0.1, np.float32)),
        b.tensor(np.zeros(6, np.int8)),
        axis=1,
    ),
)
_case("DynamicQuantizeLinear", lambda b: b.node("DynamicQuantizeLinear", "x", outputs=3))


def _small(b: ModelBuilder, *shape: int, kind: Any = np.int8) -> str:
    return b.tensor((np.arange(int(np.prod(shape))) % 5).reshape(shape).astype(kind))


_case(
    "MatMulInteger",
    lambda b: b.node(
        "MatMulInteger", b.node("Cast", b.node("Abs", "x"), to=TensorProto.UINT8), _small(b, 8, 4, kind=np.uint8)
    ),
    ("x", (6, 8)),
)


def _quantized(b: ModelBuilder) -> Any:
    return b.node("QuantizeLinear", "x", b.tensor(np.float32(0.1)), b.tensor(np.uint8(128)))


_case(
    "QLinearMatMul",
    lambda b: b.node(
        *("QLinearMatMul", _quantized(b), b.tensor(np.float32(0.1)), b.tensor(np.uint8(128))),
        *(_small(b, 8, 4), b.tensor(np.float32(0.2)), b.tensor(np.int8(0))),
        *(b.tensor(np.float32(0.5)), b.tensor(np.uint8(128))),
    ),
    ("x", (6, 8)),
)
_case(
    "QLinearConv",
    lambda b: b.node(
        *("QLinearConv", _quantized(b), b.tensor(np.float32(0.1)), b.tensor(np.uint8(128))),
        *(_small(b, 4, 8, 1, 1), b.tensor(np.full(4, 0.2, np.float32)), b.tensor(np.zeros(4, np.int8))),
        *(b.tensor(np.float32(0.5)), b.tensor(np.uint8(128)), b.tensor(np.arange(4, dtype=np.int32))),
    ),
    IMAGE,
)
_case(
    "ConvInteger",
    lambda b: b.node(
        "ConvInteger",
        b.node("Cast", b.node("Abs", "x"), to=TensorProto.UINT8),
        _small(b, 4, 8, 3, 3, kind=np.uint8),
        b.tensor(np.uint8(1)),
    ),
    IMAGE,
)
for _name, _gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
    _case(
        _name,
        lambda b, kind=_name, gates=_gates: b.node(
            kind, "x", b.weight(2, gates * 4, 8), b.weight(2, gates * 4, 4), "", "", b.weight(2, 6, 4),
            hidden_size=4, direction="bidirectional", outputs=2,
        ),
    )  # fmt: skip


def _branch(value: float) -> Any:
    node = helper.make_node("Add", ["x", "offset"], ["inner"])
    tensor = helper.make_tensor("offset", TensorProto.FLOAT, [], [value])
    info = helper.make_tensor_value_info("inner", TensorProto.FLOAT, X[1])
    return helper.make_graph([node], "branch", [], [info], initializer=[tensor])


_case(
    "If",
    lambda b: b.node(
        "If",
        b.node("Greater", b.node("ReduceSum", "x", keepdims=0), b.tensor(np.float32(0))),
        then_branch=_branch(1.0),
        else_branch=_branch(2.0),
    ),
)


def _loop_body() -> Any:
    nodes = [
        helper.make_node("Identity", ["condition"], ["goes_on"]),
        helper.make_node("Mul", ["state", "x"], ["next"]),
        helper.make_node("ReduceSum", ["next"], ["total"], keepdims=0),
    ]
    ints, booleans, floats = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT
    inputs = [("number", ints, []), ("condition", booleans, []), ("state", floats, X[1])]
    outputs = [("goes_on", booleans, []), ("next", floats, X[1]), ("total", floats, [])]
    infos = [[helper.make_tensor_value_info(*item) for item in items] for items in (inputs, outputs)]
    return helper.make_graph(nodes, "body", *infos)


_case(
    "Loop",
    lambda b: b.node(
        "Loop", b.tensor(np.int64(3)), b.tensor(np.array(True)), b.node("Tanh", "x"), body=_loop_body(), outputs=2
    )[0],
)


def _nested_body() -> Any:
    """Return the body of a loop that multiplies and adds in turn, and reads a tensor around it in both branches."""
    branches = []
    for kind in ("Mul", "Add"):
        info = helper.make_tensor_value_info(kind, TensorProto.FLOAT, X[1])
        branches.append(helper.make_graph([helper.make_node(kind, ["state", "x"], [kind])], kind, [], [info]))
    nodes = [
        helper.make_node("Identity", ["condition"], ["goes_on"]),
        helper.make_node("Mod", ["i", "two"], ["odd"]),
        helper.make_node("Cast", ["odd"], ["is_odd"], to=TensorProto.BOOL),
        helper.make_node("If", ["is_odd"], ["next"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("ReduceSum", ["next"], ["total"], keepdims=0),
    ]
    kinds = [("i", TensorProto.INT64, []), ("condition", TensorProto.BOOL, []), ("state", TensorProto.FLOAT, X[1])]
    results = [("goes_on", TensorProto.BOOL, []), ("next", TensorProto.FLOAT, X[1]), ("total", TensorProto.FLOAT, [])]
    infos = [[helper.make_tensor_value_info(*item) for item in items] for items in (kinds, results)]
    two = helper.make_tensor("two", TensorProto.INT64, [], [2])
    return helper.make_graph(nodes, "body", *infos, initializer=[two])


_case("Loop_nested", lambda b: b.node("Loop", b.tensor(np.int64(4)), "", "x", body=_nested_body(), outputs=2))


def _scan_body() -> Any:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("a", "b", "product")]
    return helper.make_graph([helper.make_node("Mul", ["a", "b"], ["product"])], "body", infos[:2], infos[2:])


_case(
    "Scan",
    lambda b: b.node(
        *("Scan", "x", "y"), body=_scan_body(), num_scan_inputs=2, scan_input_axes=[-1, 0], scan_output_axes=[-1]
    ),
    ("x", (4, 6)),
    ("y", (6, 4)),
)
