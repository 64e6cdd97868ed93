"""Models of ONNX as exporters write them: convolutions, transformers, detection, recurrence, control flow, integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.unit.onnx.onnx_models import ModelBuilder


def linear(b: ModelBuilder, x: str, inputs: int, outputs: int) -> Any:
    """Add a product with weights, and a bias."""
    return b.node("Add", b.node("MatMul", x, b.weight(inputs, outputs, scale=0.2)), b.weight(outputs))


def transformer(batch: int | str = 4) -> Any:
    """Return two layers of a transformer that computes shapes from its input, as exporters write them."""
    b = ModelBuilder(("x", (batch, 8, 32)))
    x = "x"
    for _ in range(2):
        q, k, v = b.node("Split", linear(b, _norm(b, x), 32, 96), axis=2, num_outputs=3, outputs=3)
        size = b.node("Gather", b.node("Shape", x), b.ints(0), axis=0)
        target = b.node("Concat", size, b.ints(8), b.ints(4), b.ints(8), axis=0)
        q, k, v = (b.node("Transpose", b.node("Reshape", item, target), perm=[0, 2, 1, 3]) for item in (q, k, v))
        scores = b.node("MatMul", q, b.node("Transpose", k, perm=[0, 1, 3, 2]))
        weights = b.node("Softmax", b.node("Div", scores, b.tensor(np.float32(8**0.5))), axis=-1)
        heads = b.node("Transpose", b.node("MatMul", weights, v), perm=[0, 2, 1, 3])
        joined = b.node("Reshape", heads, b.node("Concat", size, b.ints(8), b.ints(32), axis=0))
        x = b.node("Add", x, linear(b, joined, 32, 32))
        x = b.node("Add", x, linear(b, b.node("Gelu", linear(b, _norm(b, x), 32, 64)), 64, 32))
    return b.build(x)


def _norm(b: ModelBuilder, x: str) -> Any:
    return b.node("LayerNormalization", x, b.weight(32), b.weight(32))


def residual_network() -> Any:
    """Return convolutions with shortcuts, and a classifier."""
    b = ModelBuilder(("x", (4, 4, 8, 8)))
    x = b.node("Relu", b.node("Conv", "x", b.weight(8, 4, 3, 3), b.weight(8), pads=[1] * 4))
    for _ in range(2):
        y = b.node("Conv", x, b.weight(8, 8, 3, 3, scale=0.1), b.weight(8), pads=[1] * 4)
        y = b.node("Clip", y, b.tensor(np.float32(0)), b.tensor(np.float32(6)))
        y = b.node("Conv", y, b.weight(8, 1, 3, 3), group=8, pads=[1] * 4)
        x = b.node("Relu", b.node("Add", x, b.node("Conv", y, b.weight(8, 8, 1, 1))))
    x = b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    flat = b.node("Flatten", b.node("GlobalAveragePool", x))
    return b.build(b.node("Softmax", b.node("Gemm", flat, b.weight(8, 10), b.weight(10))))


def detection_head() -> Any:
    """Return boxes and scores of a grid of anchors, the best of which are gathered."""
    b = ModelBuilder(("x", (4, 8, 6, 6)))
    maps = b.node("Conv", "x", b.weight(6, 8, 1, 1), b.weight(6))
    maps = b.node("Transpose", b.node("Reshape", maps, b.ints(0, 6, -1)), perm=[0, 2, 1])
    boxes, scores = b.node("Split", maps, b.ints(4, 2), axis=2, outputs=2)
    best, indices = b.node("TopK", b.node("ReduceMax", b.node("Sigmoid", scores), b.ints(2), keepdims=0), b.ints(4),
                           outputs=2)  # fmt: skip
    wide = b.node("Expand", b.node("Unsqueeze", indices, b.ints(2)), b.ints(4, 4, 4))
    chosen = b.node("GatherElements", boxes, wide, axis=1)
    sizes = b.node("Exp", b.node("Slice", chosen, b.ints(2), b.ints(4), b.ints(2)))
    corners = b.node("Slice", chosen, b.ints(0), b.ints(2), b.ints(2))
    return b.build(b.node("Concat", b.node("Sub", corners, sizes), b.node("Add", corners, sizes), axis=2), best)


def recurrent() -> Any:
    """Return an embedding, two recurrent layers, and logits."""
    b = ModelBuilder(("x", (6, 4, 8)))
    y, *_ = b.node("LSTM", "x", b.weight(1, 32, 8), b.weight(1, 32, 8), b.weight(1, 64), hidden_size=8, outputs=3)
    y, last = b.node("GRU", b.node("Squeeze", y, b.ints(1)), b.weight(1, 24, 8), b.weight(1, 24, 8), hidden_size=8,
                     outputs=2)  # fmt: skip
    return b.build(b.node("LogSoftmax", linear(b, b.node("Squeeze", last, b.ints(0)), 8, 16), axis=-1), y)


def quantized() -> Any:
    """Return a layer whose weights and activations are integers between nodes."""
    b = ModelBuilder(("x", (4, 16)))
    scale, zero = b.tensor(np.float32(0.05)), b.tensor(np.int8(0))
    x = b.node("DequantizeLinear", b.node("QuantizeLinear", "x", scale, zero), scale, zero)
    weight = b.tensor((np.arange(128) % 17 - 8).astype(np.int8).reshape(16, 8))
    scales = b.tensor(np.linspace(0.1, 0.2, 8, dtype=np.float32))
    y = b.node("MatMul", x, b.node("DequantizeLinear", weight, scales, b.tensor(np.zeros(8, np.int8)), axis=1))
    return b.build(b.node("Relu", b.node("Add", y, b.weight(8))))


def mixture() -> Any:
    """Return experts of which each row takes one, by a one-hot product."""
    b = ModelBuilder(("x", (8, 16)))
    choice = b.node("ArgMax", linear(b, "x", 16, 4), axis=-1, keepdims=0)
    gates = b.node("OneHot", choice, b.tensor(np.int64(4)), b.tensor(np.array([0, 1], np.float32)))
    outputs = b.node("Einsum", "x", b.weight(4, 16, 8), equation="bi,eio->beo")
    return b.build(b.node("Einsum", outputs, gates, equation="beo,be->bo"))


def bottleneck_network() -> Any:
    """Return bottlenecks with batch normalization and strides, and a classifier."""
    b = ModelBuilder(("x", (4, 4, 8, 8)))
    x = "x"
    for inputs, outputs, stride in ((4, 8, 1), (8, 16, 2)):
        y = b.node("Relu", _batch_norm(b, b.node("Conv", x, b.weight(4, inputs, 1, 1)), 4))
        y = b.node("Conv", y, b.weight(4, 4, 3, 3), pads=[1] * 4, strides=[stride] * 2)
        y = b.node("Conv", b.node("Relu", _batch_norm(b, y, 4)), b.weight(outputs, 4, 1, 1))
        short = b.node("Conv", x, b.weight(outputs, inputs, 1, 1), strides=[stride] * 2)
        x = b.node("Relu", b.node("Add", y, short))
    means = b.node("ReduceMean", x, b.ints(2, 3), keepdims=0)
    return b.build(b.node("Gemm", means, b.weight(10, 16), b.weight(10), transB=1))


def _batch_norm(b: ModelBuilder, x: str, channels: int) -> Any:
    variance = b.tensor(np.linspace(0.5, 1.5, channels, dtype=np.float32))
    return b.node("BatchNormalization", x, *(b.weight(channels) for _ in range(3)), variance)


def mobile_network() -> Any:
    """Return depthwise convolutions with squeeze and excitation."""
    b = ModelBuilder(("x", (2, 4, 8, 8)))
    x = b.node("HardSwish", b.node("Conv", "x", b.weight(8, 4, 3, 3), pads=[1] * 4, strides=[2, 2]))
    y = b.node("Conv", x, b.weight(8, 1, 3, 3), group=8, pads=[1] * 4)
    gate = b.node("Relu", b.node("Conv", b.node("GlobalAveragePool", y), b.weight(2, 8, 1, 1), b.weight(2)))
    gate = b.node("HardSigmoid", b.node("Conv", gate, b.weight(8, 2, 1, 1), b.weight(8)))
    x = b.node("Add", x, b.node("Conv", b.node("Mul", y, gate), b.weight(8, 8, 1, 1)))
    return b.build(b.node("Flatten", b.node("AveragePool", x, kernel_shape=[4, 4])))


def dense_network() -> Any:
    """Return convolutions that each see the results of all before them."""
    b = ModelBuilder(("x", (4, 4, 6, 6)))
    features = "x"
    for channels in (4, 8, 12):
        new = b.node("Conv", b.node("Relu", features), b.weight(4, channels, 3, 3), pads=[1] * 4)
        features = b.node("Concat", features, new, axis=1)
    return b.build(b.node("MaxPool", features, kernel_shape=[3, 3], strides=[3, 3]))


def segmentation_network() -> Any:
    """Return an encoder and a decoder with a connection between them."""
    b = ModelBuilder(("x", (2, 4, 8, 8)))
    first = b.node("Relu", b.node("Conv", "x", b.weight(8, 4, 3, 3), b.weight(8), pads=[1] * 4))
    low = b.node("MaxPool", first, kernel_shape=[2, 2], strides=[2, 2])
    low = b.node("GroupNormalization", low, b.weight(8), b.weight(8), num_groups=2)
    up = b.node("ConvTranspose", low, b.weight(8, 8, 2, 2), b.weight(8), strides=[2, 2])
    joined = b.node("Concat", up, first, axis=1)
    logits = b.node("Conv", joined, b.weight(2, 16, 1, 1))
    return b.build(b.node("Softmax", logits, axis=1), b.node("ArgMax", logits, axis=1, keepdims=0))


def super_resolution() -> Any:
    """Return convolutions whose channels become pixels, beside an enlarged image."""
    b = ModelBuilder(("x", (4, 2, 4, 4)))
    maps = b.node("PRelu", b.node("Conv", "x", b.weight(8, 2, 3, 3), pads=[1] * 4), b.weight(8, 1, 1))
    fine = b.node("DepthToSpace", b.node("Conv", maps, b.weight(8, 8, 1, 1)), blocksize=2)
    wide = b.node("Resize", "x", "", b.tensor(np.array([1, 1, 2, 2], np.float32)), mode="linear")
    return b.build(b.node("Tanh", b.node("Add", fine, wide)))


def vision_transformer() -> Any:
    """Return patches as tokens behind a token of the class, and one layer of attention."""
    b = ModelBuilder(("x", (4, 3, 8, 8)))
    patches = b.node("Conv", "x", b.weight(16, 3, 4, 4), b.weight(16), strides=[4, 4])
    tokens = b.node("Transpose", b.node("Reshape", patches, b.ints(4, 16, 4)), perm=[0, 2, 1])
    tokens = b.node("Concat", b.node("Expand", b.weight(1, 1, 16), b.ints(4, 1, 16)), tokens, axis=1)
    x = b.node("Add", tokens, b.weight(1, 5, 16))
    x = b.node("Add", x, _attention(b, b.node("LayerNormalization", x, b.weight(16), b.weight(16)), 5))
    first = b.node("Gather", x, b.tensor(np.int64(0)), axis=1)
    return b.build(linear(b, first, 16, 10))


def _attention(b: ModelBuilder, x: str, length: int, mask: str | None = None) -> Any:
    """Add attention of two heads of eight over rows of 16 numbers."""
    heads = [
        b.node("Transpose", b.node("Reshape", linear(b, x, 16, 16), b.ints(0, length, 2, 8)), perm=order)
        for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    ]
    scores = b.node("Mul", b.node("MatMul", heads[0], heads[1]), b.tensor(np.float32(8**-0.5)))
    scores = b.node("Where", mask, scores, b.tensor(np.float32(-1e9))) if mask else scores
    mixed = b.node("MatMul", b.node("Softmax", scores, axis=-1), heads[2])
    joined = b.node("Reshape", b.node("Transpose", mixed, perm=[0, 2, 1, 3]), b.ints(0, length, 16))
    return linear(b, joined, 16, 16)


def decoder() -> Any:
    """Return a causal decoder with rotary embeddings, and gates."""
    b = ModelBuilder(("x", (2, 8, 16)))
    mask = b.tensor(np.tril(np.ones((8, 8), bool)))
    angles = np.outer(np.arange(8), [1.0, 0.5, 0.25, 0.125]).astype(np.float32)
    cos, sin = b.tensor(np.cos(angles)), b.tensor(np.sin(angles))
    q = b.node("Reshape", linear(b, "x", 16, 16), b.ints(2, 8, 2, 8))
    left, right = b.node("Split", b.node("Transpose", q, perm=[0, 2, 1, 3]), axis=3, num_outputs=2, outputs=2)
    turned = b.node(
        "Concat",
        b.node("Sub", b.node("Mul", left, cos), b.node("Mul", right, sin)),
        b.node("Add", b.node("Mul", left, sin), b.node("Mul", right, cos)),
        axis=3,
    )
    flat = b.node("Reshape", b.node("Transpose", turned, perm=[0, 2, 1, 3]), b.ints(2, 8, 16))
    x = b.node("Add", "x", _attention(b, flat, 8, mask))
    gate = linear(b, x, 16, 32)
    hidden = b.node("Mul", b.node("Mul", gate, b.node("Sigmoid", gate)), linear(b, x, 16, 32))
    return b.build(b.node("Add", x, linear(b, hidden, 32, 16)))


def grouped_attention() -> Any:
    """Return attention in which two heads of queries share one of keys and values."""
    b = ModelBuilder(("x", (2, 4, 16)))
    q = b.node("Transpose", b.node("Reshape", linear(b, "x", 16, 32), b.ints(2, 4, 4, 8)), perm=[0, 2, 1, 3])
    k, v = (
        b.node("Transpose", b.node("Reshape", linear(b, "x", 16, 16), b.ints(2, 4, 2, 8)), perm=[0, 2, 1, 3])
        for _ in range(2)
    )
    wide = [
        b.node(
            "Reshape",
            b.node("Expand", b.node("Unsqueeze", item, b.ints(2)), b.ints(2, 2, 2, 4, 8)),
            b.ints(2, 4, 4, 8),
        )
        for item in (k, v)
    ]
    scores = b.node("Softmax", b.node("Einsum", q, wide[0], equation="bhsd,bhtd->bhst"))
    mixed = b.node("Einsum", scores, wide[1], equation="bhst,bhtd->bshd")
    return b.build(linear(b, b.node("Reshape", mixed, b.ints(2, 4, 32)), 32, 16))


def cross_attention() -> Any:
    """Return attention of one sequence to another, each after its own normalization."""
    b = ModelBuilder(("x", (2, 4, 16)), ("y", (2, 6, 16)))
    x, y = (b.node("LayerNormalization", name, b.weight(16), b.weight(16)) for name in "xy")
    scores = b.node("MatMul", linear(b, x, 16, 8), b.node("Transpose", linear(b, y, 16, 8), perm=[0, 2, 1]))
    mixed = b.node("MatMul", b.node("Softmax", scores), linear(b, y, 16, 16))
    return b.build(b.node("Add", "x", mixed), b.node("ReduceMean", scores, b.ints(-1), keepdims=0))


def embeddings() -> Any:
    """Return the mean of embedded rows and of a table of positions."""
    b = ModelBuilder(("x", (4, 6)))
    numbers = b.node("Cast", b.node("Clip", b.node("Abs", "x"), "", b.tensor(np.float32(7))), to=TensorProto.INT64)
    rows = b.node("Add", b.node("Gather", b.weight(8, 16), numbers), b.weight(6, 16))
    weights = b.node("CumSum", b.node("Sigmoid", rows), b.tensor(np.int64(1)))
    return b.build(b.node("ReduceSum", b.node("Mul", rows, weights), b.ints(1), keepdims=0))


def anchor_head() -> Any:
    """Return boxes of several levels, decoded from anchors, and the best of each class."""
    b = ModelBuilder(("x", (2, 8, 4, 4)), ("y", (2, 8, 2, 2)))
    levels = []
    for name, count in (("x", 16), ("y", 4)):
        maps = b.node("Transpose", b.node("Conv", name, b.weight(6, 8, 1, 1), b.weight(6)), perm=[0, 2, 3, 1])
        levels.append(b.node("Reshape", maps, b.ints(2, count, 6)))
    rows = b.node("Concat", *levels, axis=1)
    offsets = b.node("Slice", rows, b.ints(0), b.ints(2), b.ints(2))
    sizes = b.node("Exp", b.node("Slice", rows, b.ints(2), b.ints(4), b.ints(2)))
    scores = b.node("Sigmoid", b.node("Slice", rows, b.ints(4), b.ints(6), b.ints(2)))
    centers = b.node("Add", offsets, b.weight(20, 2))
    boxes = b.node("Concat", b.node("Sub", centers, sizes), b.node("Add", centers, sizes), axis=-1)
    return b.build(boxes, *b.node("TopK", scores, b.ints(4), axis=1, outputs=2))


def region_head() -> Any:
    """Return what a classifier says of regions of an image."""
    b = ModelBuilder(("x", (2, 8, 8, 8)))
    regions = b.tensor(np.array([[0, 0, 4, 4], [1, 1, 6, 6], [2, 0, 7, 5], [0, 3, 5, 7]], np.float32))
    pooled = b.node("RoiAlign", "x", regions, b.ints(0, 1, 1, 0), output_height=2, output_width=2)
    hidden = b.node("Relu", linear(b, b.node("Flatten", pooled), 32, 16))
    return b.build(b.node("Softmax", linear(b, hidden, 16, 4)), linear(b, hidden, 16, 8))


def quantized_convolution() -> Any:
    """Return a convolution of integers whose scales are per channel."""
    b = ModelBuilder(("x", (4, 4, 6, 6)))
    scale, zero = b.tensor(np.float32(0.05)), b.tensor(np.uint8(128))
    x = b.node("QuantizeLinear", "x", scale, zero)
    weight = b.tensor((np.arange(8 * 4 * 9) % 15 - 7).astype(np.int8).reshape(8, 4, 3, 3))
    factors = b.tensor(np.linspace(0.01, 0.02, 8, dtype=np.float32))
    weights = (weight, factors, b.tensor(np.zeros(8, np.int8)))
    y = b.node("QLinearConv", x, scale, zero, *weights, b.tensor(np.float32(0.1)), zero, pads=[1] * 4)
    y = b.node("DequantizeLinear", b.node("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2]), scale, zero)
    return b.build(y)


def dynamically_quantized() -> Any:
    """Return a product of integers whose scale follows from the contents."""
    b = ModelBuilder(("x", (4, 16)))
    x, scale, zero = b.node("DynamicQuantizeLinear", "x", outputs=3)
    weight = b.tensor((np.arange(128) % 17).astype(np.uint8).reshape(16, 8))
    total = b.node("Cast", b.node("MatMulInteger", x, weight, zero), to=TensorProto.FLOAT)
    return b.build(b.node("Mul", total, b.node("Mul", scale, b.tensor(np.float32(0.1)))))


def best_experts() -> Any:
    """Return the mixture of experts that the best two gates choose."""
    b = ModelBuilder(("x", (8, 16)))
    gates, numbers = b.node("TopK", b.node("Softmax", linear(b, "x", 16, 4)), b.ints(2), outputs=2)
    chosen = b.node("OneHot", numbers, b.tensor(np.int64(4)), b.tensor(np.array([0, 1], np.float32)))
    spread = b.node("Einsum", gates, chosen, equation="bk,bke->be")
    hidden = b.node("Relu", b.node("Einsum", "x", b.weight(4, 16, 8), equation="bi,eih->ebh"))
    return b.build(b.node("Einsum", b.node("MatMul", hidden, b.weight(4, 8, 16)), spread, equation="ebo,be->bo"))


def graph_network() -> Any:
    """Return messages between nodes of a graph by its adjacency, with edges that are scattered."""
    b = ModelBuilder(("x", (8, 16)))
    edges = np.stack([np.arange(8), (np.arange(8) * 3 + 1) % 8], axis=1).astype(np.int64)
    adjacency = b.node("ScatterND", b.tensor(np.eye(8, dtype=np.float32)), b.tensor(edges), b.weight(8))
    x = "x"
    for _ in range(2):
        x = b.node("Elu", b.node("MatMul", adjacency, linear(b, x, 16, 16)))
    return b.build(b.node("ReduceMax", x, b.ints(0), keepdims=0), b.node("LpNormalization", x, axis=1))


def _body(name: str, nodes: list[Any], inputs: list[Any], outputs: list[Any], **tensors: Any) -> Any:
    """Return the graph of a node; inputs and outputs are names with element types and shapes."""
    infos = [[helper.make_tensor_value_info(*item) for item in items] for items in (inputs, outputs)]
    initializers = [onnx.numpy_helper.from_array(array, key) for key, array in tensors.items()]
    return helper.make_graph(nodes, name, *infos, initializer=initializers)


_FLOAT, _LOOP_INPUTS = TensorProto.FLOAT, [("i", TensorProto.INT64, []), ("on", TensorProto.BOOL, [])]


def recurrent_loop(steps: int = 6) -> Any:
    """Return a recurrence over the rows of a sequence, as a loop that stacks its states."""
    b = ModelBuilder(("x", (6, 4, 8)))
    inner, outer = b.weight(8, 8), b.weight(8, 8)
    nodes = [
        helper.make_node("Identity", ["on"], ["goes_on"]),
        helper.make_node("Gather", ["x", "i"], ["row"], axis=0),
        helper.make_node("MatMul", ["row", inner], ["a"]),
        helper.make_node("MatMul", ["state", outer], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Tanh", ["c"], ["next"]),
        helper.make_node("Identity", ["next"], ["slice"]),
    ]
    outputs = [("goes_on", TensorProto.BOOL, []), ("next", _FLOAT, [4, 8]), ("slice", _FLOAT, [4, 8])]
    body = _body("body", nodes, [*_LOOP_INPUTS, ("state", _FLOAT, [4, 8])], outputs)
    start = b.tensor(np.zeros((4, 8), np.float32))
    state, states = b.node("Loop", b.tensor(np.int64(steps)), "", start, body=body, outputs=2)
    return b.build(linear(b, state, 8, 4), b.node("Transpose", states, perm=[1, 0, 2]))


def iteration() -> Any:
    """Return the steps of a solver that ends when the rest is small."""
    b = ModelBuilder(("x", (4, 8)))
    matrix = b.tensor(np.eye(8, dtype=np.float32) * np.float32(0.5) + np.float32(0.01))
    nodes = [
        helper.make_node("MatMul", ["state", matrix], ["next"]),
        helper.make_node("Abs", ["next"], ["sizes"]),
        helper.make_node("ReduceMax", ["sizes"], ["rest"], keepdims=0),
        helper.make_node("Greater", ["rest", "small"], ["goes_on"]),
    ]
    outputs = [("goes_on", TensorProto.BOOL, []), ("next", _FLOAT, [4, 8])]
    inputs = [*_LOOP_INPUTS, ("state", _FLOAT, [4, 8])]
    body = _body("body", nodes, inputs, outputs, small=np.float32(0.05))
    state = b.node("Loop", b.tensor(np.int64(20)), b.tensor(np.array(True)), "x", body=body)
    return b.build(b.node("Add", state, "x"))


def scanned() -> Any:
    """Return a scan from both ends of a sequence."""
    b = ModelBuilder(("x", (4, 6, 8)))
    weight = b.weight(8, 8)
    results = []
    for direction in (0, 1):
        nodes = [
            helper.make_node("MatMul", ["state", weight], ["a"]),
            helper.make_node("Add", ["a", "row"], ["b"]),
            helper.make_node("Sigmoid", ["b"], ["next"]),
            helper.make_node("Mul", ["next", "row"], ["slice"]),
        ]
        infos = [("state", _FLOAT, [4, 8]), ("row", _FLOAT, [4, 8])]
        body = _body("body", nodes, infos, [("next", _FLOAT, [4, 8]), ("slice", _FLOAT, [4, 8])])
        ways = {f"scan_{side}_directions": [direction] for side in ("input", "output")}
        axes = {"scan_input_axes": [1], "scan_output_axes": [1]}
        start = b.tensor(np.zeros((4, 8), np.float32))
        results.append(b.node("Scan", start, "x", body=body, num_scan_inputs=1, outputs=2, **ways, **axes))
    states = b.node("Add", results[0][0], results[1][0])
    return b.build(states, b.node("Concat", results[0][1], results[1][1], axis=2))


def early_exit() -> Any:
    """Return a second layer only where the first one is not sure."""
    b = ModelBuilder(("x", (4, 16)))
    first = b.node("Relu", linear(b, "x", 16, 8))
    sure = b.node("Less", b.node("ReduceMax", first, keepdims=0), b.tensor(np.float32(0.1)))
    weights = [b.weight(8, 16), b.weight(16, 8)]
    nodes = [
        helper.make_node("MatMul", [first, weights[0]], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", weights[1]], ["deep"]),
    ]
    branches = [
        _body("short", [helper.make_node("Identity", [first], ["same"])], [], [("same", _FLOAT, [4, 8])]),
        _body("long", nodes, [], [("deep", _FLOAT, [4, 8])]),
    ]
    y = b.node("If", sure, then_branch=branches[0], else_branch=branches[1])
    return b.build(b.node("Softmax", linear(b, y, 8, 4)))


MODELS: dict[str, tuple[Callable[[], Any], list[dict[str, Any]]]] = {
    "transformer": (
        transformer,
        [
            {"x": ("d", None, None)},
            {"w2": (None, "m"), "w11": ("m", None)},
            {"x": ("d", "m", None)},
            {"x": ("d", None, None), "w15": (None, "m"), "w17": ("m", None)},
        ],
    ),
    "residual_network": (
        residual_network,
        [{"x": ("d", None, None, None)}, {"w0": ("m", None, None, None)}, {"x": ("d", "m", None, None)}],
    ),
    "detection_head": (detection_head, [{"x": ("d", None, None, None)}, {"x": (None, "m", "d", None)}]),
    "recurrent": (recurrent, [{"x": (None, "d", None)}, {"x": ("d", None, "m")}]),
    "quantized": (quantized, [{"x": ("d", "m")}, {"x": ("d", None), "w2": (None, "m")}]),
    "mixture": (mixture, [{"x": ("d", None)}, {"w4": ("m", None, None)}, {"w4": (None, "d", "m")}]),
    "bottleneck_network": (bottleneck_network, [{"x": ("d", None, None, None)}, {"x": (None, "m", "d", None)}]),
    "mobile_network": (mobile_network, [{"x": ("d", "m", None, None)}]),
    "dense_network": (dense_network, [{"x": ("d", None, None, None)}, {"w0": ("m", None, None, None)}]),
    "segmentation_network": (segmentation_network, [{"x": ("d", None, None, None)}, {"x": (None, None, None, "m")}]),
    "super_resolution": (super_resolution, [{"x": ("d", "m", None, None)}]),
    "vision_transformer": (vision_transformer, [{"x": ("d", None, None, None)}, {"w0": ("m", None, None, None)}]),
    "decoder": (decoder, [{"x": ("d", None, None)}, {"w0": (None, "m")}, {"x": (None, "m", None)}]),
    "grouped_attention": (grouped_attention, [{"x": ("d", None, None)}, {"w0": (None, "m")}]),
    "cross_attention": (cross_attention, [{"x": ("d", None, None)}, {"y": (None, "d", "m")}]),
    "embeddings": (embeddings, [{"x": ("d", None)}, {"x": (None, "d")}]),
    "anchor_head": (anchor_head, [{"x": ("d", None, None, None)}, {"y": (None, "m", None, None)}]),
    "region_head": (region_head, [{"x": (None, "d", None, None)}]),
    "quantized_convolution": (quantized_convolution, [{"x": ("d", "m", None, None)}]),
    "dynamically_quantized": (dynamically_quantized, [{"x": ("d", None)}, {"x": (None, "m")}]),
    "best_experts": (best_experts, [{"x": ("d", None)}, {"x": (None, "m")}]),
    "graph_network": (graph_network, [{"x": ("d", None)}, {"x": (None, "m")}]),
    "recurrent_loop": (
        recurrent_loop,
        [{"x": (None, "d", None)}, {"x": ("d", None, "m")}, {"w0": (None, "m")}],
    ),
    "iteration": (iteration, [{"x": ("d", None)}, {"x": ("d", "m")}]),
    "scanned": (scanned, [{"x": ("d", None, None)}, {"x": (None, "m", "d")}, {"w0": (None, "m")}]),
    "early_exit": (early_exit, [{"x": ("d", None)}, {"w3": (None, "m")}]),
}
"""Models by name, with shardings of their arguments to try."""
