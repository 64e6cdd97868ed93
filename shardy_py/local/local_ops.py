"""The ops for communication in a local program, and the numbers of its channels."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.local import LocalOps, LocalSemantics
from shardy_py.ir.interfaces.ops import OpSemantics

_HANDLE = re.compile(r"handle\s*=\s*(\d+)")


def find_local_ops(program: Program, semantics: OpSemantics) -> LocalOps:
    """Return the communication ops of the first dialect in the program that has some, else those of a general one.

    Raises:
        UnsupportedError: no dialect has any.
    """
    known: Mapping[str, LocalOps] = semantics.local_ops if isinstance(semantics, LocalSemantics) else {}
    for op in all_ops(program):
        space = op.name.partition(".")[0]
        if space in known:
            return known[space]
    if not known:
        message = "no plugin has ops for communication between devices"
        raise UnsupportedError(Diagnostic("no-local-ops", message, hint="Dialect(name, local_ops=...)"))
    return next((item for item in known.values() if item.are_general), next(iter(known.values())))


def last_channel(program: Program) -> int:
    """Return the largest number of a channel in a program, 0 where it has none."""
    texts = (str(op.attributes["channel_handle"]) for op in all_ops(program) if "channel_handle" in op.attributes)
    return max((int(number) for text in texts for number in _HANDLE.findall(text)), default=0)
