"""Guarded emitters of plugins: what goes wrong in them names the plugin."""

from __future__ import annotations

from typing import Any

from shardy_py.guards.error_texts import shown
from shardy_py.guards.guard import Guard, InvalidAnswer
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.kernels import KernelEmitter
from shardy_py.values import frozen


@frozen(eq=False)
class GuardedEmitter:
    """An emitter whose every method is called behind the guard.

    Args:
        emitter: The emitter of the plugin.
        owner: The words that name the plugin.
    """

    emitter: KernelEmitter
    owner: str

    @property
    def name(self) -> str:
        """The name of the emitter."""
        return self.emitter.name

    def accepts(self, fusion: Any) -> str:
        """Return why the emitter takes a fusion, or ""."""
        found: str = self._guard("accepts").call(fusion, check=_text)
        return found

    def launch(self, fusion: Any, device: Any) -> Any:
        """Return the blocks and threads of a fusion."""
        return self._guard("launch").call(fusion, device, check=_one("Launch"))

    def entry(self, functions: Any, launch: Any) -> Any:
        """Return the entry function."""
        return self._guard("entry").call(functions, launch, check=_one("FuncOp"))

    def _guard(self, method: str) -> Guard:
        function = getattr(self.emitter, method)
        return Guard(function, f"{method} of the emitter {self.name!r}", self.owner, code="emitter-failed")


def _text(answer: Any, op: Op) -> str:
    if not isinstance(answer, str):
        raise InvalidAnswer(
            f"returned {shown(answer)}, not a text", 'return the reason, or "" for a fusion that it does not take'
        )
    return answer


def _one(name: str) -> Any:
    def check(answer: Any, op: Op) -> Any:
        # The classes are those of rooms above this one, and of xDSL.
        if type(answer).__name__ != name:
            raise InvalidAnswer(f"returned {shown(answer)}, not a {name}")
        return answer

    return check
