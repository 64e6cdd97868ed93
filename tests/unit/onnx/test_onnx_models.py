"""Models of ONNX: local models compute what one device computes, and shardings go out and come in again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="models are made by the package onnx: pip install 'shardy_py[onnx]'")
pytest.importorskip("onnxruntime", reason="models are run by onnxruntime: pip install 'shardy_py[onnx]'")
pytest.importorskip("click", reason="the command line is made with click")

import onnx
from click import testing

import shardy_py as sdy
from shardy_py.errors import OptionError, ParseError, UnsupportedError
from tests.unit.onnx.onnx_models import ModelBuilder, assert_runs_sharded


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
}


@pytest.mark.parametrize("mesh", [{"d": 2, "m": 2}, {"d": 4, "m": 2}], ids=["4", "8"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs_on_devices(name: str, mesh: dict[str, int]) -> None:
    """The local models of four and eight devices compute what the model computes on one."""
    make, ways = MODELS[name]
    model = make()
    for way in ways:
        assert_runs_sharded(model, mesh, way)


@pytest.mark.parametrize("name", MODELS)
def test_all_nodes_of_a_model_have_rules(name: str) -> None:
    """No operator of the models is left without a rule."""
    assert sdy.propagate(MODELS[name][0](), {"d": 2}).coverage.is_complete


def test_a_symbolic_batch_is_sharded() -> None:
    """Shardings pass through dimensions that have a symbol for a size, and the sizes that nodes compute from them."""
    model = transformer("batch")
    result = sdy.propagate(model, {"d": 2}, in_shardings={"x": ("d", None, None)})
    assert str(result.results[0]) == '<@mesh, [{"d"}, {}, {}]>'
    with pytest.raises(UnsupportedError, match="argument 0"):
        result.local()
    sized = sdy.propagate(model, {"d": 2}, in_shardings={"x": ("d", None, None)}, sizes={"batch": 4})
    assert sized.local().arguments[0].shard_shape == (2, 8, 32)
    with pytest.raises(OptionError, match="'rows' is not a symbolic size"):
        sdy.propagate(model, {"d": 2}, sizes={"rows": 4})


def test_a_column_and_a_row_product_send_one_sum() -> None:
    """Weights that are sharded by columns, then by rows, need one all-reduce, after which the bias is added once."""
    b = ModelBuilder(("x", (4, 8)))
    hidden = b.node("Relu", b.node("Gemm", "x", b.weight(8, 16), b.weight(16)))
    model = b.build(b.node("Gemm", hidden, b.weight(16, 8), b.weight(8)))
    local = assert_runs_sharded(model, {"m": 4}, {"w0": (None, "m")})
    assert [item.kind for item in local.collectives] == ["all_reduce"]
    assert [node.op_type for node in local.module.graph.node if node.domain] == ["AllReduce"]


def test_shardings_go_out_by_the_specification_of_onnx() -> None:
    """A node says on which devices the parts of its tensors are; devices of one part are a group."""
    b = ModelBuilder(("x", (4, 8)))
    model = b.build(b.node("MatMul", "x", b.weight(8, 6)))
    module = sdy.propagate(model, {"d": 2, "m": 2}, in_shardings={"x": ("d", None), "w0": (None, "m")}).module
    assert module.ir_version >= 11
    (configuration,) = module.configuration
    assert (configuration.name, configuration.num_devices) == ("shardy", 4)
    (node,) = module.graph.node
    x, w, y = node.device_configurations[0].sharding_spec
    assert [item.tensor_name for item in (x, w, y)] == ["x", "w0", "t0_0"]
    assert [(dim.axis, dim.simple_sharding[0].num_shards) for dim in y.sharded_dim] == [(0, 2), (1, 2)]
    assert list(y.device) == [0, 1, 2, 3]
    assert {item.key: list(item.value) for item in x.index_to_device_group_map} == {-1: [0, 1], -2: [2, 3]}
    assert {item.key: list(item.value) for item in w.index_to_device_group_map} == {-1: [0, 2], -2: [1, 3]}
    onnx.checker.check_model(module)


def test_shardings_come_in_again(tmp_path: Path) -> None:
    """A file that was written is read with its mesh and shardings."""
    path = tmp_path / "model.onnx"
    onnx.save(residual_network(), path)
    first = sdy.propagate(path, {"d": 2}, in_shardings={"x": ("d", None, None, None)})
    again = sdy.propagate(first.module)
    assert list(map(str, again.arguments)) == list(map(str, first.arguments))
    assert str(again.results[0]) == '<@mesh, [{"d"}, {}]>'


def test_the_command_line_takes_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is propagated, written, cut into a local model and run."""
    from shardy_py.cli.app import shardy

    monkeypatch.chdir(tmp_path)
    onnx.save(transformer("batch"), "m.onnx")
    sharded = ["--mesh", "d=2", "--in-sharding", "x=d,None,None"]
    invoke = testing.CliRunner().invoke
    done = invoke(shardy, ["propagate", "m.onnx", *sharded, "-q", "-o", "out.onnx"])
    assert done.exit_code == 0, done.output
    assert onnx.load("out.onnx").configuration[0].num_devices == 2
    done = invoke(shardy, ["local", "out.onnx", "--size", "batch=4", "-q", "-o", "local.onnx"])
    assert done.exit_code == 0, done.output
    assert onnx.load("local.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
    done = invoke(shardy, ["local", "out.onnx", "--size", "batch=4", "--run", "--compare"])
    assert done.exit_code == 0, done.output
    assert "the results are the same" in done.output
    done = invoke(shardy, ["explain", "m.onnx", *sharded, "--value", "t1_0", "--dim", "0"])
    assert '"d" comes from function argument x' in done.output


def test_stdin_is_read_by_format() -> None:
    """The bytes of a model have no mark of their own: the command line names their frontend."""
    from shardy_py.cli.app import shardy

    data = quantized().SerializeToString()
    sharded = ["--mesh", "d=2", "--in-sharding", "x=d,None"]
    done = testing.CliRunner().invoke(shardy, ["propagate", "-", "--format", "onnx", *sharded, "-q"], input=data)
    assert done.exit_code == 0, done.output
    assert '"shardy.sharding.x": "<@mesh, [{\\"d\\"}, {}]>"' in done.stdout
    done = testing.CliRunner().invoke(shardy, ["propagate", "-", "--format", "none", *sharded], input=data)
    assert done.exit_code == 2
    assert "there is no frontend 'none'" in done.stderr


def test_jax_does_not_run_models() -> None:
    """The error says how a model runs."""
    result = sdy.propagate(quantized(), {"d": 2}, in_shardings={"x": ("d", None)})
    with pytest.raises(UnsupportedError, match="JAX does not run programs of the frontend 'onnx'"):
        result.to_jax()


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    """A file of other bytes, and a model that contradicts itself, are errors."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x01no model")
    with pytest.raises(ParseError, match=r"is not a model of ONNX|has no graph"):
        sdy.propagate(path, {"d": 2})
    node = onnx.helper.make_node("MatMul", ["x", "x"], ["y"])
    info = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4, 8])
    graph = onnx.helper.make_graph([node], "main", [info], [onnx.helper.make_empty_tensor_value_info("y")])
    with pytest.raises((ParseError, UnsupportedError), match=r"ONNX refuses the model|cannot tell the shape"):
        sdy.propagate(onnx.helper.make_model(graph), {"d": 2})
