"""Scopes of entry functions: where elements are computed by calls of functions, none by the entry function itself."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder, InsertPoint
from xdsl.ir import Block, SSAValue

from shardy_py.ir.graph.program import Value
from shardy_py.kernels.elemental.builder import Indices, Scope
from shardy_py.kernels.elemental.functions import FunctionEmitter, call_element


class _NoFunction:
    """The entry function computes no element itself."""

    def __init__(self, functions: FunctionEmitter) -> None:
        self.registry = functions.fusion.registry
        self.region_function = functions.region_function
        self.index_bits = functions.index_bits

    def computes(self, value: Value) -> bool:
        """Return False: what the entry function asks for is computed by others."""
        return False

    def outside(self, scope: Scope, value: Value, indices: Indices) -> None:
        """Return nothing."""


def entry_scope(functions: FunctionEmitter, block: Block) -> Scope:
    """Return a scope at the end of a block of the entry function."""
    return Scope(_NoFunction(functions), Builder(InsertPoint.at_end(block)))


def called_element(
    functions: FunctionEmitter, scope: Scope, value: Value, parameters: Sequence[SSAValue], indices: Sequence[SSAValue]
) -> SSAValue:
    """Return an element of a value, by a call of the function that computes it.

    Args:
        functions: The functions.
        scope: Where the call is added.
        value: A root of a function.
        parameters: The parameters of the fusion.
        indices: The index of the element.
    """
    function = functions.partition.function_of(functions.fusion.producer(value) or value)
    return call_element(scope, function, value, parameters, tuple(indices))
