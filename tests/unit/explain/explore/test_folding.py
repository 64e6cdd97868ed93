"""Folding of the ops of a block by repetitions and by name stacks of JAX."""

import random

import pytest

from shardy_py.explain.explore.folding import (
    MOST_CHILDREN,
    Fold,
    Leaf,
    Repeat,
    find_repeats,
    fold,
    visit,
    with_neighbours,
)
from shardy_py.explain.explore.scopes import parse_scope
from shardy_py.explain.explore.updates import OPTIMIZER


def _shape(items):
    return [(item.name, _shape(item.children)) if isinstance(item, Fold) else item.row for item in items]


def _most(items):
    folds = [item for item in items if isinstance(item, Fold)]
    return max([len(items), *(_most(item.children) for item in folds)])


def _rows(items):
    return [row for item in items for row in (_rows(item.children) if isinstance(item, Fold) else [item.row])]


def test_ops_are_folded_by_layer():
    """Each name of a path is a group; a name that only one op has is none."""
    paths = [("layer_0", "mlp"), ("layer_0", "mlp"), ("layer_0",), ("layer_1",), ("layer_1",), ("head",), ()]
    leaves = [Leaf(row, path) for row, path in enumerate(paths)]
    assert _shape(fold(leaves)) == [("layer_0", [("mlp", [0, 1]), 2]), ("layer_1", [3, 4]), 5, 6]


def test_names_that_all_share_are_no_group():
    """What stands in every path tells nothing; groups that hold one group only share a name."""
    leaves = [Leaf(row, ("model", f"layer_{row // 2}", "mlp")) for row in range(4)]
    assert _shape(fold(leaves)) == [("layer_0/mlp", [0, 1]), ("layer_1/mlp", [2, 3])]


def test_ops_without_names_are_folded_by_repetition():
    """Equal pieces are one group that says how many there are."""
    (repeats,) = fold([Leaf(row, key=row % 10) for row in range(30)])
    assert repeats.name == "repeat 1 x3"
    assert [piece.name for piece in repeats.children] == [f"repeat 1: {number} of 3" for number in (1, 2, 3)]


def test_numbered_layers_are_one_group_in_order():
    """Layers behind each other that differ in their numbers only are folded, forwards and backwards."""
    layers = ["embed", "layer_0", "layer_1", "layer_2", "head", "back_2", "back_1", "back_0"]
    folded = fold([Leaf(row, (layers[row // 2], "mlp")) for row in range(16)])
    assert [item.name.replace("/mlp", "") for item in folded] == [
        "embed",
        "layer_0 … layer_2 x3",
        "head",
        "back_2 … back_0 x3",
    ]
    assert _rows(folded) == list(range(16))


def test_updates_stand_at_the_end_by_parameter():
    """Updates between other ops are in one group, which splits no other one."""
    updates = {3: "up", 4: "up", 5: "down", 11: "down"}
    leaves = [Leaf(row, (OPTIMIZER, updates[row]) if row in updates else (f"layer_{row // 6}",)) for row in range(12)]
    assert _shape(fold(leaves)) == [
        ("layer_0", [0, 1, 2]),
        ("layer_1", [6, 7, 8, 9, 10]),
        ("optimizer", [("up", [3, 4]), ("down", [5, 11])]),
    ]


def test_long_groups_are_folded_by_lines_of_the_source():
    """Where lines have many ops each, they are the groups."""
    leaves = [Leaf(row, place=f"a.py:{row // 30}", key=row) for row in range(90)]
    assert [item.name for item in fold(leaves)] == ["a.py:0", "a.py:1", "a.py:2"]


def test_no_group_is_too_long_and_no_op_is_lost():
    """Whatever the ops are, each level can be read, and all of them are there once."""
    for count in (10, 61, 500, 5000):
        items = fold([Leaf(row, key=row) for row in range(count)])
        assert _most(items) <= MOST_CHILDREN
        assert _rows(items) == list(range(count))


def test_ops_without_a_name_go_with_their_neighbours():
    """A call between two ops of a layer belongs to it; between two layers, to what both share."""
    stacks = [("a", "b"), None, ("a", "b"), None, ("a", "c")]
    leaves = [Leaf(row, path or (), is_named=path is not None) for row, path in enumerate(stacks)]
    assert [leaf.path for leaf in with_neighbours(leaves)] == [("a", "b"), ("a", "b"), ("a", "b"), ("a",), ("a", "c")]


def test_visits_go_from_groups_to_what_is_in_them():
    """Each group is entered before its ops, with the number of the group around it."""
    entered = []

    def enter(child, parent):
        entered.append((child.name, parent))
        return len(entered)

    leaves = []
    tree = fold([Leaf(row, ("x", str(row // 2))) for row in range(4)])
    visit(tree, enter, lambda leaf, parent: leaves.append((leaf.row, parent)), parent=0)
    assert entered == [("0", 0), ("1", 0)]
    assert leaves == [(0, 1), (1, 1), (2, 2), (3, 2)]


def test_the_layers_of_a_sequence_are_found():
    """Equal pieces behind each other are one repetition, whatever stands before and behind."""
    layer = [f"op {number}" for number in range(30)]
    actual = find_repeats(["a", "b", *layer * 5, "c"])
    assert actual == (Repeat(2, 30, 5),)


def test_two_parts_of_a_program_are_found_both():
    """A forward and a backward pass repeat each for themselves, in order."""
    forward = [f"f{number}" for number in range(12)]
    backward = [f"b{number}" for number in range(20)]
    actual = find_repeats([*forward * 4, "loss", *backward * 4])
    assert [(item.period, item.count) for item in actual] == [(12, 4), (20, 4)]


def test_what_does_not_repeat_is_left_alone():
    """Distinct items have no repetition."""
    assert find_repeats(range(200)) == ()


def test_repetitions_are_what_they_say():
    """Each repetition found consists of equal pieces, and no two overlap."""
    chance = random.Random(0)
    for _ in range(20):
        keys = [chance.choice("abc") for _ in range(200)]
        position = 0
        for item in find_repeats(keys):
            assert item.start >= position
            assert item.count >= 2
            pieces = {tuple(keys[start : start + item.period]) for start in range(item.start, item.stop, item.period)}
            assert len(pieces) == 1
            position = item.stop


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
        ("jit(f)/jvp(bij,bjk->bik)/dot_general", "forward", (), "dot_general"),
        ("jit(f)/vmap(while(a/b))/body/add", "", ("a/b", "body"), "add"),
    ],
)
def test_scopes_have_a_phase_layers_and_a_primitive(text, phase, layers, primitive):
    """Transformations are peeled off; slashes inside of brackets separate nothing."""
    scope = parse_scope(text)
    assert (scope.phase, scope.layers, scope.primitive) == (phase, layers, primitive)
