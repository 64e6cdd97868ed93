"""Advice helps in XLA, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="the programs are JAX's, and XLA compiles them")

from jax.sharding import PartitionSpec as P

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import SessionOptions
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.advice.advise import advise, write_advised
from shardy_py.cost.commands.against_xla import xla_figures
from shardy_py.cost.session import Session
from tests.conformance.advice_programs import llama, mixture

pytestmark = pytest.mark.conformance


def _sent(text: str) -> float:
    """Return the bytes that a device sends in the program that XLA makes for host devices."""
    return xla_figures(GivenProgram(ProgramInput(text), SessionOptions()), None).communication_bytes


def _estimated(text: str) -> float | None:
    return Session.open(text).evaluate(machine="cpu-8", partitioner="xla").cost.communication_bytes.value


@pytest.mark.parametrize(
    ("program", "rank", "op"), [(llama, 3, "gather"), (mixture, 3, "multiply")], ids=["llama", "moe"]
)
def test_one_constraint_halves_the_bytes_that_xla_sends(program, rank, op):
    """The first constraint is at the known place; XLA sends half as much, and JAX's line costs the same."""
    text = program()
    advice = advise(text, machine="cpu-8", minimise="bytes", limit=1, trials=40)
    first = advice.constraints[0].constraint
    assert (first.place.op, first.place.type.rank) == (f"stablehlo.{op}", rank)
    assert first.jax.endswith('P("data", None, None))')
    written = write_advised(ProgramInput(text), advice.shardings)
    assert _sent(written) <= 0.5 * _sent(text)
    assert _estimated(program(P("data", None, None))) == _estimated(written)


STEP = """\
import jax, jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((2, 4), ("data", "model"))

def norm(x, g):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * g

def loss(layers, x):
    for p in layers:
        x = x + jax.nn.gelu(norm(x, p["g"]) @ p["up"]) @ p["down"]
    return jnp.mean(x * x)

def step(layers, x):
    return jax.tree.map(lambda w, g: w - 0.1 * g, layers, jax.grad(loss)(layers, x))

def shape(*sizes, spec=()):
    return jax.ShapeDtypeStruct(sizes, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))

layer = {
    "g": shape(4096),
    "up": shape(4096, 16384, spec=(None, "model")),
    "down": shape(16384, 4096, spec=("model",)),
}
with jax.sharding.use_abstract_mesh(mesh):
    lowered = jax.jit(step).trace([layer] * 2, shape(8, 2048, 4096, spec=("data",))).lower(lowering_platforms=("cpu",))
"""


def _lower(file: Path, source: str) -> str:
    file.write_text(source)
    names: dict[str, Any] = {}
    exec(compile(source, str(file), "exec"), names)
    text: str = names["lowered"].as_text(debug_info=True)
    return text


@pytest.mark.parametrize("measure", ["time", "memory"])
def test_lines_that_are_changed_as_the_advice_says_cost_what_it_says(measure, tmp_path):
    """The source is changed line by line and traced again, with the gradients that JAX makes of the constraints."""
    advice = advise(_lower(tmp_path / "step.py", STEP), machine="h100-8", minimise=measure, limit=1, trials=80)
    assert advice.constraints
    lines = STEP.splitlines()
    for advised in advice.constraints:
        before, after = advised.constraint.diff
        number = int(advised.constraint.place.location.split(":")[-2]) - 1
        assert lines[number] == before.removeprefix("-")
        lines[number] = after.removeprefix("+")
    session = Session.open(_lower(tmp_path / "changed.py", "\n".join(lines)))
    cost = session.evaluate(machine="h100-8").cost
    assert cost.communication_bytes.value == advice.after.bytes
    assert cost.seconds.value == pytest.approx(advice.after.seconds)
    assert cost.peak_bytes.value == advice.after.peak_bytes
