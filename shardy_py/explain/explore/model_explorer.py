"""Graphs and node data for Google's Model Explorer, as two JSON files.

The formats are those that its documentation names ``Graph`` and ``custom node data``: identifiers are strings,
namespaces fold at slashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

GRAPH_FILE = "graph.json"
NODE_DATA_FILE = "node_data.json"
_GRAPH = "program"
_GRADIENT = [{"stop": 0, "bgColor": "#f6f7f9"}, {"stop": 1, "bgColor": "#b3261e"}]


def model_explorer_files(data: Mapping[str, Any]) -> tuple[str, str]:
    """Return the graph, and the node data with the bytes sent at each op.

    Args:
        data: The data of a page.
    """
    view = _View(data)
    graph = {"label": data["title"], "graphs": [{"id": _GRAPH, "nodes": list(view.nodes())}]}
    node_data = {
        _GRAPH: {
            "name": "bytes sent by a device",
            "results": {str(op): {"value": sent} for op, sent in sorted(view.sent.items())},
            "gradient": _GRADIENT,
        }
    }
    return json.dumps(graph, ensure_ascii=False), json.dumps(node_data, ensure_ascii=False)


class _View:
    """Rows of a page as nodes."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._strings: Sequence[str] = data["strings"]
        self._run = data["runs"][0]
        self._transfers: dict[int, list[int]] = {}
        self.sent: dict[int, float] = {}
        for number, op in enumerate(map(self._place, range(len(self._run["transfers"]["kind"])))):
            if op >= 0:
                self._transfers.setdefault(op, []).append(number)
                moved = self._run["transfers"]["bytes"][number] * self._run["transfers"]["runs"][number]
                self.sent[op] = self.sent.get(op, 0.0) + moved

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Yield a node for each op, argument and result."""
        ops = self._data["ops"]
        for row in range(len(ops["id"])):
            yield {
                "id": str(row),
                "label": self._strings[ops["name"][row]],
                "namespace": self._namespace(ops["group"][row]),
                "attrs": list(self._attributes(row)),
                "incomingEdges": list(self._edges(row)),
                "outputsMetadata": [
                    {"id": str(number), "attrs": list(self._tensor(value))}
                    for number, value in enumerate(ops["outputs"][row])
                ],
            }

    def _place(self, transfer: int) -> int:
        """Return the op at which a transfer counts: itself, the producer of the tensor, or its first user."""
        columns = self._run["transfers"]
        if columns["op"][transfer] >= 0:
            return columns["op"][transfer]
        if columns["value"][transfer] >= 0:
            return self._data["values"]["op"][columns["value"][transfer]]
        return next(iter(columns["users"][transfer]), -1)

    def _namespace(self, group: int) -> str:
        groups, names = self._data["groups"], []
        while group >= 0:
            names.append(self._strings[groups["name"][group]].replace("/", " "))
            group = groups["parent"][group]
        return "/".join(reversed(names))

    def _attributes(self, row: int) -> Iterator[dict[str, str]]:
        ops = self._data["ops"]
        for key, column in (("name stack", "scope"), ("location", "location"), ("rule", "rule")):
            text = self._strings[ops[column][row]] if ops[column][row] >= 0 else ""
            if text:
                yield {"key": key, "value": text}
        for number in self._transfers.get(row, ()):
            kind = self._strings[self._run["transfers"]["kind"][number]]
            yield {"key": "transfer", "value": f"{kind}, {self._run['transfers']['bytes'][number]} bytes each time"}

    def _edges(self, row: int) -> Iterator[dict[str, str]]:
        ops, values = self._data["ops"], self._data["values"]
        for number, value in enumerate(ops["inputs"][row]):
            source = values["op"][value]
            yield {
                "sourceNodeId": str(source),
                "sourceNodeOutputId": str(ops["outputs"][source].index(value)),
                "targetNodeInputId": str(number),
            }

    def _tensor(self, value: int) -> Iterator[dict[str, str]]:
        values = self._data["values"]
        yield {"key": "tensor", "value": self._data["types"][values["type"][value]]["text"]}
        sharding = self._run["shardings"][value]
        if sharding >= 0:
            yield {"key": "sharding", "value": self._data["shardings"][sharding]["text"]}
        name = self._strings[values["name"][value]]
        if name:
            yield {"key": "name", "value": name}
