"""The example training step without a partitioner: local programs on 8 and 16 devices in a shuffled order."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="programs run through XLA")
np = pytest.importorskip("numpy")

import shardy_py as sdy  # noqa: E402
from shardy_py.jax.deviations import compare_results  # noqa: E402
from shardy_py.jax.inputs import random_inputs  # noqa: E402
from shardy_py.jax.local.child import run_whole  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "gpt_train.mlir"
_MESH = re.compile(r"sdy\.mesh @(\w+) = <\[[^\]]*\]>")


@pytest.mark.slow
@pytest.mark.parametrize(("data", "model"), [(4, 2), (2, 8)])
def test_the_training_step_runs_on_shuffled_devices(data: int, model: int) -> None:
    """Loss, parameters and gradients are those of one device, and replicas agree."""
    order = random.Random(data).sample(range(data * model), data * model)
    mesh = f'<["data"={data}, "model"={model}], device_ids={order}>'
    text, count = _MESH.subn(lambda match: f"sdy.mesh @{match[1]} = {mesh}", EXAMPLE.read_text())
    assert count == 1
    result = sdy.propagate(text, local=True)
    local = result.local(strict=True)
    inputs = random_inputs(result.program, result.main)
    actual = compare_results(local.run(*inputs), run_whole(EXAMPLE.read_text(), inputs))
    assert [str(item) for item in actual if not item.is_within] == []
    assert any(item.kind == "all_reduce" for item in local.collectives)
