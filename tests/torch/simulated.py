"""Programs of PyTorch on simulated devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

import shardy_py as sdy
from shardy_py.torch.parallel import explicit_program, make_local_torch_program


def simulated(
    program: Any, tensors: Sequence[torch.Tensor], mesh: Mapping[str, int], shardings: Mapping[str, Any]
) -> list[torch.Tensor]:
    """Return the whole results of an exported program on the devices of a mesh.

    Args:
        program: The exported program.
        tensors: Its inputs.
        mesh: The sizes of the mesh.
        shardings: The shardings of its arguments.
    """
    result = sdy.propagate(program, mesh, in_shardings=shardings)
    local = make_local_torch_program(explicit_program(result.program, result.registry), result.registry)
    state, inputs = {**program.state_dict, **program.constants}, iter(tensors)
    arguments = [next(inputs) if item.kind == "input" else state[item.name] for item in local.origin.arguments]
    outputs = local.simulate(*arguments)
    return [outputs[output.result] for output in local.origin.outputs if output.result is not None]
