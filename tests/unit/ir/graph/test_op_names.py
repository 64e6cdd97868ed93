"""Lists of ops by name hold while other ops come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardy_py.ir.graph.program import Op, Program, Region
from shardy_py.ir.graph.walk import all_ops, ops_named, outermost, remove_with_content

NAMES = ("toy.a", "toy.b", "toy.loop")


def _edit(program: Program, action: str, name: str, number: int) -> None:
    """Insert, append with an op inside, rename, move, erase or unlink an op at some place."""
    ops = list(program.walk())
    block = program.body
    if ops and action == "nest":
        loop = ops[number % len(ops)]
        if not loop.regions:
            loop.add_region(Region([type(block)(program)]))
        block = loop.regions[0].block
        action = "insert"
    if action == "append":
        loop = Op(program, name, regions=[Region([type(block)(program)])])
        loop.regions[0].block.append(Op(program, NAMES[number % len(NAMES)]))
        block.append(loop)
        return
    if action == "insert" or not ops:
        block.append(Op(program, name))
        return
    op = ops[number % len(ops)]
    if action == "erase":
        op.erase()
    elif action == "rename":
        op.rename(name)
    elif action == "move":
        assert op.parent is not None
        op.parent.remove(op)
        block.insert_after(None, op)
    else:
        remove_with_content(program, [op])


def _roots(ops: list[Op]) -> list[Op]:
    return list(map(outermost, ops))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("insert", "append", "nest", "rename", "move", "erase", "unlink")),
            st.sampled_from(NAMES),
            st.integers(0, 20),
            st.sets(st.sampled_from(NAMES), max_size=2),
        ),
        max_size=25,
    )
)
def test_the_index_agrees_with_a_walk(edits: list[tuple[str, str, int, set[str]]]) -> None:
    """Whatever enters, leaves or moves, and whenever the index is asked, it gives what a walk would."""
    program = Program()
    for action, name, number, asked in edits:
        _edit(program, action, name, number)
        if asked:
            actual = [op for op in program.walk() if op.name in asked]
            assert list(ops_named(program, *asked)) == actual
            assert program.index.derived(asked, _roots) == _roots(actual)
        else:
            assert list(all_ops(program)) == list(program.walk())


def test_a_list_stays_as_it_was_given() -> None:
    """A pass may erase the ops of the list that it goes through."""
    program = Program()
    for _ in range(3):
        program.body.append(Op(program, "toy.a"))
    given_before = ops_named(program, "toy.a")
    for op in given_before:
        op.erase()
        assert op not in ops_named(program, "toy.a")
    assert len(given_before) == 3


def test_what_is_made_of_a_list_is_made_once() -> None:
    """As long as no op of the names comes or goes, the answer is the same object."""
    program = Program()
    program.body.append(Op(program, "toy.a"))
    first = program.index.derived(("toy.a",), _roots)
    program.body.append(Op(program, "toy.b"))
    assert program.index.derived(("toy.a",), _roots) is first
    program.body.append(Op(program, "toy.a"))
    assert program.index.derived(("toy.a",), _roots) == list(program.body.ops)[::2]
