"""Comparison of the values of virtual devices with the program on whole tensors, within a tolerance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import ALL_REDUCE, REDUCE_SCATTER
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import all_values, entry_arguments, region_arguments
from shardy_py.ir.interfaces.local import LocalValue
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.testing.numeric.bench import Arrays, difference, tolerance_of
from shardy_py.testing.numeric.pieces import Array
from shardy_py.testing.sharded.devices import VirtualDevices
from shardy_py.values import frozen


def find_tolerances(program: Program, seen: Mapping[int, Sequence[Array]]) -> dict[int, float]:
    """Return the tolerance of each value, relative to its largest element; 0 for integers.

    A function may return doubles that it computed from floats of 32 bits: these differ between devices as such floats
    do, from the order of a sum.

    Args:
        program: The program on whole tensors.
        seen: The arrays of each value, by its id.
    """
    dtype_tolerances = {
        number: max((tolerance_of(array.dtype) for array in arrays), default=0.0) for number, arrays in seen.items()
    }
    tolerances = dict(dtype_tolerances)
    functions = program.functions
    is_stable = False
    while not is_stable:
        before = dict(tolerances)
        for op in program.walk():
            if op.parent is program.body:
                continue
            callee = functions.get(callee_of(op) or "")
            if callee is not None:
                _pass_on(op.operands, entry_arguments(callee), tolerances)
                _pass_on(_returned(callee), op.results, tolerances)
                continue
            inside = [value for inner in op.walk() for value in inner.operands]
            inside += [value for value in all_values(op) if op.regions]
            coarsest = max((tolerances.get(value.id, 0.0) for value in inside), default=0.0)
            for value in (*op.results, *region_arguments(op)):
                if dtype_tolerances.get(value.id):
                    tolerances[value.id] = max(tolerances[value.id], coarsest)
        is_stable = before == tolerances
    return tolerances


def _pass_on(sources: Iterable[Value], targets: Iterable[Value], tolerances: dict[int, float]) -> None:
    for source, target in zip(sources, targets, strict=False):
        tolerances[target.id] = max(tolerances.get(source.id, 0.0), tolerances.get(target.id, 0.0))


def _returned(function: Op) -> Sequence[Value]:
    end = function.regions[0].blocks[0].last if function.regions and function.regions[0].blocks else None
    return () if end is None else end.operands


_REDUCING = (ALL_REDUCE, REDUCE_SCATTER)


@frozen
class ShardComparison:
    """Compares what devices have of each value with the whole value.

    Args:
        program: The program on whole tensors.
        devices: The devices, which ran its local program.
        values: What each value became, by its id.
        tolerances: The largest difference of the elements of each value, by its id, relative to the largest one.
        semantics: What is known about ops.
    """

    program: Program
    devices: VirtualDevices
    values: Mapping[int, LocalValue]
    tolerances: Mapping[int, float]
    semantics: OpSemantics

    def first_difference(self, seen: Mapping[int, Sequence[Array]]) -> str:
        """Return the first op, in the order of the program, whose shards are not those of the whole tensor, or "".

        Args:
            seen: The values of the run on whole tensors, by the ids of their results.
        """
        for value in all_values(self.program):
            if value.id not in seen or value.id not in self.values or _is_partial(value):
                continue
            if self._is_in_body(value):
                continue
            reason = self._difference(value, seen[value.id], self.values[value.id])
            if reason:
                return f"{_name(value)}: {reason}"
        return ""

    def _is_in_body(self, value: Value) -> bool:
        """Return whether a value belongs to a computation on elements: how often it runs depends on the sizes."""
        block = value.owner.parent if isinstance(value.owner, Op) else value.owner
        op = None if block is None else block.parent_op
        while op is not None and op.results:
            if self.semantics.get_data_flow(op) is None:
                return True
            op = op.parent_op
        return False

    def of_results(self, expected_results: Arrays, actual_results: Arrays, returned: Sequence[Value]) -> str:
        """Return which result of the main function differs, in words, or "".

        Args:
            expected_results: The results on whole tensors.
            actual_results: The results of the devices.
            returned: What the main function returns.
        """
        rows = zip(expected_results, actual_results, returned, strict=True)
        for number, (expected, actual, value) in enumerate(rows):
            reason = difference(expected, actual, whole_tensor=expected, rtol=self.tolerances.get(value.id))
            if reason:
                return f"result {number} of the program {reason}"
        return ""

    def _difference(self, value: Value, runs: Sequence[Array], local: LocalValue) -> str:
        """Return in what the shards of a value differ from the whole one, in words, or ""."""
        for device, interpreter in enumerate(self.devices.interpreters):
            shards = interpreter.seen.get(local.value.id, ())
            if shards and len(runs) > len(shards) and _depth(local.value) < _depth(value):
                # A loop passes on a value from before it: each iteration has the same.
                shards = [shard for shard in shards for _ in range(len(runs) // len(shards))]
            if len(shards) != len(runs):
                return f"device {device} computes it {len(shards)} times, one device {len(runs)} times"
            for expected, actual in zip(runs, shards, strict=True):
                part = self.devices.parts(actual.shape, local.sharding, actual.ndim)[device]
                expected_shard = expected[part]
                real = actual[tuple(slice(size) for size in expected_shard.shape)]
                reason = difference(expected_shard, real, whole_tensor=expected, rtol=self.tolerances.get(value.id))
                if reason:
                    return f"on device {device} it {reason}"
        return ""


def _depth(value: Value) -> int:
    """Return the number of ops whose regions a value is in."""
    block = value.owner.parent if isinstance(value.owner, Op) else value.owner
    depth = 0
    while block is not None and block.parent_op is not None:
        block, depth = block.parent_op.parent, depth + 1
    return depth


def _is_partial(value: Value) -> bool:
    """Return whether devices may have parts of sums: what combines them comes behind."""
    return any(user.name in _REDUCING for user in value.users)


def _name(value: Value) -> str:
    op = value.owner
    if not isinstance(op, Op):
        parent = op.parent_op
        name = "" if parent is None else parent.name
        return f"argument {value.index} of a region of {name}"
    place = f" at {op.location}" if op.location else ""
    number = f"result {value.index} of " if len(op.results) > 1 else ""
    return f"{number}{op.name}{place}"
