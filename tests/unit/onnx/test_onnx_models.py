"""Models of ONNX: local models compute what one device computes, and shardings go out and come in again."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="models are made by the package onnx: pip install 'shardy_py[onnx]'")
pytest.importorskip("onnxruntime", reason="models are run by onnxruntime: pip install 'shardy_py[onnx]'")
pytest.importorskip("click", reason="the command line is made with click")

import numpy as np
import onnx
from click import testing

import shardy_py as sdy
from shardy_py.errors import OptionError, ParseError, UnsupportedError
from shardy_py.onnx.run_local import run_local
from tests.unit.onnx.example_models import MODELS, quantized, recurrent_loop, residual_network, transformer
from tests.unit.onnx.onnx_models import ModelBuilder, assert_runs_sharded, random_inputs, run_whole

QUICK = ("quantized", "recurrent_loop", "early_exit")
"""Models that run in the default lane; the others are slow."""
CASES = [
    pytest.param(name, mesh, marks=() if name in QUICK and len(mesh) == 1 else pytest.mark.slow, id=f"{name}-{count}")
    for name in MODELS
    for count, mesh in ((2, {"d": 2}), (4, {"d": 2, "m": 2}), (8, {"d": 4, "m": 2}))
]


@pytest.mark.parametrize(("name", "mesh"), CASES)
def test_a_model_runs_on_devices(name: str, mesh: dict[str, int]) -> None:
    """The local models of two to eight devices compute what the model computes on one."""
    make, ways = MODELS[name]
    model = make()
    for way in ways:
        named = {argument: tuple(axis if axis in mesh else None for axis in axes) for argument, axes in way.items()}
        assert_runs_sharded(model, mesh, named)


@pytest.mark.slow
def test_all_nodes_of_the_models_have_rules() -> None:
    """No operator of the models is left without a rule."""
    incomplete = [
        name for name, (make, _) in MODELS.items() if not sdy.propagate(make(), {"d": 2}).coverage.is_complete
    ]
    assert incomplete == []


def test_shardings_pass_through_loops() -> None:
    """What a loop carries and what it stacks is sharded like what it reads; the loop is written with both."""
    local = assert_runs_sharded(MODELS["recurrent_loop"][0](), {"d": 2}, {"x": (None, "d", None)})
    (loop,) = [node for node in local.module.graph.node if node.op_type == "Loop"]
    (body,) = [item.g for item in loop.attribute]
    assert [[dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in body.output] == [[], [2, 8], [2, 8]]


@pytest.mark.parametrize("steps", [0, -1])
def test_a_loop_that_communicates_may_run_no_iteration(steps: int) -> None:
    """Its stacked outputs are empty then."""
    model = recurrent_loop(steps)
    result = sdy.propagate(model, {"d": 2}, in_shardings={"x": (None, None, "d")}, explicit_collectives=True)
    local, inputs = result.local(optimize=False), random_inputs(model)
    (body,) = [item.g for node in local.module.graph.node if node.op_type == "Loop" for item in node.attribute]
    assert any(node.domain for node in body.node)
    arrays = inputs | {item.name: onnx.numpy_helper.to_array(item) for item in model.graph.initializer}
    results = local.run(*[arrays[name] for name in result.program.origin.argument_names])
    for array, expected in zip(results, run_whole(model, inputs), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-4)


def test_a_branch_communicates_on_all_devices_or_on_none() -> None:
    """The sum of partial products stays in the branch; a condition that differs between devices is an error."""
    model = MODELS["early_exit"][0]()
    module = assert_runs_sharded(model, {"m": 2}, {"w3": (None, "m")}).module
    (branch,) = [node for node in module.graph.node if node.op_type == "If"]
    assert "AllReduce" in [node.op_type for item in branch.attribute for node in item.g.node]
    info = onnx.helper.make_tensor_value_info("condition", onnx.TensorProto.BOOL, [])
    branch.input[0] = "condition"
    del module.graph.input[:]
    module.graph.input.append(info)
    start = list(module.graph.node).index(branch)
    del module.graph.node[:start], module.graph.output[:]
    with pytest.raises(UnsupportedError, match="devices do not agree on condition"):
        run_local(module, 2, [np.array([True, False])])


def test_a_symbolic_batch_is_sharded() -> None:
    """Shardings pass through dimensions that have a symbol for a size, and the sizes that nodes compute from them."""
    model = transformer("batch")
    result = sdy.propagate(model, {"d": 2}, in_shardings={"x": ("d", None, None)})
    assert str(result.results[0]) == '<@mesh, [{"d"}, {}, {}]>'
    local = result.local()
    (reshape, *_) = [node for node in local.module.graph.node if node.op_type == "Reshape"]
    arrays = {item.name: onnx.numpy_helper.to_array(item) for item in local.module.graph.initializer}
    assert arrays[reshape.input[1]].tolist() == [-1, 8, 4, 8]
    names = result.program.origin.argument_names
    tensors = {item.name: onnx.numpy_helper.to_array(item) for item in model.graph.initializer}
    for batch in (2, 6):
        x = np.random.default_rng(batch).standard_normal((batch, 8, 32)).astype(np.float32)
        (actual,) = local.run(*[tensors.get(name, x) for name in names])
        np.testing.assert_allclose(actual, run_whole(model, {"x": x})[0], rtol=1e-4, atol=1e-4)
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


def test_functions_of_a_model_are_sharded_by_their_bodies() -> None:
    """They are put in the places of their nodes, also one within the other, with attributes."""
    helper, opset = onnx.helper, onnx.helper.make_opsetid("", 21)
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    inner = helper.make_function("own", "Inner", ["a"], ["b"], [leaky], [opset], ["slope"])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Inner", ["h"], ["y"], domain="own", slope=0.5),
    ]
    own = helper.make_opsetid("own", 1)
    outer = helper.make_function("own", "Outer", ["x", "w"], ["y"], nodes, [opset, own])
    types = {"x": [4, 6], "w": [6, 8], "y": [4, 8]}
    x, w, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in types.items())
    graph = helper.make_graph([helper.make_node("Outer", ["x", "w"], ["y"], domain="own")], "model", [x, w], [y])
    model = helper.make_model(graph, functions=[inner, outer], opset_imports=[opset, own], ir_version=10)
    local = assert_runs_sharded(model, {"d": 2}, {"w": (None, "d")})
    assert [node.op_type for node in local.module.graph.node if node.op_type != "Identity"] == ["MatMul", "LeakyRelu"]
    assert not local.collectives


def _model_of_functions(*functions: onnx.FunctionProto) -> onnx.ModelProto:
    """Return a model with one node of the first of its functions."""
    helper = onnx.helper
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4, 8]) for name in "xy")
    node = helper.make_node(functions[0].name, ["x"], ["y"], domain="own", name="/stage1/block")
    graph = helper.make_graph([node], "model", [x], [y])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)


def _function(name: str, node: onnx.NodeProto, *, version: int = 21, **defaults: int) -> onnx.FunctionProto:
    """Return a function of one node from "a" to "b"."""
    helper = onnx.helper
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("own", 1)]
    values = [helper.make_attribute(*item) for item in defaults.items()]
    return helper.make_function("own", name, ["a"], ["b"], [node], opsets, attribute_protos=values)


def test_functions_of_a_model_have_the_defaults_of_their_attributes() -> None:
    """An attribute that a node does not name has its default: a softmax over the first dimension needs all of it."""
    softmax = onnx.helper.make_node("Softmax", ["a"], ["b"])
    softmax.attribute.append(onnx.AttributeProto(name="axis", ref_attr_name="dim", type=onnx.AttributeProto.INT))
    call = onnx.helper.make_node("Inner", ["a"], ["b"], domain="own")
    for has_reference in (False, True):
        if has_reference:
            call.attribute.append(onnx.AttributeProto(name="dim", ref_attr_name="no", type=onnx.AttributeProto.INT))
        model = _model_of_functions(_function("Outer", call), _function("Inner", softmax, dim=0))
        model.functions[0].attribute.extend(["no"] * has_reference)
        local = assert_runs_sharded(model, {"d": 2}, {"x": (None, "d")})
        assert not local.collectives


def test_nodes_of_functions_are_in_the_scopes_of_their_nodes() -> None:
    """Names of scopes, by which programs are put on several meshes, hold for bodies of functions."""
    call = onnx.helper.make_node("Inner", ["a"], ["b"], domain="own", name="inner")
    model = _model_of_functions(
        _function("Outer", call), _function("Inner", onnx.helper.make_node("Relu", ["a"], ["b"]))
    )
    (node,) = sdy.propagate(model, {"d": 2}).module.graph.node
    assert node.op_type == "Relu"
    assert node.name.startswith("/stage1/block/inner/Relu")


def test_functions_of_other_versions_of_operators_stay() -> None:
    """So do those that they call."""
    outer = _function("Outer", onnx.helper.make_node("Inner", ["a"], ["b"], domain="own"), version=20)
    model = _model_of_functions(outer, _function("Inner", onnx.helper.make_node("Relu", ["a"], ["b"])))
    result = sdy.propagate(model, {"d": 2}, in_shardings={"x": ("d",)})
    assert {item.name for item in result.module.functions} == {"Outer", "Inner"}


def test_recursive_functions_of_a_model_are_refused() -> None:
    """The error is one of the package, not one of ONNX's inliner."""
    model = _model_of_functions(_function("Loop", onnx.helper.make_node("Loop", ["a"], ["b"], domain="own")))
    with pytest.raises(ParseError, match="cannot inline the functions of the model"):
        sdy.propagate(model, {"d": 2})


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


def test_a_plan_is_written_for_propagate() -> None:
    """A user of ONNX gets arguments of `propagate`, not those of JAX."""
    pytest.importorskip("highspy", reason="plans are made by highspy: pip install 'shardy_py[plan]'")
    model, words = quantized(), {}
    plan = sdy.plan(model, {"d": 2}, machine="cpu-8", gap=0.5, known_layouts=False)
    assert "jax" not in str(plan)
    exec(str(plan), words)
    result = sdy.propagate(model, {"d": 2}, in_shardings=words["in_shardings"])
    axes = {
        name: [[axis.name for axis in dim.axes] for dim in item.dim_shardings] for name, item in plan.inputs.items()
    }
    for name, sharding in zip(result.program.origin.argument_names, result.arguments, strict=True):
        assert [[axis.name for axis in dim.axes] for dim in sharding.dim_shardings] == axes[name]


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


def test_a_loop_reads_axes_that_follow_from_constants() -> None:
    """ONNX infers no type behind a slice whose axes a node computes; they are known all the same."""
    b = ModelBuilder(("x", (4, 3, 8)), ("h", (4, 8)))
    axes = b.node("Unsqueeze", b.tensor(np.array(1)), b.ints(0))
    cut = b.node("Slice", "x", b.ints(0), b.ints(3), axes)
    model = b.build(b.node("Add", b.node("ReduceSum", cut, axes, keepdims=0), "h"))
    result = sdy.propagate(model, {"d": 2}, in_shardings={"h": ("d", None)})
    assert str(result.sharding("x")) == '<@mesh, [{"d"}, {}, {}]>'


@pytest.fixture(scope="module")
def two_symbols() -> onnx.ModelProto:
    """A model whose reshape joins two dimensions that have symbols for sizes."""
    b = ModelBuilder(("x", ("batch", "steps", 8)))
    rows = b.node("Reshape", "x", b.ints(-1, 8))
    return b.build(b.node("MatMul", rows, b.weight(8, 6)))


def _assert_runs_dynamic(result: sdy.Result, model: onnx.ModelProto, x: np.ndarray) -> None:
    tensors = {item.name: onnx.numpy_helper.to_array(item) for item in model.graph.initializer}
    outputs = result.local().run(*[tensors.get(name, x) for name in result.program.origin.argument_names])
    for output, expected in zip(outputs, run_whole(model, {"x": x}), strict=True):
        np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


def test_a_joined_dynamic_size_is_sharded_as_its_major_part(two_symbols: onnx.ModelProto) -> None:
    """The rows of all batches are sharded as the batches are; the local node leaves their number open."""
    result = sdy.propagate(two_symbols, {"d": 2}, in_shardings={"x": ("d", None, None)})
    assert str(result.results[0]) == '<@mesh, [{"d"}, {}]>'
    _assert_runs_dynamic(result, two_symbols, np.random.default_rng(0).random((4, 3, 8), np.float32))


def test_dynamic_sizes_without_equal_parts_need_a_number(two_symbols: onnx.ModelProto) -> None:
    """A local model pads no dynamic size, and says so when it is asked for; with a number it pads."""
    options = {"mesh": {"d": 2}, "in_shardings": {"x": ("d", None, None)}}
    x, result = np.random.default_rng(0).random((3, 3, 8), np.float32), sdy.propagate(two_symbols, **options)
    with pytest.raises(OptionError, match=r"not 2 equal parts.*\n.*give the size as a number"):
        _assert_runs_dynamic(result, two_symbols, x)
    with pytest.raises(OptionError, match="frontend onnx does not pad dynamic sizes"):
        result.local(pad_dynamic_sizes=True)
    _assert_runs_dynamic(sdy.propagate(two_symbols, **options, sizes={"batch": 3, "steps": 3}), two_symbols, x)


def test_a_device_takes_its_part_of_a_dynamic_size(two_symbols: onnx.ModelProto) -> None:
    """The size of a part is computed as the model runs; one that does not divide is an error."""
    result = sdy.propagate(
        two_symbols, {"d": 2}, in_shardings={"x": (None, None, None)}, out_shardings={0: ("d", None)}
    )
    _assert_runs_dynamic(result, two_symbols, np.random.default_rng(0).random((2, 3, 8), np.float32))
    with pytest.raises(UnsupportedError, match="the parts of a dynamic size must be equal"):
        _assert_runs_dynamic(result, two_symbols, np.ones((1, 3, 8), np.float32))


def test_several_shapes_that_nodes_compute_are_divided() -> None:
    """Each of them is checked by a node with a name of its own."""
    b = ModelBuilder(("x", ("batch", 6, 8)))
    rows = b.node("Expand", b.weight(1, 8), b.node("Concat", b.node("Shape", "x", end=1), b.ints(1), axis=0))
    more = b.node("Expand", b.weight(1, 1, 8), b.node("Concat", b.node("Shape", rows, end=1), b.ints(6, 1), axis=0))
    model = b.build(b.node("Add", "x", more), rows)
    result = sdy.propagate(model, {"d": 2}, out_shardings={0: ("d", None, None), 1: ("d", None)})
    _assert_runs_dynamic(result, model, np.random.default_rng(0).random((4, 6, 8), np.float32))


def test_sizes_of_a_sharded_tensor_are_read_from_its_shards() -> None:
    """Sizes and their number for each range of dimensions are those of the whole tensor, and nothing is gathered."""
    b = ModelBuilder(("x", ("batch", "steps", 8)))
    y, x = b.node("Relu", "x"), np.zeros((4, 6, 8), np.float32)
    bounds = [{"start": start} for start in (-5, -4, -2, 0, 1, 5)] + [{"start": -4, "end": 1}, {"end": -1}]
    model = b.build(b.node("Size", y), *(b.node("Shape", y, **item) for item in bounds))
    result = sdy.propagate(model, {"d": 2, "m": 2}, in_shardings={"x": ("d", "m", None)})
    local = result.local()
    assert not local.warnings
    assert "AllGather" not in str(local)
    for output, expected in zip(local.run(x), run_whole(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(("name", "kind"), [("recurrent_loop", "Loop"), ("early_exit", "If")])
def test_nodes_in_graphs_of_nodes_have_specifications(name: str, kind: str) -> None:
    """They name tensors of their own graph and of those around it."""
    make, ways = MODELS[name]
    sharded = {argument: tuple("d" if axis else None for axis in axes) for argument, axes in ways[0].items()}
    module = sdy.propagate(make(), {"d": 2}, in_shardings=sharded).module
    (node,) = [item for item in module.graph.node if item.op_type == kind]
    for graph in (item.g for item in node.attribute if item.g.node):
        inside = {name for item in graph.node for name in item.output}
        specified = {
            item.tensor_name
            for inner in graph.node
            for configuration in inner.device_configurations
            for item in configuration.sharding_spec
        }
        assert specified & inside
        assert specified <= inside | {name for item in graph.node for name in item.input}


@pytest.mark.parametrize(
    ("kind", "kernel", "group", "count"),
    [
        ("Conv", (8, 4, 3, 3), 1, 2 * (2 * 8 * 6 * 6) * (4 * 3 * 3)),
        ("Conv", (4, 1, 3, 3), 4, 2 * (2 * 4 * 6 * 6) * (3 * 3)),
        ("ConvTranspose", (4, 6, 3, 3), 1, 2 * (2 * 4 * 8 * 8) * (6 * 3 * 3)),
    ],
    ids=["one group", "depthwise", "transposed"],
)
def test_operations_of_convolutions_are_two_for_each_product(
    kind: str, kernel: tuple[int, ...], group: int, count: int
) -> None:
    """A device has its share of the sequences, whatever the space."""
    builder = ModelBuilder(("x", (2, 4, 8, 8)))
    model = builder.build(builder.node(kind, "x", builder.weight(*kernel), group=group))
    cost = sdy.propagate(model, {"d": 2}, in_shardings={"x": ("d",)}).cost(machine="cpu-8")
    assert (cost.total_flops.value, cost.flops.value) == (count, count / 2)
