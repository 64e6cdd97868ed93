"""The op graph: functions, regions, blocks, ops, values, types, attributes, and the table of shardings."""

from shardy_py.ir.graph.program import Block, Op, Program, Region, Value

__all__ = ["Block", "Op", "Program", "Region", "Value"]
