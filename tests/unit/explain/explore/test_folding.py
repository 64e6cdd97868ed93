"""Folding of the ops of a block."""

from shardy_py.explain.explore.folding import MOST_CHILDREN, Fold, Leaf, fold, visit, with_neighbours


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
    """Equal pieces are groups that say which one of how many they are."""
    leaves = [Leaf(row, key=row % 10) for row in range(30)]
    assert [item.name for item in fold(leaves)] == [f"repeat 1: {number} of 3" for number in (1, 2, 3)]


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

    def enter(one, parent):
        entered.append((one.name, parent))
        return len(entered)

    leaves = []
    tree = fold([Leaf(row, ("x", str(row // 2))) for row in range(4)])
    visit(tree, enter, lambda leaf, parent: leaves.append((leaf.row, parent)), parent=0)
    assert entered == [("0", 0), ("1", 0)]
    assert leaves == [(0, 1), (1, 1), (2, 2), (3, 2)]
