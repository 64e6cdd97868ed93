"""Sharding origins, propagation edges and snapshots of the propagation passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardy_py.errors import OptionError
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import tensor
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.propagation.step_outcomes import project_step
from shardy_py.sharding import AxisRef, Mesh
from shardy_py.sharding.parse import parse_op_sharding_rule, parse_tensor_sharding
from shardy_py.transforms.debug_info.edges import NewAxis, find_new_axes
from shardy_py.transforms.prepare.apply_sharding_constraints import ApplyShardingConstraintsPass
from shardy_py.transforms.propagate import AggressivePropagationPass, UserPriorityPropagationPass
from tests.unit.propagation.toy import toy_registry

T = tensor(8, 8)
MESH = Mesh.of(a=2, b=2)
ORIGINS = "sdy.sharding_origins"
EDGES = "sdy.propagation_edges"


def run(builder: Builder) -> None:
    """Propagate with all debug information."""
    passed = AggressivePropagationPass(debug_sharding_origins=True, debug_propagation_edge_sharding=True)
    passed.run(builder.program, PassContext(toy_registry()))


def one_add() -> tuple[Builder, Op]:
    """Return a program that adds a row-sharded and a column-sharded argument."""
    b = Builder(mesh=MESH)
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"a", ?}, {?}]')
        b.shard(y, '[{?}, {"b", ?}]')
        z = b.op("toy.add", [x, y], [T])
        b.return_(z)
    return b, z.owner


def test_origins_name_the_annotation_every_axis_goes_back_to() -> None:
    """Arguments call their own axes self, all others name the argument."""
    b, add = one_add()
    run(b)
    function = b.program.functions["main"]
    assert add.attributes[ORIGINS] == ({"a": "input: 0", "b": "input: 1"},)
    assert [item[ORIGINS] for item in function.attributes["arg_attrs"]] == [
        {"a": "self", "b": "input: 1"},
        {"a": "input: 0", "b": "self"},
    ]
    assert function.attributes["res_attrs"][0][ORIGINS] == {"a": "input: 0", "b": "input: 1"}


def test_edges_name_source_and_targets_step_by_step() -> None:
    """One step on the op passes both axes on; the next one reaches the function result."""
    b, add = one_add()
    run(b)
    assert str(add.attributes[EDGES]) == (
        '<[{step-0 = [{"a" = operand-0 -> [operand-1, result-0]}, {"b" = operand-1 -> [operand-0, result-0]}]}]>'
    )
    result = b.program.functions["main"].attributes["res_attrs"][0]
    assert str(result[EDGES]) == ('<[{step-1 = [{"a" = operand-0 -> [result-0]}, {"b" = operand-0 -> [result-0]}]}]>')


def test_steps_go_on_from_those_of_the_pass_before() -> None:
    """A constraint that is applied takes step 0, and propagation starts at 1."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        y = b.op("toy.neg", [x], [T])
        z = b.constrain(y, '[{"a"}, {}]')
        b.return_(z)
    debug = ApplyShardingConstraintsPass(debug_sharding_origins=True, debug_propagation_edge_sharding=True)
    debug.run(b.program, PassContext(toy_registry()))
    assert str(z.owner.attributes[EDGES]) == '<[{step-0 = [{"a" = result-0 -> [operand-0]}]}]>'
    assert z.owner.attributes["sdy.sharding_origin_name"] == "constraint_0"
    run(b)
    assert str(y.owner.attributes[EDGES]) == '<[{step-2 = [{"a" = result-0 -> [operand-0]}]}]>'
    assert y.owner.attributes[ORIGINS] == ({"a": "constraint_0"},)
    assert z.owner.attributes[ORIGINS] == {"a": "self"}


def test_the_parts_of_an_axis_on_successive_factors_count_as_one() -> None:
    """A reshape that merges two dimensions passes on the whole axis, not its parts."""
    b = Builder(mesh=Mesh.of(a=8))
    with b.function("main", [tensor(4, 2)]) as (x,):
        b.shard(x, '[{"a":(1)4, ?}, {"a":(4)2, ?}]')
        y = b.op("toy.merge", [x], [tensor(8)])
        b.return_(y)
    run(b)
    assert str(y.owner.attributes[EDGES]) == '<[{step-0 = [{"a" = operand-0 -> [result-0]}]}]>'
    assert y.owner.attributes[ORIGINS][0]["a"] == "input: 0"


def test_an_axis_through_a_sharding_group_keeps_its_origin() -> None:
    """What a group member got from its group goes back to the annotation of the other member."""
    b = Builder(mesh=MESH)
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"a", ?}, {?}]')
        for value in (x, y):
            b.emit("sdy.sharding_group", [value], attributes={"group_id": 0})
        z = b.op("toy.neg", [y], [T])
        b.return_(z)
    run(b)
    assert z.owner.attributes[ORIGINS] == ({"a": "input: 0"},)


def test_erased_ops_leave_nothing_behind() -> None:
    """An op without uses passes axes on before it goes, and is not written to."""
    b = Builder(mesh=MESH)
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"a", ?}, {?}]')
        b.op("toy.add", [x, y], [T])
        b.return_(y)
    run(b)
    assert [op.name for op in b.program.walk() if op.name == "toy.add"] == []


def test_new_axes_name_the_first_tensor_that_had_them() -> None:
    """An axis that both operands have comes from the first; a longer one from the one that has all of it."""
    rule = parse_op_sharding_rule("<([i], [i])->([i]) {i=8}>")
    short, long = (parse_tensor_sharding(f"<@mesh, [{{{axes}, ?}}]>") for axes in ('"a"', '"a", "b"'))
    old = project_step(rule, [short, long, None], MESH).tensors
    new = project_step(rule, [short, long, short], MESH).tensors
    assert list(find_new_axes(rule, MESH, old, new)) == [NewAxis(AxisRef("a"), 2, 0)]
    new = project_step(rule, [long, long, long], MESH).tensors
    assert list(find_new_axes(rule, MESH, old, new)) == [
        NewAxis(AxisRef("b"), 0, 1),
        NewAxis(AxisRef("a"), 2, 1),
        NewAxis(AxisRef("b"), 2, 1),
    ]


def prioritized() -> Builder:
    """Return a program with priorities 0 and 1."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"a"}p1, {"b"}]')
        b.return_(b.op("toy.neg", [x], [T]))
    return b


def test_snapshots_are_numbered_and_named_as_the_reference_does() -> None:
    """The directory, the index in two digits, the priority that is done."""
    paths: list[Path] = []

    def dump(program: Program, path: Path) -> None:
        paths.append(path)

    passed = UserPriorityPropagationPass(module_dump_directory="dumps", dump_index=3)
    passed.run(prioritized().program, PassContext(toy_registry(), dump=dump))
    assert paths == [Path("dumps/03.propagation_after_user_priority_0.mlir")]


def test_a_snapshot_that_cannot_be_written_is_a_warning() -> None:
    """Propagation goes on, and the user hears which file failed."""

    def dump(program: Program, path: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    context = PassContext(toy_registry(), dump=dump)
    UserPriorityPropagationPass(module_dump_directory="missing").run(prioritized().program, context)
    assert [item.code for item in context.warnings] == ["snapshot"]
    assert "No such file" in context.warnings[0].message


def test_snapshots_need_something_that_writes_them() -> None:
    """Without a dump function the option is an error, not silence."""
    with pytest.raises(OptionError, match="dump"):
        UserPriorityPropagationPass(module_dump_directory="dumps").run(
            prioritized().program, PassContext(toy_registry())
        )
