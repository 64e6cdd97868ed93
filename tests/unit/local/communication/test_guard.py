"""The guard: no local program sends more than it would without the passes on communication."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy
from shardy_py.errors import Diagnostic, UnsupportedError, VerificationError
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.local.communication.guard import Attempt, with_least_communication
from shardy_py.local.communication.plan import PlanCommunicationPass
from shardy_py.local.communication.sent_bytes import local_sent_bytes
from shardy_py.local.pipeline import communication_passes
from tests.unit.local.communication.moving_programs import random_program
from tests.unit.local.host_devices import compare_padded

ALL = communication_passes()


def form_of(all_passes: float, none: float, *, without_plan: float = 1e9, at_least: float = 0.0) -> tuple[str, int]:
    """Return the form that stays where each choice of passes sends so much, and the number of attempts."""
    names = []

    def attempt(passes: Sequence[Pass]) -> Attempt[str]:
        name, sent = ("all", all_passes) if len(passes) == len(ALL) else ("none", none) if not passes else ("", 1e9)
        if not name and not any(isinstance(item, PlanCommunicationPass) for item in passes):
            name, sent = "without plan", without_plan
        names.append(name)
        return Attempt(name, sent, at_least)

    return with_least_communication(attempt, ALL).form, len(names)


def test_a_program_that_sends_no_more_than_before_is_made_once() -> None:
    """The bound from below tells it."""
    assert form_of(10, 20, at_least=10) == ("all", 1)


def test_all_passes_stay_where_they_lose_nothing() -> None:
    """One more attempt tells it where the bound does not."""
    assert form_of(10, 10) == ("all", 2)


def test_fewer_passes_run_where_all_lose() -> None:
    """The one pass that loses is left out, or all are."""
    assert form_of(30, 20, without_plan=15)[0] == "without plan"
    assert form_of(30, 20, without_plan=25)[0] == "none"


def test_a_program_that_needs_the_passes_keeps_them() -> None:
    """An error without them is no reason to fail."""

    def attempt(passes: Sequence[Pass]) -> Attempt[str]:
        if len(passes) < len(ALL):
            raise UnsupportedError(Diagnostic("test", "no local form"))
        return Attempt("all", 5.0, 0.0)

    assert with_least_communication(attempt, ALL).form == "all"


@pytest.mark.parametrize(
    "error", [KeyError("x"), VerificationError(Diagnostic("local-types", "is ill-typed", "f:1:2"))]
)
def test_a_pass_that_fails_is_named_and_no_pass_runs(error: Exception) -> None:
    """The program without passes runs, and the warning says why more bytes are sent."""

    def attempt(passes: Sequence[Pass]) -> Attempt[str]:
        if any(isinstance(item, PlanCommunicationPass) for item in passes):
            raise error
        return Attempt(f"{len(passes)} passes", 5.0, 0.0)

    least = with_least_communication(attempt, ALL)
    assert least.form == "0 passes"
    assert [(item.code, item.severity) for item in least.warnings] == [("communication-pass", "warning")]
    assert str(least.warnings[0]).startswith("f:1:2: " if isinstance(error, VerificationError) else "warning: ")
    assert "plan-communication fails" in least.warnings[0].message


def test_a_program_without_local_form_is_the_error_of_its_first_attempt() -> None:
    """No pass is blamed for it."""

    def attempt(passes: Sequence[Pass]) -> Attempt[str]:
        raise UnsupportedError(Diagnostic("test", f"no local form with {len(passes)} passes"))

    with pytest.raises(UnsupportedError, match=f"no local form with {len(ALL)} passes"):
        with_least_communication(attempt, ALL)


def test_a_local_program_says_which_pass_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends what it sends without the passes."""

    def fail(_item: PlanCommunicationPass, _program: Program, _context: PassContext) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(PlanCommunicationPass, "run", fail)
    result = sdy.propagate(random_program(5000))
    local, plain = result.local(), result.local(optimize=False)
    assert [item.code for item in local.warnings] == ["communication-pass"]
    assert "plan-communication fails here" in local.warnings[0].message
    assert [item.kind for item in local.collectives] == [item.kind for item in plain.collectives]


def test_random_programs_never_send_more() -> None:
    """Reads, writes, joins and pads of tensors that are sharded in many ways: half of them send less."""
    less = 0
    for seed in range(60):
        result = sdy.propagate(random_program(5000 + seed))
        before, after = (
            local_sent_bytes(local.program, local.ops, result.registry, local.mesh)
            for local in (result.local(optimize=False), result.local())
        )
        assert after <= before + 1, f"seed {seed}: {after} instead of {before}"
        less += after < before
    assert less > 15


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_programs_give_what_one_device_gives(seed: int) -> None:
    """With poisoned padding, and a start that may lie outside."""
    pytest.importorskip("jax", reason="programs run through XLA")
    text = random_program(7000 + seed)
    rng = np.random.default_rng(seed)
    arguments = sdy.propagate(text).main.regions[0].block.arguments
    arrays = [
        rng.normal(size=item.shape).astype(np.float32) if item.shape else np.int32(rng.integers(-2, 34))
        for item in arguments
    ]
    compare_padded(text, *arrays)
