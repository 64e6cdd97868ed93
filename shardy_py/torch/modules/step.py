"""One traced, propagated and localized module: what each process runs forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field

from shardy_py.api.options import LocalOptions
from shardy_py.api.propagate import propagate
from shardy_py.api.result import Result
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import all_values
from shardy_py.sharding.mesh import Mesh
from shardy_py.torch.modules.automatic_plans import AutomaticPlan
from shardy_py.torch.modules.checkpoints import checkpoint_regions, has_checkpoints
from shardy_py.torch.modules.expressible import make_expressible, tie_pairs
from shardy_py.torch.modules.graph_module import has_control_flow, make_graph
from shardy_py.torch.modules.joint import JointTrace
from shardy_py.torch.modules.local_tensors import make_port
from shardy_py.torch.modules.splitting import SplitGraph, split_graph
from shardy_py.torch.parallel.explicit import explicit_program
from shardy_py.torch.parallel.localized import localized
from shardy_py.torch.parallel.process_groups import ProcessGroups
from shardy_py.values import frozen


@frozen(eq=False)
class LocalStep:
    """Program of each process for one mode of a module, forward and backward.

    Attributes:
        result: The propagated program, forward and backward.
        trace: What was traced.
        graphs: The forward and the backward pass.
        arguments: The ports of inputs, parameters, buffers and constants, in the order of the graphs: `ModulePort` of a
            module, `TensorPort` of an exported program.
        outputs: The ports of the outputs of the forward pass; None for those that are no tensors.
        counts: Kind of collective to how many calls run forward and backward.
        function: The function of PyTorch's autograd that runs both passes; None where there is no backward pass.
        local_shapes: The shapes of all tensors of a device.
        sizes: The sizes that the graphs take behind the tensors, where they are for several ones.
    """

    result: Result
    trace: JointTrace = field(repr=False)
    graphs: SplitGraph = field(repr=False)
    arguments: tuple[Any, ...] = field(repr=False)
    outputs: tuple[Any, ...] = field(repr=False)
    counts: Mapping[str, int]
    function: Any = field(repr=False)
    local_shapes: tuple[tuple[int, ...], ...] = field(repr=False)
    sizes: tuple[int, ...] = ()


def make_step(
    trace: JointTrace,
    device_mesh: Any,
    groups: ProcessGroups,
    *,
    in_shardings: Any,
    plan: AutomaticPlan | None,
    bucket_bytes: float,
    strict: bool,
    warn: Callable[[Diagnostic], None],
    options: Mapping[str, Any],
) -> LocalStep:
    """Return what each process runs of a traced module.

    Args:
        trace: The traced module.
        device_mesh: The devices.
        groups: The process groups.
        in_shardings: The shardings of inputs, parameters and buffers.
        plan: The plan of the module, which has these shardings already; None without one.
        bucket_bytes: The bytes that one call of a collective moves at most of several tensors; 0 for single ones.
        strict: Whether an op without a local form is an error; otherwise it runs on gathered operands, with a warning.
        warn: Gets warnings.
        options: Further options of `propagate`.

    Raises:
        ShardyError: a sharding does not fit, an op has no local form, or the module has control flow.
    """
    source, shardings = (trace, in_shardings) if plan is None else (plan.program(trace, device_mesh), None)
    result = propagate(source, device_mesh, in_shardings=shardings, keep_uneven_shardings=True, **options)
    program = result.program
    mesh = next(iter(program.meshes.values()), Mesh())
    make_expressible(program)
    tie_pairs(program, trace.pairs)
    explicit = explicit_program(program, result.registry)
    localization = localized(explicit, result.registry, options=LocalOptions(strict=strict))
    for item in (*trace.warnings, *result.warnings, *localization.warnings):
        warn(item)
    if has_control_flow(localization.program):
        message = "the module has control flow: torch.cond, while_loop, scan or map"
        raise OptionError(Diagnostic("control-flow", message, hint="export it, propagate, and run Result.to_torch"))
    main = program.functions["main"]
    values, names = main.regions[0].blocks[0].arguments, [item.name for item in program.origin.arguments]
    ports = [
        make_port(
            name, static_shape(value.type) or (), program.shardings.get(value.id), mesh, device_mesh, groups.device
        )
        for name, value in zip(names, values, strict=True)
    ]
    outputs = [
        make_port(
            item.name,
            static_shape(main.function_results[item.result].type) or (),
            program.shardings.get(main.function_results[item.result].id),
            mesh,
            device_mesh,
            groups.device,
        )
        if item.result is not None
        else None
        for item in program.origin.outputs
    ]
    kinds = [item.kind for item in program.origin.arguments]
    tangents = kinds.count("tangent")
    forward_count = sum(item.kind != "gradient" and item.is_tensor for item in trace.outputs)
    builder = make_graph(
        localization.program,
        groups,
        device_mesh.device_type,
        names,
        forward_count=forward_count,
        # A checkpoint that computes one tensor of a bucket again would move all of them again.
        bucket_bytes=0.0 if has_checkpoints(trace.module.graph) else bucket_bytes,
    )
    buffers = {item.name for item in trace.outputs if item.kind == "buffer"}
    written = [number for number, name in enumerate(names) if name in buffers]
    checkpoints = checkpoint_regions(trace.module.graph, explicit, localization, builder)
    graphs = split_graph(builder.graph, tangents, forward_count, written, checkpoints)
    return LocalStep(
        result,
        trace,
        graphs,
        tuple(ports[: len(ports) - tangents]),
        tuple(port for port, item in zip(outputs, trace.outputs, strict=True) if item.kind != "gradient"),
        builder.counts,
        differentiable(trace, graphs) if tangents else None,
        tuple(static_shape(value.type) or () for value in all_values(localization.program)),
    )


def differentiable(trace: JointTrace, graphs: SplitGraph, size_count: int = 0) -> Any:
    """Return the function of autograd with the passes of a trace.

    Args:
        trace: What was traced.
        graphs: The passes.
        size_count: How many sizes they take behind the tensors.
    """
    from shardy_py.torch.modules.autograd import make_function

    names = {argument.name: number for number, (_, argument) in enumerate(trace.arguments)}
    leaves = [item for item in trace.outputs if item.kind != "gradient" and item.is_tensor]
    with_gradient = [number for number, item in enumerate(leaves) if f"gradient of output {item.leaf}" in names]
    argument_numbers = [names[item.name] for item in trace.outputs if item.kind == "gradient"]
    return make_function(graphs, with_gradient, argument_numbers, size_count)
