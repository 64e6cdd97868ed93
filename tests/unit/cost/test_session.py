"""A session does what `propagate` does, and can do it again."""

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py import propagate
from shardy_py.cost.session import Session
from shardy_py.errors import OptionError, ShardyError
from shardy_py.ir import verify
from shardy_py.ir.graph.shardings import store_shardings
from shardy_py.oracle.generate import generate
from shardy_py.plugins import Registry
from tests.conformance.conformance_data import DATA
from tests.conformance.sample import sample
from tests.unit.outline import listing

SMALL = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %w: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8x8xf32> {
  %unused = stablehlo.negate %x : tensor<8x4xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""
SHARED = ("beam_search_while", "calls_diff_sharding", "moe_dense", "prio_mlp_0", "shardmap_nested")
CASES = [*(f"seed {seed}" for seed in range(20)), *SHARED]


def _text(case):
    if case.startswith("seed "):
        return generate(int(case.removeprefix("seed ")))
    path = DATA / "programs" / f"{case}.mlir.gz"
    if not path.exists():
        pytest.skip("the shared programs are not there")
    import gzip

    return gzip.decompress(path.read_bytes()).decode()


@pytest.fixture(scope="module")
def registry():
    """What the installed plugins know."""
    return Registry.from_entry_points()


def _outcome(make):
    """Return what a function returns, or the errors it raises."""
    try:
        return make()
    except ShardyError as error:
        return [str(item) for item in error.diagnostics]


@pytest.mark.parametrize("options", [{}, {"dedup_functions_fully": True}], ids=["copied", "shared"])
@pytest.mark.parametrize("case", CASES)
def test_solving_and_finishing_is_what_propagate_does(case, options, registry):
    """The program of ``finish(solve())`` is that of ``propagate``, op by op, every time; the session stays as it is."""
    text = _text(case)
    options = {**options, "registry": registry}
    expected = _outcome(lambda: listing(propagate(text, explicit_collectives=True, **options).program))
    opened = _outcome(lambda: Session.open(text, **options))
    if isinstance(opened, list):
        assert opened == expected
        return
    before = listing(opened.program)
    for _ in range(2):
        assert _outcome(lambda: _finished(opened)) == expected
    assert listing(opened.program) == before


@pytest.mark.conformance
@pytest.mark.parametrize("options", [{}, {"dedup_functions_fully": True}], ids=["copied", "shared"])
def test_shared_programs_are_finished_as_propagate_does(options, registry):
    """So is that of every fourth program beside the project, each solved twice."""
    names = sample(sorted(path.name.removesuffix(".mlir.gz") for path in (DATA / "programs").glob("*.mlir.gz")), 4)
    if not names:
        pytest.skip("the shared programs are not there")
    different = []
    for name in names:
        text = _text(name)
        expected = listing(propagate(text, explicit_collectives=True, registry=registry, **options).program)
        session = Session.open(text, registry=registry, **options)
        if [_finished(session), _finished(session)] != [expected, expected]:
            different.append(name)
    assert different == []


def _finished(session, **options):
    program = session.finish(session.solve(**options))
    store_shardings(program, session.registry)
    verify(program, session.registry)
    return listing(program)


def test_a_schedule_counts():
    """Another schedule gives what `propagate` gives with it, also after other solves."""
    text = generate(3)
    session = Session.open(text)
    session.solve()
    for schedule in ("flat", "reversed"):
        expected = propagate(text, explicit_collectives=True, schedule=schedule).program
        assert _finished(session, schedule=schedule) == listing(expected)


def test_the_given_module_stays_as_it_is():
    """A session writes nothing into the module that it was given."""
    from shardy_py.frontends.mlir import parse_module, print_module

    module = parse_module(SMALL)
    before = print_module(module)
    session = Session.open(module)
    session.finish(session.solve())
    assert print_module(module) == before


def test_values_keep_their_ids():
    """A value that is still there in the finished program has the id it had, so that solutions can be compared."""
    session = Session.open(SMALL)
    finished = session.finish(session.solve())
    dot = {op.name: op.result.id for op in session.program.walk() if op.results}["stablehlo.dot_general"]
    (same,) = [op for op in finished.walk() if op.name == "stablehlo.dot_general"]
    assert same.result.id == dot
    assert "stablehlo.negate" not in {op.name for op in finished.walk()}


def test_a_solution_of_another_session_is_refused():
    """Its numbers mean other values; a session that starts with other shardings has the same values."""
    session, other = Session.open(SMALL), Session.open(SMALL)
    for use in (session.finish, session.price):
        with pytest.raises(OptionError, match="the solution is of another session"):
            use(other.solve())
        use(session.with_shardings({0: None}).solve())


def test_a_session_takes_in_shardings_and_a_mesh():
    """What the caller gives counts as in `propagate`."""
    text = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"
    session = Session.open(text, {"a": 2}, in_shardings={0: ("a",)})
    program = session.finish(session.solve())
    (result,) = next(iter(program.functions.values())).function_results
    assert str(program.sharding(result)) == '<@mesh, [{"a"}]>'


def test_axes_that_are_manual_are_refused_as_by_propagate():
    """A sharding of a called function that uses an axis that is manual at the call is an error before any pass."""
    text = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>]
      manual_axes={"a"} (%y: tensor<4xf32>) {
    %1 = func.call @f(%y) : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""
    actual = _outcome(lambda: Session.open(text))
    assert actual == _outcome(lambda: propagate(text))
    assert "which is manual there" in actual[0]


def test_an_unknown_strategy_is_refused_before_anything_is_read():
    """Options are checked first."""
    with pytest.raises(OptionError, match="unknown strategy"):
        Session.open("no module", strategy="best")


def test_a_strategy_without_levels_takes_no_schedule():
    """A schedule needs levels to replace."""
    session = Session.open(SMALL, strategy="basic")
    session.solve()
    with pytest.raises(OptionError, match="has no levels"):
        session.solve("flat")


def test_what_a_function_of_the_user_sends_is_not_counted_as_nothing():
    """The function of an op with `custom_partitioning` is not called here: an estimate says so."""
    op = '"stablehlo.custom_call"(%0) {call_target_name = "CustomSPMDPartitioning"}'
    call = f"%1 = {op} : (tensor<8x8xf32>) -> tensor<8x8xf32>\n  return %1"
    cost = Session.open(SMALL.replace("return %0", call)).evaluate().cost
    assert not cost.is_counted
    assert any("only Result.cost calls the function" in note for note in cost.notes)
