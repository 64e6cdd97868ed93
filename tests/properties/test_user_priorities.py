"""Later user priorities visit only what changed, and end as if every level visited every step."""

from __future__ import annotations

import random
import re

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

import shardy_py as sdy
from shardy_py.oracle.generate.generator import DEFAULT_FEATURES, generate
from shardy_py.propagation.solve import _Solver

_SHARDED_DIMENSION = re.compile(r'(\{"[^{}"]*"(?:, \?)?\})(?=[,\]])')
_FEATURES = DEFAULT_FEATURES - {"manual_computation", "sub_axes"}


def with_priorities(text: str, seed: int) -> str:
    """Return a module whose sharded dimensions have user priorities from 0 to 5."""
    choices = random.Random(seed)
    return _SHARDED_DIMENSION.sub(lambda match: f"{match[1]}p{choices.randrange(6)}", text)


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("schedule", ["default", "flat"])
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 6, 7, 8])
def test_steps_that_see_no_change_need_no_visit(
    seed: int, schedule: str, trace: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow form, in which every level of every priority visits all steps, gives the same module."""
    text = with_priorities(generate(seed, features=_FEATURES), seed)
    assert len(set(re.findall(r"\}p(\d)", text))) > 1
    module = sdy.propagate(text, schedule=schedule, trace=trace).text
    monkeypatch.setattr(_Solver, "keep_level_starts", lambda _: None)
    assert sdy.propagate(text, schedule=schedule, trace=trace).text == module
