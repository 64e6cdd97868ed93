"""Local programs on host devices, compared with one device."""

from __future__ import annotations

from typing import Any

import numpy as np

import shardy_py as sdy
from shardy_py.targets.jax.unsharded import compile_unsharded


def compare(text: str, *arrays: Any) -> list[str]:
    """Check that the local program of a text gives what one device gives, and that replicas agree.

    Args:
        text: The module, with shardings.
        arrays: The arguments of its main function.

    Returns:
        The names of the ops that were gathered.
    """
    result = sdy.propagate(text, explicit_collectives=True)
    local = result.local()
    wanted = compile_unsharded(text, semantics=result.registry)(*arrays)
    for found, whole in zip(local.run(*arrays), wanted, strict=True):
        np.testing.assert_allclose(found, whole, rtol=2e-5, atol=2e-5)
    return [warning.op for warning in local.warnings]
