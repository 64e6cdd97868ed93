"""Outcomes that runs share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from shardy_py.propagation import outcome_memory
from shardy_py.propagation.outcome_memory import OutcomeMemory
from shardy_py.propagation.steps.factors import Direction, Strategy
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_op_sharding_rule, parse_tensor_sharding
from shardy_py.sharding.rule import OpShardingRule

MESH = Mesh.of(a=2, b=2)
SHARDING = parse_tensor_sharding('<@mesh, [{"a", ?}]>')


def _rule(size: int = 4) -> OpShardingRule:
    return parse_op_sharding_rule(f"<([i])->([i]) {{i={size}}}>")


def test_programs_with_the_same_meshes_share_outcomes() -> None:
    """Names, axes and sizes of the meshes decide, not the mapping itself."""
    memory = OutcomeMemory()
    found = memory.of({"mesh": MESH})
    assert memory.of({"mesh": Mesh.of(a=2, b=2)}) is found
    for meshes in ({"other": MESH}, {"mesh": Mesh.of(a=2, b=4)}, {"mesh": MESH, "second": MESH}, {}):
        assert memory.of(meshes) is not found


def test_later_meshes_of_a_program_do_not_change_the_outcomes_of_others() -> None:
    """The mapping is copied, so that a pass may add a mesh to its program."""
    meshes = {"mesh": MESH}
    found = OutcomeMemory().of(meshes)
    meshes["late"] = Mesh.of(c=3)
    assert "late" not in found.table.meshes


def test_the_meshes_not_asked_for_longest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of meshes has a limit."""
    monkeypatch.setattr(outcome_memory, "MANY_MESHES", 2)
    memory = OutcomeMemory()
    one, two = (memory.of({name: MESH}) for name in "xy")
    assert memory.of({"x": MESH}) is one
    memory.of({"z": MESH})
    assert memory.of({"x": MESH}) is one
    assert memory.of({"y": MESH}) is not two


def test_outcomes_of_many_kinds_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of outcomes has a limit; a run that has them keeps them."""
    memory = OutcomeMemory()
    found = memory.of({"mesh": MESH})
    monkeypatch.setattr(outcome_memory, "MANY_OUTCOMES", found.size + 1)
    found.intern_rule(_rule())
    assert memory.of({"mesh": MESH}) is found
    found.table.intern(SHARDING)
    assert memory.of({"mesh": MESH}) is not found


def test_threads_agree_on_all_ids() -> None:
    """Rules and shardings that several threads meet at the same time have one id each, and outcomes are the same."""
    texts = [f'<@mesh, [{{"{axis}"{end}}}]>' for axis in "ab" for end in (", ?", "")]
    found = OutcomeMemory().of({"mesh": MESH})
    both = (int(Direction.BOTH),)

    def work(_: int) -> list[object]:
        ids = [found.table.intern(parse_tensor_sharding(text)) for text in texts for _ in range(50)]
        rules = [found.intern_rule(_rule(size)) for size in range(1, 50)]
        outcomes = [found.outcome(rules[0], both, Strategy.AGGRESSIVE, (number, 0)) for number in ids]
        return [ids, rules, outcomes]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(16)))
    assert all(result == results[0] for result in results)
    assert len(found.table.values) == len(found.table.has_axes)
    assert len(found.rules) == len(found.kinds) == 1
