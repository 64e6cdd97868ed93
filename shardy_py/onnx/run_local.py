"""Local models on simulated devices: onnxruntime runs the nodes between two collectives, numpy the collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.guards.error_texts import describe_error
from shardy_py.onnx.node_graphs import captured, node_graphs
from shardy_py.onnx.write_local import DOMAIN
from shardy_py.support.identity import identity

Arrays = dict[str, Any]
"""The tensors of a device, by name."""


def run_local(model: ModelProto, device_count: int, shards: Sequence[Any]) -> list[Any]:
    """Return the shards of the results, stacked by device.

    Args:
        model: The model of one device.
        device_count: The number of devices.
        shards: The shards of each argument, stacked by device.

    Raises:
        UnsupportedError: onnxruntime refuses a part of the model.
    """
    devices: list[Arrays] = [
        {info.name: shard[number] for info, shard in zip(model.graph.input, shards, strict=True)}
        for number in range(device_count)
    ]
    tensors = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for device in devices:
        device.update(tensors)
    outputs = [info.name for info in model.graph.output]
    _Runner(model, devices).run(model.graph.node, outputs)
    return [np.stack([device[name] for device in devices]) for name in outputs]


class _Runner:
    """The run of a model on all devices at once.

    Args:
        model: The model.
        devices: The tensors of each device.
    """

    def __init__(self, model: ModelProto, devices: list[Arrays]) -> None:
        self._model, self._devices = model, devices
        self._sessions: dict[Any, Any] = {}

    def run(self, nodes: Sequence[NodeProto], outputs: Sequence[str]) -> None:
        """Run the nodes of a graph."""
        pending: list[NodeProto] = []
        last_use = _last_uses(nodes, outputs)
        for number, node in enumerate(nodes):
            if not _communicates(node):
                pending.append(node)
                continue
            self._run_nodes(pending, last_use, number)
            pending = []
            if node.domain == DOMAIN:
                _run_collective(node, self._devices)
            elif node.op_type == "If":
                self._run_branch(node)
            else:
                self._run_loop(node)
        self._run_nodes(pending, last_use, len(nodes))

    def _run_branch(self, node: NodeProto) -> None:
        """Run the branch that all devices take."""
        graphs = {item.name: item.g for item in node.attribute}
        graph = graphs["then_branch" if self._agreed(node.input[0]) else "else_branch"]
        self.run(graph.node, [info.name for info in graph.output])
        for device in self._devices:
            device.update({name: device[info.name] for name, info in zip(node.output, graph.output, strict=True)})

    def _run_loop(self, node: NodeProto) -> None:
        """Run the iterations of a loop one by one."""
        bound, condition, *initial = node.input
        (graph,) = (item.g for item in node.attribute)
        arguments, outputs = ([info.name for info in infos] for infos in (graph.input, graph.output))
        for device in self._devices:
            values = [device[name] for name in initial]
            device.update(zip(arguments[1:], [device[condition], *values], strict=True))
        slices: list[list[list[Any]]] = [[[] for _ in outputs[1 + len(initial) :]] for _ in self._devices]
        number, last = 0, int(np.asarray(self._agreed(bound)).reshape(()))
        while number < last and self._agreed(arguments[1]):
            for device in self._devices:
                device[arguments[0]] = np.array(number, np.int64)
            self.run(graph.node, outputs)
            for device, rows in zip(self._devices, slices, strict=True):
                values = [device[name] for name in outputs]
                device.update(zip(arguments[1:], values[: len(initial) + 1], strict=True))
                for row, value in zip(rows, values[len(initial) + 1 :], strict=True):
                    row.append(value)
            number += 1
        for device, rows in zip(self._devices, slices, strict=True):
            carried = [device[name] for name in arguments[2:]]
            stacked = map(_stacked, rows, graph.output[1 + len(initial) :])
            device.update(zip(node.output, [*carried, *stacked], strict=True))

    def _agreed(self, name: str) -> Any:
        """Return a number that all devices have.

        Raises:
            UnsupportedError: they have several.
        """
        values = [device[name] for device in self._devices]
        if any(np.any(value != values[0]) for value in values):
            message = f"devices do not agree on {name}, which says whether nodes run that communicate"
            raise UnsupportedError(Diagnostic("cannot-run", message, hint="do not shard what the condition reads"))
        return values[0]

    def _run_nodes(self, nodes: Sequence[NodeProto], last_use: dict[str, int], end: int) -> None:
        """Run some nodes on all devices; what is read from a node on becomes known."""
        results = [name for node in nodes for name in node.output if name]
        outputs = [name for name in results if last_use.get(name, -1) >= end]
        if not outputs:
            return
        read = dict.fromkeys(name for node in nodes for name in (*node.input, *captured(node)) if name)
        inputs = {name: self._devices[0][name] for name in read if name in self._devices[0] and name not in results}
        key = identity(nodes[0]), end, tuple((array.dtype, array.shape) for array in inputs.values())
        if key not in self._sessions:
            # Nodes are kept, so that no other one gets the identity of the first.
            self._sessions[key] = _session(nodes, self._model, inputs, outputs), nodes
        session = self._sessions[key][0]
        for device in self._devices:
            try:
                arrays = session.run(outputs, {name: np.asarray(device[name], order="C") for name in inputs})
            except Exception as error:
                raise _refusal(error) from None
            device.update(zip(outputs, arrays, strict=True))


def _stacked(slices: Sequence[Any], info: Any) -> Any:
    """Return the slices of all iterations as one array; an empty one of their type where there are none."""
    if slices:
        return np.stack(slices)
    type_ = info.type.tensor_type
    shape = [dim.dim_value for dim in type_.shape.dim]
    return np.zeros((0, *shape), onnx.helper.tensor_dtype_to_np_dtype(type_.elem_type))


def _communicates(node: NodeProto) -> bool:
    """Return whether a node is a collective, or a graph in it has one."""
    return node.domain == DOMAIN or any(_communicates(other) for graph in node_graphs(node) for other in graph.node)


def _last_uses(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> dict[str, int]:
    """Return the number of the last node that reads each tensor; that of outputs is behind all nodes."""
    uses = {name: number for number, node in enumerate(nodes) for name in (*node.input, *captured(node))}
    return uses | dict.fromkeys(outputs, len(nodes) + 1)


def _session(nodes: Sequence[NodeProto], model: ModelProto, inputs: Arrays, outputs: Sequence[str]) -> Any:
    import onnxruntime

    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    graph = onnx.helper.make_graph(
        nodes, "part", infos, [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
    )
    opsets = [item for item in model.opset_import if item.domain != DOMAIN]
    part = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=min(model.ir_version, 10))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    # Fused nodes round elsewhere, as one of a product and its quantization does: parts are cut between them.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(part.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _refusal(error) from None


def _refusal(error: Exception) -> UnsupportedError:
    message = f"onnxruntime refuses a part of the local model: {describe_error(error)}"
    return UnsupportedError(Diagnostic("cannot-run", message, hint="does it run the model on one device?"))


def _run_collective(node: NodeProto, devices: Sequence[Arrays]) -> None:
    attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    (output,) = node.output
    if node.op_type == "Offset":
        for device, entry in zip(devices, attributes["table"], strict=True):
            device[output] = np.array(entry, np.int64)
        return
    values = [device[node.input[0]] for device in devices]
    groups, at = [], 0
    for size in attributes["group_sizes"]:
        groups.append(attributes["groups"][at : at + size])
        at += size
    results = _KINDS[node.op_type](values, groups, attributes)
    for device, result in zip(devices, results, strict=True):
        device[output] = result


def _all_gather(values: list[Any], groups: list[list[int]], attributes: Any) -> list[Any]:
    results = list(values)
    for group in groups:
        joined = np.concatenate([values[device] for device in group], attributes["dim"])
        for device in group:
            results[device] = joined
    return results


def _all_reduce(values: list[Any], groups: list[list[int]], attributes: Any) -> list[Any]:
    results = list(values)
    for group in groups:
        total = _combined([values[device] for device in group], attributes["combiner"])
        for device in group:
            results[device] = total
    return results


def _reduce_scatter(values: list[Any], groups: list[list[int]], attributes: Any) -> list[Any]:
    totals, results = _all_reduce(values, groups, attributes), list(values)
    for group in groups:
        for part, device in zip(np.split(totals[group[0]], len(group), attributes["dim"]), group, strict=True):
            results[device] = part
    return results


def _all_to_all(values: list[Any], groups: list[list[int]], attributes: Any) -> list[Any]:
    results = list(values)
    for group in groups:
        parts = [np.split(values[device], len(group), attributes["split_dim"]) for device in group]
        for number, device in enumerate(group):
            results[device] = np.concatenate([part[number] for part in parts], attributes["concat_dim"])
    return results


def _collective_permute(values: list[Any], groups: list[list[int]], attributes: Any) -> list[Any]:
    results = [np.zeros_like(value) for value in values]
    for source, target in groups:
        results[target] = values[source]
    return results


_KINDS: dict[str, Callable[[list[Any], list[list[int]], Any], list[Any]]] = {
    "AllGather": _all_gather,
    "AllReduce": _all_reduce,
    "ReduceScatter": _reduce_scatter,
    "AllToAll": _all_to_all,
    "CollectivePermute": _collective_permute,
}
_COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_COMBINE |= {"and": np.logical_and, "or": np.logical_or}


def _combined(values: list[Any], combiner: Any) -> Any:
    function = _COMBINE[combiner.decode() if isinstance(combiner, bytes) else combiner]
    total = values[0]
    for value in values[1:]:
        total = function(total, value)
    return np.asarray(total, values[0].dtype)
