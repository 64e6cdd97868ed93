"""The op graph that every frontend fills and every stage reads."""

from shardy_py.ir.graph.attributes import UNIT, Attribute, DenseElements, RawAttribute, SymbolRef, Unit
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.graphs import call_graph, callees_first, callers_first, to_networkx
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type, static_shape, tensor
from shardy_py.ir.graph.verify import diagnose, verify

__all__ = [
    "UNIT",
    "Attribute",
    "Block",
    "Builder",
    "DenseElements",
    "Op",
    "OpaqueType",
    "Program",
    "RawAttribute",
    "Region",
    "SymbolRef",
    "TensorType",
    "Type",
    "Unit",
    "Value",
    "call_graph",
    "callees_first",
    "callers_first",
    "diagnose",
    "static_shape",
    "tensor",
    "to_networkx",
    "verify",
]
