"""Programs with advice written into them."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_py.api.options import ProgramInput
from shardy_py.api.program_source import DEFAULT_OPTIONS, SessionOptions
from shardy_py.api.run_input import give_shardings, read_input
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.shardings import store_shardings
from shardy_py.ir.graph.walk import all_values
from shardy_py.sharding.tensor import TensorSharding


def write_advised(
    given: ProgramInput, shardings: Mapping[int, TensorSharding], options: SessionOptions = DEFAULT_OPTIONS
) -> str:
    """Return the text of a program as it was given, with more shardings written on its tensors.

    Args:
        given: The program, which is read again.
        shardings: Id of a value to its sharding, see `Advice.shardings`.
        options: How it is read, and more plugins.

    Raises:
        ShardyError: the module is not valid.
    """
    read = read_input(given, options.load_registry())
    give_shardings(read, given)
    living = {value.id for function in read.program.functions.values() for value in all_values(function)}
    read.program.shardings.update({value: one for value, one in shardings.items() if value in living})
    store_shardings(read.program, read.registry)
    frontend = frontend_of(read.program)
    return frontend.print_text(frontend.write_back(read.program))
