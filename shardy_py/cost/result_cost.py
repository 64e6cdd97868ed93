"""Cost of a result: counted in its local program, or estimated where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from attrs import evolve, fields

from shardy_py.api.keywords import keywords
from shardy_py.api.main_function import argument_names
from shardy_py.api.options import SessionArguments
from shardy_py.api.run_again import order_of
from shardy_py.cost.estimates import Cost
from shardy_py.cost.local_cost import CountedProgram, count_operations, price_local, without_partitioner
from shardy_py.cost.machines.profile import choose_profile
from shardy_py.cost.machines.toml import MachineLike, get_machine
from shardy_py.errors import Diagnostic, OptionError, ShardyError, UnsupportedError
from shardy_py.extensions import function
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.shardings import entry_arguments

if TYPE_CHECKING:
    from shardy_py.api.options import PropagateArguments
    from shardy_py.api.result import Result

PARTITIONERS = ("shardy_py", "xla")


def price_result(result: Result, machine: MachineLike | None, partitioner: str, **setting: Any) -> Cost:
    """Return what a propagated program costs; see `Result.cost`."""
    if partitioner not in PARTITIONERS:
        message = f"{partitioner!r} is not a valid partitioner"
        raise OptionError(Diagnostic("invalid-partitioner", message, hint="give 'shardy_py' or 'xla'"))
    if partitioner == "xla":
        return _estimate(result, machine, setting)
    refuse_dynamic_sizes(result.main)
    local = local_program(result)
    if isinstance(local, ShardyError):
        return add_reason(_estimate(result, machine, explicit_setting(machine, setting)), local)
    return count_result(result, local, machine, setting)


def refuse_dynamic_sizes(main: Op) -> None:
    """Check that all arguments of a function have sizes.

    Raises:
        UnsupportedError: one has a dynamic size.
    """
    for value, name in zip(entry_arguments(main), argument_names(main), strict=True):
        dims = [dim for dim, size in enumerate(getattr(value.type, "shape", ())) if size is None]
        if dims:
            message = f"a cost needs a number for dimension {dims[0]} of argument {name} of type {value.type}"
            hint = f"give it, --size {name}.{dims[0]}=64, or in Python sizes={{'{name}.{dims[0]}': 64}}"
            raise UnsupportedError(Diagnostic("size-not-known", message, main.location, main.name, hint))


def local_program(result: Result) -> CountedProgram | ShardyError:
    """Return the local program of a result, or the error that says why there is none."""
    try:
        if frontend_of(result.program).name == "torch":
            return cast(CountedProgram, function("local_torch")(result))
        return result.local()
    except ShardyError as error:
        return error


def count_result(result: Result, local: CountedProgram, machine: MachineLike | None, setting: dict[str, Any]) -> Cost:
    """Return the cost of a local program, beside the operations of the program that it was made of."""
    whole = count_operations(result.program, result.main, result.registry)
    return price_local(local, result.registry, machine, whole=whole, **setting)


def explicit_setting(machine: MachineLike | None, setting: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an estimate for Shardy's explicit reshards, whatever the compiler does besides."""
    rules = choose_profile(setting["profile"], None if machine is None else get_machine(machine))
    return {**setting, "profile": without_partitioner(rules)}


def add_reason(cost: Cost, error: ShardyError) -> Cost:
    """Return an estimate with a note that says why there is no local program to count in."""
    first = error.diagnostics[0]
    subject = f"{first.location}: " if first.location else ""
    subject += f"'{first.op}' op: " if first.op else ""
    note = f"estimated from shardings, not counted: there is no local program, as {subject}{first.message}"
    return evolve(cost, notes=(*cost.notes, f"{note} [{first.code}]"))


def _estimate(result: Result, machine: MachineLike | None, setting: dict[str, Any]) -> Cost:
    from shardy_py.cost.session import Session

    given = _arguments_of(result)
    known = keywords(given)
    names = [item.name for item in fields(SessionArguments) if item.name in known]
    session = Session.open(**{name: known[name] for name in names})
    return session.evaluate(order_of(given), machine, **setting).cost


def _arguments_of(result: Result) -> PropagateArguments:
    """Return the arguments of a run, with the program as it was given.

    Raises:
        OptionError: the run has changed the program, and was not traced.
    """
    if result.given is not None:
        return result.arguments_again()
    known = result.given_arguments
    if known is None or known.module is result.module:
        message = "an estimate propagates the program again, and the run has annotated its module"
        raise OptionError(Diagnostic("no-source", message, hint="call propagate with trace=True, or give it text"))
    return known
