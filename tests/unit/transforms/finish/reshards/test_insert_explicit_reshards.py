"""After the full version every op computes without a conflict; the other version does what it must."""

from itertools import product

import pytest

from shardy_py.errors import VerificationError
from shardy_py.ir import Builder, tensor
from shardy_py.sharding.mesh import Mesh
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass, _Planner
from tests.unit.transforms.finish.reshards.reshard_toy import REGISTRY, run

FULL = InsertExplicitReshardsPass(enable_full_version=True)
MINIMAL = InsertExplicitReshardsPass()
MESH = Mesh.of(x=2, y=2, z=2)
T = tensor(8, 8)


def one_op(name, operands, results, *, types=None, result_types=None, returned=()):
    """Return a builder with a function of one op, whose values have the given shardings (None for none)."""
    b = Builder(mesh=MESH)
    types = types or [T] * len(operands)
    with b.function("main", types) as arguments:
        new_op = b.emit(name, arguments, result_types or [T] * len(results))
        for value, sharding in zip([*arguments, *new_op.results], [*operands, *results], strict=True):
            if sharding is not None:
                b.shard(value, sharding)
        b.return_(*new_op.results, shardings=returned or results)
    return b


def test_only_the_operand_in_conflict_is_resharded():
    """An op computes on the axes of most elements; what has others is resharded, and nothing else."""
    b = one_op("toy.add", ['[{"x"}, {}]', '[{"y"}, {}]'], ['[{"x"}, {}]'])
    assert run(FULL, b) == [
        '%0 = reshard %arg1 [{"x"}, {}]',
        '%1 = add %arg0, %0 [{"x"}, {}]',
        "func.return %1",
    ]


def test_a_missing_sharding_counts_as_replicated():
    """Values without a sharding are replicated: an operand is sharded, a result is replicated again."""
    b = one_op("toy.add", ['[{"x"}, {}]', '[{"x"}, {}]'], [None])
    assert run(FULL, b) == [
        '%0 = add %arg0, %arg1 [{"x"}, {}]',
        "%1 = reshard %0 [{}, {}]",
        "func.return %1",
    ]


def test_of_two_tensors_the_one_with_more_parts_is_kept():
    """A unary op reshards only one side: here the operand, which is replicated."""
    b = one_op("toy.neg", ["[{}, {}]"], ['[{"x"}, {"y"}]'])
    assert run(FULL, b) == ['%0 = reshard %arg0 [{"x"}, {"y"}]', '%1 = neg %0 [{"x"}, {"y"}]', "func.return %1"]


def test_sharded_permutation_factors_are_avoided():
    """The tensor that shards the permuted dimension gives way."""
    b = one_op("toy.shift", ['[{}, {"x"}]'], ['[{"y"}, {}]'])
    assert run(FULL, b)[0] == '%0 = reshard %arg0 [{"y"}, {}]'


def test_axes_that_a_factor_must_not_keep_go_to_a_batching_factor():
    """The axes of a dimension that has to be replicated shard another dimension that has room."""
    b = one_op("toy.sort", ['[{}, {"x"}]'], ['[{}, {"x"}]'])
    assert run(FULL, b) == [
        '%0 = reshard %arg0 [{"x"}, {}]',
        '%1 = sort %0 [{"x"}, {}]',
        '%2 = reshard %1 [{}, {"x"}]',
        "func.return %2",
    ]


def test_sharded_reduction_factors_are_all_reduced():
    """A product whose contracted dimension is sharded is summed over the devices, before any reshard of it."""
    b = one_op("toy.matmul", ['[{}, {"x"}]', '[{"x"}, {"y"}]'], ['[{"z"}, {"y"}]'])
    assert run(FULL, b) == [
        '%0 = reshard %arg0 [{"z"}, {"x"}]',
        '%1 = matmul %0, %arg1 [{"z"}, {"y"}]',
        '%2 = all_reduce {"x"} %1 [{"z"}, {"y"}]',
        "func.return %2",
    ]


def test_unreduced_axes_of_the_result_are_not_all_reduced():
    """In both versions only the reduced axes that the result is not to keep are all-reduced."""
    result = '[{}, {}], unreduced={"x"}'
    for version in (FULL, MINIMAL):
        b = one_op("toy.matmul", ['[{}, {"x", "y"}]', '[{"x", "y"}, {}]'], [result])
        assert run(version, b) == [
            f"%0 = matmul %arg0, %arg1 {result}",
            f'%1 = all_reduce {{"y"}} %0 {result}',
            "func.return %1",
        ]


def test_a_reshape_spreads_axes_that_do_not_fit():
    """Axes that divide neither factor of a merged dimension evenly are spread over both factors again."""
    mesh = Mesh.of(a=4, b=2)
    b = Builder(mesh=mesh)
    with b.function("main", [tensor(2, 4)]) as (x,):
        new_op = b.emit("toy.merge", [x], [tensor(8)])
        b.shard(x, '[{"a":(1)2}, {"a":(2)2, "b"}]')
        b.shard(new_op.results[0], '[{"a", "b"}]')
        b.return_(new_op.results[0], shardings=['[{"a", "b"}]'])
    assert run(FULL, b) == ['%0 = merge %arg0 [{"a", "b"}]', "func.return %0"]


def test_a_reshape_keeps_what_both_sides_can_take():
    """Overflow axes stay only as far as both shapes can be sharded by them."""
    b = Builder(mesh=Mesh.of(a=3, b=2))
    with b.function("main", [tensor(2, 4)]) as (x,):
        new_op = b.emit("toy.merge", [x], [tensor(8)])
        b.shard(x, '[{"a"}, {"b"}]')
        b.shard(new_op.results[0], '[{"a", "b"}]')
        b.return_(new_op.results[0], shardings=['[{"a", "b"}]'])
    actual = run(FULL, b)
    assert [line.split()[2] for line in actual[:-1]] == ["reshard", "merge", "reshard"]
    assert actual[-2].endswith('[{"a", "b"}]')


def test_the_mesh_of_most_tensors_gives_the_order_of_devices():
    """Tensors whose mesh has its devices in another order are resharded to the order of the majority."""
    other = Mesh(MESH.axes, (1, 0, 2, 3, 4, 5, 6, 7))
    b = Builder(mesh=MESH, meshes={"other": other})
    with b.function("main", [T, T]) as (x, y):
        new_op = b.emit("toy.add", [x, y], [T])
        for value, mesh in ((x, "mesh"), (y, "other"), (new_op.results[0], "other")):
            b.shard(value, f'<@{mesh}, [{{"x"}}, {{}}]>')
        b.return_(new_op.results[0], shardings=['<@other, [{"x"}, {}]>'])
    assert run(FULL, b)[0] == '%0 = reshard %arg0 <@other, [{"x"}, {}]'


def test_different_meshes_and_single_devices_are_left_alone():
    """Without one common mesh of several devices nothing is inserted."""
    b = Builder(mesh=MESH, meshes={"small": Mesh.of(x=2), "one": Mesh((), (0,))})
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"x"}, {}]')
        b.shard(y, '<@small, [{"x"}, {}]>')
        b.emit("toy.add", [x, y], [T])
        device = b.emit("toy.neg", [y], [T])
        b.shard(device.results[0], "<@one, []>")
        b.return_()
    assert [line.split()[2] for line in run(FULL, b)[:-1]] == ["add", "neg"]


def test_barriers_are_seen_through():
    """What is behind a propagation barrier has the sharding of what is before it."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"x"}, {}]')
        barrier = b.op("sdy.propagation_barrier", [x], [T])
        y = b.op("toy.neg", [barrier], [T])
        b.shard(y, '[{"x"}, {}]')
        b.return_(y, shardings=['[{"x"}, {}]'])
    assert "reshard" not in " ".join(run(FULL, b))


@pytest.mark.parametrize("name", ["toy.custom", "toy.unknown"])
def test_ops_without_a_rule_of_their_dialect_are_left_alone(name):
    """A rule that a user gave says how to propagate, not what the op can compute on."""
    b = one_op(name, ['[{"x"}, {}]'], ['[{"y"}, {}]'])
    assert len(run(FULL, b)) == 2


def test_the_minimal_version_leaves_conflicts():
    """Elementwise conflicts are left to the partitioner, and so are returns."""
    b = one_op("toy.add", ['[{"x"}, {}]', '[{"y"}, {}]'], ['[{"x"}, {}]'], returned=['[{"z"}, {}]'])
    assert run(MINIMAL, b) == ['%0 = add %arg0, %arg1 [{"x"}, {}]', "func.return %0"]


def test_the_minimal_version_reshards_the_result_of_a_contraction():
    """Where the result takes just the reduced axes, it is computed with the operand's axes and resharded."""
    b = one_op("toy.matmul", ['[{}, {"x"}]', '[{"x"}, {"y"}]'], ['[{}, {"x"}]'])
    assert run(MINIMAL, b) == [
        '%0 = matmul %arg0, %arg1 [{}, {"y"}]',
        '%1 = reshard %0 [{}, {"x"}]',
        "func.return %1",
    ]


@pytest.mark.parametrize(
    ("lhs", "rhs", "result"),
    [
        ('[{}, {"x"}]', '[{"y"}, {"z"}]', '[{}, {"x"}]'),
        ('[{"y"}, {"x"}]', '[{"x"}, {"y"}]', '[{}, {"x"}]'),
        ('[{}, {"x"}]', '[{"x"}, {}]', '[{}, {"x"}]'),
        ('[{}, {"x"}]', '[{"x"}, {"y"}]', '[{}, {"z"}]'),
        ('[{"z"}, {"x"}]', '[{"x"}, {"y"}]', '[{}, {"x"}]'),
        ('[{}, {"x"}]', '[{"x"}, {"y"}]', '[{}, {"y"}]'),
    ],
    ids=["operands", "free axes", "empty operand", "other axes", "two factors", "none"],
)
def test_other_contractions_are_left_alone_by_the_minimal_version(lhs, rhs, result):
    """Any other conflict of a contraction, or none, changes nothing."""
    assert len(run(MINIMAL, one_op("toy.matmul", [lhs, rhs], [result]))) == 2


def test_contractions_that_look_the_same_are_looked_at_once(monkeypatch):
    """Of sums that need nothing the first is planned; one with other shardings is another matter, before and after."""
    planned, plan = [], _Planner.plan

    def note(planner, op, *rest):
        planned.append(op.name)
        return plan(planner, op, *rest)

    monkeypatch.setattr(_Planner, "plan", note)
    b = Builder(mesh=MESH)
    with b.function("main", [T, T, T, T]) as (x, y, z, w):
        for value, sharding in ((x, '[{}, {"x"}]'), (y, '[{"x"}, {}]'), (z, '[{"x"}, {"y"}]'), (w, '[{}, {"x"}]')):
            b.shard(value, sharding)
        products = [b.op("toy.summing_matmul", [x, other], [T]) for other in (y, z, y, z, y)]
        products += [b.op("toy.matmul", [w, y], [T]) for _ in range(2)]
        for value in products:
            # Looks are compared by identity, and propagation gives equal shardings as one object.
            b.program.shardings[value.id] = b.program.shardings[x.id]
            b.program.rules[value.owner.id] = REGISTRY.get_sharding_rule(value.owner)
        b.return_(*products, shardings=['[{}, {"x"}]'] * len(products))
    lines = run(MINIMAL, b)
    assert planned == ["toy.summing_matmul"] * 3 + ["toy.matmul"] * 2
    assert sum("reshard %" in line for line in lines) == 2


def test_concatenations_are_resharded_in_both_versions_if_sharded_unlike():
    """The operands of a concatenation get the sharding of the result unless all are sharded alike anyway."""
    wide = tensor(8, 16)
    b = one_op("toy.concat", ['[{"x"}, {}]', '[{"y"}, {}]'], ['[{"x"}, {}]'], types=[wide, T], result_types=[wide])
    assert run(MINIMAL, b)[0] == '%0 = reshard %arg1 [{"x"}, {}]'
    b = one_op("toy.concat", ['[{}, {"x"}]'] * 2, ['[{}, {"x"}]'], types=[wide, T], result_types=[wide])
    assert len(run(MINIMAL, b)) == 2


def test_returns_are_resharded_to_the_results_of_the_function():
    """A function returns what its results are said to be; a result without a sharding is replicated."""
    b = Builder(mesh=MESH)
    with b.function("main", [T, T]) as (x, y):
        b.shard(x, '[{"x"}, {}]')
        b.return_(x, x, y, shardings=['[{"y"}, {}]', None, None])
    assert run(FULL, b) == [
        '%0 = reshard %arg0 [{"y"}, {}]',
        "%1 = reshard %arg0 [{}, {}]",
        "func.return %0, %1, %arg1",
    ]


def test_the_sources_of_data_flow_edges_are_resharded_behind_their_definition():
    """What flows into a loop and around it gets the sharding of the loop, right where it is defined."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"x"}, {}]')
        with b.region_op("toy.loop", [x], [T]) as op, b.region(op, [T]) as (inner,):
            y = b.op("toy.neg", [inner], [T])
            b.shard(y, '[{"y"}, {}]')
            b.op("toy.other", [y], [T])
            b.op("toy.yield", [y])
        b.shard(op.results[0], '[{"y"}, {}]')
        b.return_(op.results[0], shardings=['[{"y"}, {}]'])
    assert run(FULL, b) == [
        '%0 = reshard %arg0 [{"y"}, {}]',
        '%1 = neg %in0 [{"y"}, {}]',
        "%2 = other %1",
        "yield %1",
        '%3 = loop %0 [{"y"}, {}]',
        "func.return %3",
    ]


@pytest.mark.parametrize(
    ("argument", "reshard"),
    [('[{"y"}, {}]', '[{"y"}, {}]'), (None, "[{}, {}]")],
    ids=["with a sharding", "without"],
)
def test_operands_of_calls_get_the_shardings_of_the_arguments_in_both_versions(argument, reshard):
    """A function is called with one sharding per argument; arguments without any take replicated values."""
    for version in (FULL, MINIMAL):
        b = Builder(mesh=MESH)
        with b.function("main", [T]) as (x,):
            b.shard(x, '[{"x"}, {}]')
            b.return_(b.call("f", [x], [T]))
        with b.function("f", [T]) as (x,):
            if argument is not None:
                b.shard(x, argument)
            b.return_(x, shardings=[argument])
        assert run(version, b)[:2] == [f"%0 = reshard %arg0 {reshard}", "%1 = func.call %0"]


def test_a_call_without_any_sharding_is_left_alone():
    """Where neither the function nor the operands are sharded, there is no mesh to reshard on."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.return_(b.call("f", [x], [T]))
    with b.function("f", [T]) as (x,):
        b.return_(x)
    assert len(run(FULL, b)) == 2


@pytest.mark.parametrize("version", [FULL, MINIMAL], ids=["full", "minimal"])
def test_a_second_run_reshards_nothing(version):
    """Whatever the shardings of a product, its conflicts are gone after one run."""
    shardings = ["[{}, {}]", '[{"x"}, {}]', '[{}, {"x"}]', '[{"y"}, {"x"}]']
    for lhs, rhs, result in product(shardings, repeat=3):
        b = one_op("toy.matmul", [lhs, rhs], [result])
        first, second = (" ".join(run(version, b)) for _ in range(2))
        assert second.count("= reshard") == first.count("= reshard"), (lhs, rhs, result)


def test_all_results_get_the_open_sharding_that_comes_with_a_new_one():
    """An op holds its shardings in one attribute, so giving one result a sharding opens the others."""
    b = one_op("toy.two", ['[{"x"}, {}]'], [None, None])
    actual = run(FULL, b)
    assert actual[0] == '%0, %1 = two %arg0 [{"x"}, {}]; [{"x"}, {}]'
    assert actual[1:3] == ["%2 = reshard %0 [{}, {}]", "%3 = reshard %1 [{?}, {?}]"]


@pytest.mark.parametrize(
    ("name", "operands", "results", "code"),
    [
        ("toy.effect", ['[{}, {}], unreduced={"x"}'], [], "unreduced-operand"),
        ("toy.two", ["[{}, {}]"], ['[{}, {}], unreduced={"x"}', "[{}, {}]"], "unreduced-mismatch"),
        ("toy.matmul", ['[{}, {"x"}]', '[{"y"}, {}]'], ['[{}, {}], unreduced={"x"}'], "unreduced-conflict"),
    ],
)
def test_impossible_unreduced_axes_are_refused(name, operands, results, code):
    """Where nothing can be inserted that makes unreduced axes right, an error names the op."""
    b = one_op(name, operands, results)
    with pytest.raises(VerificationError) as caught:
        run(MINIMAL, b)
    assert [(item.code, item.op) for item in caught.value.diagnostics] == [(code, name)]


def test_barriers_are_followed_to_what_they_use_by_then():
    """A barrier whose operand was resharded on the way is seen through to the reshard."""
    b = Builder(mesh=MESH)
    with b.function("main", [T]) as (x,):
        b.shard(x, '[{"x"}, {}]')
        y = b.op("toy.neg", [x], [T])
        barrier = b.op("sdy.propagation_barrier", [y], [T])
        b.op("toy.neg", [barrier], [T])
        b.return_()
    assert run(FULL, b)[:4] == [
        '%0 = neg %arg0 [{"x"}, {}]',
        "%1 = reshard %0 [{}, {}]",
        "%2 = propagation_barrier %1",
        "%3 = neg %2",
    ]


def test_partial_results_that_are_joined_count_as_sharded_differently():
    """The minimal version reshards a concatenation whose operand was unreduced, though it is reduced first."""
    b = one_op(
        "toy.join",
        ['[{}, {"x"}]', '[{}, {"x"}], unreduced={"y"}'],
        ['[{}, {"x"}]'],
        result_types=[tensor(8, 16)],
    )
    assert run(MINIMAL, b) == [
        '%0 = all_reduce {"y"} %arg1 [{}, {"x"}]',
        '%1 = reshard %arg0 [{"x"}, {}]',
        '%2 = reshard %0 [{"x"}, {}]',
        '%3 = join %1, %2 [{"x"}, {}]',
        '%4 = reshard %3 [{}, {"x"}]',
        "func.return %4",
    ]


@pytest.mark.parametrize("scale", [None, '[{"x"}]'])
def test_contractions_of_more_operands_are_left_to_the_partitioner(scale):
    """What is known about two operands is not applied to three: the minimal version leaves such an op as it is."""
    types = [T, T, tensor(8)]
    shardings = ['[{}, {"x"}]', '[{"x"}, {"y"}]', scale]
    b = one_op("toy.scaled", shardings, ['[{}, {"x"}]'], types=types, result_types=[T])
    assert run(MINIMAL, b) == ['%0 = scaled %arg0, %arg1, %arg2 [{}, {"x"}]', "func.return %0"]


WHOLE = InsertExplicitReshardsPass(enable_full_version=True, reshard_ops_without_rule=True)


def test_ops_without_a_rule_get_whole_tensors():
    """Where asked for, an op without a rule computes on whole tensors, and its result is resharded behind it."""
    b = one_op("toy.unruled", ['[{"x"}, {}]', "[{}, {}]"], ['[{}, {"y"}]'])
    assert run(WHOLE, b) == [
        "%0 = reshard %arg0 [{}, {}]",
        "%1 = unruled %0, %arg1 [{}, {}]",
        '%2 = reshard %1 [{}, {"y"}]',
        "func.return %2",
    ]


def test_the_reference_leaves_ops_without_a_rule_alone():
    """So does the pass, unless asked."""
    for pass_ in (FULL, MINIMAL, InsertExplicitReshardsPass(reshard_ops_without_rule=True)):
        b = one_op("toy.unruled", ['[{"x"}, {}]'], ['[{}, {"y"}]'])
        assert run(pass_, b) == ['%0 = unruled %arg0 [{}, {"y"}]', "func.return %0"]


def test_partial_results_of_ops_without_a_rule_stay():
    """Nothing makes a partial result of a whole one, so that the op is taken at its word."""
    sharding = '[{"y"}, {}], unreduced={"x"}'
    b = one_op("toy.unruled", ['[{"y"}, {}]'], [sharding])
    assert run(WHOLE, b)[1] == f"%1 = unruled %0 {sharding}"
