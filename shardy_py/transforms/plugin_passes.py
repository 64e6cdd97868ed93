"""The passes of plugins among those of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.errors import PluginError
from shardy_py.ir.passes import Pass, unknown_name
from shardy_py.plugins import Registry
from shardy_py.transforms.guarded_pass import guard_pass
from shardy_py.transforms.run import PASSES


def with_plugin_passes(passes: Iterable[Pass], registry: Registry) -> tuple[Pass, ...]:
    """Return passes with those of plugins that name one of them in ``runs_before``, each before the first of that name.

    Several before the same one come in the order of their names. A pass that names none, or one that this pipeline does
    not have, is left out.

    Raises:
        PluginError: a pass names one that does not exist.
    """
    waiting: dict[str, list[Pass]] = {}
    for name, class_ in sorted(registry.passes.items()):
        before = getattr(class_, "runs_before", None)
        if before is None:
            continue
        if before not in PASSES:
            message = f"the pass {name!r} is to run before {before!r}, which does not exist"
            raise PluginError(unknown_name("unknown-pass", message, before, PASSES))
        waiting.setdefault(before, []).append(guard_pass(name, class_, registry))
    found: list[Pass] = []
    for item in passes:
        found += waiting.pop(item.name, ())
        found.append(item)
    return tuple(found)
