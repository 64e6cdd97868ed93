"""Uses, operands and links of the op graph change in one module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("shardy_py", "dialects")
EDITOR = "shardy_py/ir/graph/op_graph.py"
BUILDERS = frozenset(
    (
        EDITOR,
        # These make many ops at once, each without its initializer.
        "shardy_py/frontends/mlir/importer.py",
        "shardy_py/ir/graph/program_copy.py",
        "shardy_py/ir/graph/rewriting.py",
        # It takes back what the function of a plugin did to its op.
        "shardy_py/plugins/op_facts.py",
    )
)
OTHER_GRAPHS = ("shardy_py/plans/", "shardy_py/kernels/", "shardy_py/mpmd/passes/export/layouts.py")
"""Rooms with graphs of their own, and a module that counts the uses of buffers."""
OWN = frozenset(("uses", "prev", "next", "regions"))
"""Attributes of ops and values that only the graph sets."""
CHANGES = frozenset(("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"))


def edits(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the attribute of each change of uses, links or regions, but by an object of its own."""
    if not any(f".{name}" in source for name in OWN):
        return
    for node in ast.walk(ast.parse(source)):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [item for target in node.targets for item in getattr(target, "elts", [target])]
        elif isinstance(node, (ast.AugAssign, ast.Delete)):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            targets = [node.func.value] if getattr(node.func.value, "attr", "") == "uses" else []
        for target in targets:
            changed = target.value if isinstance(target, ast.Subscript) else target
            if (
                isinstance(changed, ast.Attribute)
                and changed.attr in OWN
                and getattr(changed.value, "id", "") != "self"
            ):
                yield changed.lineno, changed.attr


def test_only_the_graph_changes_uses_and_links() -> None:
    """Elsewhere the methods of values, ops and blocks do, so that the graph may keep them in another form."""
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    changes = {
        f"{name}:{line}": attribute
        for path in files
        if (name := path.relative_to(ROOT).as_posix()) not in BUILDERS and not name.startswith(OTHER_GRAPHS)
        for line, attribute in edits(path.read_text(encoding="utf-8"))
    }
    assert changes == {}
    assert list(edits((ROOT / EDITOR).read_text(encoding="utf-8"))) != []


def test_each_kind_of_edit_is_seen() -> None:
    """Assignments, also to several names at once and to items, and calls that change a list."""
    source = """
value.uses = []
value.uses += more
value.uses[0] = use
value.uses.append(use)
regions, op.regions = op.regions, ()
op.prev = op.next = None
del value.uses[0]
self.uses = []
print(value.uses[0], value.uses.index(use))
"""
    assert sorted(line for line, _ in edits(source)) == [2, 3, 4, 5, 6, 7, 7, 8]
