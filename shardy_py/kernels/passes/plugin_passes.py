"""Passes of plugins over the modules of kernels: their places among the others, and the guard around them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import builtin
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import Diagnostic, PluginError, did_you_mean
from shardy_py.guards.guard import Guard
from shardy_py.ir.interfaces.kernels import KernelModulePass
from shardy_py.kernels.passes.base import KernelContext, KernelPass
from shardy_py.kernels.passes.pipeline import KernelStep
from shardy_py.plugins import Registry
from shardy_py.values import frozen

_CODE = "pass-failed"


def with_plugin_passes(steps: Sequence[KernelStep], registry: Registry) -> tuple[KernelStep, ...]:
    """Return steps with the passes of plugins: before the first of the name that they give, or after the last.

    Several at one place come in the order of their names.

    Raises:
        PluginError: a pass names none of the steps, or cannot be made.
    """
    if not registry.kernel_passes:
        return tuple(steps)
    names = [step.run.name for step in steps]
    before: dict[int, list[KernelStep]] = {}
    after: dict[int, list[KernelStep]] = {}
    for name, class_ in registry.kernel_passes.items():
        step = KernelStep(_guarded(name, class_, registry), "a pass of a plugin, where it asks to be")
        first, last = getattr(class_, "runs_before", None), getattr(class_, "runs_after", None)
        if first in names:
            before.setdefault(names.index(first), []).append(step)
        elif last in names:
            after.setdefault(len(names) - 1 - names[::-1].index(last), []).append(step)
        else:
            named = first or last or ""
            message = f"the pass {name!r} runs beside {named!r}, which is no pass of kernels"
            hint = did_you_mean(named, names, otherwise=f"runs_before or runs_after is one of {', '.join(names)}")
            raise PluginError(Diagnostic("unknown-pass", message, hint=hint))
    found: list[KernelStep] = []
    for number, step in enumerate(steps):
        found += [*before.get(number, ()), step, *after.get(number, ())]
    return tuple(found)


def _guarded(name: str, class_: type[KernelModulePass], registry: Registry) -> KernelPass:
    info = next((info for info in registry.plugins if name in info.passes), None)
    owner = "an unknown owner" if info is None else info.owner
    item = Guard(class_, f"the pass {name!r}", owner, code=_CODE).call()
    return _GuardedPass(item, name, owner)


@frozen
class _GuardedPass:
    """A pass of a plugin: what goes wrong in it, or with the module after it, names the plugin."""

    item: KernelModulePass
    name: str
    owner: str

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Run the pass, and verify what it leaves.

        Raises:
            PluginError: it raises, or leaves a module that is not well formed.
        """
        guard = Guard(self.item.run, f"the pass {self.name!r}", self.owner, code=_CODE)
        guard.call(module, context)
        try:
            module.verify()
        except VerifyException as error:
            raise guard.refusal(f"left a module that is not well formed: {str(error).splitlines()[0]}") from error
