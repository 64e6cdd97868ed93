"""Modules whose forward and backward passes run on the shards that sharding propagation gives each process."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.support.identity import copy_memo
from shardy_py.torch.modules.local_tensors import ModulePort
from shardy_py.torch.modules.parallel_program import ParallelProgram
from shardy_py.torch.modules.step import LocalStep
from shardy_py.torch.parallel.distribute import distributed
from shardy_py.torch.parallel.input_shapes import require_kind, require_shapes


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
        args, kwargs = program.form.arranged(args, kwargs)
        modules = list(self.modules())  # type: ignore[attr-defined]
        if not torch.compiler.is_compiling():
            program.check_layers(modules)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        names = _checked_names(program, leaves, spec)
        step = program.step(modules, leaves)
        _require_shapes(step, names, _tensors(leaves))
        tensors = self._arguments(step, iter(_tensors(leaves)))
        run = (
            step.function.apply
            if step.function is not None and torch.is_grad_enabled()
            else step.graphs.inference.forward
        )
        if program.autocast_dtype() is None:
            results = iter(run(*tensors, *step.sizes))
        else:
            # The casts are in the graph.
            with torch.autocast(program.device_mesh.device_type, enabled=False):
                results = iter(run(*tensors, *step.sizes))
        outputs: list[Any] = []
        for item, port in zip((o for o in step.trace.outputs if o.kind != "gradient"), step.outputs, strict=True):
            if item.kind == "buffer" and port is not None:
                _write(_state_tensor(self, item.name), port, next(results))
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
    """Write a new value into a buffer, or into a parameter such as an embedding with ``max_norm``."""
    import torch

    with torch.no_grad():
        buffer.to_local().copy_(port.unpadded(shard))


def _checked_names(program: ParallelProgram, leaves: Sequence[Any], spec: Any) -> list[str]:
    """Return the names of the inputs that are tensors.

    Raises:
        OptionError: inputs are of another structure or kind than those of the example.
    """
    assert program.first is not None, "the program of the example is made first"
    trace = program.first.trace
    if spec != trace.in_spec:
        known = ", ".join(name for name, _ in trace.inputs)
        message = f"{len(leaves)} inputs are given in another structure than the example's {len(trace.inputs)}"
        raise OptionError(Diagnostic("input-structure", message, hint=f"the inputs are {known}"))
    names = []
    arguments = trace.arguments[: len(trace.inputs)]
    dtypes = {item.name: nodes[0].meta["val"].dtype for nodes, item in arguments if item.kind == "input"}
    for leaf, (name, constant) in zip(leaves, trace.inputs, strict=True):
        if hasattr(leaf, "dtype") and name in dtypes:
            require_kind(name, leaf, dtypes[name])
            names.append(name)
        elif hasattr(leaf, "dtype") or name in dtypes or leaf != constant:
            given = "a tensor" if hasattr(leaf, "dtype") else repr(leaf)
            before = "a tensor" if name in dtypes else repr(constant)
            message = f"the input {name} is {given}, but was {before} when the module was traced"
            raise OptionError(Diagnostic("input-value", message, hint="call sdy.parallelize with this example"))
    return names


def _require_shapes(step: LocalStep, names: Sequence[str], tensors: Sequence[Any]) -> None:
    """Check that inputs have the shapes that a program is for.

    Raises:
        OptionError: they have others.
    """
    shapes = [tuple(tensor.shape) for tensor in tensors]
    expected = [port.shape for port in step.arguments[: len(names)]]
    require_shapes(shapes, expected, names, "call sdy.parallelize with such an example, or with dynamic_shapes=True")


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
    for module in model.modules():
        # What a hook computes of parameters, as that of `weight_norm` and of pruning, cannot be copied.
        attributes = [value for value in vars(module).values() if isinstance(value, torch.Tensor)]
        pairs += [(value, value.detach()) for value in attributes if not value.is_leaf]
    return copy.deepcopy(model, copy_memo(pairs))
