"""Modules whose forward and backward passes run on the shards that sharding propagation gives each process."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from operator import index
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.support.identity import copy_memo
from shardy_py.torch.constraints import constraints_on
from shardy_py.torch.modules.automatic_plans import AutomaticPlan, PlanRequest, automatic_plan
from shardy_py.torch.modules.joint import trace_joint
from shardy_py.torch.modules.local_tensors import ModulePort
from shardy_py.torch.modules.process_groups import ProcessGroups
from shardy_py.torch.modules.step import LocalStep, make_step
from shardy_py.torch.parallel.distribute import distributed
from shardy_py.torch.parallel.draws import check_random_states, draws_numbers, random_state
from shardy_py.values import define

Flags = tuple[bool, ...]
"""Modes of the modules of a module, in training or not, in the order of ``modules()``."""
Shapes = tuple[tuple[int, ...], ...]
"""The shapes of the inputs; empty where they are those of the example."""
Key = tuple[Flags, Shapes, Any]
"""Modes, shapes, and the dtype that autocast computes in, or None, on which a program depends."""


@define(eq=False, slots=False)
class ParallelProgram:
    """The program of a parallel module: one step for each of its modes, made when it is called first.

    Attributes:
        model: The module that is traced, with tensors without elements.
        mode: The mode of these tensors.
        device_mesh: The devices.
        args: The example inputs, without elements; the last ones are those of the loss.
        kwargs: Those that are given by name.
        count: How many of the positional inputs the module takes.
        in_shardings: The shardings that the caller gave.
        loss: The function of the outputs of the module, or None.
        strict: Whether an op without a local form is an error.
        whole_outputs: Whether outputs are whole tensors; otherwise they are DTensors.
        dynamic_shapes: Whether inputs may have other shapes than the example's.
        bucket_bytes: The bytes that one call of a collective moves at most of several tensors; 0 for single ones.
        request: What a plan for the module has to keep to; None without one.
        options: Further options of `propagate`.
        plan: The plan for the first program.
    """

    model: Any
    mode: Any
    device_mesh: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    count: int
    in_shardings: Mapping[Any, Any]
    loss: Callable[..., Any] | None
    strict: bool
    whole_outputs: bool
    dynamic_shapes: bool
    bucket_bytes: float
    request: PlanRequest | None
    options: Mapping[str, Any]
    plan: AutomaticPlan | None = field(default=None, init=False)
    steps: dict[Key, LocalStep] = field(factory=dict, init=False)
    groups: ProcessGroups = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.groups = ProcessGroups(self.device_mesh)

    def __deepcopy__(self, memo: Any) -> ParallelProgram:
        """Return the program itself: it has no parameters, and copies of a module run the same."""
        return self

    def step(self, flags: Flags, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LocalStep:
        """Return what runs while modules are in training or not, as flags say.

        Args:
            flags: Which modules are in training.
            args: The inputs.
            kwargs: Those that are given by name.
        """
        key = flags, self._shapes(args, kwargs) if self.dynamic_shapes else (), self.autocast_dtype()
        step = self.steps.get(key)
        if step is None:
            self.add_step(key)
            step = self.steps[key]
        return step

    def autocast_dtype(self) -> Any:
        """Return the dtype that autocast computes in, where it is on, or None."""
        import torch

        kind = self.device_mesh.device_type
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None

    def _shapes(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Shapes:
        from torch.utils import _pytree as pytree

        # A compiler that lets sizes vary makes numbers of them here.
        return tuple(tuple(map(index, getattr(leaf, "shape", ()))) for leaf in pytree.tree_leaves((args, dict(kwargs))))

    def add_step(self, key: Key) -> None:
        """Make what runs for some modes and shapes, also while a call of the module is compiled.

        Args:
            key: What the program depends on.
        """
        import torch

        # A compiler's own tensors without elements are of another mode.
        with torch._guards.tracing(None):
            self.steps[key] = self._make(*key)
        if torch._guards.TracingContext.try_get() is not None:
            # The compiler knows the programs that there were, and begins again.
            raise torch._dynamo.exc.UnspecializeRestartAnalysis

    def _make(self, flags: Flags, shapes: Shapes, cast: Any) -> LocalStep:
        import torch

        for module, flag in zip(self.model.modules(), flags, strict=True):
            module.training = flag
        args, kwargs = self._inputs(shapes)
        kind = self.device_mesh.device_type
        autocast = torch.autocast(kind, dtype=cast, enabled=cast is not None, cache_enabled=False)
        with constraints_on(self.device_mesh), autocast:
            trace = trace_joint(
                self.model,
                args,
                kwargs,
                mode=self.mode,
                loss=self.loss,
                count=self.count,
            )
        shardings = dict(self.in_shardings)
        first = next(iter(self.steps.values()), None)
        if first is not None:
            # Parameters stay where they are.
            fixed = _names(first, ("parameter", "buffer") if self.plan is None else ("parameter", "buffer", "input"))
            shardings |= {port.name: port.placements for port in first.arguments if port.name in fixed}
        elif self.request is not None:
            self.plan = automatic_plan(trace, self.device_mesh, self.request, shardings, self.options)
        step = make_step(
            trace,
            self.device_mesh,
            self.groups,
            in_shardings=shardings,
            plan=self.plan if first is None else None,
            bucket_bytes=self.bucket_bytes,
            strict=self.strict,
            warn=lambda item: warnings.warn(item.show("warning"), stacklevel=6),
            options=self.options,
        )
        if any(map(draws_numbers, step.result.program.walk())):
            self._check_random_states()
        return step

    def _inputs(self, shapes: Shapes) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return inputs like the examples, without elements; of some shapes, if there are any."""
        import torch
        from torch.utils import _pytree as pytree

        leaves, spec = pytree.tree_flatten((self.args, dict(self.kwargs)))
        if shapes and len(shapes) == len(leaves):
            with self.mode:
                leaves = [
                    torch.empty(shape, dtype=leaf.dtype, device=leaf.device, requires_grad=leaf.requires_grad)
                    if isinstance(leaf, torch.Tensor)
                    else leaf
                    for leaf, shape in zip(leaves, shapes, strict=True)
                ]
        args, kwargs = pytree.tree_unflatten(leaves, spec)
        return args, kwargs

    def _check_random_states(self) -> None:
        """Check that the processes would draw the same numbers."""
        import torch
        import torch.distributed as dist

        device = torch.device(self.device_mesh.device_type)
        state = random_state(device).to(device)
        states = [torch.empty_like(state) for _ in range(dist.get_world_size())]
        dist.all_gather(states, state)
        check_random_states([states[rank] for rank in self.groups.ranks])


def _names(step: LocalStep, kinds: Collection[str]) -> set[str]:
    return {item.name for _, item in step.trace.arguments if item.kind in kinds}


class ParallelMethods:
    """Methods of a parallel module in place of those of the module."""

    sdy_program: ParallelProgram

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs of the module, or its loss.

        Args:
            args: The inputs: whole tensors, equal on all processes, or DTensors.
            kwargs: Inputs by name.
        """
        import torch
        from torch.utils import _pytree as pytree

        program = self.sdy_program
        flags = tuple(module.training for module in self.modules())  # type: ignore[attr-defined]
        step = program.step(flags, args, kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        _check_inputs(step, leaves, spec)
        tensors = self._arguments(step, iter(_tensors(leaves)))
        run = (
            step.function.apply
            if step.function is not None and torch.is_grad_enabled()
            else step.graphs.inference.forward
        )
        if program.autocast_dtype() is None:
            results = iter(run(*tensors))
        else:
            # The casts are in the graph.
            with torch.autocast(program.device_mesh.device_type, enabled=False):
                results = iter(run(*tensors))
        outputs: list[Any] = []
        for item, port in zip((o for o in step.trace.outputs if o.kind != "gradient"), step.outputs, strict=True):
            if item.kind == "buffer" and port is not None:
                _write(self.get_buffer(item.name), port, next(results))  # type: ignore[attr-defined]
            elif port is None:
                outputs.append(item.constant)
            else:
                shard = next(results)
                outputs.append(port.whole(shard) if program.whole_outputs else port.distributed(shard))
        return pytree.tree_unflatten(outputs, step.trace.out_spec)

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Read a state; whole tensors, as those of the module, are sharded, and those of the first process count.

        Args:
            state_dict: Tensors by name.
            args: Further arguments of ``Module.load_state_dict``.
            kwargs: Those by name.
        """
        current = self.state_dict()  # type: ignore[attr-defined]
        state: Any = copy.copy(state_dict)
        for name, tensor in state_dict.items():
            before = current.get(name)
            if hasattr(before, "placements") and before.shape == getattr(tensor, "shape", None):
                state[name] = distributed(tensor, before.device_mesh, before.placements)
        return super().load_state_dict(state, *args, **kwargs)  # type: ignore[misc]

    def _arguments(self, step: LocalStep, inputs: Any) -> list[Any]:
        """Return the shards of all arguments."""
        tensors = []
        for port, (_, argument) in zip(step.arguments, step.trace.arguments, strict=False):
            if argument.kind == "input":
                tensors.append(port.shard(next(inputs).to(port.device_mesh.device_type)))
            elif argument.kind == "constant":
                tensors.append(port.shard(step.trace.tensors[argument.name]))
            else:
                tensors.append(_shard_of(_state_tensor(self, argument.name), port))
        return tensors


def _state_tensor(module: Any, name: str) -> Any:
    """Return a parameter or buffer, or the tensor in its place during `torch.func.functional_call`."""
    tensor = module
    for part in name.split("."):
        tensor = getattr(tensor, part)
    return tensor


def _shard_of(tensor: Any, port: ModulePort) -> Any:
    """Return the padded shard of a parameter or buffer; one that a caller put there may be placed otherwise."""
    is_placed = getattr(tensor, "placements", None) == port.placements
    return port.padded(tensor.to_local()) if is_placed else port.shard(tensor)


def _tensors(leaves: Sequence[Any]) -> list[Any]:
    return [leaf for leaf in leaves if hasattr(leaf, "dtype")]


def _write(buffer: Any, port: ModulePort, shard: Any) -> None:
    """Write a new value into a buffer."""
    import torch

    with torch.no_grad():
        buffer.to_local().copy_(port.unpadded(shard))


def _check_inputs(step: LocalStep, leaves: Sequence[Any], spec: Any) -> None:
    """Check that inputs are like those that were traced.

    Raises:
        OptionError: they are not.
    """
    trace = step.trace
    if spec != trace.in_spec:
        names = ", ".join(name for name, _ in trace.inputs)
        message = f"{len(leaves)} inputs are given in another structure than the example's {len(trace.inputs)}"
        raise OptionError(Diagnostic("input-structure", message, hint=f"the inputs are {names}"))
    ports = iter(step.arguments)
    for leaf, (name, constant) in zip(leaves, trace.inputs, strict=True):
        if not hasattr(leaf, "dtype"):
            if leaf != constant:
                message = f"the input {name} is {leaf!r}, but was {constant!r} when the module was traced"
                raise OptionError(Diagnostic("input-value", message, hint="call sdy.parallelize with this example"))
            continue
        port = next(ports)
        if tuple(leaf.shape) != port.shape:
            message = f"the input {name} has the shape {tuple(leaf.shape)}, but had {port.shape} when it was traced"
            raise OptionError(Diagnostic("input-shape", message, hint="call sdy.parallelize with such an example"))


@cache
def parallel_class(cls: Any) -> Any:
    """Return the class of the parallel modules of a class: it has all of its methods but ``forward``."""
    import torch

    # A compiler calls it, and does not look into it.
    torch.compiler.assume_constant_result(ParallelProgram.add_step)
    return type(f"Parallel{cls.__name__}", (ParallelMethods, cls), {"__module__": cls.__module__})


def with_tensors(model: Any, convert: Callable[[str, Any], Any]) -> Any:
    """Return a copy of a module with other tensors in the places of its parameters and buffers; tied ones stay tied.

    Args:
        model: The module; it stays as it is.
        convert: Makes each new tensor from its name and from the one that it replaces.
    """
    import torch

    pairs: list[tuple[Any, Any]] = []
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        new = convert(name, tensor)
        if isinstance(tensor, torch.nn.Parameter):
            new = torch.nn.Parameter(new, requires_grad=tensor.requires_grad)
        pairs.append((tensor, new))
    return copy.deepcopy(model, copy_memo(pairs))
