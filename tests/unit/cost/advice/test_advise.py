"""Advice: constraints where tensors disagree, verified by solving again."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

import shardy_py as sdy
from shardy_py.api.options import ProgramInput
from shardy_py.cost.advice.advise import advise, advise_session, write_advised
from shardy_py.cost.advice.arguments import AdviceOptions
from shardy_py.cost.session import Session
from shardy_py.frontends.op_graphs import ProgramFrontend
from tests.unit.cost.programs import LAYER, MLP

EMBEDDING = """\
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%tokens: tensor<4096x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>},
                %table: tensor<4096x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {"data"}]>},
                %up: tensor<256x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                %down: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {"data"}]>})
    -> tensor<4096x256xf32> {
  %0 = "stablehlo.gather"(%table, %tokens) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 256>}>
      : (tensor<4096x256xf32>, tensor<4096x1xi32>) -> tensor<4096x256xf32>
  %1 = stablehlo.dot_general %0, %up, contracting_dims = [1] x [0]
      : (tensor<4096x256xf32>, tensor<256x1024xf32>) -> tensor<4096x1024xf32>
  %2 = stablehlo.tanh %1 : tensor<4096x1024xf32>
  %3 = stablehlo.dot_general %2, %down, contracting_dims = [1] x [0]
      : (tensor<4096x1024xf32>, tensor<1024x256xf32>) -> tensor<4096x256xf32>
  return %3 : tensor<4096x256xf32>
}
"""
"""The table is split over ``data`` along the dimension that the tokens are not: both cannot win."""

AGREEING = """\
sdy.mesh @mesh = <["data"=4]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.tanh %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""

TWO_LAYERS = """\
#layer = loc("model.py":7:3)
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}, %w: tensor<8x8xf32>,
                %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#layer)
  %1 = stablehlo.add %0, %y : tensor<8x8xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#layer)
  %3 = stablehlo.add %2, %y : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
"""
"""One line of the source makes both products."""


def _price(text: str) -> tuple[float | None, float | None]:
    cost = Session.open(text).evaluate(machine="cpu-8").cost
    return cost.seconds.value, cost.communication_bytes.value


def test_the_output_of_an_embedding_is_constrained_where_two_wishes_meet():
    """The tokens keep the batch on ``data``, which the table would take along its own dimension."""
    advice = advise(EMBEDDING, machine="cpu-8")
    first = advice.constraints[0].constraint
    assert first.place.names == ("%0",)
    assert first.jax == 'x = jax.lax.with_sharding_constraint(x, P("data", None))'
    assert first.mlir == ('sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : tensor<4096x256xf32>',)
    assert advice.after.seconds < advice.before.seconds


@pytest.mark.parametrize("text", [EMBEDDING, MLP, LAYER], ids=["embedding", "mlp", "layer"])
def test_the_program_with_the_constraints_costs_what_the_advice_says(text):
    """Written into the module and read again, the constraints lead to the figures of the whole set."""
    advice = advise(text, machine="cpu-8", minimise="bytes")
    assert _price(text) == (advice.before.seconds, advice.before.bytes)
    written = write_advised(ProgramInput(text), advice.shardings)
    assert advice.constraints
    assert _price(written) == (advice.after.seconds, advice.after.bytes)


def test_every_constraint_of_a_set_saves_something_on_top_of_those_before():
    """The figures of a set become better from one constraint to the next."""
    advice = advise(MLP, minimise="bytes")
    figures = [advice.before, *(item.together for item in advice.constraints)]
    assert all(after.bytes < before.bytes for before, after in pairwise(figures))


def test_a_program_without_disagreement_gets_no_advice():
    """Where all tensors of all ops agree, there is nothing to constrain."""
    advice = advise(AGREEING)
    assert (advice.constraints, advice.others, advice.after) == ((), (), advice.before)


def test_a_line_that_makes_several_tensors_is_constrained_for_all_of_them():
    """The line of a layer is one place: its constraint has the tensors of all layers."""
    advice = advise(TWO_LAYERS, minimise="bytes")
    places = [item.constraint.place for item in (*advice.constraints, *advice.others)]
    assert ("%0", "%2") in [place.names for place in places]


def test_what_does_not_fit_becomes_smaller_first():
    """With a budget that nothing meets, the set is the one that saves most memory, whatever it costs in time."""
    tight = advise(EMBEDDING, machine="cpu-8", budget_memory=1.0)
    smallest = advise(EMBEDDING, machine="cpu-8", minimise="memory")
    assert tight.after.peak_bytes <= smallest.after.peak_bytes < smallest.before.peak_bytes
    assert tight.problem is not None
    assert "no set of constraints meets the memory budget of 1 B" in str(tight)


def test_trials_bound_the_search():
    """No more outcomes are priced than allowed."""
    seen: list[tuple[int, int]] = []
    advice = advise(MLP, trials=5, progress=lambda done, total: seen.append((done, total)))
    assert advice.tried <= 5
    assert seen[-1] == (advice.tried, 5)


def test_a_result_gives_the_advice_of_its_run():
    """The run is propagated again, with its options; it must have been traced."""
    result = sdy.propagate(EMBEDDING, trace=True)
    assert result.advise("cpu-8") == advise(EMBEDDING, machine="cpu-8")
    with pytest.raises(sdy.OptionError, match="not traced"):
        sdy.propagate(EMBEDDING).advise()


@pytest.mark.parametrize(
    "options", [{"trials": 0}, {"limit": -1}, {"budget_memory": 0.0}, {"minimise": "time"}], ids=str
)
def test_options_that_make_no_sense_are_refused(options):
    """Counts and sizes are checked; there is no time without a machine."""
    with pytest.raises(sdy.OptionError):
        advise(AGREEING, **options)


def test_a_session_without_names_is_refused():
    """Without the names of the given program, constraints could not be written down."""
    with pytest.raises(sdy.OptionError, match="names"):
        advise_session(Session.open(AGREEING), AdviceOptions())


def test_advice_is_for_the_program_as_the_session_changes_it():
    """What a session does to the program before any pass is done before constraints are written, too."""
    shardings = {}
    Session.open(EMBEDDING, on_given=lambda program, main: shardings.update(program.shardings))
    bare = re.sub(r" \{sdy\.sharding = .*?>\}", "", EMBEDDING)
    session = Session.open(bare, on_given=lambda program, main: program.shardings.update(shardings), keep_names=True)
    options = AdviceOptions(machine="cpu-8", limit=1)
    annotated = advise_session(Session.open(EMBEDDING, keep_names=True), options)
    advice = advise_session(session, options)
    assert annotated.constraints
    assert (advice.before, advice.after) == (annotated.before, annotated.after)


def test_advice_has_a_short_text() -> None:
    """It says what each constraint leads to, as a line of JAX; figures without a machine have no time."""
    advice = advise(EMBEDDING)
    lines = str(advice).splitlines()
    assert lines[0] == "Advice for fewer bytes sent on one of 8 devices"
    assert lines[1] == f"as it is: {advice.before}"
    assert f"    {advice.constraints[0].constraint.jax}" in lines
    assert f"    with it: {advice.constraints[0].together}" in lines
    assert " of time" not in str(advice)
    assert " of time, " in str(advise(EMBEDDING, machine="h100-8").before)
    assert str(advise(AGREEING)).splitlines()[-1].startswith("no constraint saves enough; ")


class _Toy(ProgramFrontend):
    """A frontend of another IR, with a line of its own for constraints."""

    def constraint_code(self, sharding, mesh):
        return f"toy.shard x {sharding.dim_shardings[0]}"


@pytest.mark.parametrize(
    ("frontend", "line"),
    [(_Toy(), 'toy.shard x {"data"}'), (ProgramFrontend(), "sdy.sharding_constraint %0")],
    ids=["with a line", "without"],
)
def test_a_constraint_is_written_in_the_words_of_the_frontend(frontend, line):
    """A frontend without a line of its own gets the op of Shardy, never code of JAX."""
    session = Session.open(EMBEDDING, keep_names=True)
    session.program.frontend = frontend
    text = str(advise_session(session, AdviceOptions(machine="cpu-8")))
    assert line in text
    assert "jax" not in text
