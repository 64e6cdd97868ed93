"""Names that a program had before the first pass, kept while passes change it: ``%arg0`` or ``params['w']``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.program import Op, Program
from shardy_py.propagation.problem import Problem
from shardy_py.trace.labels import Labels, capture_labels, program_names, with_copies
from shardy_py.transforms.constant_copies import CopyLog
from shardy_py.values import frozen


@frozen(eq=False)
class GivenNames:
    """The names of the values of a program.

    Args:
        names: Value id to name.
        aliases: Other names of arguments and results of the main function, with the ids of their values.
    """

    names: Mapping[int, str]
    aliases: Mapping[str, int]

    @classmethod
    def of(cls, program: Program, main: Op) -> GivenNames:
        """Return the names of a program as its text has them now."""
        printed, aliases = native_names(program, main)
        return cls(program_names(program, main, printed), aliases)

    def labels(self, program: Program, problem: Problem, copies: CopyLog | None = None) -> Labels:
        """Return the labels of a problem by these names, while its program is as propagation saw it.

        Args:
            program: The program of the problem.
            problem: The problem.
            copies: The copies of constants that passes made since.
        """
        return capture_labels(with_copies(self.names, program, copies), problem, self.aliases)


_NAMED = re.compile(r'loc\("((?:[^"\\]|\\.)*)"(?:\(.*\))?\)$', re.DOTALL)
_RESULT_INFO = "jax.result_info"


def native_names(program: Program, main: Op | None = None) -> tuple[dict[int, str], dict[str, int]]:
    """Return the names of values in the text of a program, and the other names of those of the main function.

    Args:
        program: The program; one that was built has no text.
        main: Its main function, whose arguments and results may have names of the user's.

    Returns:
        Value id to name, and the other names with the ids of their values.
    """
    if program.frontend is None:
        return {}, {}
    printed = frontend_of(program).printed_names(program)
    names = {value: name for value, (name, _) in printed.items()}
    if main is None:
        return names, {}
    return names, {**_arguments(main, printed), **_results(main)}


def _arguments(main: Op, printed: Any) -> dict[str, int]:
    """Return the names in the locations of arguments."""
    names: dict[str, int] = {}
    for region in main.regions:
        for value in region.blocks[0].arguments if region.blocks else ():
            native = printed[value.id][1] if value.id in printed else None
            match = _NAMED.match(str(getattr(native, "location", "")))
            if match:
                names.setdefault(match[1], value.id)
    return names


def _results(main: Op) -> dict[str, int]:
    """Return the names that JAX gives to results."""
    names: dict[str, int] = {}
    for value, item in zip(main.function_results, main.attributes.get("res_attrs") or (), strict=False):
        name = str(item.get(_RESULT_INFO, "")).strip('"')
        if name:
            names.setdefault(name, value.id)
    return names
