"""Parallel plans: the styles of linear and embedding layers, for ``parallelize_module``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from attrs import evolve, field

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError, VerificationError, as_warnings
from shardy_py.ir.graph.program import Program
from shardy_py.plugins import Registry
from shardy_py.sharding.mesh import Mesh
from shardy_py.torch.parallel.layers import LayerCall, Layers, find_layers
from shardy_py.torch.parallel.module_shards import Conflict, ShardTrace, trace_shards
from shardy_py.torch.parallel.placements import Placement, placements_of
from shardy_py.values import frozen

Style = Literal["colwise", "rowwise"]
_REPLICATED = Placement()


@frozen
class PlanEntry:
    """The style of one module.

    Args:
        style: ``colwise`` or ``rowwise``.
        input: The placement of the input, where it is not the style's own.
        output: The placement of the output, where it is not the style's own.
    """

    style: Style
    input: Placement | None = None
    output: Placement | None = None

    def __str__(self) -> str:
        layouts = [("input_layouts", self.input), ("output_layouts", self.output)]
        arguments = ", ".join(f"{name}={value}" for name, value in layouts if value is not None)
        return f"{'Colwise' if self.style == 'colwise' else 'Rowwise'}Parallel({arguments})"


@frozen(eq=False, slots=False)
class ParallelPlan(Mapping[str, PlanEntry]):
    """The styles of the layers of a module, by module path.

    A module by this plan takes whole inputs and returns whole outputs on each process, and computes what it computes
    without one.

    Args:
        entries: The styles.
        axis: The dimension of the mesh that they are along, or "" where nothing is sharded.
        warnings: The parameters that are sharded in the program and not by the plan, each with the reason; and what
            differs when such a module is trained.
        notes: Where the plan communicates elsewhere than the program: a layer gathers its output, because an op behind
            it, which is named, cannot run on shards.
        tied: The paths of the layers that share a weight.
    """

    entries: Mapping[str, PlanEntry]
    axis: str = ""
    warnings: tuple[Diagnostic, ...] = field(default=(), converter=as_warnings)
    notes: tuple[Diagnostic, ...] = field(default=(), converter=as_warnings)
    tied: tuple[tuple[str, ...], ...] = ()
    _program: Program | None = field(default=None, repr=False)
    _registry: Registry | None = field(default=None, repr=False)

    def __getitem__(self, path: str) -> PlanEntry:
        return self.entries[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def with_entries(self, entries: Mapping[str, PlanEntry]) -> ParallelPlan:
        """Return the plan with these styles in place of its own; `verify` says whether they fit."""
        return evolve(self, entries=dict(entries))

    def verify(self) -> None:
        """Check that a module by this plan computes what it computes without one.

        The program is followed op by op on as many simulated processes as the axis has devices: what each holds of a
        tensor, whole or a shard, has to be what the next op, layer or the caller needs. No tensor is computed.

        Raises:
            VerificationError: an op gets shards where it needs whole tensors, a layer an input of another placement
                than its style expects, or a path is not that of a layer; all of them are reported.
        """
        if self._program is None or self._registry is None:
            return
        problems = _problems(self._program, self._registry, self.axis, self.entries)
        if problems:
            raise VerificationError(*problems)


def make_plan(program: Program, registry: Registry, *, axis: str | None = None, verify: bool = True) -> ParallelPlan:
    """Return the styles of the linear and embedding layers whose weight is sharded.

    Args:
        program: The propagated program.
        registry: What is known about ops.
        axis: The dimension of the mesh; by default the only one along which weights of such layers are sharded.
        verify: Whether to verify the plan.

    Raises:
        OptionError: there is no such dimension, or weights are sharded along several and none is given.
        VerificationError: the plan does not compute what the program does.
    """
    mesh = next(iter(program.meshes.values()), Mesh())
    layers = find_layers(program)
    placements = _placements_of_parameters(program, mesh, layers)
    number = _axis_number([item.name for item in mesh.axes], placements, layers, axis)
    if number is None:
        return ParallelPlan({}, program=program, registry=registry)
    dims = {
        name: parameter_placements[number].dim
        for name, parameter_placements in placements.items()
        if parameter_placements[number].kind == "shard"
    }
    planned = {path: calls for path, calls in layers.calls.items() if calls[0].weight_name in dims}
    styles = {path: _style(calls[0], dims[calls[0].weight_name]) for path, calls in planned.items()}
    count = mesh.axes[number].size
    trace, gathered = _settled(program, registry, layers, styles, count)
    entries = {path: _entry(calls[0], styles[path], path in gathered, trace) for path, calls in planned.items()}
    name = mesh.axes[number].name
    warnings = [*_unplanned(program, layers, planned, dims, name), *_training_notes(trace)]
    notes = [_gathered_note(path, gathered[path]) for path in planned if gathered.get(path) is not None]
    tied = _tied(planned)
    plan = ParallelPlan(entries, name, warnings, notes, tied, program, registry)
    if verify:
        plan.verify()
    return plan


def _settled(
    program: Program, registry: Registry, layers: Layers, styles: Mapping[str, Style], count: int
) -> tuple[ShardTrace, dict[str, Conflict | None]]:
    """Gather the outputs of layers until no op conflicts with the shards of its operands.

    Returns:
        The trace of the module, and the layers that gather, each with the conflict that it gathers for, or None where
        its style gathers.
    """
    gathered: dict[str, Conflict | None] = {path: None for path, style in styles.items() if style == "rowwise"}
    while True:
        sharded_outputs = {path: path not in gathered for path in styles}
        trace = trace_shards(program, registry, layers, sharded_outputs, count)
        if not trace.conflicts:
            return trace, gathered
        for conflict in trace.conflicts:
            modules = {layers.calls[path][0].module for path in conflict.layers}
            paths = [path for path in styles if layers.calls[path][0].module in modules]
            gathered.update({path: conflict for path in paths if path not in gathered})


def _problems(program: Program, registry: Registry, axis: str, entries: Mapping[str, PlanEntry]) -> list[Diagnostic]:
    mesh = next(iter(program.meshes.values()), Mesh())
    layers = find_layers(program)
    unknown = [path for path in entries if path not in layers.calls]
    if unknown:
        hint = f"its layers are {', '.join(layers.calls) or 'none'}"
        message = f"{unknown[0]!r} is not the path of a linear layer or an embedding"
        return [Diagnostic("unknown-layer", message, hint=hint)]
    if not entries:
        return []
    outputs = {path: _output(entry, layers.calls[path][0]) for path, entry in entries.items()}
    sharded_outputs = {path: output.kind == "shard" for path, output in outputs.items()}
    trace = trace_shards(program, registry, layers, sharded_outputs, mesh.axis_size(axis))
    problems = [
        Diagnostic(
            "wrong-plan", f"it {item.reason}; they come from {', '.join(sorted(item.layers))}", item.location, item.op
        )
        for item in trace.conflicts
    ]
    for path, entry in entries.items():
        call, expected = layers.calls[path][0], _input(entry, layers.calls[path][0])
        last = len(call.output.shape) - 1
        if outputs[path].kind == "partial" or (outputs[path].kind == "shard" and outputs[path].dim != last):
            message = f"the output of {path!r} is {outputs[path]}, and plans are followed along the last dimension only"
            problems.append(Diagnostic("wrong-plan", message, call.core.location, call.core.name))
        for dim in dict.fromkeys(trace.inputs.get(call.module, ())):
            actual = _REPLICATED if dim is None else Placement("shard", dim)
            if actual != expected:
                message = f"{path!r} expects an input that is {expected}, and gets one that is {actual}"
                problems.append(Diagnostic("wrong-plan", message, call.core.location, call.core.name))
    return problems


def _style(call: LayerCall, dim: int) -> Style:
    return "colwise" if (dim == 0) == (call.kind == "linear") else "rowwise"


def _input(entry: PlanEntry, call: LayerCall) -> Placement:
    """Return the placement that a style expects of the input."""
    if entry.input is not None:
        return entry.input
    return _REPLICATED if entry.style == "colwise" else Placement("shard", len(call.input.shape) - 1)


def _output(entry: PlanEntry, call: LayerCall) -> Placement:
    if entry.output is not None:
        return entry.output
    return _REPLICATED if entry.style == "rowwise" else Placement("shard", len(call.output.shape) - 1)


def _entry(call: LayerCall, style: Style, is_gathered: bool, trace: ShardTrace) -> PlanEntry:
    dim = trace.inputs[call.module][0]
    input_placement = _REPLICATED if dim is None else Placement("shard", dim)
    output = _REPLICATED if is_gathered and style == "colwise" else None
    is_own = input_placement == _input(PlanEntry(style), call)
    return PlanEntry(style, None if is_own else input_placement, output)


def _placements_of_parameters(program: Program, mesh: Mesh, layers: Layers) -> dict[str, tuple[Placement, ...]]:
    """Return the placements of parameters and buffers by name.

    Raises:
        UnsupportedError: placements cannot say the sharding of the weight of a layer.
    """
    block = program.functions["main"].regions[0].blocks[0]
    weights = {call.weight.id for calls in layers.calls.values() for call in calls}
    placements: dict[str, tuple[Placement, ...]] = {}
    for item, value in zip(program.origin.arguments, block.arguments, strict=True):
        if item.kind not in ("parameter", "buffer"):
            continue
        sharding = program.shardings.get(value.id)
        try:
            placements |= dict.fromkeys(item.names, placements_of(sharding, mesh, name=item.name, in_order=True))
        except UnsupportedError:
            if value.id in weights:
                raise
            # Along a part of an axis it is sharded along the axis; no style says either.
            axes = [{axis.name for axis in dim.axes} for dim in sharding.dim_shardings] if sharding is not None else []
            dims = [next((n for n, used in enumerate(axes) if axis.name in used), None) for axis in mesh.axes]
            placed = tuple(_REPLICATED if dim is None else Placement("shard", dim) for dim in dims)
            placements |= dict.fromkeys(item.names, placed)
    return placements


def _axis_number(
    names: list[str], placements: Mapping[str, tuple[Placement, ...]], layers: Layers, axis: str | None
) -> int | None:
    if axis is not None:
        if axis not in names:
            hint = f"its dimensions are {', '.join(names)}"
            raise OptionError(Diagnostic("unknown-axis", f"the mesh has no dimension {axis!r}", hint=hint))
        return names.index(axis)
    weights = [
        placements[calls[0].weight_name] for calls in layers.calls.values() if calls[0].weight_name in placements
    ]
    used = _sharded_numbers(weights) or _sharded_numbers(list(placements.values()))
    if len(used) > 1:
        among = ", ".join(names[number] for number in used)
        hint = "say which one: parallelize_plan(axis=...)"
        raise OptionError(Diagnostic("several-axes", f"weights are sharded along {among}", hint=hint))
    return used[0] if used else None


def _sharded_numbers(placements: list[tuple[Placement, ...]]) -> list[int]:
    return sorted({number for items in placements for number, item in enumerate(items) if item.kind == "shard"})


def _unplanned(
    program: Program, layers: Layers, planned: Mapping[str, Any], dims: Mapping[str, int], axis: str
) -> Iterator[Diagnostic]:
    """Yield a warning for each parameter that is sharded in the program and not by the plan."""
    covered = {call.weight.id for calls in planned.values() for call in calls}
    covered |= {call.bias.id for calls in planned.values() for call in calls if call.bias is not None}
    block = program.functions["main"].regions[0].blocks[0]
    for item, value in zip(program.origin.arguments, block.arguments, strict=True):
        if item.name not in dims or value.id in covered:
            continue
        reason, location = layers.refused.get(item.name, ("its layer is not sharded", ""))
        message = f"{item.name} is Shard({dims[item.name]}) along {axis}, which no style of a module says: {reason}"
        hint = "the plan leaves it whole; result.to_torch and result.distribute shard it"
        yield Diagnostic("no-style", message, location, hint=hint)


def _training_notes(trace: ShardTrace) -> Iterator[Diagnostic]:
    if trace.partial_gradients:
        names = ", ".join(trace.partial_gradients[:4]) + (", ..." if len(trace.partial_gradients) > 4 else "")
        message = f"each process computes a part of the gradient of {names}, as it reads shards beside it"
        hint = "when training, sum these gradients over the processes of the plan"
        yield Diagnostic("partial-gradient", message, hint=hint)


def _gathered_note(path: str, conflict: Conflict | None) -> Diagnostic:
    assert conflict is not None, "a layer that gathers by its style has no note"
    message = f"{path!r} gathers its output, because {conflict.op} {conflict.reason}"
    return Diagnostic("gathered-output", message, conflict.location, conflict.op)


def _tied(planned: Mapping[str, tuple[LayerCall, ...]]) -> tuple[tuple[str, ...], ...]:
    paths: dict[int, list[str]] = {}
    for path, calls in planned.items():
        paths.setdefault(calls[0].weight.id, []).append(path)
    return tuple(tuple(tied_paths) for tied_paths in paths.values() if len(tied_paths) > 1)
