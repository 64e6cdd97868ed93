"""Cost of a result: counted in its local program, or estimated where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from shardy_py.api.keywords import keywords
from shardy_py.api.main_function import argument_names
from shardy_py.api.run_again import order_of
from shardy_py.cost.estimates import Cost
from shardy_py.cost.local_cost import (
    CountedProgram,
    add_reason,
    check_partitioner,
    count_operations,
    explicit_setting,
    price_local,
)
from shardy_py.cost.machines.toml import MachineLike
from shardy_py.errors import Diagnostic, OptionError, ShardyError, UnsupportedError
from shardy_py.extensions import function
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.shardings import entry_arguments

if TYPE_CHECKING:
    from shardy_py.api.options import PropagateArguments
    from shardy_py.api.result import Result


def price_result(result: Result, machine: MachineLike | None, partitioner: str, **setting: Any) -> Cost:
    """Return what a propagated program costs; see `Result.cost`."""
    check_partitioner(partitioner)
    if partitioner == "xla":
        return _estimate(result, machine, setting)
    local = local_program(result)
    if isinstance(local, ShardyError):
        return add_reason(_estimate(result, machine, explicit_setting(machine, setting)), local)
    return count_result(result, local, machine, setting)


def local_program(result: Result) -> CountedProgram | ShardyError:
    """Return the local program of a result, or the error that says why there is none.

    Raises:
        UnsupportedError: an argument has a dynamic size, for which nothing can be counted nor estimated.
    """
    _refuse_dynamic_sizes(result.main)
    try:
        if frontend_of(result.program).name == "torch":
            return cast(CountedProgram, function("local_torch")(result))
        return result.local()
    except ShardyError as error:
        return error


def _refuse_dynamic_sizes(main: Op) -> None:
    """Check that all arguments of a function have sizes.

    Raises:
        UnsupportedError: one has a dynamic size.
    """
    for value, name in zip(entry_arguments(main), argument_names(main), strict=True):
        dims = [dim for dim, size in enumerate(getattr(value.type, "shape", ())) if size is None]
        if dims:
            message = f"a cost needs a number for dimension {dims[0]} of argument {name} of type {value.type}"
            hint = f"give it, --size {name}.{dims[0]}=64, or in Python sizes={{'{name}.{dims[0]}': 64}}; without times"
            hint += " and numbers: shardy cost without --machine, or Result.cost_expressions()"
            raise UnsupportedError(Diagnostic("size-not-known", message, main.location, main.name, hint))


def count_result(result: Result, local: CountedProgram, machine: MachineLike | None, setting: dict[str, Any]) -> Cost:
    """Return the cost of a local program, beside the operations of the program that it was made of."""
    unpartitioned = count_operations(result.program, result.main, result.registry)
    return price_local(local, result.registry, machine, unpartitioned=unpartitioned, **setting)


def _estimate(result: Result, machine: MachineLike | None, setting: dict[str, Any]) -> Cost:
    from shardy_py.cost.reopen import session_arguments
    from shardy_py.cost.session import Session

    arguments = arguments_of_run(result)
    session = Session.open(**keywords(session_arguments(arguments)))
    return session.evaluate(order_of(arguments), machine, partitioner="xla", **setting).cost


def arguments_of_run(result: Result) -> PropagateArguments:
    """Return the arguments of a run, with the program as it was given.

    Raises:
        OptionError: the run has changed the program, and was not traced.
    """
    if result.given is not None:
        return result.arguments_again()
    given_arguments = result.given_arguments
    if given_arguments is None or given_arguments.module is result.module:
        message = "an estimate propagates the program again, and the run has annotated its module"
        raise OptionError(Diagnostic("no-source", message, hint="call propagate with trace=True, or give it text"))
    return given_arguments
