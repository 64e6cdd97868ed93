"""Shards that each process holds when a module runs by a parallel plan.

Between the layers of a plan a process runs the module as it is, on the tensors that the layers give it: whole ones, or
shards along one dimension. `trace_shards` follows them op by op. An op on shards is right if it gives the shard of what
it gives for whole tensors: no factor that it moves or sums is sharded, all operands that have the factor are, and none
of its arguments is the size of a whole tensor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field

from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import Registry
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.torch.frontend.inferred_sizes import is_of_size
from shardy_py.torch.parallel.draws import draws_numbers
from shardy_py.torch.parallel.layers import LayerCall, Layers
from shardy_py.torch.parallel.size_reads import ShardSource, find_size_reads
from shardy_py.transforms.exported_ops import RESHARDS
from shardy_py.values import define, frozen

_UNSIZED = frozenset(
    f"aten.{name}"
    for name in (
        *("slice.Tensor", "slice_copy.Tensor", "select.int", "select_copy.int"),
        *("flatten.using_ints", "unsqueeze.default", "unsqueeze_copy.default", "squeeze.default", "squeeze.dim"),
        *("squeeze.dims", "squeeze_copy.dim", "squeeze_copy.dims", "ravel.default"),
    )
)
_SIZED_RESHAPES = frozenset(
    f"aten.{name}.default" for name in ("view", "_unsafe_view", "view_copy", "reshape", "_reshape_alias")
)
_EXPANSIONS = frozenset(("aten.expand.default", "aten.expand_copy.default", "aten.broadcast_to.default"))


@frozen(eq=False)
class Shards:
    """The dimension along which a tensor is sharded, None for a whole one, and the layers that it is sharded by."""

    dim: int | None = None
    layers: frozenset[str] = frozenset()


WHOLE = Shards()


@frozen
class Conflict:
    """An op that needs whole tensors where the module has shards.

    Args:
        op: The name of the op.
        location: Its location.
        reason: Why, as the end of a sentence that begins with the op.
        layers: The layers whose outputs it gets shards of.
    """

    op: str
    location: str
    reason: str
    layers: frozenset[str]


@frozen(eq=False)
class ShardTrace:
    """The inputs of layers and the conflicts that `trace_shards` meets.

    Args:
        inputs: Module of a planned layer to the dimensions along which its inputs are sharded, one per call.
        conflicts: The ops that need whole tensors.
        partial_gradients: The parameters outside of planned layers that each process reads beside shards: the gradients
            that processes compute of them are parts.
    """

    inputs: Mapping[str, tuple[int | None, ...]]
    conflicts: tuple[Conflict, ...]
    partial_gradients: tuple[str, ...]


def trace_shards(
    program: Program, registry: Registry, layers: Layers, sharded_outputs: Mapping[str, bool], count: int
) -> ShardTrace:
    """Follow the tensors of a process through a module.

    Args:
        program: The propagated program.
        registry: What is known about ops.
        layers: The layers of the program.
        sharded_outputs: Path of each planned layer to whether its output stays sharded along its last dimension.
        count: The number of processes.
    """
    tracer = _Tracer(program, registry, count)
    calls = [call for path in sharded_outputs for call in layers.calls[path]]
    tracer.cores = {call.core.id: call for call in calls}
    tracer.outputs = {call.output.id: call for call in calls}
    tracer.layer_op_ids = frozenset(number for call in calls for number in call.ops)
    tracer.sharded_outputs = sharded_outputs
    tracer.sized = _sized_ops(registry)
    return tracer.run()


@define(eq=False)
class _Tracer:
    program: Program
    registry: Registry
    count: int
    cores: Mapping[int, LayerCall] = field(factory=dict)
    outputs: Mapping[int, LayerCall] = field(factory=dict)
    layer_op_ids: frozenset[int] = frozenset()
    sharded_outputs: Mapping[str, bool] = field(factory=dict)
    sized: frozenset[str] = frozenset()
    _shards: dict[int, Shards] = field(factory=dict)
    _sizes: dict[int, frozenset[str]] = field(factory=dict)
    _inputs: dict[str, list[int | None]] = field(factory=dict)
    _conflicts: list[Conflict] = field(factory=list)
    _parameters: dict[int, frozenset[str]] = field(factory=dict)
    _partial: dict[str, None] = field(factory=dict)
    _sources: dict[object, ShardSource] = field(factory=dict)

    def run(self) -> ShardTrace:
        block = self.program.functions["main"].regions[0].blocks[0]
        for item, value in zip(self.program.origin.arguments, block.arguments, strict=True):
            if item.kind == "parameter":
                self._parameters[value.id] = frozenset((item.name,))
        for op in block.ops:
            self._visit(op)
        for read in find_size_reads(self._sources.values()):
            self._conflicts.append(Conflict("forward", read.location, read.reason, read.layers))
        inputs = {path: tuple(dims) for path, dims in self._inputs.items()}
        return ShardTrace(inputs, tuple(self._conflicts), tuple(self._partial))

    def _visit(self, op: Op) -> None:
        call = self.cores.get(op.id)
        if call is not None:
            # The views around a product of matrices are of its decomposition.
            self._enter(call)
        for value in op.results:
            if value.id in self.outputs:
                self._leave(self.outputs[value.id], value)
        if op.id in self.layer_op_ids:
            return
        if op.name in RESHARDS:
            self._set(op.results[0], self._of(op.operands[0]))
            self._parameters[op.results[0].id] = self._parameters.get(op.operands[0].id, frozenset())
            return
        self._note_parameters(op)
        captured = [value for value in _captured(op) if self._of(value).dim is not None]
        sharded = [value for value in op.operands if self._of(value).dim is not None]
        if not sharded and not captured:
            self._check_numbers(op)
            return
        result = self._result_dims(op) if not captured else "reads shards in its regions"
        if isinstance(result, str):
            layers = frozenset(path for value in (*sharded, *captured) for path in self._of(value).layers)
            self._conflicts.append(Conflict(op.name, op.location, result, layers))
            return
        layers = frozenset(path for value in sharded for path in self._of(value).layers)
        for value in sharded:
            self._note_source(op, value, is_result=False)
        for value, dim in zip(op.results, result, strict=True):
            if dim is not None:
                self._set(value, Shards(dim, layers))
                self._note_source(op, value, is_result=True)
        for value in op.operands:
            self._partial.update(dict.fromkeys(sorted(self._parameters.get(value.id, ()))))

    def _check_numbers(self, op: Op) -> None:
        """Note an op on whole tensors with a number that is computed from the size of a shard."""
        if not self.program.origin.shape_indices.get(op.id):
            return
        numbers = [item for item in op.attributes.values() if type(item) in (int, float)]
        layers: set[str] = set()
        for size, sized_layers in self._sizes.items():
            if any(is_of_size(number, size) for number in numbers):
                layers |= sized_layers
        if layers:
            reason = "has a number that is computed from the size of a shard"
            self._conflicts.append(Conflict(op.name, op.location, reason, frozenset(layers)))

    def _set(self, value: Value, shards: Shards) -> None:
        self._shards[value.id] = shards
        if shards.dim is not None:
            for size in (value.shape[shards.dim], math.prod(value.shape)):
                self._sizes[size] = self._sizes.get(size, frozenset()) | shards.layers

    def _note_source(self, op: Op, value: Value, *, is_result: bool) -> None:
        """Note where the source makes or uses a shard."""
        shards = self._of(value)
        if shards.dim is None or not op.location:
            return
        source = ShardSource(op.location, shards.dim, len(value.shape), shards.layers, is_result)
        # What a line assigns is what its last op makes.
        self._sources[(op.location, shards.layers) if is_result else source] = source

    def _of(self, value: Value) -> Shards:
        return self._shards.get(value.id, WHOLE)

    def _enter(self, call: LayerCall) -> None:
        shards = self._of(call.input)
        dims = self._inputs.setdefault(call.module, [])
        dims.append(shards.dim)
        if len(set(dims)) > 1:
            reason = f"gets shards in one call of {call.path!r} and whole tensors, or others, in another one"
            layers = shards.layers | self._layers_before(call)
            self._conflicts.append(Conflict(call.core.name, call.core.location, reason, layers))

    def _layers_before(self, call: LayerCall) -> frozenset[str]:
        others = [other for other in self.cores.values() if other.module == call.module]
        return frozenset(path for other in others for path in self._of(other.input).layers)

    def _leave(self, call: LayerCall, output: Value) -> None:
        if not self.sharded_outputs[call.path]:
            return
        rank, paths = len(output.shape), frozenset((call.path,))
        if rank and output.shape[-1] % self.count == 0:
            self._set(output, Shards(rank - 1, paths))
            self._note_source(call.core, output, is_result=True)
        else:
            reason = f"has {output.shape[-1] if rank else 1} columns, which {self.count} processes do not divide evenly"
            self._conflicts.append(Conflict(call.core.name, call.core.location, reason, paths))

    def _note_parameters(self, op: Op) -> None:
        """Note the results that are computed from parameters alone."""
        if op.operands and all(value.id in self._parameters for value in op.operands):
            names = frozenset(name for value in op.operands for name in self._parameters[value.id])
            self._parameters.update((value.id, names) for value in op.results)

    def _result_dims(self, op: Op) -> Sequence[int | None] | str:
        """Return the sharded dimensions of the results of an op on shards, or why it cannot run on them."""
        if op.name == RETURN:
            return "returns them, and a caller expects whole tensors"
        if op.regions:
            return "has regions, in which shards are not followed"
        rule = self.registry.get_sharding_rule(op)
        if rule is None:
            return "has no sharding rule"
        dims = [self._of(value).dim for value in op.operands]
        sharded = [(value, dim) for value, dim in zip(op.operands, dims, strict=True) if dim is not None]
        factor = _common_factor(rule, op, dims, self.count)
        if isinstance(factor, str):
            return factor
        if any(_is_size_of(value, dim, self.program.origin.shape_indices.get(op.id, ())) for value, dim in sharded):
            return "has a number that is computed from the size of the sharded dimension"
        if draws_numbers(op):
            return "draws random numbers, which are others on shards"
        results = [_dim_of(rule, mapping, factor) for mapping in rule.result_mappings]
        if None in results:
            return "gives a result that does not have the sharded dimension, or not at the front of one of its own"
        reason = self._wrong_sizes(op, [dim for dim in results if dim is not None])
        return results if reason is None else reason

    def _wrong_sizes(self, op: Op, results: Sequence[int]) -> str | None:
        """Return why the arguments of an op hold for whole tensors only, or None."""
        if op.name in _SIZED_RESHAPES or op.name in _EXPANSIONS:
            if results[0] in self.program.origin.inferred_dims.get(op.id, ()):
                return None
            return f"has the size of dimension {results[0]} as a number; -1 in its place would follow the shard"
        is_squeeze = ".squeeze" in op.name
        if is_squeeze and any(op.results[0].shape[dim] == self.count for dim in results):
            return "would drop the sharded dimension, of which each process has one"
        return "has arguments that hold for whole tensors only" if op.name in self.sized else None


def _sized_ops(registry: Registry) -> frozenset[str]:
    """Return the names of the ops whose form on a device is more than the op itself on shards."""
    sized = {item.name for item in registry.definitions if item.local not in (None, local_by_types)}
    return frozenset(sized - _UNSIZED - _EXPANSIONS)


def _common_factor(rule: OpShardingRule, op: Op, dims: Sequence[int | None], count: int) -> int | str:
    """Return the factor of the operands' sharded dimensions, or why an op cannot run on these shards."""
    factors: set[int] = set()
    for mapping, dim in zip(rule.operand_mappings, dims, strict=True):
        if dim is not None:
            major = [factor for factor in mapping[dim] if rule.factor_sizes[factor] != 1] or list(mapping[dim])
            if not major or rule.factor_sizes[major[0]] % count:
                return "does not divide the sharded dimension evenly"
            factors.add(major[0])
    if len(factors) != 1:
        return "has operands that are sharded along different dimensions"
    (factor,) = factors
    if not rule.is_pass_through(factor):
        return f"needs the whole of the sharded dimension ({rule.kind(factor).value.replace('_', ' ')})"
    for number, (mapping, dim) in enumerate(zip(rule.operand_mappings, dims, strict=True)):
        if dim is None and any(factor in dim_factors for dim_factors in mapping):
            name = _operand_name(op, number)
            return f"has an operand{name} that is whole along the dimension of which another one is a shard"
    return factor


def _is_size_of(value: Value, dim: int, indices: Sequence[int]) -> bool:
    return dim in indices or dim - len(value.shape) in indices


def _dim_of(rule: OpShardingRule, mapping: Sequence[Sequence[int]], factor: int) -> int | None:
    """Return the dimension whose major factor is this one."""
    for dim, dim_factors in enumerate(mapping):
        major = [item for item in dim_factors if rule.factor_sizes[item] != 1]
        if major and major[0] == factor:
            return dim
    return None


def _operand_name(op: Op, number: int) -> str:
    names: Any = op.attributes.get("operand_names", ())
    return f" {names[number]!r}" if number < len(names) else ""


def _captured(op: Op) -> list[Value]:
    """Return the operands of the ops in the regions of an op."""
    pending = [inner for region in op.regions for block in region.blocks for inner in block.ops]
    captured: list[Value] = []
    while pending:
        inner = pending.pop()
        captured.extend(inner.operands)
        pending.extend(child for region in inner.regions for block in region.blocks for child in block.ops)
    return captured
