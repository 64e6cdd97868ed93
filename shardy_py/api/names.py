"""Names of a propagated program: values by number, printed name or native value, and the def-use graph with names."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from shardy_py.api.main_function import (
    argument_aliases,
    argument_names,
    arguments_of,
    main_arguments,
    result_name,
    result_names,
)
from shardy_py.api.summary import sharding_of
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.graphs import to_networkx
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import all_values
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.support.arguments import as_integer, shown
from shardy_py.values import frozen

if TYPE_CHECKING:
    import networkx as nx


@frozen
class ValueNames:
    """Finds values of a program.

    Args:
        main: The main function, whose arguments have numbers.
        by_name: The values by their name in the text, without the percent sign, and the arguments and results of the
            main function by their own names. A name that several functions or regions use means the main function's
            value, or else the first.
        by_native: The values by the frontend's native ones.
    """

    main: Op
    by_name: Mapping[str, Value]
    by_native: Mapping[Any, Value]

    @classmethod
    def of(cls, program: Program, main: Op) -> ValueNames:
        """Collect the names of a program's values as they are printed now."""
        known = frontend_of(program).printed_names(program)
        by_name: dict[str, Value] = {}
        by_native: dict[Any, Value] = {}
        for function in [main, *(op for op in program.functions.values() if op is not main)]:
            for value in all_values(function):
                if value.id in known:
                    name, native = known[value.id]
                    by_name.setdefault(name.removeprefix("%"), value)
                    if native is not None:
                        by_native[native] = value
        arguments, results = arguments_of(main), main.function_results
        for name, number in argument_aliases(main).items():
            by_name.setdefault(name, arguments[number])
        numbered = map(result_name, range(len(results)))
        for names, values in ((argument_names(main), arguments), (result_names(main), results), (numbered, results)):
            for name, value in zip(names, values, strict=True):
                by_name.setdefault(name, value)
        return cls(main, by_name, by_native)

    def find(self, key: Any) -> Value:
        """Return the value of a number, a name or a native value.

        Raises:
            OptionError: there is none.
        """
        number = as_integer(key)
        if number is not None:
            return main_arguments(self.main).find(number)
        if isinstance(key, str):
            value = self.by_name.get(key.strip().removeprefix("%"))
        else:
            value = self.by_native.get(key) if isinstance(key, Hashable) else None
        if value is None:
            raise OptionError(
                Diagnostic(
                    "unknown-value",
                    f"the module has no value {key if isinstance(key, str) else shown(key)}",
                    hint="give the number of an argument, or a name as the result's text prints it, such as %5",
                )
            )
        return value


def named_graph(program: Program, semantics: OpSemantics) -> nx.MultiDiGraph:
    """Return the graph; see `Result.to_networkx`."""
    graph = to_networkx(program)
    printed = frontend_of(program).printed_names(program)
    for value in all_values(program):
        sharding = sharding_of(program, value, semantics)
        graph.nodes["value", value.id].update(name=printed.get(value.id, ("",))[0], sharding=sharding)
    return graph
