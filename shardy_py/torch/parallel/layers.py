"""Layers of a program that styles of PyTorch know: calls of linear layers and embeddings."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from attrs import evolve, field

from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.torch.frontend.origin import Argument
from shardy_py.transforms.exported_ops import RESHARDS
from shardy_py.values import frozen

LayerKind = Literal["linear", "embedding"]
_CASTS = frozenset(
    f"aten.{name}"
    for name in (
        *("_to_copy.default", "to.dtype", "to.dtype_layout", "to.device", "alias.default", "detach.default"),
        *("clone.default", "contiguous.default", "lift_fresh_copy.default"),
    )
)
"""Ops whose result has the elements of their operand, in the same order."""
_TURNS = frozenset(("aten.t.default", "aten.transpose.int", "aten.permute.default"))
_VIEWS = frozenset(("aten.view.default", "aten._unsafe_view.default"))
_ADD = "aten.add.Tensor"
_CLASSES: Mapping[LayerKind, tuple[str, str]] = {
    "linear": ("torch.nn", "Linear"),
    "embedding": ("torch.nn", "Embedding"),
}


@frozen(eq=False)
class LayerCall:
    """A call of a linear layer or an embedding.

    Args:
        path: The path of the module.
        kind: What it is.
        weight: The argument with its weight.
        core: The op that reads the weight.
        input: The tensor that the module gets.
        output: The tensor that it returns.
        ops: The ids of the ops of the module: casts of its parameters, the core, the addition of a bias.
        bias: The argument with its bias, or None.
        module: The first path of the layers that have all their parameters in common with it: they may be one module
            under several names, so that they have one style.
    """

    path: str
    kind: LayerKind
    weight: Value
    core: Op
    input: Value
    output: Value
    ops: frozenset[int]
    bias: Value | None = None
    module: str = ""

    @property
    def weight_name(self) -> str:
        """The name of the weight under which the module reads it."""
        return f"{self.path}.weight" if self.path else "weight"


@frozen(eq=False)
class Layers:
    """The layers of a program.

    Args:
        calls: The calls of each layer, by the path of its module.
        refused: Name of a parameter that no style knows how to shard, to the reason and its location.
    """

    calls: Mapping[str, tuple[LayerCall, ...]]
    refused: Mapping[str, tuple[str, str]] = field(factory=dict)


def source_of(value: Value) -> Value:
    """Return the tensor that a value is in another sharding."""
    while value.defining_op is not None and value.defining_op.name in RESHARDS:
        value = value.defining_op.operands[0]
    return value


def find_layers(program: Program) -> Layers:
    """Return the layers of a propagated program.

    Args:
        program: The program; it has an origin in PyTorch.
    """
    finder = _Finder(program)
    calls: dict[str, tuple[LayerCall, ...]] = {}
    refused: dict[str, tuple[str, str]] = {}
    for argument, value in finder.arguments:
        if argument.kind == "input":
            continue
        layer_calls, reason = finder.layers_of(argument, value)
        if reason is not None:
            refused.update(dict.fromkeys(argument.names, reason))
        for call in layer_calls:
            calls[call.path] = (*calls.get(call.path, ()), call)
    for path, reason in _layers_with_read_biases(calls).items():
        weight_name = calls.pop(path)[0].weight_name
        refused[weight_name] = reason
    biases = {call.bias.id for path_calls in calls.values() for call in path_calls if call.bias is not None}
    names = {name for argument, value in finder.arguments if value.id in biases for name in argument.names}
    first: dict[tuple[LayerKind, int, int | None], str] = {}
    for path, each in calls.items():
        key = each[0].kind, each[0].weight.id, None if each[0].bias is None else each[0].bias.id
        module = first.setdefault(key, path)
        calls[path] = tuple(evolve(call, module=module) for call in each)
    return Layers(calls, {name: reason for name, reason in refused.items() if name not in names})


def _layers_with_read_biases(calls: Mapping[str, Sequence[LayerCall]]) -> dict[str, tuple[str, str]]:
    """Return the layers whose bias other ops than those of layers read too, each with the reason and its location."""
    layer_ops: dict[int, set[int]] = {}
    for call in (call for layer_calls in calls.values() for call in layer_calls if call.bias is not None):
        layer_ops.setdefault(call.bias.id, set()).update(call.ops)  # type: ignore[union-attr]
    reasons = {}
    for path, path_calls in calls.items():
        bias = path_calls[0].bias
        other = None if bias is None else next((op for op, *_ in _reads(bias) if op.id not in layer_ops[bias.id]), None)
        if other is not None:
            reasons[path] = (f"{other.name} reads its bias too, outside of its layer", other.location)
    return reasons


class _Finder:
    def __init__(self, program: Program) -> None:
        self._origin = program.origin
        block = program.functions["main"].regions[0].blocks[0]
        self._block = block
        self.arguments: Sequence[tuple[Argument, Value]] = list(
            zip(self._origin.arguments, block.arguments, strict=True)
        )
        self._by_name = {name: value for argument, value in self.arguments for name in argument.names}

    def layers_of(self, argument: Argument, value: Value) -> tuple[list[LayerCall], tuple[str, str] | None]:
        """Return the calls that read an argument as their weight, and why it cannot be sharded by styles, or None."""
        paths = [name[:-7].rstrip(".") for name in argument.names if name == "weight" or name.endswith(".weight")]
        calls: list[LayerCall] = []
        for op, number, through in _reads(value):
            call = self._call(op, number, value, through, paths) if paths else None
            reason = f"{op.name} reads it, which is not a linear layer or an embedding of its own module"
            if isinstance(call, str):
                return [], (call, op.location)
            if call is None:
                return [], (reason, op.location)
            calls.append(call)
        return calls, None if calls else ("no op reads it", "")

    def _call(
        self, op: Op, number: int, weight: Value, through: frozenset[int], paths: Sequence[str]
    ) -> LayerCall | str | None:
        kind = _kind(op, number)
        if kind is None or op.parent is not self._block:
            return None
        path = self._path(op, paths)
        if path is None:
            return None
        reason = self._wrong_class(path, kind)
        if reason is not None:
            return reason
        layer_input, output = op.operands[0 if kind == "linear" else 1], op.results[0]
        call = self._with_bias(LayerCall(path, kind, weight, op, layer_input, output, through | {op.id}))
        if call is None:
            return "its bias is not added to its product alone"
        if self._computes_more(call):
            return f"its module {path!r} computes more than its layer"
        return _without_views(call) if op.name == "aten.mm.default" else call

    def _path(self, op: Op, paths: Sequence[str]) -> str | None:
        """Return the module whose weight an op reads, or None where it belongs to another one, or may."""
        known = self._origin.module_paths.get(op.id)
        if known is None:
            return paths[0] if len(paths) == 1 else None
        return known if known in paths else None

    def _wrong_class(self, path: str, kind: LayerKind) -> str | None:
        """Return why styles refuse the module of a layer: other parameters, or a class that is not one of theirs."""
        other = self._other_parameter(path)
        if other is not None:
            return f"its module {path!r} has the parameter {other!r} too, and styles know weight and bias only"
        name = self._origin.module_types.get(path)
        if name is None or name.startswith(f"torch.nn.modules.{'linear' if kind == 'linear' else 'sparse'}."):
            return None
        where, _, class_name = name.rpartition(".")
        module_class = getattr(sys.modules.get(where), class_name, None)
        base = getattr(sys.modules.get(_CLASSES[kind][0]), _CLASSES[kind][1], None)
        if module_class is None or base is None or (isinstance(module_class, type) and issubclass(module_class, base)):
            return None
        return f"its module {path!r} is a {name}, and styles know {'.'.join(_CLASSES[kind])} only"

    def _other_parameter(self, path: str) -> str | None:
        """Return the name of a parameter that a module has besides weight and bias, or None: styles shard them all."""
        prefix = f"{path}." if path else ""
        for argument, _ in self.arguments:
            for name in argument.names if argument.kind == "parameter" else ():
                if name.startswith(prefix) and name.removeprefix(prefix) not in ("weight", "bias"):
                    return name
        return None

    def _computes_more(self, call: LayerCall) -> bool:
        """Return whether a module of a user's class has ops that styles do not leave as they are."""
        name = self._origin.module_types.get(call.path)
        if name is None or name.startswith("torch.nn.modules."):
            return False
        module_ops = [op for op in self._block.ops if self._origin.module_paths.get(op.id) == call.path]
        return not all(op.name in (call.core.name, *_CASTS, _ADD) or _scales(op) for op in module_ops)

    def _with_bias(self, call: LayerCall) -> LayerCall | None:
        bias = self._by_name.get(f"{call.path}.bias" if call.path else "bias")
        if bias is None or call.kind == "embedding":
            return call
        users = [(op, number) for op, number, _ in _users(call.output)]
        for op, number in users:
            if op.name != _ADD or len(op.operands) != 2:
                continue
            added, through = _root(op.operands[1 - number])
            if added is bias:
                if len(users) > 1:
                    return None
                return evolve(call, output=op.results[0], bias=bias, ops=call.ops | through | {op.id})
        return call


def _scales(op: Op) -> bool:
    """Return whether an op multiplies or divides one tensor by numbers."""
    is_scale = op.name in ("aten.mul.Tensor", "aten.mul.Scalar", "aten.div.Tensor", "aten.div.Scalar")
    return is_scale and sum(1 for value in op.operands if value.shape) <= 1


def _kind(op: Op, number: int) -> LayerKind | None:
    names = op.attributes.get("operand_names", ())
    name = names[number] if isinstance(names, tuple) and 0 <= number < len(names) else ""
    if (op.name, name) in (("aten.linear.default", "weight"), ("aten.mm.default", "mat2")):
        return "linear"
    return "embedding" if (op.name, name) == ("aten.embedding.default", "weight") else None


def _reads(value: Value) -> Iterator[tuple[Op, int, frozenset[int]]]:
    """Yield the ops that read a weight, with the number of the operand and the ids of the casts between.

    A product of matrices reads the transposed weight; the transposition counts as one of the casts.
    """
    pending: list[tuple[Value, frozenset[int], bool]] = [(value, frozenset(), False)]
    while pending:
        current, through, is_turned = pending.pop()
        for op, number in current.uses:
            if op.name in _CASTS or op.name in RESHARDS:
                pending.append((op.results[0], through | {op.id}, is_turned))
            elif op.name in _TURNS and len(current.shape) == 2 and not is_turned and _turns(op):
                pending.append((op.results[0], through | {op.id}, True))
            elif is_turned and op.name != "aten.mm.default":
                yield op, -1, through
            else:
                yield op, -1 if op.name == "aten.mm.default" and not is_turned else number, through


def _turns(op: Op) -> bool:
    return op.name != "aten.permute.default" or tuple(op.attributes.get("dims", ())) in ((1, 0), (-1, -2))


def _users(value: Value) -> Iterator[tuple[Op, int, frozenset[int]]]:
    """Yield the ops that use a value, also in another sharding."""
    for op, number in value.uses:
        if op.name in RESHARDS:
            for user, other, through in _users(op.results[0]):
                yield user, other, through | {op.id}
        else:
            yield op, number, frozenset()


def _root(value: Value) -> tuple[Value, frozenset[int]]:
    """Return the value behind casts, and the ids of these."""
    through: set[int] = set()
    while value.defining_op is not None and (value.defining_op.name in _CASTS or value.defining_op.name in RESHARDS):
        through.add(value.defining_op.id)
        value = value.defining_op.operands[0]
    return value, frozenset(through)


def _without_views(call: LayerCall) -> LayerCall:
    """Return the call of a layer on more than two dimensions, which decompositions write as a product of matrices."""
    view = source_of(call.input).defining_op
    users = [op for op, _, _ in _users(call.output)]
    if view is None or view.name not in _VIEWS or len(users) != 1 or users[0].name not in _VIEWS:
        return call
    outer, inner = view.operands[0], users[0].results[0]
    is_layer = outer.shape[:-1] == inner.shape[:-1] and outer.shape[-1] == view.results[0].shape[-1]
    if not is_layer or any(op is not call.core and op.name != RETURN for op, _, _ in _users(view.results[0])):
        return call
    return evolve(call, input=outer, output=inner, ops=call.ops | {view.id, users[0].id})
