"""Programs of PyTorch on the processes of a device mesh."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from shardy_py.api.result import CoreResult
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import all_values
from shardy_py.torch.caller_warnings import warn_caller
from shardy_py.torch.modules.graph_module import has_control_flow, make_graph
from shardy_py.torch.modules.joint import JointTrace
from shardy_py.torch.modules.programs_by_size import ProgramsBySize
from shardy_py.torch.modules.recent_programs import RemakeCounter, keep, recent
from shardy_py.torch.modules.splitting import split_graph
from shardy_py.torch.modules.step import LocalStep
from shardy_py.torch.modules.symbolic_trace import Shapes
from shardy_py.torch.parallel.collectives import ProcessDevices
from shardy_py.torch.parallel.compiled import LocalTorchProgram
from shardy_py.torch.parallel.distribute import check_device_mesh
from shardy_py.torch.parallel.draws import check_random_states, draws_numbers, random_state
from shardy_py.torch.parallel.input_shapes import require_kind, require_shapes, require_sizes
from shardy_py.torch.parallel.other_sizes import OtherSizes
from shardy_py.torch.parallel.process_groups import ProcessGroups, check_groups_outside
from shardy_py.torch.parallel.runner import dtype_of
from shardy_py.torch.parallel.shards import TensorPort
from shardy_py.values import frozen


@frozen(eq=False)
class ShardProgram:
    """Program of one process at some sizes of the inputs.

    Args:
        arguments: The ports of the arguments.
        results: The ports of the results.
        constants: What each output is that is no tensor.
        counts: Kind of collective to how many calls run, where they are counted ahead.
        graph_module: The graph; None for one with control flow.
        run: Takes the shards of the arguments and returns those of the results.
    """

    arguments: Sequence[TensorPort]
    results: Sequence[TensorPort]
    constants: Sequence[Any]
    counts: Mapping[str, int]
    graph_module: Any
    run: Callable[[Sequence[Any]], Sequence[Any]]


class TorchProgram:
    """A program of PyTorch on the processes of a device mesh.

    Parameters and buffers are cut once. What a call returns are whole tensors; buffers that the program writes are
    kept, and inputs that it writes are written. The program is an FX graph module, `graph_module`; one with control
    flow is run op by op instead. One with dynamic sizes is made at those of its example; the first call at others makes
    the program for these.

    Args:
        local: The program that each device runs.
        device_mesh: The devices; every process makes its own `TorchProgram`.
        state: The parameters, buffers and constants by name, whole; by default those of the exported program.
        sizes: How to propagate the program at other sizes; None where it is for those of its example only.

    Raises:
        OptionError: the device mesh does not have the dimensions of the mesh, or a parameter is missing.
    """

    def __init__(
        self,
        local: LocalTorchProgram,
        device_mesh: Any,
        state: Mapping[str, Any] | None = None,
        sizes: OtherSizes | None = None,
    ) -> None:
        import torch

        check_device_mesh(device_mesh, local.mesh)
        self.local = local
        self.devices = ProcessDevices(ProcessGroups(device_mesh))
        self._torch_device = torch.device(device_mesh.device_type)
        self._sizes = sizes
        self._inputs = [item.name for item in local.origin.arguments if item.kind == "input"]
        block = local.program.functions["main"].regions[0].blocks[0]
        pairs = zip(local.origin.arguments, block.arguments, strict=True)
        self._dtypes = [dtype_of(value.type) for argument, value in pairs if argument.kind == "input"]
        program = self._program_of(local)
        self.graph_module = program.graph_module
        self._programs: dict[Shapes, ShardProgram] = {self._input_shapes(program): program}
        self._by_size = None
        if sizes is not None and program.graph_module is not None:
            self._by_size = ProgramsBySize(self.devices.groups, sizes.trace.begun_at, self._step_of, _warn)
        self._remakes = RemakeCounter(self._difference, _warn)
        self._draws = any(map(draws_numbers, local.program.walk()))
        self._is_trained = False
        self._is_warned = False
        self._shards: dict[str, Any] = {}
        self._cut_state(_state_of(local.origin.native) if state is None else state)

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
            OptionError: there are not as many as the program has, it is not for their sizes, or it draws random numbers
                and the generators of the processes are in different states.
        """
        self._warn_of_gradients(inputs)
        program = self.program_at(inputs)
        shards = self._run(program, inputs)
        outputs = []
        for output, constant in zip(self.local.origin.outputs, program.constants, strict=True):
            if output.writes:
                if output.writes in self._inputs and output.result is not None:
                    written = inputs[self._inputs.index(output.writes)]
                    _write(written, self._gather(program.results[output.result], shards[output.result]))
                continue
            if output.result is None:
                outputs.append(constant)
            else:
                outputs.append(self._gather(program.results[output.result], shards[output.result]))
        return outputs

    def run_shards(self, *inputs: Any) -> list[Any]:
        """Return the shards of all results on this device, those that are written to buffers included."""
        return self._run(self.program_at(inputs), inputs)

    def _cut_state(self, known: Mapping[str, Any]) -> None:
        """Cut the shards of this device from what is kept from call to call.

        Raises:
            OptionError: a tensor is missing.
        """
        for argument, port in zip(self.local.origin.arguments, self.local.arguments, strict=True):
            if argument.kind != "input":
                name = next((name for name in argument.names if name in known), None)
                if name is None:
                    message = f"there is no tensor for the {argument.kind} {argument.name!r}"
                    raise OptionError(Diagnostic("missing-parameter", message, hint="give state={name: tensor}"))
                self._is_trained |= bool(known[name].requires_grad)
                tensor = known[name].detach().to(self._torch_device)
                self._shards[argument.name] = port.part(tensor, self.devices.groups.device)

    def _warn_of_gradients(self, inputs: Sequence[Any]) -> None:
        """Warn once where PyTorch would record gradients, which the program does not."""
        import torch

        asks = self._is_trained or any(getattr(tensor, "requires_grad", False) for tensor in inputs)
        if self._is_warned or not asks or not torch.is_grad_enabled():
            return
        self._is_warned = True
        message = "gradients are not recorded: the outputs of the program do not require any"
        hint = "call it under torch.no_grad(), or export a training step with its backward pass"
        _warn(Diagnostic("no-gradients", message, hint=hint))

    def program_at(self, inputs: Sequence[Any]) -> ShardProgram:
        """Return what runs at the sizes of some inputs.

        Raises:
            OptionError: there are not as many as the program has, or it is not for their sizes.
        """
        if len(inputs) != len(self._inputs):
            message = f"{len(inputs)} inputs are given, the program has {len(self._inputs)}"
            hint = f"its inputs are {', '.join(self._inputs)}"
            raise OptionError(Diagnostic("argument-count", message, hint=hint))
        for name, tensor, dtype in zip(self._inputs, inputs, self._dtypes, strict=True):
            require_kind(name, tensor, dtype)
            if hasattr(tensor, "placements"):
                message = f"the input {name} is a DTensor, and the program takes whole tensors"
                raise OptionError(Diagnostic("input-type", message, hint=f"give {name}.full_tensor()"))
        shapes = tuple(tuple(tensor.shape) for tensor in inputs)
        program = recent(self._programs, shapes)
        if program is None:
            program = self._make_at(shapes)
            keep(self._programs, shapes, program)
        return program

    def _make_at(self, shapes: Shapes) -> ShardProgram:
        """Make what runs at other sizes than those of the example.

        Raises:
            OptionError: the program is not for these.
        """
        if self._sizes is None:
            (example,) = self._programs
            hint = "export it with dynamic_shapes, or with an example of this shape"
            require_shapes(shapes, example, self._inputs, hint)
            raise AssertionError("programs of other sizes are made where there are such sizes")
        sizes = require_sizes(shapes, self._sizes.trace, self._inputs)
        # Sizes of 0 and 1 are no sizes of programs for several.
        step = None if self._by_size is None or min(sizes) < 2 else self._by_size.at(shapes)
        if step is None:
            self._remakes.note(shapes)
            result, local = self._sizes.local(self._sizes.trace.at(sizes))
            self._warn_of(result)
            return self._program_of(local)
        self._warn_of(step.result)
        graph_module = step.graphs.inference
        constants = [item.constant for item in step.trace.outputs]
        run = partial(_run_graph, graph_module, step.sizes)
        return ShardProgram(step.arguments, step.outputs, constants, step.counts, graph_module, run)

    def _warn_of(self, result: CoreResult) -> None:
        """Warn of what propagation says about sizes that inputs have for the first time."""
        for item in [] if self._sizes is None else self._sizes.new_warnings(result):
            _warn(item)

    def _program_of(self, local: LocalTorchProgram) -> ShardProgram:
        """Return what runs of a local program at its sizes."""
        import torch

        constants = [output.constant for output in local.origin.outputs]
        groups = self.devices.groups
        if has_control_flow(local.program):
            check_groups_outside(local.program, groups.ranks)
            for op in local.program.walk():
                if "groups" in op.attributes and op.name.startswith("spmd.") and op.name != "spmd.collective_permute":
                    groups.group(op.attributes["groups"])
            return ShardProgram(local.arguments, local.results, constants, {}, None, partial(self._run_ops, local))
        builder = make_graph(local.program, groups, self._torch_device, local.origin.argument_names)
        graph_module = torch.fx.GraphModule({}, builder.graph, "LocalProgram")
        run = partial(_run_graph, graph_module, ())
        return ShardProgram(local.arguments, local.results, constants, builder.counts, graph_module, run)

    def _step_of(self, trace: JointTrace) -> LocalStep:
        """Return what runs of a trace at some sizes, in the form that is compared with that at others."""
        assert self._sizes is not None, "a program has other sizes"
        result, local = self._sizes.local(trace)
        names = local.origin.argument_names
        builder = make_graph(local.program, self.devices.groups, self._torch_device, names)
        return LocalStep(
            result,
            trace,
            split_graph(builder.graph, 0, len(local.results), (), {}),
            local.arguments,
            local.results,
            builder.counts,
            None,
            tuple(static_shape(value.type) or () for value in all_values(local.program)),
        )

    def _run(self, program: ShardProgram, inputs: Sequence[Any]) -> list[Any]:
        """Return the shards of all results, and keep those that are written."""
        input_tensors = iter(inputs)
        origin, device = self.local.origin, self.devices.groups.device
        shards = [
            port.part(next(input_tensors).to(self._torch_device), device)
            if argument.kind == "input"
            else self._shards[argument.name]
            for argument, port in zip(origin.arguments, program.arguments, strict=True)
        ]
        if self._draws:
            state = random_state(self._torch_device).to(self._torch_device)
            check_random_states(self.devices.groups.gather(state))
        for kind, count in program.counts.items():
            self.devices.counts[kind] = self.devices.counts.get(kind, 0) + count
        results = list(program.run(shards))
        for output in origin.outputs:
            if output.writes in self._shards and output.result is not None:
                self._shards[output.writes] = results[output.result]
        return results

    def _run_ops(self, local: LocalTorchProgram, shards: Sequence[Any]) -> list[Any]:
        """Return the shards of the results of a program with control flow, op by op."""
        return [each[0] for each in local.run(self.devices, [[shard] for shard in shards], self._torch_device)]

    def _gather(self, port: TensorPort, shard: Any) -> Any:
        return port.whole(self.devices.groups.gather(shard)) if port.is_cut else shard

    def _difference(self, before: Shapes, after: Shapes) -> str:
        """Return in words which inputs have other shapes; the first ones are those of the example."""
        changed = [item for item in zip(self._inputs, before, after, strict=True) if item[1] != item[2]]
        return " and ".join(f"the input {name} has the shape {new}, and had {old}" for name, old, new in changed)

    def _input_shapes(self, program: ShardProgram) -> Shapes:
        pairs = zip(self.local.origin.arguments, program.arguments, strict=True)
        return tuple(port.shape for argument, port in pairs if argument.kind == "input")


def _run_graph(graph_module: Any, sizes: Sequence[int], shards: Sequence[Any]) -> Sequence[Any]:
    import torch

    with torch.no_grad():
        results: Sequence[Any] = graph_module(*shards, *sizes)
    return results


def _write(tensor: Any, value: Any) -> None:
    """Write into an input, as the exported module does."""
    import torch

    with torch.no_grad():
        tensor.copy_(value)


def _warn(item: Diagnostic) -> None:
    warn_caller(item.show("warning"))


def _state_of(native: Any) -> dict[str, Any]:
    state = getattr(native, "state_dict", {})
    if callable(state):
        # A module, whose parameters are not copied.
        named = (native.named_parameters, native.named_buffers)
        state = {name: tensor for each in named for name, tensor in each(remove_duplicate=False)}
    return {**state, **dict(getattr(native, "constants", {}) or {})}
