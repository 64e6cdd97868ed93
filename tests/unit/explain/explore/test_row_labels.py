"""Labels of rows: equations, layers, parameters, and updates of an optimizer."""

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.api.options import SessionArguments
from shardy_py.errors import OptionError
from shardy_py.explain.explore.equations import equation_of
from shardy_py.explain.explore.explore import ExploreOptions, explore
from shardy_py.explain.explore.row_labels import RowLabel, distinguish
from shardy_py.explain.explore.value_paths import join_numbers, parse_path, short_name
from shardy_py.explain.explore.variants import Variant
from shardy_py.report.axis_colors import HUES, axis_hues
from shardy_py.sharding.parse import parse_op_sharding_rule
from tests.unit.explain.explore.programs import RIVALS, TWO_LAYERS

TRAINED = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(
    %x: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
    %up: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>} loc("p['layers'][0]['up']"),
    %mu: tensor<32x64xf32> loc("opt[0].mu['layers'][0]['up']")) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
    : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32> loc(#up)
  %1 = stablehlo.tanh %0 : tensor<16x64xf32> loc(#act)
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0]
    : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32> loc(#back)
  %3 = stablehlo.broadcast_in_dim %half, dims = [] : (tensor<f32>) -> tensor<32x64xf32> loc(#mul)
  %4 = stablehlo.multiply %3, %mu : tensor<32x64xf32> loc(#mul)
  %5 = stablehlo.add %4, %2 : tensor<32x64xf32> loc(#add)
  %6 = stablehlo.subtract %up, %5 : tensor<32x64xf32> loc(#sub)
  return %6, %5 : tensor<32x64xf32>, tensor<32x64xf32>
}
#up = loc("jit(step)/jvp(layer_0)/mlp/nd,df->nf/dot_general"("model.py":7:3))
#act = loc("jit(step)/jvp(layer_0)/mlp/tanh"("model.py":8:3))
#back = loc("jit(step)/transpose(jvp(layer_0))/mlp/nd,df->nf/dot_general"("model.py":7:3))
#mul = loc("jit(step)/mul"("model.py":20:3))
#add = loc("jit(step)/add"("model.py":20:3))
#sub = loc("jit(step)/sub"("model.py":21:3))
"""
"""One layer with an optimizer that keeps a moment."""

TRANSPOSED = """
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %g: tensor<2x4xf32>)
    -> (tensor<4x2xf32>, tensor<4x3xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32> loc(#dot)
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32> loc(#transpose)
  %2 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0]
    : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32> loc(#back)
  return %1, %2 : tensor<4x2xf32>, tensor<4x3xf32>
}
#dot = loc("jit(step)/jvp(layer_0)/ij,jk->ik/dot_general"("model.py":7:3))
#transpose = loc("jit(step)/jvp(layer_0)/ij,jk->ik/transpose"("model.py":7:3))
#back = loc("jit(step)/transpose(jvp(layer_0))/ij,jk->ik/dot_general"("model.py":7:3))
"""
"""An einsum whose result is transposed, and its gradient."""


def _data(text, **options):
    return explore(SessionArguments(text), ExploreOptions(**options)).data


@pytest.fixture(scope="module")
def trained():
    """The data of the page of a trained layer."""
    return _data(TRAINED)


def _labels(data):
    """Return the name of each op with its label."""
    texts, ops = data["strings"], data["ops"]
    rows = [row for row, kind in enumerate(ops["kind"]) if kind == 0]
    return [tuple(texts[ops[column][row]] for column in ("name", "what", "where")) for row in rows]


def test_rows_say_equation_layer_and_parameter(trained):
    """Products have the letters that they were written with, gradients in their own order."""
    products = [label[1:] for label in _labels(trained) if label[0] == "stablehlo.dot_general"]
    assert products == [("nd,df->nf", "layer_0/mlp/up"), ("nd,nf->df", "backward/layer_0/mlp/up gradient")]


def test_a_transpose_in_an_einsum_leaves_the_letters_to_its_gradient():
    """Only sizes tell which operand the gradient is of: those of the product, whatever else the einsum consists of."""
    data = _data(TRANSPOSED)
    products = [label[1] for label in _labels(data) if label[0] == "stablehlo.dot_general"]
    assert products == ["ij,jk->ik", "ik,ij->kj"]


def test_updates_are_grouped_by_parameter(trained):
    """All ops between a gradient and the next state belong to the parameter, their constants with them."""
    updates = [name for name, _, where in _labels(trained) if where == "optimizer/layers_0/up"]
    assert updates == [f"stablehlo.{name}" for name in ("broadcast_in_dim", "multiply", "add", "subtract")]
    groups = [trained["strings"][name] for name in trained["groups"]["name"]]
    assert "optimizer" in groups


def test_rows_differ_in_their_labels():
    """No two ops of a program have the same words."""
    data = _data(TWO_LAYERS)
    ops, texts = data["ops"], data["strings"]
    rows = [row for row, kind in enumerate(ops["kind"]) if kind == 0]
    words = [tuple(texts[ops[column][row]] for column in ("what", "where", "mark")) for row in rows]
    assert len(set(words)) == len(words)


def test_equal_labels_are_told_apart_by_results_and_numbers():
    """A result's name where there is one, else the number among the equal ones."""
    add, mul = RowLabel("add", "mlp"), RowLabel("mul", "mlp")
    assert distinguish([add, mul, add, add], ["%1", "%2", "%3", ""]) == ["%1", "", "%3", "#3"]


@pytest.mark.parametrize(
    ("rule", "written", "is_backward", "equation"),
    [
        ("<([i, k], [k, j])->([i, j]) {i=2, j=3, k=4} reduction={k}>", "", False, "ij,jk->ik"),
        ("<([i, k], [k, j])->([i, j]) {i=2, j=4, k=3} reduction={k}>", "nd,df->nf", False, "nd,df->nf"),
        ("<([i, k], [j, k])->([i, j]) {i=2, j=3, k=4} reduction={k}>", "nd,df->nf", True, "nf,df->nd"),
        ("<([i, k], [k, j])->([i, j]) {i=2, j=3, k=4} reduction={k}>", "nd,fd->nf", False, "ij,jk->ik"),
        (
            "<([i, k, j, m], [i, l, j, m])->([i, j, k, l]) {i=2, j=3, k=5, l=5, m=6} reduction={m}>",
            *("bthk,bshk->bhts", False, "bthk,bshk->bhts"),
        ),
        ("<([i, j], [i, j])->([i, j]) {i=2, j=4}>", "", False, ""),
        ("<([ij, k], [k])->([ij]) {i=2, j=2, k=4} reduction={k}>", "", False, "(ij)k,k->(ij)"),
    ],
)
def test_products_have_equations(rule, written, is_backward, equation):
    """Letters are those of the einsum where they fit, else those from i on; a compound dimension is in brackets."""
    parsed = parse_op_sharding_rule(rule)
    assert equation_of(parsed, written, is_backward=is_backward, sizes={"n": 2, "d": 3, "f": 4}) == equation


@pytest.mark.parametrize(
    ("name", "in_layer", "short"),
    [
        ("p['layers'][3]['up']", True, "up"),
        ("p['layers'][3]['up']", False, "layers_3/up"),
        ("state.params['mlp']['kernel']", True, "mlp/kernel"),
        ("x", True, "x"),
        ("%arg0", False, "%arg0"),
    ],
)
def test_parameters_have_short_names(name, in_layer, short):
    """The last step says enough in a layer, unless it is a word for any weight."""
    assert short_name(name, in_layer=in_layer) == short


def test_names_are_paths():
    """Numbers belong to the step before them; names of the text are no paths."""
    assert join_numbers(parse_path("opt[0].mu['layers'][3]")) == ("opt_0", "mu", "layers_3")
    assert parse_path("%arg0") == ()


def test_axes_have_the_same_colour_whatever_the_mesh():
    """Known names have their hue in every mesh; no two of eight axes share one."""
    assert axis_hues(["model", "data"])["data"] == axis_hues(["data"])["data"]
    names = ["data", "model", "a", "b", "c", "d", "e", "f"]
    assert set(axis_hues(names).values()) == set(HUES)


def test_variants_have_a_run_on_the_same_rows():
    """Other shardings of the same ops: no transfer is left, and the replay ends with what the variant has."""
    other = TWO_LAYERS.replace('[{}, {"model"}]', "[{}, {}]").replace('[{"model"}, {}]', "[{}, {}]")
    data = _data(TWO_LAYERS, variants=[Variant("by hand", other)])
    first, second = data["runs"]
    assert second["name"] == "by hand"
    assert len(first["shardings"]) == len(second["shardings"])
    assert (len(first["transfers"]["kind"]), len(second["transfers"]["kind"])) == (1, 0)
    current = list(second["replay"]["start"])
    for changes in second["replay"]["updates"]["changes"]:
        for slot, sharding in zip(changes[::2], changes[1::2], strict=True):
            current[slot] = sharding
    names = {data["strings"][name]: slot for slot, name in enumerate(data["slots"])}
    assert data["shardings"][current[names["%0"]]]["dims"] == [[["data", 1, 4]], []]


def test_a_constraint_of_a_variant_is_on_the_slots_of_the_page():
    """The slot that a constraint was written on is that of its own annotation, although the program has none there."""
    constraint = """%c = sdy.sharding_constraint %0 <@mesh, [{"data"}, {"model"}]> : tensor<16x64xf32>
  %1 = stablehlo.tanh %c"""
    other = TWO_LAYERS.replace("%1 = stablehlo.tanh %0", constraint)
    annotations = _data(TWO_LAYERS, variants=[Variant("constrained", other)])["runs"][1]["replay"]["annotations"]
    (owner,) = {slot for slot in annotations["owner"] if slot >= 0}
    assert owner == annotations["slot"][-1]


def test_variants_of_other_programs_are_refused():
    """An op that stands elsewhere is named."""
    with pytest.raises(OptionError, match="not the same program"):
        _data(TWO_LAYERS, variants=[Variant("other", RIVALS)])
