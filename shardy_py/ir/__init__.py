"""The op graph that every frontend fills and every stage reads."""

from shardy_py.ir.attributes import UNIT, Attribute, DenseElements, RawAttribute, SymbolRef, Unit
from shardy_py.ir.builder import Builder
from shardy_py.ir.callgraph import call_graph, callees_first, callers_first
from shardy_py.ir.graph import Block, Op, Program, Region, Value
from shardy_py.ir.networkx import to_networkx
from shardy_py.ir.types import OpaqueType, TensorType, Type, static_shape, tensor
from shardy_py.ir.verify import diagnose, verify

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
