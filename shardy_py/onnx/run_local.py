"""Local models on simulated devices: onnxruntime runs the nodes between two collectives, numpy the collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.guards.error_texts import describe_error
from shardy_py.onnx.write_local import DOMAIN

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
    pending: list[NodeProto] = []
    last_use = _last_uses(model)
    for number, node in enumerate(model.graph.node):
        if node.domain != DOMAIN:
            pending.append(node)
            continue
        _run_nodes(pending, model, devices, last_use, number)
        pending = []
        _run_collective(node, devices)
    _run_nodes(pending, model, devices, last_use, len(model.graph.node))
    return [np.stack([device[info.name] for device in devices]) for info in model.graph.output]


def _last_uses(model: ModelProto) -> dict[str, int]:
    """Return the number of the last node that reads each tensor; that of outputs is behind all nodes."""
    uses: dict[str, int] = {}
    for number, node in enumerate(model.graph.node):
        for name in (*node.input, *_inner_names(node)):
            uses[name] = number
    return uses | {info.name: len(model.graph.node) + 1 for info in model.graph.output}


def _inner_names(node: NodeProto) -> list[str]:
    from shardy_py.onnx.importer import _captured

    return _captured(node)


def _run_nodes(
    nodes: Sequence[NodeProto], model: ModelProto, devices: Sequence[Arrays], last_use: dict[str, int], end: int
) -> None:
    """Run some nodes on all devices; what is read from a node on becomes known."""
    if not nodes:
        return
    made = [name for node in nodes for name in node.output if name]
    outputs = [name for name in made if last_use.get(name, -1) >= end]
    if not outputs:
        return
    inputs = {
        name: devices[0][name]
        for node in nodes
        for name in (*node.input, *_inner_names(node))
        if name and name in devices[0]
    }
    session = _session(nodes, model, inputs, outputs)
    for device in devices:
        try:
            results = session.run(outputs, {name: np.asarray(device[name], order="C") for name in inputs})
        except Exception as error:
            raise _refusal(error) from None
        device.update(zip(outputs, results, strict=True))


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
