"""Programs of MLIR as programs over several meshes."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

import shardy_py as sdy
from shardy_py.mpmd.dialect.fragments import origins_of

TOPOLOGY = {"m0": {"x": 2}, "m1": {"x": 2}}
TWO_STAGES = """\
func.func @main(%w: tensor<8x8xf32>, %v: tensor<8x8xf32>, %x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  %0 = call @first(%w, %x) : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "OP.between"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = call @second(%v, %1) : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "OP.scale"(%w) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2, %3 : tensor<4x8xf32>, tensor<8x8xf32>
}
func.func private @first(%w: tensor<8x8xf32>, %x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "OP.matmul"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @second(%w: tensor<8x8xf32>, %x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "OP.matmul"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
"""


def toy_plugin() -> object:
    """Return a plugin with a dialect of three ops, of which this package knows nothing."""
    toy = sdy.Dialect("toy")
    toy.op("toy.matmul", rule="i k, k j -> i j", reduction=("k",), traits=[sdy.Pure])
    toy.op("toy.between", traits=[sdy.Elementwise, sdy.Pure])
    toy.op("toy.scale", traits=[sdy.Elementwise, sdy.Pure])

    class Plugin:
        @sdy.hookimpl
        def shardy_register_dialects(self) -> list[sdy.Dialect]:
            return [toy]

    return Plugin()


def shown(program: sdy.mpmd.PipelineProgram, mesh: str) -> list[tuple[list[str], list[str]]]:
    """Return the names and the ops of the fragments of a mesh."""
    return [
        (
            [origin.name for origin in origins_of(op)],
            [inner.name for inner in op.regions[0].block.ops if inner.name != "mpmd.return"],
        )
        for op in program.fragments(mesh)
    ]


def test_a_dialect_of_a_plugin_is_put_on_meshes() -> None:
    """Ops without a name go where they are used, or where their operands are; shardings go through the transfer."""
    text = TWO_STAGES.replace("OP", "toy").replace(
        "%x: tensor<4x8xf32>) -> (", '%x: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> ('
    )
    program = sdy.mpmd.partition(
        'sdy.mesh @mesh = <["x"=2]>\n' + text, TOPOLOGY, {"first": "m0", "second": "m1"}, plugins=[toy_plugin()]
    )
    assert shown(program, "m0") == [(["first"], ["toy.matmul", "toy.scale"])]
    assert shown(program, "m1") == [(["second"], ["toy.between", "toy.matmul"])]
    transfers = [line for line in program.text.splitlines() if "mpmd.transfer" in line]
    assert len(transfers) == 1
    assert '[{"x"}, {}]' in transfers[0]


def test_no_schedule_is_the_order_of_the_program() -> None:
    """None is the schedule that is called so."""
    text, assignment = TWO_STAGES.replace("OP", "toy"), {"first": "m0", "second": "m1"}
    programs = [
        sdy.mpmd.partition(text, TOPOLOGY, assignment, plugins=[toy_plugin()], schedule=schedule).text
        for schedule in (None, "None")
    ]
    assert programs[0] == programs[1]


@pytest.mark.parametrize(
    ("topology", "assignment", "options", "code"),
    [
        ({}, {"first": "m0"}, {}, "invalid-topology"),
        ({"m0": 3}, {"first": "m0"}, {}, "invalid-topology"),
        (TOPOLOGY, {"first": "m2"}, {}, "unknown-mesh"),
        (TOPOLOGY, ["first"], {}, "invalid-assignment"),
        (TOPOLOGY, {"first": "m0"}, {"schedule": "2F2B"}, "unknown-schedule"),
        (TOPOLOGY, {"first": "m0"}, {}, "unassigned-name"),
        (TOPOLOGY, {"first": "m0", "second": "m1"}, {"infer_transfers": False}, "mesh-conflict"),
    ],
)
def test_mistakes_are_errors(topology: dict, assignment: object, options: dict, code: str) -> None:
    """Each says what is wrong; upstream ends the process at some of them."""
    text = TWO_STAGES.replace("OP", "toy")
    if code == "unassigned-name":
        text = text.replace("@second", '@"mpmd|computation|second|0|"')
    with pytest.raises(sdy.ShardyError) as caught:
        sdy.mpmd.partition(text, topology, assignment, plugins=[toy_plugin()], **options)
    assert caught.value.diagnostics[0].code == code


def test_a_value_on_the_wrong_mesh_needs_leave_to_move() -> None:
    """Without it, the op that needs values of both meshes is named."""
    text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @first(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @second(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.divide %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func private @first(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @second(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
    names = {"first": "m0", "second": "m1"}
    with pytest.raises(sdy.UnsupportedError, match="operands are on conflicting meshes") as caught:
        sdy.mpmd.partition(text, TOPOLOGY, names, infer_transfers=False, infer_cross_mesh_reductions=False)
    assert caught.value.diagnostics[0].op == "stablehlo.divide"
    program = sdy.mpmd.partition(text, TOPOLOGY, names)
    assert "stablehlo.divide" in program.text
    assert program.text.count("mpmd.transfer") == 2


def test_the_text_does_not_depend_on_the_run() -> None:
    """Two runs give the same text, and it is read back as it is."""
    text = TWO_STAGES.replace("OP", "toy")
    programs = [
        sdy.mpmd.partition(text, TOPOLOGY, {"first": "m0/0", "second": "m1/1"}, plugins=[toy_plugin()])
        for _ in range(2)
    ]
    assert programs[0].text == programs[1].text
    assert 'origin=["first"], stage=0' in programs[0].text


@pytest.mark.parametrize(("option", "noun", "last"), [("input_meshes", "argument", 2), ("output_meshes", "result", 1)])
def test_a_number_that_no_argument_or_result_has_is_refused(option: str, noun: str, last: int) -> None:
    """The error says which numbers there are."""
    text, number = TWO_STAGES.replace("OP", "toy"), last + 1
    names = {"first": "m0", "second": "m1"}
    with pytest.raises(sdy.OptionError, match=rf"{noun} {number} is assigned[^\n]*\n.*{noun}s 0 to {last}"):
        sdy.mpmd.partition(text, TOPOLOGY, names, plugins=[toy_plugin()], **{option: {number: "m1"}})
