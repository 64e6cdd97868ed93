"""Forward and backward pass of a module as one graph, traced on tensors without elements.

The graph has no module in it: its inputs are those of the module, the parameters and buffers, and the gradients of the
outputs; it returns the outputs, the new values of buffers, and the gradients of parameters and inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from attrs import evolve, field

from shardy_py.errors import Diagnostic, ShardyError, UnsupportedError
from shardy_py.support.identity import identity
from shardy_py.torch.frontend.origin import Argument, ArgumentKind
from shardy_py.torch.modules.assignments import assignments_undone
from shardy_py.torch.modules.checkpoints import checkpoints_noted
from shardy_py.torch.modules.effect_tokens import drop_effect_tokens
from shardy_py.torch.modules.input_names import input_names
from shardy_py.torch.modules.losses import losses_without_checks
from shardy_py.torch.modules.not_traced import not_traced
from shardy_py.torch.modules.recurrent_layers import recurrent_dropout
from shardy_py.values import frozen


@frozen(eq=False)
class JointOutput:
    """An output of a joint graph.

    Args:
        kind: What it is: an output of the module, the new value of a buffer, or a gradient.
        name: Its name; that of the parameter, buffer or input that it belongs to.
        leaf: The number of an output among the leaves of what the module returns.
        constant: The output of the module that is no tensor; a symbolic number where it follows from a symbolic size.
        is_tensor: Whether it is a tensor.
    """

    kind: str
    name: str
    leaf: int = -1
    constant: Any = None
    is_tensor: bool = True


@frozen(eq=False)
class JointTrace:
    """A traced module; `propagate` takes it as a program of PyTorch.

    Args:
        module: The graph.
        arguments: The nodes that read each tensor, with its argument: inputs, state, constants, gradients of outputs.
        constants: Node to its number or None, for placeholders that are no tensors.
        tensors: The tensors that the graph or the loss holds, by the name of their argument.
        outputs: The outputs of the graph, in order.
        pairs: Numbers of arguments and of outputs of the graph that are sharded alike: a parameter and its gradient.
        in_spec: The structure of the positional and keyword arguments of the module.
        out_spec: The structure of what it returns.
        inputs: The inputs of the module: names, or for those that are no tensors what they are.
        warnings: What the graph does not do as the module does.
    """

    module: Any
    arguments: tuple[tuple[tuple[Any, ...], Argument], ...]
    constants: Mapping[Any, Any]
    tensors: Mapping[str, Any]
    outputs: tuple[JointOutput, ...]
    pairs: tuple[tuple[int, int], ...]
    in_spec: Any = field(repr=False)
    out_spec: Any = field(repr=False)
    inputs: tuple[tuple[str, Any], ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


def trace_joint(
    model: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    mode: Any,
    loss: Callable[..., Any] | None,
    count: int,
) -> JointTrace:
    """Return the joint graph of a module whose parameters and buffers are fake tensors.

    Args:
        model: The module.
        args: Fake inputs; the last ones are those of the loss.
        kwargs: Those that are given by name.
        mode: The mode of the fake tensors.
        loss: The function of the module's outputs, and of the inputs that the module does not take.
        count: How many of the positional inputs the module takes.

    Raises:
        UnsupportedError: the module cannot be traced.
    """
    import torch
    from torch._functorch.aot_autograd import aot_export_joint_with_descriptors

    with ExitStack() as stack:
        stack.enter_context(mode)
        stack.enter_context(torch.enable_grad())
        stack.enter_context(_as_in_an_export())
        stack.enter_context(recurrent_dropout())
        warnings = stack.enter_context(checkpoints_noted())
        stack.enter_context(losses_without_checks())
        wrapper = _wrapped(model, loss, count, warnings)
        try:
            joint = aot_export_joint_with_descriptors(stack, wrapper, tuple(args), dict(kwargs))
        except ShardyError:
            raise
        except (RuntimeError, AssertionError, ValueError, TypeError) as error:
            raise not_traced(error) from error
        drop_effect_tokens(joint.graph_module.graph)
        trace = _Reader(model, joint, args, kwargs, loss, count, dict(wrapper.named_buffers())).run()
        return evolve(trace, warnings=tuple(warnings.values()))


@contextmanager
def _as_in_an_export() -> Iterator[None]:
    """Let models take the code whose shapes do not depend on data, as they do while they are exported."""
    import torch

    names = [name for name in ("_is_compiling_flag", "_is_exporting_flag") if hasattr(torch.compiler, name)]
    before = {name: getattr(torch.compiler, name) for name in names}
    try:
        for name in names:
            setattr(torch.compiler, name, True)
        yield
    finally:
        for name, value in before.items():
            setattr(torch.compiler, name, value)


def without_elements(tree: Any, mode: Any, kind: str) -> Any:
    """Return a tree of inputs with tensors without elements.

    Args:
        tree: The inputs, or one tensor.
        mode: The mode of such tensors.
        kind: The kind of device that they are on.
    """
    import torch
    from torch.utils import _pytree as pytree

    def fake(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        with mode:
            empty = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=kind)
        return empty.requires_grad_(tensor.requires_grad)

    return pytree.tree_map(fake, tree)


def _wrapped(model: Any, loss: Callable[..., Any] | None, count: int, warnings: dict[str, Diagnostic]) -> Any:
    """Return a module that gives copies of outputs: none then is an input, or shares its elements with another one."""
    import torch
    from torch.utils import _pytree as pytree

    class Wrapper(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            if loss is not None:
                self.loss = loss

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            with assignments_undone(self.model, warnings):
                output = self.model(*args[:count], **kwargs)
            output = output if loss is None else self.loss(output, *args[count:])
            return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, output)

    wrapper = Wrapper()
    # Modules inside may be in another mode.
    wrapper.training = model.training
    return wrapper


class _Reader:
    """Reader of what PyTorch says about the inputs and outputs of a joint graph."""

    def __init__(
        self,
        model: Any,
        joint: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        loss: Callable[..., Any] | None,
        count: int,
        held: Mapping[str, Any],
    ) -> None:
        from torch.utils import _pytree as pytree

        self.joint = joint
        self.graph = joint.graph_module.graph
        leaves, self.in_spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        self.leaves = leaves
        self.held = held
        self.names = input_names(model, loss, args, kwargs, count)
        self.state = dict(model.named_parameters(remove_duplicate=False))
        self.parameters = set(self.state)
        self.state |= dict(model.named_buffers(remove_duplicate=False))

    def run(self) -> JointTrace:
        arguments_by_kind: dict[ArgumentKind, list[tuple[tuple[Any, ...], Argument]]] = {}
        constants: dict[Any, Any] = {}
        first_names = self._tie()
        for node in self.graph.find_nodes(op="placeholder"):
            self._read_placeholder(node, arguments_by_kind, constants, first_names)
        tensors = self._read_tensors(arguments_by_kind)
        order: tuple[ArgumentKind, ...] = ("input", "parameter", "buffer", "constant", "tangent")
        arguments = [pair for kind in order for pair in arguments_by_kind.get(kind, ())]
        outputs = self._outputs(first_names)
        return JointTrace(
            self.joint.graph_module,
            tuple(arguments),
            constants,
            tensors,
            tuple(outputs),
            tuple(_pairs([argument for _, argument in arguments], outputs)),
            self.in_spec,
            self.joint.out_spec,
            tuple(
                (name, None if hasattr(leaf, "dtype") else leaf)
                for name, leaf in zip(self.names, self.leaves, strict=True)
            ),
        )

    def _read_placeholder(
        self,
        node: Any,
        arguments_by_kind: dict[ArgumentKind, list[tuple[tuple[Any, ...], Argument]]],
        constants: dict[Any, Any],
        first_names: Mapping[str, str],
    ) -> None:
        described, value = node.meta["desc"], node.meta.get("val")
        kind = type(described).__name__
        if kind == "TangentAOTInput" and hasattr(described.output, "mutated_input"):
            self._without_gradient(node, described.output.mutated_input)
            constants[node] = None
        elif kind == "TangentAOTInput":
            name = f"gradient of output {described.output.idx}"
            arguments_by_kind.setdefault("tangent", []).append(((node,), Argument(name, "tangent", node.name)))
        elif kind == "PlainAOTInput":
            if hasattr(value, "dtype"):
                argument = Argument(self.names[described.idx], "input", node.name)
                arguments_by_kind.setdefault("input", []).append(((node,), argument))
            else:
                constants[node] = self.leaves[described.idx]
        elif hasattr(value, "dtype"):
            name = _state_name(described.target)
            if first_names.get(name, name) != name:
                constants[node] = None
                return
            aliases = tuple(other for other, first in first_names.items() if first == name != other)
            known: ArgumentKind = "parameter" if name in self.parameters else "buffer"
            arguments_by_kind.setdefault(known if name in self.state else "constant", []).append(
                ((node,), Argument(name, known if name in self.state else "constant", node.name, aliases))
            )

    def _without_gradient(self, node: Any, mutated: Any) -> None:
        """Let the gradient of the new value of a buffer be zero: later calls do not have one for this call."""
        import torch

        placeholders = self.graph.find_nodes(op="placeholder")
        old = next(each for each in placeholders if each.meta["desc"] == mutated)
        with self.graph.inserting_after(placeholders[-1]):
            zeros = self.graph.call_function(torch.ops.aten.zeros_like.default, (old,))
        zeros.meta = {**node.meta}
        node.replace_all_uses_with(zeros)

    def _read_tensors(
        self, arguments_by_kind: dict[ArgumentKind, list[tuple[tuple[Any, ...], Argument]]]
    ) -> dict[str, Any]:
        """Return the tensors of the graph, which become arguments."""
        tensors = {name: tensor for name, tensor in self.held.items() if name.startswith("loss.")}
        readers: dict[str, list[Any]] = {}
        for node in self.graph.find_nodes(op="get_attr"):
            readers.setdefault(node.target, []).append(node)
        for target, nodes in readers.items():
            tensors[target] = getattr(self.joint.graph_module, target)
            arguments_by_kind.setdefault("constant", []).append((tuple(nodes), Argument(target, "constant", target)))
        return tensors

    def _tie(self) -> dict[str, str]:
        """Let a tensor with several names have one placeholder, and return the first name by each name."""
        first: dict[Any, str] = {}
        first_names = {name: first.setdefault(identity(tensor), name) for name, tensor in self.state.items()}
        nodes = {
            _state_name(node.meta["desc"].target): node
            for node in self.graph.find_nodes(op="placeholder")
            if hasattr(node.meta["desc"], "target")
        }
        for name, other in first_names.items():
            if name != other and name in nodes:
                nodes[name].replace_all_uses_with(nodes[other])
        return first_names

    def _outputs(self, first_names: Mapping[str, str]) -> list[JointOutput]:
        """Return the outputs; the gradients of a tensor with several names are summed to one."""
        output = next(iter(self.graph.find_nodes(op="output")))
        nodes, described = list(output.args[0]), list(output.meta["desc"])
        read = [
            self._read_output(node, each, first_names)
            for node, each in zip(nodes, described + [None] * (len(nodes) - len(described)), strict=True)
        ]
        outputs: list[tuple[Any, JointOutput]] = []
        gradients: dict[str, int] = {}
        for node, item in zip(nodes, read, strict=True):
            if item.kind == "gradient" and not hasattr(node, "meta"):
                continue
            if item.kind == "gradient" and item.name in gradients:
                number = gradients[item.name]
                outputs[number] = self._sum(outputs[number][0], node, output), outputs[number][1]
                continue
            if item.kind == "gradient":
                gradients[item.name] = len(outputs)
            outputs.append((_without_copy(node), item))
        output.args = (tuple(node for node, _ in outputs),)
        return [item for _, item in outputs]

    def _read_output(self, node: Any, described: Any, first_names: Mapping[str, str]) -> JointOutput:
        kind = type(described).__name__
        if kind == "InputMutationAOTOutput":
            target = described.mutated_input
            if not hasattr(target, "target"):
                message = f"the module writes to its input {self.names[target.idx]}"
                raise UnsupportedError(Diagnostic("written-input", message, hint="write to a copy: x = x.clone()"))
            name = _state_name(target.target)
            return JointOutput("buffer", first_names.get(name, name))
        if kind == "GradAOTOutput":
            of = described.grad_of
            name = _state_name(of.target) if hasattr(of, "target") else self.names[of.idx]
            return JointOutput("gradient", first_names.get(name, name))
        if kind == "PlainAOTOutput":
            value = getattr(node, "meta", {}).get("val", node)
            is_tensor = hasattr(value, "dtype")
            constant = None if is_tensor else value
            return JointOutput("output", f"output{described.idx}", described.idx, constant, is_tensor)
        if described is None and node is None:
            return JointOutput("gradient", "")
        message = f"the graph of the module has an output of the kind {kind}"
        raise UnsupportedError(Diagnostic("unsupported-output", message, hint="return tensors that are not views"))

    def _sum(self, gradient: Any, other: Any, output: Any) -> Any:
        import torch

        with self.graph.inserting_before(output):
            total = self.graph.call_function(torch.ops.aten.add.Tensor, (gradient, other))
        total.meta = {"val": gradient.meta["val"]}
        return total


def _without_copy(node: Any) -> Any:
    """Return the node that was copied for an output."""
    is_copy = str(getattr(node, "target", "")) == "aten.clone.default" and not node.kwargs
    return node.args[0] if is_copy else node


def _state_name(target: str) -> str:
    return target.removeprefix("model.")


def _pairs(arguments: Sequence[Argument], outputs: Sequence[JointOutput]) -> list[tuple[int, int]]:
    numbers = {item.name: number for number, item in enumerate(arguments)}
    pairs = []
    for number, output in enumerate(outputs):
        name = f"gradient of output {output.leaf}" if output.kind == "output" else output.name
        if output.is_tensor and name in numbers:
            pairs.append((numbers[name], number))
    return pairs
