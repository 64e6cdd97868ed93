"""Programs of PyTorch that run on shards, with collectives of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field

from shardy_py.api.options import LocalOptions
from shardy_py.errors import Diagnostic, OptionError, as_warnings
from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.communication import CommunicationChange
from shardy_py.ir.interfaces.local import LocalOps
from shardy_py.local.local_ops import find_local_ops
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.torch.frontend.origin import TorchOrigin
from shardy_py.torch.parallel.collectives import Devices, SimulatedDevices
from shardy_py.torch.parallel.localized import localized
from shardy_py.torch.parallel.runner import Runner
from shardy_py.torch.parallel.shards import TensorPort
from shardy_py.values import define


@define(frozen=True, eq=False)
class LocalTorchProgram:
    """The program that each device runs, with what it needs to cut tensors and put them together.

    Attributes:
        program: The local program.
        origin: What it was imported from.
        arguments: The arguments.
        results: The results.
        mesh: The mesh.
        warnings: The ops that run on gathered operands.
        ops: The ops for communication.
        communication: What was changed so that less is sent, with the bytes before and after.
        locations: The source locations of its ops, by id.
    """

    program: Program
    origin: TorchOrigin
    arguments: tuple[TensorPort, ...]
    results: tuple[TensorPort, ...]
    mesh: Mesh
    warnings: tuple[Diagnostic, ...] = field(converter=as_warnings)
    ops: LocalOps
    communication: tuple[CommunicationChange, ...] = ()
    locations: Mapping[int, str] = field(factory=dict)

    @property
    def device_count(self) -> int:
        """The number of devices."""
        return max(self.mesh.total_size, 1)

    @property
    def shard_program(self) -> Program:
        """The op graph without shardings, as costs read it: all types are those of shards already."""
        program = copy_program(self.program)
        program.shardings.clear()
        program.locate = lambda op: self.locations.get(op.id, "")
        return program

    def simulate(self, *tensors: Any) -> list[Any]:
        """Run all devices in this process and return the whole results.

        Args:
            tensors: The whole tensors of all arguments, parameters and buffers included.

        Raises:
            OptionError: there are not as many tensors as arguments.
        """
        self._check_count(tensors)
        devices = SimulatedDevices(max(self.mesh.total_size, 1))
        arguments = [
            [port.part(tensor, device) for device in devices.numbers]
            for port, tensor in zip(self.arguments, tensors, strict=True)
        ]
        results = self.run(devices, arguments, tensors[0].device if tensors else "cpu")
        return [port.whole(shards) for port, shards in zip(self.results, results, strict=True)]

    def run(self, devices: Devices, arguments: Sequence[Sequence[Any]], torch_device: Any) -> list[list[Any]]:
        """Return the shards of the results on some devices; gradients are not recorded.

        Args:
            devices: The devices.
            arguments: The shards of each argument, one for each device.
            torch_device: The device of PyTorch on which tensors are made.
        """
        import torch

        with torch.no_grad():
            return Runner(self.program, devices, torch_device).run([list(shards) for shards in arguments])

    def _check_count(self, tensors: Sequence[Any]) -> None:
        if len(tensors) != len(self.arguments):
            names = ", ".join(self.origin.argument_names)
            message = f"{len(tensors)} tensors are given for {len(self.arguments)} arguments"
            raise OptionError(Diagnostic("argument-count", message, hint=f"the arguments are {names}"))


def make_local_torch_program(
    explicit: Program, registry: Registry, *, strict: bool = False, optimize: bool = True
) -> LocalTorchProgram:
    """Return the program that each device runs.

    Args:
        explicit: The program with its collectives; it stays as it is.
        registry: What is known about ops.
        strict: Whether an op without a local form is an error; otherwise it runs on gathered operands, with a warning.
        optimize: Whether collectives are moved to where they send the fewest bytes.

    Raises:
        ShardyError: an op has no local form.
    """
    main = explicit.functions["main"]
    mesh = next(iter(explicit.meshes.values()), Mesh())
    arguments = _ports(explicit, main.regions[0].blocks[0].arguments, mesh)
    results = _ports(explicit, main.function_results, mesh)
    localization = localized(explicit, registry, options=LocalOptions(strict=strict, optimize=optimize))
    ops = find_local_ops(explicit, registry)
    return LocalTorchProgram(
        localization.program,
        explicit.origin,
        arguments,
        results,
        mesh,
        localization.warnings,
        ops,
        localization.communication,
        localization.locations(),
    )


def _ports(program: Program, values: Sequence[Value], mesh: Mesh) -> tuple[TensorPort, ...]:
    table = program.shardings
    return tuple(TensorPort(static_shape(value.type) or (), table.get(value.id), mesh) for value in values)
