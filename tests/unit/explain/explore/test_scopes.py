"""Name stacks of JAX, taken apart."""

import pytest

from shardy_py.explain.explore.scopes import parse_scope


@pytest.mark.parametrize(
    ("text", "phase", "layers", "primitive"),
    [
        ("", "", (), ""),
        ("jit(step)", "", (), ""),
        ("jit(step)/mul", "", (), "mul"),
        ("jit(step)/jvp(layer_3)/mlp/dot_general", "forward", ("layer_3", "mlp"), "dot_general"),
        ("jit(step)/transpose(jvp(layer_3))/mul", "backward", ("layer_3",), "mul"),
        ("jit(step)/jvp()/add", "forward", (), "add"),
        ("jit(step)/jit(_where)/select_n", "", ("_where",), "select_n"),
        ("jit(f)/jvp(bij,bjk->bik)/dot_general", "forward", ("bij,bjk->bik",), "dot_general"),
        ("jit(f)/vmap(while(a/b))/body/add", "", ("a/b", "body"), "add"),
    ],
)
def test_scopes_have_a_phase_layers_and_a_primitive(text, phase, layers, primitive):
    """Transformations are peeled off; slashes inside of brackets separate nothing."""
    scope = parse_scope(text)
    assert (scope.phase, scope.layers, scope.primitive) == (phase, layers, primitive)
