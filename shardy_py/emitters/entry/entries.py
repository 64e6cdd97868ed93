"""The entry function of every emitter."""

from __future__ import annotations

from xdsl.dialects import func

from shardy_py.emitters.elemental.functions import FunctionEmitter
from shardy_py.emitters.entry.loop import loop_entry
from shardy_py.emitters.fusion.choose import Choice, EmitterKind
from shardy_py.emitters.launch.grid import Launch
from shardy_py.errors import Diagnostic, UnsupportedError


def entry_function(functions: FunctionEmitter, choice: Choice, launch: Launch) -> func.FuncOp:
    """Return the entry function of a kernel.

    Raises:
        UnsupportedError: the emitter has none.
    """
    if choice.kind is EmitterKind.LOOP:
        return loop_entry(functions, launch)
    message = f"the fusion is for the emitter {choice.kind.value}: {choice.reason}"
    hint = "modules of the loop emitter can be made; emitter, launch and functions are known for all"
    raise UnsupportedError(Diagnostic("no-entry-function", message, hint=hint))
