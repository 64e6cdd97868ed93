"""What XLA could compile, but nobody could run: found before XLA sees the module."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph import Program

_ENDLESS: Mapping[str, str] = {
    "stablehlo.infeed": "waits for data that nothing hands over",
    "stablehlo.outfeed": "hands over data that nothing takes",
    "stablehlo.recv": "waits for data that nothing sends",
    "stablehlo.send": "sends data that nothing takes",
}


def refuse_what_cannot_run(program: Program) -> None:
    """Check that a program waits for nothing.

    Raises:
        UnsupportedError: an op would wait for ever.
    """
    found = [
        Diagnostic("waits-for-ever", f"it {_ENDLESS[op.name]}: JAX has no call for that any more", op.location, op.name)
        for op in program.walk()
        if op.name in _ENDLESS
    ]
    if found:
        raise UnsupportedError(*found)
