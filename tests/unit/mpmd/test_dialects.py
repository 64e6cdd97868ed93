"""Pipelines in dialects other than StableHLO, against one device."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

import shardy_py as sdy
from shardy_py.testing import run_pipeline

TOPOLOGY = {"m0": {"x": 2}, "m1": {"x": 2}}
NAMES = {"first": "m0", "second": "m1"}
X, W, V, Y = (f"tensor<{shape}xf32>" for shape in ("8x16", "16x16", "16x4", "8x4"))
FUNCTIONS = {
    "my.add": np.add,
    "my.matmul": np.matmul,
    "my.transpose": np.transpose,
    "my.zeros": lambda op: np.zeros(op.results[0].shape, np.float32),
}
STEP = f"""\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%w: {W} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}}, %v: {V}, ARGUMENTS) -> ({W}, {V}) {{
  %dw = "my.zeros"() : () -> {W}
  %dv = "my.zeros"() : () -> {V}
CALLS
  %nw = "my.add"(%w, %gLAST#0) : ({W}, {W}) -> {W}
  %nv = "my.add"(%v, %gLAST#1) : ({V}, {V}) -> {V}
  return %nw, %nv : {W}, {V}
}}
func.func private @gradients(%w: {W}, %v: {V}, %dw: {W}, %dv: {V}, %x: {X}) -> ({W}, {V}) {{
  %h = mpmd.named_computation<"first"> (%w, %x) (%a: {W}, %b: {X}) {{
    %r = "my.matmul"(%b, %a) : ({X}, {W}) -> {X}
    mpmd.return %r : {X}
  }} : ({W}, {X}) -> {X}
  %y = mpmd.named_computation<"second"> (%v, %h) (%a: {V}, %b: {X}) {{
    %r = "my.matmul"(%b, %a) : ({X}, {V}) -> {Y}
    mpmd.return %r : {Y}
  }} : ({V}, {X}) -> {Y}
  %gh, %gv = mpmd.named_computation<"second"(1)> (%v, %h, %y) (%a: {V}, %b: {X}, %g: {Y}) {{
    %at = "my.transpose"(%a) : ({V}) -> tensor<4x16xf32>
    %r = "my.matmul"(%g, %at) : ({Y}, tensor<4x16xf32>) -> {X}
    %bt = "my.transpose"(%b) : ({X}) -> tensor<16x8xf32>
    %s = "my.matmul"(%bt, %g) : (tensor<16x8xf32>, {Y}) -> {V}
    mpmd.return %r, %s : {X}, {V}
  }} : ({V}, {X}, {Y}) -> ({X}, {V})
  %gw = mpmd.named_computation<"first"(1)> (%x, %gh) (%b: {X}, %g: {X}) {{
    %bt = "my.transpose"(%b) : ({X}) -> tensor<16x8xf32>
    %s = "my.matmul"(%bt, %g) : (tensor<16x8xf32>, {X}) -> {W}
    mpmd.return %s : {W}
  }} : ({X}, {X}) -> {W}
  %1 = "my.add"(%dw, %gw) : ({W}, {W}) -> {W}
  %2 = "my.add"(%dv, %gv) : ({V}, {V}) -> {V}
  return %1, %2 : {W}, {V}
}}
"""


def training_step(microbatches: int) -> str:
    """Return a training step of two products, whose loss is half the square of the last one."""
    calls, total = [], "%dw, %dv"
    for number in range(microbatches):
        attributes = f"{{call_counter = {number} : ui32}}"
        types = f"({W}, {V}, {W}, {V}, {X}) -> ({W}, {V})"
        calls.append(f"  %g{number}:2 = mpmd.call @gradients(%w, %v, {total}, %x{number}) {attributes} : {types}")
        total = f"%g{number}#0, %g{number}#1"
    arguments = ", ".join(f"%x{number}: {X}" for number in range(microbatches))
    text = STEP.replace("ARGUMENTS", arguments).replace("CALLS", "\n".join(calls))
    return text.replace("LAST", str(microbatches - 1))


def tutorial_plugin() -> ModuleType:
    """Return the dialect of the tutorial, with an op that transposes."""
    my = sdy.Dialect("my")
    my.op("my.add", rule="..., ... -> ...", traits=[sdy.Elementwise, sdy.Pure, sdy.Sum])
    my.op("my.matmul", rule="i k, k j -> i j", reduction="k", traits=[sdy.Pure])
    my.op("my.transpose", rule="i j -> j i", traits=[sdy.Pure])
    my.op("my.zeros", traits=[sdy.ConstantLike, sdy.Pure], local=sdy.local_by_types)
    plugin = ModuleType("first_dialect")
    plugin.shardy_register_dialects = sdy.hookimpl(lambda: [my])
    return plugin


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    """Return random arrays."""
    generator = np.random.default_rng(0)
    return [(generator.normal(size=shape) / 4).astype("float32") for shape in shapes]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "built"), [("GPipe", "GPipe"), ("1F1B", "1F1B"), ("Circular", None), ("ZeroBubbleH1", "ZB-H1")]
)
def test_a_training_step_of_the_dialect_of_the_tutorial_is_that_of_one_device(schedule: str, built: str | None) -> None:
    """Weights after a step are those that numpy computes, in each schedule, with weights sharded in a stage."""
    program = sdy.mpmd.partition(training_step(4), TOPOLOGY, NAMES, schedule=schedule, plugins=[tutorial_plugin()])
    if built is not None:
        assert program.schedule().orders == sdy.mpmd.build_schedule(built, meshes=2, microbatches=4).orders
    w, v, *xs = arrays((16, 16), (16, 4), *[(8, 16)] * 4)
    new_w, new_v = run_pipeline(program, FUNCTIONS, w, v, *xs)
    np.testing.assert_allclose(new_v, v + sum((x @ w).T @ (x @ w @ v) for x in xs), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(new_w, w + sum(x.T @ (x @ w @ v @ v.T) for x in xs), rtol=1e-4, atol=1e-5)


def test_an_op_without_a_function_is_an_error() -> None:
    """The message names the op."""
    program = sdy.mpmd.partition(training_step(1), TOPOLOGY, NAMES, plugins=[tutorial_plugin()])
    functions = {name: function for name, function in FUNCTIONS.items() if name != "my.matmul"}
    with pytest.raises(sdy.OptionError, match=r"no function for my\.matmul"):
        run_pipeline(program, functions, *arrays((16, 16), (16, 4), (8, 16)))


def onnx_model() -> Any:
    """Return a model with two scopes, and a node outside of both."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    up, down, bias = arrays((16, 64), (64, 16), (16,))
    initializers = [
        onnx.numpy_helper.from_array(array, name) for name, array in {"up": up, "down": down, "bias": bias}.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "up"], ["h"], name="/first/MatMul"),
        helper.make_node("Relu", ["h"], ["a"], name="/first/Relu"),
        helper.make_node("Gemm", ["a", "down", "bias"], ["b"], name="/second/Gemm"),
        helper.make_node("Softmax", ["b"], ["s"], name="/second/Softmax", axis=-1),
        helper.make_node("Add", ["s", "x"], ["y"], name="/Add"),
    ]
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [8, 16]) for name in "xy")
    graph = helper.make_graph(nodes, "model", [x], [y], initializer=initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def test_a_model_of_onnx_runs_on_two_meshes() -> None:
    """Nodes go to the mesh of their scope, and results are those of ONNX's own evaluator."""
    model = onnx_model()
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator

    program = sdy.mpmd.partition(model, TOPOLOGY, NAMES)
    assert [op.name for op in program.fragments("m1")[0].regions[0].block.ops][:3] == [
        "onnx.Gemm",
        "onnx.Add",
        "onnx.Softmax",
    ]
    functions = {
        "onnx.MatMul": np.matmul,
        "onnx.Gemm": np.matmul,
        "onnx.Add": np.add,
        "onnx.Relu": lambda x: np.maximum(x, 0),
        "onnx.Softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    }
    (x,) = arrays((8, 16))
    (y,) = run_pipeline(program, functions, x, *map(numpy_helper.to_array, model.graph.initializer))
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_arguments_of_a_model_are_sharded_by_their_names() -> None:
    """The weight of a scope is sharded over the axis of its mesh, and what it is multiplied to, too."""
    program = sdy.mpmd.partition(onnx_model(), TOPOLOGY, NAMES, in_shardings={"up": (None, "x")})
    _, up, down, _ = program.main.regions[0].block.arguments
    assert up.type.text.startswith('!mpmd.mesh_tensor<"m0", tensor<16x64xf32>, sharding=<@mesh, [{}, {"x"}]>')
    assert down.type.text.startswith('!mpmd.mesh_tensor<"m1", tensor<64x16xf32>, sharding=<@mesh, [{"x"}, {}]>')
    with pytest.raises(sdy.OptionError, match="side"):
        sdy.mpmd.partition(onnx_model(), TOPOLOGY, NAMES, in_shardings={"side": ("x",)})


def test_a_name_without_ops_in_its_scope_has_no_effect() -> None:
    """All ops are put where inference wants them."""
    program = sdy.mpmd.partition(onnx_model(), TOPOLOGY, {"second": "m1", "third": "m0"})
    assert not program.fragments("m0")
    assert len(program.fragments("m1")) == 1
