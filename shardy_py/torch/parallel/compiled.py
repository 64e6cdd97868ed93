"""Programs of PyTorch that run on shards, with collectives of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from warnings import warn

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
from shardy_py.torch.modules.graph_module import has_control_flow, make_graph
from shardy_py.torch.parallel.collectives import Devices, ProcessDevices, SimulatedDevices
from shardy_py.torch.parallel.distribute import check_device_mesh
from shardy_py.torch.parallel.draws import check_random_states, draws_numbers, random_state
from shardy_py.torch.parallel.localized import localized
from shardy_py.torch.parallel.process_groups import ProcessGroups, check_groups_outside
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


class TorchProgram:
    """A program of PyTorch on the processes of a device mesh.

    Parameters and buffers are cut once. What a call returns are whole tensors; buffers that the program writes are
    kept. The program is an FX graph module, `graph_module`; one with control flow is run op by op instead.

    Args:
        local: The program that each device runs.
        device_mesh: The devices; every process makes its own `TorchProgram`.
        state: The parameters, buffers and constants by name, whole; by default those of the exported program.

    Raises:
        OptionError: the device mesh does not have the dimensions of the mesh, or a parameter is missing.
    """

    def __init__(self, local: LocalTorchProgram, device_mesh: Any, state: Mapping[str, Any] | None = None) -> None:
        import torch

        check_device_mesh(device_mesh, local.mesh)
        groups = ProcessGroups(device_mesh)
        self.local = local
        self.devices = ProcessDevices(groups)
        self.graph_module: Any = None
        self._torch_device = torch.device(device_mesh.device_type)
        if has_control_flow(local.program):
            check_groups_outside(local.program, groups.ranks)
            for op in local.program.walk():
                if "groups" in op.attributes and op.name.startswith("spmd.") and op.name != "spmd.collective_permute":
                    groups.group(op.attributes["groups"])
        else:
            names = local.origin.argument_names
            graph_builder = make_graph(local.program, groups, self._torch_device, names)
            self.graph_module = torch.fx.GraphModule({}, graph_builder.graph, "LocalProgram")
            self._counts = graph_builder.counts
        self._draws = any(map(draws_numbers, local.program.walk()))
        known = _state_of(local.origin.native) if state is None else state
        self._is_trained = False
        self._is_warned = False
        self._shards: dict[str, Any] = {}
        for argument, port in zip(local.origin.arguments, local.arguments, strict=True):
            if argument.kind != "input":
                name = next((name for name in argument.names if name in known), None)
                if name is None:
                    message = f"there is no tensor for the {argument.kind} {argument.name!r}"
                    raise OptionError(Diagnostic("missing-parameter", message, hint="give state={name: tensor}"))
                self._is_trained |= bool(known[name].requires_grad)
                tensor = known[name].detach().to(self._torch_device)
                self._shards[argument.name] = port.part(tensor, groups.device)

    def __repr__(self) -> str:
        return f"<TorchProgram for the mesh {self.local.mesh}>"

    @property
    def collectives(self) -> Mapping[str, int]:
        """Kind of collective to how often it ran in all calls so far."""
        return dict(self.devices.counts)

    def __call__(self, *inputs: Any) -> list[Any]:
        """Return the whole outputs of the program, in order; what is no tensor is as exported.

        Args:
            inputs: The whole tensors of the inputs, in order.

        Raises:
            OptionError: there are not as many as the program has, or it draws random numbers and the generators of the
                processes are in different states.
        """
        self._warn_of_gradients(inputs)
        shards = self.run_shards(*inputs)
        origin = self.local.origin
        outputs = []
        for output in origin.outputs:
            if output.writes:
                continue
            if output.result is None:
                outputs.append(output.constant)
            else:
                outputs.append(self._gather_result(output.result, shards[output.result]))
        return outputs

    def _warn_of_gradients(self, inputs: Sequence[Any]) -> None:
        """Warn once where PyTorch would record gradients, which the program does not."""
        import torch

        asks = self._is_trained or any(getattr(tensor, "requires_grad", False) for tensor in inputs)
        if self._is_warned or not asks or not torch.is_grad_enabled():
            return
        self._is_warned = True
        message = "gradients are not recorded: the outputs of the program do not require any"
        hint = "call it under torch.no_grad(), or export a training step with its backward pass"
        warn(Diagnostic("no-gradients", message, hint=hint).show("warning"), stacklevel=3)

    def run_shards(self, *inputs: Any) -> list[Any]:
        """Return the shards of all results on this device, those that are written to buffers included."""
        input_tensors = iter(inputs)
        input_arguments = [item for item in self.local.origin.arguments if item.kind == "input"]
        if len(inputs) != len(input_arguments):
            names = ", ".join(item.name for item in input_arguments)
            message = f"{len(inputs)} inputs are given, the program has {len(input_arguments)}"
            raise OptionError(Diagnostic("argument-count", message, hint=f"its inputs are {names}"))
        arguments = []
        for argument, port in zip(self.local.origin.arguments, self.local.arguments, strict=True):
            if argument.kind == "input":
                tensor = next(input_tensors)
                _check_shape(argument.name, tensor, port)
                arguments.append([port.part(tensor.to(self._torch_device), self.devices.groups.device)])
            else:
                arguments.append([self._shards[argument.name]])
        if self._draws:
            state = random_state(self._torch_device).to(self._torch_device)
            check_random_states(self.devices.groups.gather(state))
        results = list(self._run(arguments))
        for output in self.local.origin.outputs:
            if output.writes in self._shards and output.result is not None:
                self._shards[output.writes] = results[output.result]
        return results

    def _run(self, arguments: Sequence[Sequence[Any]]) -> Sequence[Any]:
        """Return the shards of the results, by the graph or, where there is control flow, op by op."""
        import torch

        if self.graph_module is None:
            return [shards[0] for shards in self.local.run(self.devices, arguments, self._torch_device)]
        for kind, count in self._counts.items():
            self.devices.counts[kind] = self.devices.counts.get(kind, 0) + count
        with torch.no_grad():
            results: Sequence[Any] = self.graph_module(*(shards[0] for shards in arguments))
        return results

    def _gather_result(self, number: int, shard: Any) -> Any:
        port = self.local.results[number]
        return port.whole(self.devices.groups.gather(shard)) if port.is_cut else shard


def _check_shape(name: str, tensor: Any, port: TensorPort) -> None:
    """Check that an input has the shape that the program was made for.

    Raises:
        OptionError: it has another one.
    """
    if tuple(tensor.shape) != port.shape:
        message = f"the input {name} has the shape {tuple(tensor.shape)}, the program is for {port.shape}"
        hint = "a program with dynamic sizes is made for those of its example: export another one, and call to_torch"
        raise OptionError(Diagnostic("input-shape", message, hint=hint))


def _state_of(native: Any) -> dict[str, Any]:
    state = getattr(native, "state_dict", {})
    if callable(state):
        # A module, whose parameters are not copied.
        named = (native.named_parameters, native.named_buffers)
        state = {name: tensor for each in named for name, tensor in each(remove_duplicate=False)}
    return {**state, **dict(getattr(native, "constants", {}) or {})}
