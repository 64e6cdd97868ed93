"""Locations of inlined ops: where they stood, and the calls through which they came."""

from __future__ import annotations

from jaxlib.mlir import ir

from shardy_py.frontends.mlir.native_ops import location_of
from shardy_py.frontends.mlir.native_program import NativeProgram
from shardy_py.ir.graph.program import Op

_MAX_CALL_SITES = 100
"""The limit on nested call sites in a location; MLIR prints and writes locations recursively."""


class CallSites:
    """The locations of ops that replaced a call.

    Args:
        origin: The native side of the program.
        calls: Op id to the call that the op replaced; an entry is dropped once its op has a location.
    """

    __slots__ = ("_calls", "_origin", "_places")

    def __init__(self, origin: NativeProgram, calls: dict[int, Op]) -> None:
        self._origin = origin
        self._calls = calls
        # Where calls were that are gone, by their ids, and how many calls in each other that tells of.
        self._places: dict[int, tuple[ir.Location, int]] = {}

    def locate(self, op: Op, *, is_copy: bool) -> None:
        """Set the location of a new native op that replaced a call; any other keeps its own."""
        call = self._calls.pop(op.id, None)
        if call is not None:
            native = op.handle.native
            native.location = self._call_site(native.location, call) if is_copy else self._place_of(call)

    def _call_site(self, location: ir.Location, call: Op) -> ir.Location:
        return ir.Location.callsite(location, [self._place_of(call)], context=self._origin.module.context)

    def _place_of(self, call: Op) -> ir.Location:
        """Return the location of an inlined call, with those of the calls of its function around it."""
        chain = [call]
        while chain[-1].id not in self._places and chain[-1].id in self._calls:
            chain.append(self._calls[chain[-1].id])
        context = self._origin.module.context
        found, depth = self._places.get(chain[-1].id, (None, 0))
        for item in reversed(chain):
            if item.id not in self._places:
                place, is_inner = location_of(item, self._origin), found is not None and depth < _MAX_CALL_SITES
                depth = depth + 1 if is_inner else 0
                found = ir.Location.callsite(place, [found], context=context) if is_inner else place
                self._places[item.id] = found, depth
        return self._places[call.id][0]
