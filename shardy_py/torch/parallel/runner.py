"""Runner of local programs of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.torch.parallel.calls import call, tensors_of
from shardy_py.torch.parallel.collectives import Devices, collective
from shardy_py.torch.parallel.draws import draw_alike, draws_numbers
from shardy_py.values import define

_COLLECTIVES = frozenset(("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute"))
Tensors = list[Any]
"""One tensor for each device of this process."""


@define
class Runner:
    """Runs the ops of a local program on the tensors of some devices.

    Attributes:
        program: The program.
        devices: The devices.
        torch_device: The device of PyTorch on which tensors are made.
    """

    program: Program
    devices: Devices
    torch_device: Any

    def run(self, arguments: Sequence[Tensors]) -> list[Tensors]:
        """Return the results of the main function.

        Args:
            arguments: The shards of each argument.
        """
        block = self.program.functions["main"].regions[0].blocks[0]
        return self._run_block(block, arguments, {})

    def _run_block(self, block: Block, arguments: Sequence[Tensors], outer: dict[int, Tensors]) -> list[Tensors]:
        values = dict(outer)
        values.update((value.id, tensors) for value, tensors in zip(block.arguments, arguments, strict=True))
        last_use = _last_uses(block)
        for number, op in enumerate(block.ops):
            operands = [values[value.id] for value in op.operands]
            if op is block.last:
                return operands
            for value, computed in zip(op.results, self._run_op(op, operands, values), strict=True):
                values[value.id] = computed
            for value in op.operands:
                if last_use.get(value.id) == number:
                    values.pop(value.id, None)
        return []

    def _run_op(self, op: Op, operands: list[Tensors], values: dict[int, Tensors]) -> list[Tensors]:
        space, _, kind = op.name.partition(".")
        if space == "spmd":
            return [self._spmd(op, kind, operands)]
        if space == "higher_order":
            return self._flow(op, kind, operands, values)
        if space == "func":
            message = "calls of functions are not run"
            raise UnsupportedError(Diagnostic("no-calls", message, op.location, op.name, hint="inline_calls=True"))
        calls = [
            partial(call, op.name, op.attributes, list(tensors), self.torch_device)
            for tensors in self._by_device(operands)
        ]
        is_drawn = len(calls) > 1 and draws_numbers(op)
        results_by_device = draw_alike(calls, self.torch_device) if is_drawn else [run() for run in calls]
        # What is not computed has no result in the program; an operator may leave out more than its types say.
        present = [results if len(results) == len(op.results) else tensors_of(results) for results in results_by_device]
        return [[results[number] for results in present] for number in range(len(op.results))]

    def _by_device(self, operands: list[Tensors]) -> list[tuple[Any, ...]]:
        count = len(self.devices.numbers)
        return list(zip(*operands, strict=True)) if operands else [()] * count

    def _spmd(self, op: Op, kind: str, operands: list[Tensors]) -> Tensors:
        import torch

        if kind in _COLLECTIVES:
            return collective(self.devices, kind, operands[0], op.attributes)
        if kind == "offset":
            table = op.attributes["table"]
            numbers = [_entry(table, device) for device in self.devices.numbers]
            return [torch.tensor(number, dtype=torch.int64, device=self.torch_device) for number in numbers]
        compute = {"dynamic_slice": _dynamic_slice, "mask": _mask, "scalar": _scalar, "embedding": _embedding}[kind]
        return [compute(op, list(tensors), self.torch_device) for tensors in self._by_device(operands)]

    def _flow(self, op: Op, kind: str, operands: list[Tensors], values: dict[int, Tensors]) -> list[Tensors]:
        import torch

        if kind == "cond":
            branch = 0 if bool(operands[0][0]) else 1
            return self._run_block(op.regions[branch].blocks[0], (), values)
        if kind == "while_loop":
            while bool(self._run_block(op.regions[0].blocks[0], operands, values)[0][0]):
                operands = self._run_block(op.regions[1].blocks[0], operands, values)
            return operands
        if kind == "scan":
            for number in range(op.attributes["length"]):
                self._round = number
                operands = self._run_block(op.regions[0].blocks[0], operands, values)
            return operands
        if kind == "scan_slice":
            return [[tensor[self._round] for tensor in operands[0]]]
        if kind == "scan_update":
            return [
                [torch.select_scatter(buffer, item, 0, self._round) for buffer, item in zip(*operands, strict=True)]
            ]
        # The buffer of a scan, every round of which is written.
        type_ = op.results[0].type
        return [
            [torch.empty(_shape(op), dtype=dtype_of(type_), device=self.torch_device) for _ in self.devices.numbers]
        ]

    _round: int = 0


def _last_uses(block: Block) -> dict[int, int]:
    """Return value id to the number of the last op that uses it, for values of the block itself."""
    last_uses: dict[int, int] = {}
    defined_ids = {value.id for op in block.ops for value in op.results} | {value.id for value in block.arguments}
    for number, op in enumerate(block.ops):
        for inner in _with_nested(op):
            last_uses.update((value.id, number) for value in inner.operands if value.id in defined_ids)
    return last_uses


def _with_nested(op: Op) -> list[Op]:
    nested = [
        inner
        for region in op.regions
        for block in region.blocks
        for child in block.ops
        for inner in _with_nested(child)
    ]
    return [op, *nested]


def _entry(table: Sequence[int], device: int) -> int:
    return 0 if not table else table[0] if len(table) == 1 else table[device]


def _shape(op: Op) -> tuple[int, ...]:
    return static_shape(op.results[0].type) or ()


def dtype_of(type_: Any) -> Any:
    """Return the dtype of PyTorch of a tensor type."""
    import torch

    from shardy_py.torch.frontend.types import DTYPES

    return getattr(torch, DTYPES[type_.element_type if isinstance(type_, TensorType) else "f32"])


def _dynamic_slice(op: Op, tensors: list[Any], device: Any) -> Any:
    value, *starts = tensors
    for dim, (start, size) in enumerate(zip(starts, op.attributes["sizes"], strict=True)):
        if size != value.shape[dim]:
            value = value.narrow(dim, min(int(start), value.shape[dim] - size), size)
    return value


def _mask(op: Op, tensors: list[Any], device: Any) -> Any:
    import torch

    value, count, fill = tensors
    dim = op.attributes["dim"]
    shape = [-1 if number == dim else 1 for number in range(value.dim())]
    return torch.where(torch.arange(value.shape[dim], device=device).view(shape) < count, value, fill)


def _scalar(op: Op, tensors: list[Any], device: Any) -> Any:
    import torch

    dtype = dtype_of(op.results[0].type)
    if "limit" in op.attributes:
        info = torch.iinfo(dtype)
        return torch.tensor(info.max if op.attributes["limit"] == "highest" else info.min, dtype=dtype, device=device)
    return torch.tensor(op.attributes["value"], device=device).to(dtype)


def _embedding(op: Op, tensors: list[Any], device: Any) -> Any:
    """Return the rows that the device has, and zeros for the others."""
    import torch

    table, indices, offset = tensors
    local_indices = indices - offset
    inside = (local_indices >= 0) & (local_indices < table.shape[0])
    rows = torch.nn.functional.embedding(local_indices.clamp(0, table.shape[0] - 1), table)
    return rows * inside.unsqueeze(-1).to(rows.dtype)
